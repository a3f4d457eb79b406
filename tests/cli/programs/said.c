/*
 * Requests that a program says itself, under weir run: `said DIRECTORY` looks at its own slot of
 * the shared file there after each step, and prints what is not as it should be.  `said DIRECTORY
 * left` leaves a request without its end: for a --max-wait that is short; else it is to be long.
 * `said DIRECTORY memory` is for --memory 512M.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "own_slot.h"
#include "weir/sched.h"

static weir_sched weir;

static uint64_t begin(uint64_t deadline_us)
{
	uint64_t request;
	EXPECT(!weir_sched_request_begin(weir, deadline_us, &request));
	return request;
}

static uint64_t ended(void)
{
	struct weir_sched_metrics m = { .size = sizeof m };
	EXPECT(!weir_sched_get_metrics(weir, 0, &m));
	EXPECT(!(m.valid & WEIR_VALID_REQUESTS) == !m.request_count);
	EXPECT(!slot || m.request_count == counted());
	return m.request_count;
}

static void nothing_is_joined(void)
{
	uint32_t state;
	struct weir_sched_metrics m = { .size = sizeof m };
	struct weir_sched_config c = { .size = sizeof c, .set = WEIR_SET_CLASS, .sched_class = 1 };
	EXPECT(!weir_sched_get_state(weir, &state));
	EXPECT((state & (WEIR_STATE_INJECTED | WEIR_STATE_JOINED)) == WEIR_STATE_INJECTED);
	EXPECT(weir_sched_configure(weir, &c) == WEIR_ERROR_NOT_JOINED);
	EXPECT(weir_sched_get_metrics(weir, 0, &m) == WEIR_ERROR_NOT_JOINED);
}

static void by_work_until_it_says_its_own(void)
{
	const uint64_t before = ended();
	cu_launch(1);
	EXPECT(is_inside());
	cuCtxSynchronize();
	EXPECT(!is_inside());
	EXPECT(ended() == before + 1);
}

static void inside_from_begin_to_end(void)
{
	const uint64_t before = ended();
	const uint64_t request = begin(0);
	EXPECT(is_inside());
	work();
	EXPECT(is_inside());
	EXPECT(!weir_sched_request_end(weir, request));
	EXPECT(!is_inside());
	EXPECT(ended() == before + 1);
	work();
	cu_launch(1); /* outside, it begins none */
	EXPECT(!is_inside());
	cuCtxSynchronize();
	EXPECT(ended() == before + 1);
}

static void ends_that_match_nothing(void)
{
	const uint64_t request = begin(0);
	EXPECT(weir_sched_request_end(weir, 0) == WEIR_ERROR_ARGUMENT);
	EXPECT(weir_sched_request_end(weir, request + 1) == WEIR_ERROR_ARGUMENT);
	EXPECT(is_inside());
	EXPECT(!weir_sched_request_end(weir, request));
	EXPECT(weir_sched_request_end(weir, request) == WEIR_ERROR_ARGUMENT);
	EXPECT(!is_inside());
}

static void requests_overlap(void)
{
	const uint64_t before = ended(), outer = begin(0), inner = begin(0);
	EXPECT(!weir_sched_request_end(weir, outer));
	EXPECT(is_inside());
	EXPECT(!weir_sched_request_end(weir, inner));
	EXPECT(!is_inside());
	EXPECT(ended() == before + 2);
}

static void *end_it(void *request)
{
	EXPECT(!weir_sched_request_end(weir, *(uint64_t *)request));
	return NULL;
}

static void another_thread_may_end_it(void)
{
	pthread_t t;
	uint64_t request = begin(0);
	cu_need(pthread_create(&t, NULL, end_it, &request), "pthread_create");
	pthread_join(t, NULL);
	EXPECT(!is_inside());
}

/* Whatever a child does to its parent's request. */
static void a_child_changes_nothing(void)
{
	int status;
	const uint64_t request = begin(0);
	const pid_t pid = fork();
	if (!pid) {
		weir_sched_request_end(weir, request);
		weir_sched_close(weir);
		_exit(0);
	}
	cu_need(waitpid(pid, &status, 0) != pid || status, "a child");
	EXPECT(is_inside());
	EXPECT(!weir_sched_request_end(weir, request));
	EXPECT(!is_inside());
}

static jmp_buf out;

static void leave(void)
{
	begin(0);
	work();
	longjmp(out, 1);
}

/* Nobody believes it for longer than --max-wait; then the process is outside with its next
 * synchronisation, and until then further requests are right. */
static void a_request_is_left_by_longjmp(void)
{
	if (!setjmp(out))
		leave();
	EXPECT(!weir_sched_request_end(weir, begin(0)));
	while (is_inside())
		work();
	const uint64_t before = ended();
	EXPECT(!weir_sched_request_end(weir, begin(0)));
	EXPECT(ended() == before + 1);
}

