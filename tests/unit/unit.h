/* Every unit test includes this: cmocka and the headers it wants before itself. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(a) (sizeof a / sizeof((a)[0]))

/* How often a test repeats itself.  The plain build makes all rounds and judges what comes of them.
 * Sanitizers judge each step of the same code, for which a few rounds are enough. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS(all, few) (few)
#else
#define ROUNDS(all, few) (all)
#endif
