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
