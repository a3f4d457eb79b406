/*
 * Programs whose launches wait on the device, behind holds (src/hook/sched/hold.h), while another's
 * request goes on: `holds CASE`.  The case ends the request itself, or --max-wait does, which is
 * 30 s where no launch may be let go by it.
 */
#include "regulated.h"

#include <stdatomic.h>

#define LAST_FUNCTIONS(X) X(cuStreamQuery, (void *))
LAST_FUNCTIONS(CU_DECLARE)

enum { STREAMS = 4, NOT_READY = 600, HOLD_NS = 20000 };
static void *stream[STREAMS];

/* The time of a launch is known, however busy the machine is, and holds are ready. */
static void come(void)
{
	*(void **)&cuStreamQuery = dlsym(cu_library, "cuStreamQuery");
	for (int i = 0; i < STREAMS; i++)
		stream[i] = stream_new();
	cu_need(launch_on(stream[0], 1), "cuLaunchKernel");
	other_comes(false);
	if (shared)
		own()->grant.hold_ns = HOLD_NS;
	for (int i = 0; i < 400; i++)
		cu_need(launch_on(stream[0], 1), "cuLaunchKernel");
	cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
}

/* A request that is believed for longer than anybody waits. */
static void other_begins(void)
{
	if (!shared)
		return;
	atomic_fetch_add_explicit(&shared->devices[0].requests, 1, memory_order_relaxed);
	shared->slots[OTHER].work.begun_ns = now_ns() + 20000000000u;
	share_bit_set(shared->devices[0].active, OTHER);
}

static void other_leaves(void)
{
	if (shared)
		share_bit_clear(shared->devices[0].active, OTHER);
}

static void launch_some(int n)
{
	for (int i = 0; i < n; i++)
		cu_need(launch_on(stream[i % STREAMS], 1), "cuLaunchKernel");
}

static void in_order(void)
{
	printf("synchronised %d\n", cuCtxSynchronize());
	if (!shared)
		return;
	CHECK(!own()->work.inside);
	CHECK(own()->work.submitted_ns == own()->work.retired_ns);
}

/* Calls return while the request goes on, and nothing of it has run. */
static void returns(void)
{
	come();
	for (int i = 0; i < 20; i++) {
		other_begins();
		launch_some(12);
		for (int k = 0; shared && k < STREAMS; k++)
			CHECK(cuStreamQuery(stream[k]) == NOT_READY);
		other_leaves();
		in_order();
	}
	if (shared) {
		CHECK(own()->counts.unmarked == 0);
		CHECK(own()->counts.expired == 0);
		CHECK(own()->counts.waits > 0);
	}
}

/* One gives up; those behind it wait for those requests no more, but for the next ones. */
static void gives_up(void)
{
	come();
	other_begins();
	for (int i = 0; i < 20; i++) {
		launch_some(12);
		in_order();
	}
	const uint64_t expired = own()->counts.expired;
	if (shared)
		CHECK(expired >= 1 && expired <= STREAMS);
	other_leaves();
	launch_some(60);
	in_order();
	other_begins();
	launch_some(12);
	in_order();
	if (shared)
		CHECK(own()->counts.expired > expired);
	other_leaves();
}

/* One that is stopped in a request is waited for once, others' requests each time. */
static void stopped(void)
{
	come();
	other_begins();
	launch_some(12);
	in_order();
	const uint64_t expired = own()->counts.expired;
	for (int i = 0; shared && i < 20; i++) {
		atomic_fetch_add_explicit(&shared->devices[0].requests, 1, memory_order_relaxed);
		share_bit_set(shared->devices[0].active, OTHER + 1);
		launch_some(12);
		CHECK(cuStreamQuery(stream[0]) == NOT_READY);
		share_bit_clear(shared->devices[0].active, OTHER + 1);
		cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
	}
	for (int i = 0; !shared && i < 20; i++) {
		launch_some(12);
		cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
	}
	if (shared)
		CHECK(own()->counts.expired == expired);
	other_leaves();
}

