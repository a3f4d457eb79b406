/*
 * The injected library's knowledge of the C library beside which it has been loaded. libc.c also
 * gives it the functions that it needs of it, under their usual names. Any thread may call.
 */
#pragma once

#include <stdbool.h>

/* False in a program of musl, to which LD_PRELOAD came from its parent: nothing is recorded there.
 */
bool libc_is_glibc(void);
