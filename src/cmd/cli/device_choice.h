/* Which GPU a program is to run on. */
#pragma once

#include <stdbool.h>

#include "cmd/cli/sharing.h"

/*
 * Sets CUDA_VISIBLE_DEVICES for the program: to `device`, or for "auto" to the GPU with the least
 * predicted work of those that share, then the fewest programs.  0, or an exit code after
 * complaining.
 */
int device_choose(const struct sharing *s, const char *device, bool sim);

/* "GPU-77656972-2073-...", as nvidia-smi and CUDA_VISIBLE_DEVICES have it. */
#define DEVICE_NAME 48
void device_name(const unsigned char uuid[16], char ret[DEVICE_NAME]);

/* How many SMs the first GPU has; 0: it can't be told. */
unsigned device_sms(void);