static volatile bool stop;

static void *begin_and_end(void *argument)
{
	uint64_t request;
	while (!stop)
		if (!weir_sched_request_begin(weir, 0, &request))
			weir_sched_request_end(weir, request);
	return NULL;
}

/* The bit of a request is there from its begin on, but for a moment in which another ends. */
static void no_end_takes_anothers_bit(void)
{
	pthread_t t;
	stop = false;
	cu_need(pthread_create(&t, NULL, begin_and_end, NULL), "pthread_create");
	for (int i = 0; i < 20000; i++) {
		const uint64_t request = begin(0);
		while (!share_any(device->active)) /* for ever, if it is lost */
			;
		EXPECT(!weir_sched_request_end(weir, request));
	}
	stop = true;
	pthread_join(t, NULL);
	EXPECT(!is_inside());
}

static void *send_signals(void *thread)
{
	while (!stop)
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

static volatile int handled;

static void handle(int number)
{
	uint64_t request;
	const int before = errno;
	if (!weir_sched_request_begin(weir, 0, &request))
		weir_sched_request_end(weir, request);
	EXPECT(errno == before);
	handled++;
}

static void signal_handlers_have_requests(void)
{
	pthread_t t, self = pthread_self();
	const struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	stop = false;
	cu_need(sigaction(SIGUSR1, &action, NULL), "sigaction");
	cu_need(pthread_create(&t, NULL, send_signals, &self), "pthread_create");
	while (handled < 2000) {
		const uint64_t request = begin(0);
		EXPECT(atomic_load_explicit(&slot->work.inside, memory_order_seq_cst));
		cu_launch(1);
		EXPECT(!weir_sched_request_end(weir, request));
	}
	stop = true;
	pthread_join(t, NULL);
	work();
	EXPECT(!is_inside());
}

static void deadlines_are_the_most_urgent(void)
{
	struct weir_sched_config c = {
		.size = sizeof c, .set = WEIR_SET_DEADLINE, .deadline_us = 7000000
	};
	EXPECT(!weir_sched_configure(weir, &c));
	EXPECT(slot->who.deadline_ns == 7000000000u);
	const uint64_t one = begin(9000000), two = begin(8000000);
	EXPECT(slot->who.deadline_ns > 7000000000u && slot->who.deadline_ns <= 8000000000u);
	weir_sched_request_end(weir, two);
	EXPECT(slot->who.deadline_ns > 8000000000u && slot->who.deadline_ns <= 9000000000u);
	weir_sched_request_end(weir, one);
	EXPECT(slot->who.deadline_ns == 7000000000u);
	EXPECT(!weir_sched_get_config(weir, &c) && c.deadline_us == 7000000);
}

static void too_many_are_refused(void)
{
	uint64_t request[64], more = 1;
	for (int i = 0; i < 64; i++)
		request[i] = begin(0);
	EXPECT(weir_sched_request_begin(weir, 0, &more) == WEIR_ERROR_LIMIT && !more);
	for (int i = 0; i < 64; i++)
		EXPECT(!weir_sched_request_end(weir, request[i]));
	EXPECT(!is_inside());
}

static void the_last_handle_closes(const char *directory)
{
	begin(0);
	EXPECT(!weir_sched_close(weir));
	EXPECT(!is_inside());
	EXPECT(!weir_sched_open(directory, &weir));
	by_work_until_it_says_its_own();
}

static void settings_are_in_the_slot(void)
{
	struct weir_sched_config c = { .size = sizeof c,
		.set = WEIR_SET_CLASS | WEIR_SET_LATENCY_THRESHOLD,
		.sched_class = WEIR_CLASS_LATENCY,
		.latency_threshold_us = 1500 };
	EXPECT(!weir_sched_configure(weir, &c));
	EXPECT(slot->grant.class == CLASS_LATENCY && share_any(device->present));
	EXPECT(slot->who.target_p99_ns == 1500000);
	c.set = WEIR_SET_THROUGHPUT;
	c.throughput = 1;
	EXPECT(!weir_sched_configure(weir, &c));
	EXPECT(slot->grant.class == CLASS_BEST_EFFORT && !share_any(device->present));
	EXPECT(!slot->who.target_p99_ns && !slot->who.deadline_ns);
	EXPECT(!weir_sched_get_config(weir, &c));
	EXPECT(c.throughput == 1 && c.sched_class == WEIR_CLASS_BEST_EFFORT);
}

static void recording_is_switched(void)
{
	int version;
	size_t room[2];
	uint32_t state;
	EXPECT(!weir_sched_get_state(weir, &state));
	if (!(state & WEIR_STATE_TRACED)) {
		EXPECT(weir_sched_record(weir, "off") == WEIR_ERROR_NOT_RECORDED);
		return;
	}
	EXPECT(state & WEIR_STATE_RECORDING);
	EXPECT(!weir_sched_record(weir, "off"));
	EXPECT(!weir_sched_get_state(weir, &state) && !(state & WEIR_STATE_RECORDING));
	cuMemGetInfo_v2(&room[0], &room[1]); /* not in the recording */
	EXPECT(weir_sched_record(weir, "louder") == WEIR_ERROR_ARGUMENT);
	EXPECT(!weir_sched_record(weir, "on"));
	EXPECT(!weir_sched_get_state(weir, &state) && state & WEIR_STATE_RECORDING);
	cuDriverGetVersion(&version); /* in it again */
}

static int priority_of(void *stream)
{
	int priority = 1;
	int (*get)(void *, int *);
	*(void **)&get = dlsym(cu_library, "cuStreamGetPriority");
	cu_need(!get || get(stream, &priority), "cuStreamGetPriority");
	return priority;
}

static void streams_have_priorities(void)
{
	void *high, *low, *again, *more[64];
	int made = 0;
	EXPECT(!weir_sched_stream_get(weir, WEIR_CLASS_LATENCY, &high));
	EXPECT(!weir_sched_stream_get(weir, WEIR_CLASS_BEST_EFFORT, &low));
	EXPECT(priority_of(high) < priority_of(low));
	EXPECT(!weir_sched_stream_return(weir, high));
	EXPECT(weir_sched_stream_return(weir, high) == WEIR_ERROR_ARGUMENT);
	EXPECT(!weir_sched_stream_get(weir, WEIR_CLASS_LATENCY, &again));
	EXPECT(again == high);
	while (made < 64 && !weir_sched_stream_get(weir, WEIR_CLASS_LATENCY, &more[made]))
		made++;
	EXPECT(made == 62);
	EXPECT(weir_sched_stream_get(weir, 1, &more[63]) == WEIR_ERROR_LIMIT && !more[63]);
	while (made)
		EXPECT(!weir_sched_stream_return(weir, more[--made]));
	cu_need(cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
	EXPECT(weir_sched_stream_get(weir, 1, &again) == WEIR_ERROR_NO_CONTEXT);
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
}

static void memory_is_counted(void)
{
	uint64_t at, none;
	const uint64_t MiB = 1 << 20;
	struct weir_sched_memory before = { .size = sizeof before }, m = before;
	cu_need(cuMemAlloc_v2(&none, MiB), "cuMemAlloc_v2"); /* sees the context */
	EXPECT(!weir_sched_get_memory(weir, 0, 0, &before));
	EXPECT(before.quota == 512 * MiB && before.quota_left < before.quota && before.contexts);
	cu_need(cuMemAlloc_v2(&at, 8 * MiB), "cuMemAlloc_v2");
	EXPECT(cuMemAlloc_v2(&none, 512 * MiB) == 2);
	EXPECT(!weir_sched_get_memory(weir, (uint32_t)getpid(), 0, &m));
	EXPECT(m.used == before.used + 8 * MiB && m.quota_left == before.quota_left - 8 * MiB);
	EXPECT(m.refused_count == 1 && m.group_peak >= m.group_used);
	EXPECT(m.driver_alloc_count == before.driver_alloc_count + 1 && !m.pool_hit_count);
	cu_need(cuMemFree_v2(at), "cuMemFree_v2");
	EXPECT(!weir_sched_get_memory(weir, 0, 0, &m));
	EXPECT(m.used == before.used && m.group_peak > m.group_used);
	EXPECT(weir_sched_get_memory(weir, 0, 1, &m) == WEIR_ERROR_NOT_FOUND);
}

static void all(const char *directory)
{
	by_work_until_it_says_its_own();
	inside_from_begin_to_end();
	ends_that_match_nothing();
	requests_overlap();
	another_thread_may_end_it();
	a_child_changes_nothing();
	no_end_takes_anothers_bit();
	signal_handlers_have_requests();
	deadlines_are_the_most_urgent();
	too_many_are_refused();
	the_last_handle_closes(directory);
	settings_are_in_the_slot();
	recording_is_switched();
	streams_have_priorities();
}

int main(int count, char **arguments)
{
	cu_need(count < 2, "a directory");
	cu_need(weir_sched_open(NULL, &weir), "weir_sched_open");
	cu_open();
	nothing_is_joined();
	cu_prepare();
	ended(); /* joins */
	find_slot(arguments[1]);
	if (count > 2 && !strcmp(arguments[2], "memory"))
		memory_is_counted();
	else if (count > 2)
		a_request_is_left_by_longjmp();
	else
		all(arguments[1]);
	EXPECT(!weir_sched_close(weir));
	return result();
}
