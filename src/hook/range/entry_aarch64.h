/*
 * LIBRARY_ENTRY of library.h, for arm64.  x9 to x11 and x16 hold no argument; x0 to x8 and q0 to q7
 * do, and are not touched.  gcc has no naked functions here, so the entry stands beside an empty
 * one that gives it its numbers.
 */
#define LIBRARY_ENTRY(name)                                                                        \
	__attribute__((used)) static void numbers_of_##name(void)                                  \
	{                                                                                          \
		__asm__(".pushsection .text.entry, \"ax\", %%progbits\n\t"                         \
			".balign 8\n\t"                                                            \
			".globl " #name "\n\t"                                                     \
			".type " #name ", %%function\n" #name ":\n\t"                              \
			".cfi_startproc\n\t"                                                       \
			"hint 34\n\t" /* bti c */                                                  \
			"adrp x16, hook_real + %c0\n\t"                                            \
			"ldr x16, [x16, :lo12:hook_real + %c0]\n\t"                                \
			"adrp x9, hook_hot_page\n\t"                                               \
			"ldr x9, [x9, :lo12:hook_hot_page]\n\t"                                    \
			"adrp x10, hook_idle\n\t"                                                  \
			"add x10, x10, :lo12:hook_idle\n\t"                                        \
			"cbz x16, 1f\n\t"                                                          \
			"ldr w11, [x9, x10]\n\t"                                                   \
			"tst w11, %1\n\t"                                                          \
			"b.ne 1f\n\t"                                                              \
			"br x16\n"                                                                 \
			"1:\tb recorded_" #name "\n\t"                                             \
			".cfi_endproc\n\t"                                                         \
			".size " #name ", . - " #name "\n\t"                                       \
			".popsection"                                                              \
			:                                                                          \
			: "i"(LIBRARY_SLOT(name)), "i"(LIBRARY_WANTED));                           \
	}
