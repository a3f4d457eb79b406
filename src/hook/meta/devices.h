/* Writes the devices that a program sees into the trace. */
#ifndef WEIR_HOOK_META_DEVICES_H
#define WEIR_HOOK_META_DEVICES_H

#include <stdint.h>

struct device_properties {
	char name[256];
	uint64_t args[4];   /* as META_DEVICE has them */
	uint64_t clocks[3]; /* as META_CLOCKS has them */
	uint8_t uuid[16];   /* zeros: not told */
};

/* After cuInit(), once. */
void devices_describe(void);

#endif
