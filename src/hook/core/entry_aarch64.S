/*
 * dlsym and dlvsym, and thunks for driver functions that the tables do not know: entry_x86_64.S says
 * why and how.  Arguments are in x0 to x8 and q0 to q7; x9 to x11, x16 and x17 hold none.
 */
	.text

	.macro	load register, variable
	adrp	\register, \variable
	ldr	\register, [\register, :lo12:\variable]
	.endm

/* The answer functions take the caller's arguments and its return address. */
	.macro	wrap name, answer, real, caller
	.globl	\name
	.type	\name, %function
\name:
	.cfi_startproc
	hint	34		// bti c
	stp	x29, x30, [sp, -48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	stp	x0, x1, [sp, 16]
	str	x2, [sp, 32]
	mov	x29, sp
	mov	\caller, x30
	bl	\answer
	mov	x16, x0
	ldp	x0, x1, [sp, 16]
	ldr	x2, [sp, 32]
	ldp	x29, x30, [sp], 48
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	cmn	x16, 1
	b.eq	1f
	mov	x0, x16
	ret
1:	load	x16, \real
	br	x16
	.cfi_endproc
	.size	\name, . - \name
	.endm

	wrap	dlsym, dlsym_answer, real_dlsym, x2
	wrap	dlvsym, dlvsym_answer, real_dlvsym, x3

/* With glibc's own versions: another wrapper may look for the next dlsym by dlvsym. */
	.symver	dlsym, dlsym@@@GLIBC_2.34
	.symver	dlvsym, dlvsym@@@GLIBC_2.34
	.globl	dlsym_2_17
	.set	dlsym_2_17, dlsym
	.symver	dlsym_2_17, dlsym@GLIBC_2.17, remove
	.globl	dlvsym_2_17
	.set	dlvsym_2_17, dlvsym
	.symver	dlvsym_2_17, dlvsym@GLIBC_2.17, remove

/* Thunk i: count it, jump on. */
	.globl	unknown_thunks
	.hidden	unknown_thunks
	.balign	64
unknown_thunks:
	.set	i, 0
	.rept	256
	.balign	64
	hint	34		// bti c
	load	x16, unknown_counts
	add	x16, x16, 8 * i
1:	ldxr	x9, [x16]
	add	x9, x9, 1
	stxr	w10, x9, [x16]
	cbnz	w10, 1b
	load	x16, unknown_real + 8 * i
	br	x16
	.set	i, i + 1
	.endr

	.section .note.GNU-stack, "", %progbits
