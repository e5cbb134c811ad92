#ifdef __x86_64__
/* Entries that a compiler doesn't make: the shapes that must be skipped, and a function that stores all registers. */
#define VECTORS 256 /* offsets in struct Registers; the second from the first */
#define CONTROL 2048

	.text
.macro entry name
	.globl \name
	.type \name, @function
\name:
.endm
.macro done name
	.size \name, . - \name
.endm

	.balign 16
entry cuShort /* three bytes: no jump fits */
	xorl %eax, %eax
	ret
done cuShort

	.balign 16
	nop
	nop
entry cuUnaligned
	movl $7, %eax
	nop
	nop
	ret
done cuUnaligned

	.balign 16
entry cuShortLandingPad /* long enough for the jump, not for the landing pad in front of it */
	endbr64
	movb $1, %al
	ret
done cuShortLandingPad

	.balign 16
entry cuLandingPad
	endbr64
	movl $17, %eax
	ret
done cuLandingPad

	.balign 16
entry cuAliasB
entry cuAliasA
	movl $23, %eax
	ret
done cuAliasA
done cuAliasB

	.balign 16
entry cuOverlapped /* another exported function begins inside the room of the jump */
	nop
	nop
	nop
	nop
entry fakeInner
	movl $29, %eax
	ret
done fakeInner
done cuOverlapped

	.balign 16
entry cuFourByteNeighbour /* alone it has room enough */
	movl $31, %eax
	ret
done cuFourByteNeighbour

	.balign 4096
	.skip 4096 - 8, 0x90
entry cuAcrossPages /* its jump reaches into the next page */
	endbr64
	movl $37, %eax
	ret
done cuAcrossPages

	/* Far away, with pages between that hold no entry. */
	.balign 4096
	.skip 16 * 4096, 0x90
entry cuFar
	pushq %rbp
	movq %rsp, %rbp
	movl $41, %eax
	popq %rbp
	ret
done cuFar

	/* As many as a real driver has. */
	.altmacro
.macro many n
	.balign 16
entry cuMany\n
	movl $\n, %eax
	ret
done cuMany\n
.endm
	.set number, 100
	.rept 500
	many %number
	.set number, number + 1
	.endr
	.noaltmacro

	/* Stores all registers where the caller of the test says, through a pointer in the data. */
	.balign 16
entry cuStoreRegisters
	movq fake_registers@GOTPCREL(%rip), %r11
	movq (%r11), %r11
	movq %rax, 0(%r11)
	movq %rbx, 8(%r11)
	movq %rcx, 16(%r11)
	movq %rdx, 24(%r11)
	movq %rsi, 32(%r11)
	movq %rdi, 40(%r11)
	movq %rbp, 48(%r11)
	movq %rsp, 56(%r11)
	movq %r8, 64(%r11)
	movq %r9, 72(%r11)
	movq %r10, 80(%r11)
	movq %r12, 96(%r11)
	movq %r13, 104(%r11)
	movq %r14, 112(%r11)
	movq %r15, 120(%r11)
	leaq VECTORS(%r11), %r11
	testl $-1, fake_has_avx512(%rip)
	jnz 3f
	testl $-1, fake_has_avx(%rip)
	jnz 2f
.macro each op, reg
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\op %\reg\n, (64 * \n)(%r11)
	.endr
.endm
	each movups xmm
	jmp 4f
2:	each vmovups ymm
	jmp 4f
3:	each vmovups zmm
4:	stmxcsr CONTROL(%r11)
	fnstcw CONTROL + 4(%r11)
	movl $43, %eax
	ret
done cuStoreRegisters

	/* void fake_load_registers_and_call(const Registers*, function): known values in all of them, then the call. */
	.balign 16
entry fake_load_registers_and_call
	pushq %rbp
	movq %rsp, %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	subq $24, %rsp
	stmxcsr (%rsp)
	fnstcw 4(%rsp)
	movq %rsi, 8(%rsp)
	leaq VECTORS(%rdi), %r11
.macro load op, reg
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\op (64 * \n)(%r11), %\reg\n
	.endr
.endm
	testl $-1, fake_has_avx512(%rip)
	jnz 3f
	testl $-1, fake_has_avx(%rip)
	jnz 2f
	load movups xmm
	jmp 4f
2:	load vmovups ymm
	jmp 4f
3:	load vmovups zmm
4:	ldmxcsr CONTROL(%r11)
	fldcw CONTROL + 4(%r11)
	movq 0(%rdi), %rax
	movq 8(%rdi), %rbx
	movq 16(%rdi), %rcx
	movq 24(%rdi), %rdx
	movq 32(%rdi), %rsi
	movq 64(%rdi), %r8
	movq 72(%rdi), %r9
	movq 80(%rdi), %r10
	movq 96(%rdi), %r12
	movq 104(%rdi), %r13
	movq 112(%rdi), %r14
	movq 120(%rdi), %r15
	movq 40(%rdi), %rdi
	call *8(%rsp)
	ldmxcsr (%rsp)
	fldcw 4(%rsp)
	testl $-1, fake_has_avx(%rip)
	jz 5f
	vzeroupper
5:	addq $24, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
done fake_load_registers_and_call

#endif

	.section .note.GNU-stack, "", %progbits
