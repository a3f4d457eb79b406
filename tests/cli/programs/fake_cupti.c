/*
 * A libcupti.so for tests: tells of the kernels that a program says have run (fake_ran()), in the
 * layout of cupti_activity.h as published with CUDA 13.0.
 */
#include <stdint.h>
#include <string.h>

#include "fake_cupti.h"

#define EXPORT __attribute__((visibility("default")))

enum { KERNEL = 10, RECORD_BYTES = 160 };

static void (*request)(uint8_t **buffer, size_t *bytes, size_t *records);
static void (*complete)(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
static uint8_t *buffer;
static size_t room, used;

#define CALL(name, ...)                                                                            \
	int name(__VA_ARGS__);                                                                     \
	EXPORT int name(__VA_ARGS__)

CALL(cuptiActivityRegisterCallbacks, void *give, void *take)
{
	memcpy(&request, &give, sizeof give);
	memcpy(&complete, &take, sizeof take);
	return 0;
}

CALL(cuptiActivityRegisterTimestampCallback, void *now)
{
	return 0;
}

CALL(cuptiActivityEnable, int kind)
{
	return 0;
}

CALL(cuptiActivityFlushPeriod, uint32_t ms)
{
	return 0;
}

CALL(cuptiActivityFlushAll, uint32_t forced)
{
	if (buffer)
		complete(NULL, 0, buffer, room, used);
	buffer = NULL;
	return 0;
}

CALL(cuptiActivityGetNextRecord, uint8_t *from, size_t valid, uint8_t **record)
{
	uint8_t *next = *record ? *record + RECORD_BYTES : from;
	if (next + RECORD_BYTES > from + valid)
		return 12;
	*record = next;
	return 0;
}

CALL(cuptiActivityGetNumDroppedRecords, void *context, uint32_t stream, size_t *dropped)
{
	*dropped = 0;
	return 0;
}

static void put(uint8_t *record, size_t at, const void *value, size_t bytes)
{
	memcpy(record + at, value, bytes);
}

EXPORT void fake_ran(const struct fake_kernel *k)
{
	const uint32_t kind = KERNEL;
	size_t records;
	if (!request)
		return;
	if (!buffer) {
		request(&buffer, &room, &records);
		used = 0;
	}
	uint8_t *r = buffer + used;
	memset(r, 0, RECORD_BYTES);
	put(r, 0, &kind, 4);
	put(r, 16, &k->start, 8);
	put(r, 24, &k->end, 8);
	put(r, 52, k->grid, 12);
	put(r, 64, k->block, 12);
	put(r, 92, &k->correlation, 4);
	put(r, 104, &k->name, 8);
	used += RECORD_BYTES;
	if (used + RECORD_BYTES > room)
		cuptiActivityFlushAll(0);
}
