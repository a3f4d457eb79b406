/*
 * CUPTI's activity records switched on and off in a running program, thrown away as they come: for
 * cupti_states.py. switch_open(LIBRARY), then the others as CUPTI's functions of like names; each
 * returns a CUptiResult.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define BYTES (256u << 10)

static void *library;

static void give(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	*ret_buffer = aligned_alloc(8, BYTES);
	*ret_bytes = BYTES;
	*ret_records = 0;
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	free(buffer);
}

#define FUNCTION(type, name) ((int(*) type)dlsym(library, name))

int switch_open(const char *path)
{
	library = dlopen(path, RTLD_NOW);
	return library ? 0 : -1;
}

int switch_register(void)
{
	return FUNCTION((void *, void *), "cuptiActivityRegisterCallbacks")(
		(void *)give, (void *)take);
}

int switch_enable(int kind)
{
	return FUNCTION((int), "cuptiActivityEnable")(kind);
}

int switch_disable(int kind)
{
	return FUNCTION((int), "cuptiActivityDisable")(kind);
}

int switch_finalize(void)
{
	FUNCTION((uint32_t), "cuptiActivityFlushAll")(1);
	return FUNCTION((void), "cuptiFinalize")();
}
