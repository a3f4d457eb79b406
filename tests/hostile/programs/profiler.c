/*
 * A program with a profiler of its own inside: profiler WHEN LOOKUP CLOCK END.
 *
 *	WHEN	early: it comes to CUPTI before the driver is there; late: after the first launches
 *	LOOKUP	linked or dlsym
 *	CLOCK	own: a clock of its own; default: CUPTI's
 *	END	disable or finalize
 *
 * What it is told must be what it would be told alone.
 */
#include "cu.h"

#include <time.h>

enum { KERNEL = 10, SET = 2, BUFFER = 8192 };

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void complete_fn(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

int cuptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete);
int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityFlushAll(uint32_t forced);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int cuptiFinalize(void);

static __typeof__(cuptiActivityRegisterCallbacks) *register_callbacks =
	cuptiActivityRegisterCallbacks;
static __typeof__(cuptiActivityRegisterTimestampCallback) *register_clock =
	cuptiActivityRegisterTimestampCallback;
static __typeof__(cuptiActivityEnable) *enable = cuptiActivityEnable;
static __typeof__(cuptiActivityDisable) *disable = cuptiActivityDisable;
static __typeof__(cuptiActivityGetNumDroppedRecords) *dropped = cuptiActivityGetNumDroppedRecords;

static uint8_t *given[64];
static int kernels, others, strangers, out_of_time;
static uint64_t total_ns, began, ended;
static bool own_clock;

static uint64_t read_clock(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
	return own_clock ? read_clock(CLOCK_MONOTONIC) + 5000000000000000u
			 : read_clock(CLOCK_REALTIME);
}

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
	*buffer = calloc(1, BUFFER);
	*bytes = BUFFER;
	*records = 0;
	for (int i = 0; i < 64; i++)
		if (!given[i]) {
			given[i] = *buffer;
			break;
		}
}

static void take(const uint8_t *record)
{
	uint64_t start, end;

	if (*(const uint32_t *)record != KERNEL) {
		others++;
		return;
	}
	memcpy(&start, record + 16, 8);
	memcpy(&end, record + 24, 8);
	kernels++;
	total_ns += end - start;
	out_of_time += start + 1000000 < began || end > ended + 1000000;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	void *record = NULL;
	int i = 0;

	while (i < 64 && given[i] != buffer)
		i++;
	if (i == 64) {
		strangers++;
		return;
	}
	given[i] = NULL;
	ended = now();
	while (!cuptiActivityGetNextRecord(buffer, valid, &record))
		take(record);
	free(buffer);
}

static void look_up(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW);

	cu_need(!library, "dlopen libcupti.so.13");
	*(void **)&register_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
	*(void **)&register_clock = dlsym(library, "cuptiActivityRegisterTimestampCallback");
	*(void **)&enable = dlsym(library, "cuptiActivityEnable");
	*(void **)&disable = dlsym(library, "cuptiActivityDisable");
	*(void **)&dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords");
	cu_need(dlsym(library, "cuptiNothing") != NULL, "cuptiNothing");
}

static void begin(void)
{
	if (own_clock)
		cu_need(register_clock(now), "clock");
	cu_need(register_callbacks(request, complete), "callbacks");
	began = now();
	cu_need(enable(KERNEL), "enable");
}

/* As PyTorch does: who was asked for no buffer has nothing to wait for. */
static void flush(void)
{
	int i = 0;

	while (i < 64 && !given[i])
		i++;
	if (i < 64)
		cu_need(cuptiActivityFlushAll(1), "flush");
}

static void say(const char *when)
{
	size_t lost = 77;

	dropped(NULL, 0, &lost);
	printf("%s: %d kernels, %d ns, %d others, %d foreign buffers, %d out of time, %d dropped\n",
		when, kernels, (int)total_ns, others, strangers, out_of_time, (int)lost);
}

int main(int argc, char **argv)
{
	const bool early = argc > 1 && !strcmp(argv[1], "early");

	own_clock = argc > 3 && !strcmp(argv[3], "own");
	if (argc > 2 && !strcmp(argv[2], "dlsym"))
		look_up();
	if (early)
		begin();
	cu_start();
	if (!early) {
		cu_launch(20);
		cuCtxSynchronize();
		begin();
	}
	cu_launch(100);
	cuCtxSynchronize();
	if (argc > 4 && !strcmp(argv[4], "finalize")) {
		cu_need(cuptiFinalize(), "finalize");
	} else {
		cu_need(disable(KERNEL), "disable");
		flush();
	}
	say("then");
	cu_launch(early ? 30 : 10);
	cuCtxSynchronize();
	cuptiActivityFlushAll(0);
	say("at last");
	counts("cuLaunchKernel", 130);
	return 0;
}
