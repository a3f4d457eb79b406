/*
 * No code here may call these functions. Each has a form that knows the size of its output, keeps
 * no hidden state, or starts no shell. Include this header last, since a later system header may
 * name one of them.
 */
#ifndef WEIR_BASE_BANNED_H
#define WEIR_BASE_BANNED_H

#undef alloca
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets atoi localtime system alloca

#endif
