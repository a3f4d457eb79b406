/* How long a stream waited for the host is told from dates of its events and of the host. */
#include "unit.h"

#include <stdbool.h>

#include "hook/time/event_waits.h"

#define LAUNCHES 8u
#define EVENTS   (2 * LAUNCHES)

static uint64_t seed;

static uint64_t between(uint64_t low, uint64_t high)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return low + (seed >> 33) % (high - low + 1);
}

/* A run of launches, each with an event in front of it and one behind, on a stream that the host
 * keeps ahead of for a while, or never. */
struct run {
	struct event_date date[EVENTS];
	uint64_t returned_ns[LAUNCHES], waited_ns[LAUNCHES];
	bool is_idle_once; /* the stream came to an event at once */
};

#define LATENCY 1500u /* from the host to the stream */

/* The stream comes to what the host has handed over, and goes on at free_ns. */
static uint64_t reach(uint64_t handed_ns, uint64_t *free_ns, uint64_t takes_ns)
{
	const uint64_t from = handed_ns + LATENCY > *free_ns ? handed_ns + LATENCY : *free_ns;
	return *free_ns = from + takes_ns;
}

static void record(
	struct run *r, uint32_t i, uint64_t *host_ns, uint64_t *free_ns, uint64_t epoch_ns)
{
	struct event_date *d = &r->date[i];
	d->begun_ns = *host_ns;
	r->is_idle_once |= *free_ns <= *host_ns + LATENCY;
	d->at_ns = (int64_t)(reach(*host_ns, free_ns, 0) - epoch_ns);
	*host_ns += between(500, 1500);
	d->recorded_ns = *host_ns += between(0, 50) ? 0 : 100000; /* the host loses its processor */
}

static void play(struct run *r)
{
	uint64_t host_ns = 1000000000, free_ns = host_ns + (between(0, 1) ? 0 : between(0, 20000));
	const uint64_t epoch_ns = between(0, 900000000);
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		host_ns += between(0, 20000);
		record(r, 2 * i, &host_ns, &free_ns, epoch_ns);
		const uint64_t reached = (uint64_t)r->date[2 * i].at_ns + epoch_ns;
		host_ns += between(0, 20) ? between(2000, 9000) : 20000000; /* it loads a module */
		r->returned_ns[i] = host_ns;
		r->waited_ns[i] = host_ns + LATENCY > reached ? host_ns + LATENCY - reached : 0;
		reach(host_ns, &free_ns, between(1000, 40000));
		record(r, 2 * i + 1, &host_ns, &free_ns, epoch_ns);
	}
}

static void waits_are_those_of_the_stream_once_it_was_idle(void **state)
{
	uint32_t idle = 0;
	for (uint32_t n = 0; n < 10000; n++) {
		struct run r = { 0 };
		seed = n;
		play(&r);
		if (!r.is_idle_once)
			continue;
		idle++;
		const int64_t clock = event_clock(r.date, EVENTS);
		for (uint32_t i = 0; i < LAUNCHES; i++) {
			const uint64_t wait = event_wait(&r.date[2 * i], clock, r.returned_ns[i]);
			const uint64_t off = wait > r.waited_ns[i] ? wait - r.waited_ns[i]
								   : r.waited_ns[i] - wait;
			assert_true(off <= 1500); /* how long recording takes */
		}
	}
	assert_true(idle > 5000);
}

/* Nothing ties the clocks together then: the wait is at most what the host took. */
static void waits_are_no_longer_than_the_host_took(void **state)
{
	for (uint32_t n = 0; n < 10000; n++) {
		struct run r = { 0 };
		seed = n;
		play(&r);
		const int64_t clock = event_clock(r.date, EVENTS);
		for (uint32_t i = 0; i < LAUNCHES; i++) {
			const uint64_t wait = event_wait(&r.date[2 * i], clock, r.returned_ns[i]);
			assert_true(wait <= r.returned_ns[i] - r.date[2 * i].begun_ns);
			assert_true(wait + 1500 >= r.waited_ns[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_those_of_the_stream_once_it_was_idle),
		cmocka_unit_test(waits_are_no_longer_than_the_host_took),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
