/* Where every thunk goes: keeps what the caller passed, asks cfg_tripwire_hit, goes on at the real function. */
#ifdef __x86_64__

#ifdef __CET__
#include <cet.h> /* marks this object as fit for IBT and shadow stacks */
#endif

#define KEPT 64 /* the eight registers pushed below %rbx */

	.text
	.globl cfg_tripwire_common
	.hidden cfg_tripwire_common
	.type cfg_tripwire_common, @function
	.align 16
cfg_tripwire_common:
	.cfi_startproc
	endbr64
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %rbx
	.cfi_offset %rbx, -24
	pushq %rax /* %al: how many vector registers a variadic call uses */
	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq %r9
	pushq %r10
	movq %r11, %rbx
	cld

	/* By the ABI vector arguments may be live in all 512 bits of %zmm0-7, and the handler may end with vzeroupper. */
	movl cfg_tripwire_vector_room(%rip), %eax
	subq %rax, %rsp
	andq $-64, %rsp
	movl cfg_tripwire_xsave_mask(%rip), %eax
	testl %eax, %eax
	jz 1f
	xorl %edx, %edx
	movq %rdx, 512(%rsp) /* XRSTOR refuses a header with anything left over in it */
	movq %rdx, 520(%rsp)
	movq %rdx, 528(%rsp)
	movq %rdx, 536(%rsp)
	movq %rdx, 544(%rsp)
	movq %rdx, 552(%rsp)
	movq %rdx, 560(%rsp)
	movq %rdx, 568(%rsp)
	xsave64 (%rsp)
	jmp 2f
1:	fxsave64 (%rsp)
2:	movq %rbx, %rdi
	call cfg_tripwire_hit
	movq %rax, %r11
	movl cfg_tripwire_xsave_mask(%rip), %eax
	testl %eax, %eax
	jz 3f
	xorl %edx, %edx
	xrstor64 (%rsp)
	jmp 4f
3:	fxrstor64 (%rsp)
4:	leaq -(8 + KEPT)(%rbp), %rsp
	popq %r10
	popq %r9
	popq %r8
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	popq %rax
	popq %rbx
	.cfi_restore %rbx
	popq %rbp
	.cfi_restore %rbp
	.cfi_def_cfa %rsp, 8
	testq %r11, %r11
	jz 5f
	jmp *%r11
	/* The pages can't be put back: answer as the driver does in a forked child, CUDA_ERROR_NOT_INITIALIZED. */
5:	movl $3, %eax
	ret
	.cfi_endproc
	.size cfg_tripwire_common, . - cfg_tripwire_common

#endif

	.section .note.GNU-stack, "", %progbits