/* All that lets launches go that wait in their calls lets holds go. */
static void let_go(void)
{
	come();
	other_begins();
	launch_some(12);
	if (shared)
		shared->arbiter.open = 1;
	in_order();
	if (shared)
		shared->arbiter.open = 0;
	other_begins();
	launch_some(12);
	if (shared)
		own()->grant.mode = MODE_BUDGET;
	in_order();
	if (shared) {
		own()->grant.mode = MODE_GATE;
		CHECK(own()->counts.expired == 0);
	}
	other_leaves();
}

/* Streams wait for each other, and the legacy one for all. */
static void joins(void)
{
	void *event = NULL;
	come();
	cu_need(cuEventCreate(&event, 0), "cuEventCreate");
	for (int i = 0; i < 20; i++) {
		other_begins();
		launch_some(8);
		cu_need(cuEventRecord(event, stream[0]), "cuEventRecord");
		cu_need(cuStreamWaitEvent(stream[1], event, 0), "cuStreamWaitEvent");
		launch_some(8);
		cu_need(launch_on(NULL, 1), "cuLaunchKernel");
		other_leaves();
		printf("event %d\n", cuEventSynchronize(event));
		in_order();
	}
}

/* A capture holds no hold. */
static void captures(void)
{
	void *graph = NULL;
	come();
	for (int i = 0; i < 20; i++) {
		other_begins();
		launch_some(8);
		printf("captures %d\n", cuStreamBeginCapture_v2(stream[0], 0));
		for (int k = 0; k < 8; k++)
			cu_need(launch_on(stream[0], 1), "cuLaunchKernel");
		printf("captured %d\n", cuStreamEndCapture(stream[0], &graph));
		launch_some(8);
		other_leaves();
		in_order();
	}
}

/* Streams and the device go while holds wait there; both come again. */
static void ends(void)
{
	come();
	for (int i = 0; i < 5; i++) {
		other_begins();
		launch_some(12);
		for (int k = 0; k < STREAMS; k++)
			cu_need(cuStreamDestroy_v2(stream[k]), "cuStreamDestroy");
		cu_need(cuDevicePrimaryCtxReset_v2(0), "cuDevicePrimaryCtxReset");
		other_leaves();
		cu_prepare();
		come();
	}
	CHECK(own()->counts.unmarked == 0);
	in_order();
}

static atomic_int launched;

static void *launch_often(void *unused)
{
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	for (int i = 0; i < 300; i++)
		cu_need(launch_on(stream[i % STREAMS], 1), "cuLaunchKernel");
	atomic_fetch_add(&launched, 1);
	return NULL;
}

/* Several threads, on the same streams. */
static void threads(void)
{
	pthread_t t[4];
	come();
	for (int i = 0; i < 4; i++)
		cu_need(pthread_create(&t[i], NULL, launch_often, NULL), "pthread_create");
	while (atomic_load(&launched) < 4) {
		other_begins();
		usleep(2000);
		other_leaves();
		usleep(1000);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	in_order();
	if (shared)
		CHECK(own()->counts.expired == 0);
}

/* It leaves with holds that wait. */
static void leaves(void)
{
	come();
	other_begins();
	launch_some(12);
	printf("leaves\n");
}

/* The driver does not give what a hold needs: launches wait in their calls. */
static void refused(void)
{
	come();
	const pthread_t t = other_stays();
	launch_some(3);
	in_order();
	if (shared)
		CHECK(own()->counts.expired > 0);
	other_ends(t);
}

static const struct regulated_case cases[] = { { "returns", returns, false },
	{ "gives_up", gives_up, false }, { "stopped", stopped, false }, { "let_go", let_go, false },
	{ "joins", joins, false }, { "captures", captures, false }, { "ends", ends, false },
	{ "threads", threads, false }, { "leaves", leaves, false }, { "refused", refused, false },
	{ NULL, NULL, false } };

int main(int argc, char **argv)
{
	return run_case(cases, argc == 2 ? argv[1] : NULL);
}
