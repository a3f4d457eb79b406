/*
 * No code of src/ may call these functions. Each has a form that knows the size of its output,
 * keeps no hidden state, or starts no shell. The compiler reads this before each file of src/, and
 * so after the system headers that name them.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef alloca
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets atoi localtime system alloca
