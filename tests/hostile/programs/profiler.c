/*
 * A program with a profiler of its own inside: profiler WHEN LOOKUP CLOCK END.
 *
 *	WHEN	early: it comes to CUPTI before the driver is there; late: after the first launches
 *	LOOKUP	linked or dlsym
 *	CLOCK	own: a clock of its own; default: CUPTI's
 *	END	disable or finalize; forget: it is destroyed at exit, all still enabled; atexit: it
 *		ends in a handler that runs after those of later comers
 *
 * CUPTI must tell it the same as it would tell it alone.
 */
#include "cu.h"

#include <time.h>

enum { KERNEL = 10, DRIVER = 4, PER_THREAD = 9, BUFFER = 8192 };

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void complete_fn(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

int cuptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete);
int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityFlushAll(uint32_t forced);
int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int cuptiFinalize(void);

static __typeof__(cuptiActivityRegisterCallbacks) *register_callbacks =
	cuptiActivityRegisterCallbacks;
static __typeof__(cuptiActivityRegisterTimestampCallback) *register_clock =
	cuptiActivityRegisterTimestampCallback;
static __typeof__(cuptiActivityEnable) *enable = cuptiActivityEnable;
static __typeof__(cuptiActivityDisable) *disable = cuptiActivityDisable;
static __typeof__(cuptiActivityFlushAll) *flush_all = cuptiActivityFlushAll;
static __typeof__(cuptiActivitySetAttribute) *set_attribute = cuptiActivitySetAttribute;
static __typeof__(cuptiActivityGetNumDroppedRecords) *dropped = cuptiActivityGetNumDroppedRecords;

static uint8_t *given[64];
static struct {
	uint8_t *buffer;
	size_t valid;
} ready[64];
static bool gone;
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
	cu_need(gone, "a request after the end");
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
	int i = 0, at = 0;

	cu_need(gone, "a buffer after the end");
	while (i < 64 && given[i] != buffer)
		i++;
	if (i == 64) {
		strangers++;
		return;
	}
	given[i] = NULL;
	while (ready[at].buffer)
		at++;
	ready[at].buffer = buffer;
	ready[at].valid = valid;
}

static void take_ready(void)
{
	ended = now();
	for (int i = 0; i < 64 && ready[i].buffer; i++) {
		void *record = NULL;
		while (!cuptiActivityGetNextRecord(ready[i].buffer, ready[i].valid, &record))
			take(record);
		free(ready[i].buffer);
		ready[i].buffer = NULL;
	}
}

static void look_up(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW);

	cu_need(!library, "dlopen libcupti.so.13");
	*(void **)&register_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
	*(void **)&register_clock = dlsym(library, "cuptiActivityRegisterTimestampCallback");
	*(void **)&enable = dlsym(library, "cuptiActivityEnable");
	*(void **)&disable = dlsym(library, "cuptiActivityDisable");
	*(void **)&flush_all = dlsym(library, "cuptiActivityFlushAll");
	*(void **)&set_attribute = dlsym(library, "cuptiActivitySetAttribute");
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
	cu_need(enable(DRIVER), "enable");
}

/* As PyTorch does: who has no buffer with CUPTI has nothing to wait for, and looks at none. */
static void flush(void)
{
	uint8_t no = 0;
	size_t one = 1;
	int i = 0;

	while (i < 64 && !given[i])
		i++;
	if (i == 64)
		return;
	cu_need(flush_all(1), "flush");
	take_ready();
	printf("per thread: %d\n", set_attribute(PER_THREAD, &one, &no));
}

static void end(void)
{
	cu_need(disable(KERNEL), "disable");
	cu_need(disable(DRIVER), "disable");
	flush();
}

static void say(const char *when)
{
	size_t lost = 77;

	dropped(NULL, 0, &lost);
	printf("%s: %d kernels, %d ns, %d others, %d foreign buffers, %d out of time, %d dropped\n",
		when, kernels, (int)total_ns, others, strangers, out_of_time, (int)lost);
}

static void end_at_exit(void)
{
	end();
	say("at exit");
}

static void go(void)
{
	gone = true;
}

static bool ends_by(int argc, char **argv, const char *how)
{
	return argc > 4 && !strcmp(argv[4], how);
}

int main(int argc, char **argv)
{
	const bool early = argc > 1 && !strcmp(argv[1], "early");

	own_clock = argc > 3 && !strcmp(argv[3], "own");
	if (argc > 2 && !strcmp(argv[2], "dlsym"))
		look_up();
	if (ends_by(argc, argv, "atexit"))
		atexit(end_at_exit);
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
	if (ends_by(argc, argv, "forget") || ends_by(argc, argv, "atexit")) {
		if (ends_by(argc, argv, "forget"))
			atexit(go);
		cu_launch(early ? 30 : 10);
		cuCtxSynchronize();
		return 0;
	}
	if (ends_by(argc, argv, "finalize")) {
		cu_need(cuptiFinalize(), "finalize");
		take_ready();
	} else {
		end();
	}
	say("then");
	cu_launch(early ? 30 : 10);
	cuCtxSynchronize();
	flush_all(0);
	take_ready();
	say("at last");
	counts("cuLaunchKernel", 130);
	return 0;
}
