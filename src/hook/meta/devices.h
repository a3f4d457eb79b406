/* Writes the devices that a program sees into the trace. */
#pragma once

#include <stdint.h>

struct device_properties {
	char name[256];
	uint64_t args[4];   /* as META_DEVICE has them */
	uint64_t clocks[3]; /* as META_CLOCKS has them */
	uint8_t uuid[16];   /* zeros: not told */
};

/* After cuInit(), once. */
void devices_describe(void);
