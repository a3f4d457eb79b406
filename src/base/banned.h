/*
 * Functions that no code here may call: each has a form that knows the size of what it
 * writes, keeps no hidden state, or starts no shell.  Include this header last: a system
 * header that comes after it may name one of them.
 */
#ifndef WEIR_BASE_BANNED_H
#define WEIR_BASE_BANNED_H

#undef alloca
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets atoi localtime system alloca

#endif
