/* Where every thunk goes: keeps what the caller passed, asks cfg_tripwire_hit, goes on at the real function. */
#ifdef __aarch64__

#define FRAME 224 /* x29 x30, x0-x8, x16, q0-q7 */

	.text
	.globl cfg_tripwire_common
	.hidden cfg_tripwire_common
	.type cfg_tripwire_common, %function
	.align 4
cfg_tripwire_common:
	.cfi_startproc
	hint #34 /* bti c */
	stp x29, x30, [sp, #-FRAME]!
	.cfi_def_cfa_offset FRAME
	.cfi_offset x29, -FRAME
	.cfi_offset x30, -(FRAME - 8)
	mov x29, sp
	.cfi_def_cfa_register x29
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80] /* where a large result goes */
	/* All that the base procedure call standard passes in vector registers; no driver function takes SVE vectors. */
	stp q0, q1, [sp, #96]
	stp q2, q3, [sp, #128]
	stp q4, q5, [sp, #160]
	stp q6, q7, [sp, #192]
	mov x0, x16
	bl cfg_tripwire_hit
	mov x17, x0
	ldp q6, q7, [sp, #192]
	ldp q4, q5, [sp, #160]
	ldp q2, q3, [sp, #128]
	ldp q0, q1, [sp, #96]
	ldr x8, [sp, #80]
	ldp x6, x7, [sp, #64]
	ldp x4, x5, [sp, #48]
	ldp x2, x3, [sp, #32]
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #FRAME
	.cfi_restore x29
	.cfi_restore x30
	.cfi_def_cfa sp, 0
	cbz x17, 1f
	br x17
	/* The pages can't be put back: answer as the driver does in a forked child, CUDA_ERROR_NOT_INITIALIZED. */
1:	mov w0, #3
	ret
	.cfi_endproc
	.size cfg_tripwire_common, . - cfg_tripwire_common

#endif

	.section .note.GNU-stack, "", %progbits
