/*
 * dlsym and dlvsym, and thunks for driver functions that the tables do not know.
 *
 * dlsym must reach the next dlsym as a jump: with RTLD_NEXT and RTLD_DEFAULT the answer
 * depends on the return address, and another preloaded wrapper would find itself for ever.
 * dlsym_answer() says what we have to say, or -1 to pass.
 */
	.text

/* The answer functions take the caller's arguments and its return address. */
	.macro	wrap name, answer, real, caller
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	endbr64
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	mov	24(%rsp), \caller
	call	\answer
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	cmp	$-1, %rax
	je	1f
	ret
1:	jmp	*\real(%rip)
	.cfi_endproc
	.size	\name, . - \name
	.endm

	wrap	dlsym, dlsym_answer, real_dlsym, %rdx
	wrap	dlvsym, dlvsym_answer, real_dlvsym, %rcx

/* With glibc's own versions: another wrapper may look for the next dlsym by dlvsym. */
	.symver	dlsym, dlsym@@@GLIBC_2.34
	.symver	dlvsym, dlvsym@@@GLIBC_2.34
	.globl	dlsym_2_2_5
	.set	dlsym_2_2_5, dlsym
	.symver	dlsym_2_2_5, dlsym@GLIBC_2.2.5, remove
	.globl	dlvsym_2_2_5
	.set	dlvsym_2_2_5, dlvsym
	.symver	dlvsym_2_2_5, dlvsym@GLIBC_2.2.5, remove

/* Thunk i: count it, jump on.  r11 is nobody's between a call and its callee. */
	.globl	unknown_thunks
	.hidden	unknown_thunks
	.balign	32
unknown_thunks:
	.set	i, 0
	.rept	256
	.balign	32
	endbr64
	mov	unknown_counts(%rip), %r11
	lock incq	8 * i(%r11)
	jmp	*(unknown_real + 8 * i)(%rip)
	.set	i, i + 1
	.endr

	.section .note.GNU-stack, "", @progbits
