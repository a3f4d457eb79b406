/*
 * The functions of libm that glibc 2.29 gave a new version, by their first version, which every
 * glibc has.  The new version differs in how it reports errors, which nobody here reads.  This file
 * is part of the portable program alone: its own calls and those of the libraries linked into it
 * come here.
 */
#ifdef __aarch64__
#define FIRST "GLIBC_2.17"
#else
#define FIRST "GLIBC_2.2.5"
#endif
#define HIDDEN __attribute__((visibility("hidden")))

#define FIRST_VERSION(name, parameters, arguments)                                                 \
	double first_##name parameters;                                                            \
	__asm__(".symver first_" #name ", " #name "@" FIRST);                                      \
	HIDDEN double name parameters;                                                             \
	double name parameters                                                                     \
	{                                                                                          \
		return first_##name arguments;                                                     \
	}

FIRST_VERSION(exp, (double x), (x))
FIRST_VERSION(exp2, (double x), (x))
FIRST_VERSION(log, (double x), (x))
FIRST_VERSION(log2, (double x), (x))
FIRST_VERSION(pow, (double x, double y), (x, y))
