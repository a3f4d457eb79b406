/* LIBRARY_ENTRY of library.h, for x86-64.  r10, r11 and rax hold no argument. */
#define LIBRARY_ENTRY(name)                                                                        \
	WRAPPER __attribute__((naked)) int name(void)                                              \
	{                                                                                          \
		__asm__("endbr64\n\t"                                                              \
			"mov hook_real + %c0(%%rip), %%r11\n\t"                                    \
			"mov hook_hot_page(%%rip), %%rax\n\t"                                      \
			"lea hook_idle(%%rip), %%r10\n\t"                                          \
			"test %%r11, %%r11\n\t"                                                    \
			"je recorded_" #name "\n\t"                                                \
			"testl %1, (%%rax, %%r10)\n\t"                                             \
			"jne recorded_" #name "\n\t"                                               \
			"jmp *%%r11"                                                               \
			:                                                                          \
			: "i"(LIBRARY_SLOT(name)), "i"(LIBRARY_WANTED));                           \
	}
