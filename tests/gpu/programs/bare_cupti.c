/*
 * CUPTI alone, as a yardstick: when preloaded, has it record kernels into buffers that nobody
 * reads.
 *
 *	cc -shared -fPIC -o bare_cupti.so bare_cupti.c
 *	BARE_CUPTI=NAME LD_PRELOAD=./bare_cupti.so PROGRAM
 *
 * in the process of that name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 10, BUFFER = 4 << 20 }; /* CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL */

static void give(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	*ret_buffer = aligned_alloc(4096, BUFFER);
	*ret_bytes = *ret_buffer ? BUFFER : 0;
	*ret_records = 0;
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	free(buffer);
}

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("BARE_CUPTI");
	if (!name || strcmp(name, program_invocation_short_name))
		return;
	void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
	if (!cupti)
		cupti = dlopen("/usr/local/cuda/lib64/libcupti.so", RTLD_NOW);
	int (*callbacks)(void *, void *) =
		cupti ? dlsym(cupti, "cuptiActivityRegisterCallbacks") : NULL;
	int (*enable)(int) = cupti ? dlsym(cupti, "cuptiActivityEnable") : NULL;
	if (!callbacks || !enable || callbacks((void *)give, (void *)take) || enable(KERNELS))
		fprintf(stderr, "CUPTI does not record\n");
}
