/*
 * The second opinion: counts the kernels that CUPTI's activity records report, in any program.
 *
 *	CUDA_INJECTION64_PATH=./count_kernels.so CUPTI_COUNT=FILE program
 *
 * Writes the count to FILE when the program ends.  Graphs are counted kernel by kernel.
 */
#include <cupti.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER_BYTES (4u << 20)

static _Atomic unsigned long long kernels, dropped;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
	*size = BUFFER_BYTES;
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*records = 0;
}

static void CUPTIAPI take_buffer(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	size_t lost = 0;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		atomic_fetch_add_explicit(&kernels,
			record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
			memory_order_relaxed);
	if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS)
		atomic_fetch_add_explicit(&dropped, lost, memory_order_relaxed);
	free(buffer);
}

static void at_end(void)
{
	const char *path = getenv("CUPTI_COUNT");
	cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	FILE *out = path ? fopen(path, "w") : NULL;
	if (!out)
		return;
	fprintf(out, "%llu %llu\n", kernels, dropped);
	fclose(out);
}

int InitializeInjection(void);
int InitializeInjection(void)
{
	if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
		cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
		fprintf(stderr, "count_kernels: CUPTI refuses\n");
	atexit(at_end);
	return 1;
}
