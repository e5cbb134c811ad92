#ifdef __aarch64__
/* The counterpart of fake_entries_x86_64.S. */
#define VECTORS 256 /* offset in struct Registers */

	.text
.macro entry name
	.globl \name
	.type \name, %function
\name:
.endm
.macro done name
	.size \name, . - \name
.endm

	.balign 16
entry cuShort /* no instruction of its own but a landing pad: no room for the jump behind it */
	hint #34
done cuShort
	mov w0, #0
	ret

	.balign 16
entry cuLandingPad
	hint #34 /* bti c */
	mov w0, #17
	ret
done cuLandingPad

	.balign 16
entry cuSigned
	hint #25 /* paciasp */
	mov w0, #19
	hint #29 /* autiasp */
	ret
done cuSigned

	.balign 16
entry cuAliasB
entry cuAliasA
	mov w0, #23
	ret
done cuAliasA
done cuAliasB

	.balign 65536
	.skip 65536 - 4
entry cuAcrossPages /* the last word of a page */
	hint #34
	mov w0, #37
	ret
done cuAcrossPages

	.balign 65536
	.skip 2 * 65536
entry cuFar
	mov w0, #41
	ret
done cuFar

	/* As many as a real driver has. */
	.altmacro
.macro many n
	.balign 16
entry cuMany\n
	mov w0, #\n
	ret
done cuMany\n
.endm
	.set number, 100
	.rept 500
	many %number
	.set number, number + 1
	.endr
	.noaltmacro

	.balign 16
entry cuStoreRegisters
	adrp x16, :got:fake_registers
	ldr x16, [x16, :got_lo12:fake_registers]
	ldr x16, [x16]
	stp x0, x1, [x16, #0]
	stp x2, x3, [x16, #16]
	stp x4, x5, [x16, #32]
	stp x6, x7, [x16, #48]
	str x8, [x16, #64]
	stp x19, x20, [x16, #152]
	stp x21, x22, [x16, #168]
	stp x23, x24, [x16, #184]
	stp x25, x26, [x16, #200]
	stp x27, x28, [x16, #216]
	stp x29, x30, [x16, #232]
	mov x17, sp
	str x17, [x16, #248]
	add x16, x16, #VECTORS
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	str q\n, [x16, #(64 * \n)]
	.endr
	.irp n, 8, 9, 10, 11, 12, 13, 14, 15
	str d\n, [x16, #(64 * \n)]
	.endr
	mov w0, #43
	ret
done cuStoreRegisters

	.balign 16
entry fake_load_registers_and_call
	stp x29, x30, [sp, #-176]!
	mov x29, sp
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	stp x23, x24, [sp, #48]
	stp x25, x26, [sp, #64]
	stp x27, x28, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	mov x16, x0
	mov x17, x1
	add x0, x16, #VECTORS
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	ldr q\n, [x0, #(64 * \n)]
	.endr
	ldp x0, x1, [x16, #0]
	ldp x2, x3, [x16, #16]
	ldp x4, x5, [x16, #32]
	ldp x6, x7, [x16, #48]
	ldr x8, [x16, #64]
	ldp x19, x20, [x16, #152]
	ldp x21, x22, [x16, #168]
	ldp x23, x24, [x16, #184]
	ldp x25, x26, [x16, #200]
	ldp x27, x28, [x16, #216]
	blr x17
	ldp d14, d15, [sp, #144]
	ldp d12, d13, [sp, #128]
	ldp d10, d11, [sp, #112]
	ldp d8, d9, [sp, #96]
	ldp x27, x28, [sp, #80]
	ldp x25, x26, [sp, #64]
	ldp x23, x24, [sp, #48]
	ldp x21, x22, [sp, #32]
	ldp x19, x20, [sp, #16]
	ldp x29, x30, [sp], #176
	ret
done fake_load_registers_and_call

#endif

	.section .note.GNU-stack, "", %progbits
