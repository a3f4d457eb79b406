/*
 * The protocols between threads and processes on a machine that reorders, as arm64 does.
 *
 * x86-64 and qemu-user keep nearly every access in its order, so a missing release or acquire shows
 * on neither. Here memory is a list of what was ever stored at each place, and a thread has a view:
 * how much of each list it must have seen. A load returns any store from there on. A release gives
 * a store the view of its thread, and an acquire takes it over. (Kang et al., "A promising
 * semantics for relaxed-memory concurrency", 2017, without promises: no load sees a store of the
 * future.)
 *
 * Each protocol is written out with its orders numbered, step by step as in the file that it names.
 * Threads take turns at random. As the code is, no round may end wrong. With any one order weakened
 * to relaxed, or its fence left out, some round must.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>

#define PLACES  8
#define STORES  32
#define THREADS 3
#define TURNS   4000
#define ORDERS  8

enum order { RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };

struct view {
	uint8_t seen[PLACES];
};

static struct {
	struct {
		struct {
			uint64_t value;
			struct view view;
		} store[STORES];
		uint32_t count;
	} place[PLACES];
	struct view barrier; /* of all that has the order seq_cst: a load takes it, a store adds to
				it */
	int weakened;        /* the order that is left out, or -1 */
	int orders;          /* that the protocol has named */
} memory;

struct thread {
	int at;           /* line; -1: it has ended */
	struct view now;  /* what it must have seen */
	struct view kept; /* of what it has loaded relaxed: an acquire fence takes it over */
	struct view said; /* when its last release fence was */
	uint64_t r[4];
};

static uint32_t drawn = 1;

static uint32_t draw(uint32_t n)
{
	drawn ^= drawn << 13;
	drawn ^= drawn >> 17;
	drawn ^= drawn << 5;
	return drawn % n;
}

static void join(struct view *to, const struct view *from)
{
	for (int i = 0; i < PLACES; i++)
		to->seen[i] = from->seen[i] > to->seen[i] ? from->seen[i] : to->seen[i];
}

static void fence(struct thread *t, enum order order)
{
	if (order == RELAXED)
		return;
	if (order != RELEASE)
		join(&t->now, &t->kept);
	if (order == SEQ_CST) {
		join(&t->now, &memory.barrier);
		memory.barrier = t->now;
	}
	if (order != ACQUIRE)
		t->said = t->now;
}

static uint64_t take(struct thread *t, int place, uint32_t which, enum order order)
{
	const struct view *view = &memory.place[place].store[which].view;
	t->now.seen[place] = (uint8_t)which;
	join(order == RELAXED || order == RELEASE ? &t->kept : &t->now, view);
	return memory.place[place].store[which].value;
}

static uint64_t load(struct thread *t, int place, enum order order)
{
	if (order == SEQ_CST)
		join(&t->now, &memory.barrier);
	const uint32_t from = t->now.seen[place];
	return take(t, place, from + draw(memory.place[place].count - from), order);
}

static void put(struct thread *t, int place, uint64_t value, enum order order, struct view with)
{
	const uint32_t which = memory.place[place].count++;
	assert_true(which < STORES);
	t->now.seen[place] = (uint8_t)which;
	join(&with, order == RELAXED || order == ACQUIRE ? &t->said : &t->now);
	with.seen[place] = (uint8_t)which;
	memory.place[place].store[which].value = value;
	memory.place[place].store[which].view = with;
	if (order == SEQ_CST)
		join(&memory.barrier, &t->now);
}

static void store(struct thread *t, int place, uint64_t value, enum order order)
{
	put(t, place, value, order, (struct view){ 0 });
}

/* The exchange has order seq_cst: loads of that order elsewhere see it.  It is no barrier for loads
 * behind it: on arm64, which has no locked instructions, they may come before its store.  It always
 * sees the newest store. */
static bool swap_if(struct thread *t, int place, uint64_t *seen, uint64_t value, enum order order)
{
	const uint32_t last = memory.place[place].count - 1;
	const uint64_t expected = *seen;
	*seen = take(t, place, last, order);
	if (*seen != expected)
		return false;
	put(t, place, value, order, memory.place[place].store[last].view);
	return true;
}

static uint64_t swap(struct thread *t, int place, uint64_t value, enum order order)
{
	uint64_t seen = memory.place[place].store[memory.place[place].count - 1].value;
	swap_if(t, place, &seen, value, order);
	return seen;
}

static uint64_t add(struct thread *t, int place, uint64_t value, enum order order)
{
	uint64_t seen = memory.place[place].store[memory.place[place].count - 1].value;
	swap_if(t, place, &seen, seen + value, order);
	return seen;
}

typedef void step(struct thread *t);

/* A step ends before each access to memory; what a thread keeps is in r[]. */
#define BEGIN                                                                                      \
	switch (t->at) {                                                                           \
	case 0:
#define NEXT                                                                                       \
	t->at = __LINE__;                                                                          \
	return;                                                                                    \
	case __LINE__:
#define END                                                                                        \
	}                                                                                          \
	t->at = -1

/* The order of this number, as the protocol has it or left out. */
static enum order named(int number, enum order order)
{
	memory.orders = number >= memory.orders ? number + 1 : memory.orders;
	return memory.weakened == number ? RELAXED : order;
}

static bool wrong;

static void must(bool holds)
{
	wrong = wrong || !holds;
}

/* A record of a chunk: writer.h, record_commit(); trace.h, trace_next_record(). */
enum { TICKS, WORDS, FN };

static void record_writes(struct thread *t)
{
	BEGIN
	NEXT store(t, TICKS, 7, RELAXED);
	NEXT store(t, WORDS, 3, RELAXED);
	NEXT store(t, FN, 1, named(0, RELEASE));
	END;
}

static void record_reads(struct thread *t)
{
	BEGIN
	NEXT if (load(t, FN, named(1, ACQUIRE)) != 1) goto end;
	NEXT must(load(t, TICKS, RELAXED) == 7);
	NEXT must(load(t, WORDS, RELAXED) == 3);
end:
	END;
}

/* A chunk that is used again: chunk.c, chunk_wipe(), begin(); load.c, load_raw(), check_same(),
 * whose system calls are full barriers. */
enum { DATE, PAYLOAD, STATE };

static void chunk_begins_anew(struct thread *t)
{
	BEGIN
	NEXT store(t, DATE, 0, RELAXED);
	fence(t, named(0, RELEASE));
	NEXT store(t, PAYLOAD, 2, RELAXED);
	NEXT store(t, DATE, 2, RELAXED);
	NEXT store(t, STATE, 2, named(1, RELEASE));
	END;
}

static void chunk_is_read(struct thread *t)
{
	BEGIN
	NEXT t->r[2] = load(t, STATE, RELAXED);
	fence(t, named(2, ACQUIRE));
	NEXT t->r[0] = load(t, DATE, RELAXED);
	must(t->r[2] != 2 || t->r[0] == 2);
	NEXT t->r[1] = load(t, PAYLOAD, RELAXED);
	fence(t, named(3, ACQUIRE));
	NEXT if (t->r[0] == 1 && load(t, DATE, RELAXED) == 1) must(t->r[1] == 0);
	END;
}

/* A chunk handed to whoever drains, and back: chunk.c, chunk_close(), chunk_recycle(),
 * recorder_free(). */
enum { USED = 3, LINK = 4 };

static void chunk_is_closed(struct thread *t)
{
	BEGIN
	NEXT store(t, PAYLOAD, 5, RELAXED);
	NEXT store(t, USED, 1, RELAXED);
	NEXT store(t, STATE, 2, named(0, RELEASE));
	NEXT t->r[0] = 2;
	for (; t->r[0] != 4 && t->r[1] < 6; t->r[1]++) {
		NEXT t->r[0] = load(t, STATE, named(1, ACQUIRE));
	}
	if (t->r[0] != 4)
		goto end;
	NEXT must(load(t, LINK, RELAXED) == 9);
end:
	END;
}

static void chunk_is_drained_of(struct thread *t)
{
	BEGIN
	NEXT if (load(t, STATE, named(2, ACQUIRE)) != 2) goto end;
	NEXT must(load(t, USED, RELAXED) == 1);
	NEXT must(load(t, PAYLOAD, RELAXED) == 5);
	NEXT store(t, LINK, 9, RELAXED);
	NEXT swap(t, STATE, 4, named(3, ACQ_REL));
end:
	END;
}

/* An entry of the tables: tables.h, store_stable(), copy_stable().  The same in match.c, where the
 * turn is the sequence. */
enum { SEQUENCE, ONE, TWO };

static void entry_changes(struct thread *t)
{
	BEGIN
	NEXT store(t, SEQUENCE, 1, RELAXED);
	NEXT store(t, ONE, 1, named(0, RELEASE));
	NEXT store(t, TWO, 1, named(1, RELEASE));
	NEXT store(t, SEQUENCE, 2, named(2, RELEASE));
	END;
}

static void entry_is_copied(struct thread *t)
{
	BEGIN
	NEXT t->r[0] = load(t, SEQUENCE, named(3, ACQUIRE));
	NEXT t->r[1] = load(t, ONE, named(4, ACQUIRE));
	NEXT t->r[2] = load(t, TWO, named(5, ACQUIRE));
	NEXT if (!(t->r[0] & 1) && t->r[0] == load(t, SEQUENCE, RELAXED))
		must(t->r[1] == t->r[0] / 2 && t->r[2] == t->r[0] / 2);
	END;
}

/* The states of a slot: arbiter.c, put(); segment.c, share_grant().  A slot and a device that are
 * claimed, and a string of the tables are given the same way. */
enum { BUDGET, CAP, MODE };

static void grant_is_put(struct thread *t)
{
	BEGIN
	NEXT store(t, BUDGET, 4, RELAXED);
	NEXT store(t, CAP, 6, RELAXED);
	NEXT store(t, MODE, 3, named(0, RELEASE));
	END;
}

static void grant_is_read(struct thread *t)
{
	BEGIN
	NEXT if (load(t, MODE, named(1, ACQUIRE)) != 3) goto end;
	NEXT must(load(t, BUDGET, RELAXED) == 4);
	NEXT must(load(t, CAP, RELAXED) == 6);
end:
	END;
}

/* The trace of a process and its clock: process.c, control_by(); process.h, process_control().  The
 * same in served.c, where the state of a device's pool is last, in injected.c of libweirapi, and in
 * handle.c, handle_publish() and handle_enter(). */
enum { CLOCK, CONTROL };

static void process_starts(struct thread *t)
{
	BEGIN
	NEXT store(t, CLOCK, 1, RELAXED);
	NEXT store(t, CONTROL, 1, named(0, RELEASE));
	END;
}

static void process_is_asked(struct thread *t)
{
	BEGIN
	NEXT if (!load(t, CONTROL, named(1, ACQUIRE))) goto end;
	NEXT must(load(t, CLOCK, RELAXED) == 1);
end:
	END;
}

/* A launch, while the request that it belongs to is seen to end: streams.h, streams_submit(),
 * sched.c, enter() and go_outside().  One of the two sees the other. */
enum { SUBMITTED, INSIDE, BEGUN, STAYED };

static void launch_enters(struct thread *t)
{
	BEGIN
	NEXT swap(t, SUBMITTED, 1, SEQ_CST);
	fence(t, named(0, SEQ_CST));
	NEXT t->r[0] = load(t, INSIDE, ACQUIRE);
	END;
}

static void request_leaves(struct thread *t)
{
	BEGIN
	NEXT swap(t, INSIDE, 0, SEQ_CST);
	fence(t, named(1, SEQ_CST));
	NEXT t->r[0] = load(t, SUBMITTED, ACQUIRE);
	END;
}

static bool launch_is_in_a_request(const struct thread t[THREADS])
{
	return t[0].r[0] == 0 || t[1].r[0] == 1; /* begins a request, or the other goes in again */
}

/* A loop of weir serve that goes to sleep, and what comes back to it: loop.c.  Orders of `asleep`
 * are not tried: an exchange sees the newest store here, and no store is late. */
enum { INBOX, ASLEEP, EXCHANGE };

static void loop_sleeps(struct thread *t)
{
	BEGIN
	NEXT t->r[1] = swap(t, INBOX, 0, named(0, ACQUIRE));
	if (t->r[1])
		goto taken;
	NEXT store(t, ASLEEP, 1, SEQ_CST);
	NEXT t->r[0] = load(t, INBOX, named(1, SEQ_CST));
	goto end;
taken:
	NEXT must(load(t, EXCHANGE, RELAXED) == 3);
end:
	END;
}

static void exchange_comes_back(struct thread *t)
{
	BEGIN
	NEXT store(t, EXCHANGE, 3, RELAXED);
	NEXT swap(t, INBOX, 1, named(2, SEQ_CST));
	NEXT t->r[0] = swap(t, ASLEEP, 0, SEQ_CST);
	END;
}

static bool loop_is_woken(const struct thread t[THREADS])
{
	return t[0].r[1] || t[0].r[0] || t[1].r[0];
}

/* A pool of the driver's that is destroyed while it may be visited: pools.c, visit(),
 * forget_pool().  One of the two sees the other. */
enum { VISITORS, POOL };

static void pool_is_visited(struct thread *t)
{
	BEGIN
	NEXT add(t, VISITORS, 1, named(0, SEQ_CST));
	NEXT t->r[0] = load(t, POOL, named(1, SEQ_CST));
	END;
}

static void pool_is_forgotten(struct thread *t)
{
	BEGIN
	NEXT store(t, POOL, 0, named(2, SEQ_CST));
	NEXT t->r[0] = load(t, VISITORS, named(3, SEQ_CST));
	END;
}

static bool pool_outlives_its_visit(const struct thread t[THREADS])
{
	return !t[0].r[0] || t[1].r[0];
}

/* Memory that one program wants of another: quota.c, quota_want(); served_handles.c,
 * served_give_wanted().  The other gives some now, or looks again. */
enum { WANTED, HINT };

static void memory_is_wanted(struct thread *t)
{
	BEGIN
	NEXT store(t, WANTED, 1, named(0, SEQ_CST));
	NEXT store(t, HINT, 1, named(0, SEQ_CST));
	END;
}

static void memory_is_given(struct thread *t)
{
	BEGIN
	NEXT store(t, HINT, 0, SEQ_CST);
	NEXT t->r[0] = load(t, WANTED, named(1, SEQ_CST));
	END;
}

static bool want_is_not_lost(const struct thread t[THREADS])
{
	return t[1].r[0] || memory.place[HINT].store[memory.place[HINT].count - 1].value;
}

/* A handle of libweirapi that is closed while others use it: handle.c, handle_leave(), forget().
 * The last one finds what all have done with it. */
enum { LEFT, MAPPED };

static void handle_is_used(struct thread *t)
{
	BEGIN
	NEXT store(t, MAPPED, 1, RELAXED);
	NEXT add(t, LEFT, 1, named(0, ACQ_REL));
	END;
}

static void handle_is_closed(struct thread *t)
{
	BEGIN
	NEXT if (!add(t, LEFT, 1, named(1, ACQ_REL))) goto end;
	NEXT must(load(t, MAPPED, RELAXED) == 1);
end:
	END;
}

/* The words that a lock guards: lock.h, lock_try(), lock_give().  The same in stream_pool.c, where
 * the state of a stream is the holder: take(), put(). */
enum { HOLDER, GUARDED };

static void lock_is_taken(struct thread *t)
{
	BEGIN
	NEXT t->r[0] = 0;
	if (!swap_if(t, HOLDER, &t->r[0], 1, named(0, ACQUIRE)))
		goto end;
	NEXT t->r[1] = load(t, GUARDED, RELAXED);
	NEXT store(t, GUARDED, t->r[1] + 1, RELAXED);
	NEXT store(t, HOLDER, 0, named(1, RELEASE));
	t->r[2] = 1;
end:
	END;
}

static bool lock_has_counted(const struct thread t[THREADS])
{
	const uint64_t last = memory.place[GUARDED].store[memory.place[GUARDED].count - 1].value;
	return last == t[0].r[2] + t[1].r[2] + t[2].r[2];
}

/* The queue of closed chunks in flight: flight.c, link_behind(), step().  The taker of a chunk
 * finds it closed. */
enum { NEWEST = 3, FIRST = 4 };

static void chunk_is_queued(struct thread *t)
{
	BEGIN
	NEXT store(t, PAYLOAD, 5, RELAXED);
	NEXT t->r[0] = 0;
	swap_if(t, FIRST, &t->r[0], 1, named(0, ACQ_REL));
	NEXT t->r[0] = 0;
	swap_if(t, NEWEST, &t->r[0], 1, ACQ_REL);
	END;
}

static void chunk_is_overwritten(struct thread *t)
{
	BEGIN
	NEXT if (!load(t, FIRST, named(1, ACQUIRE))) goto end;
	NEXT must(load(t, PAYLOAD, RELAXED) == 5);
end:
	END;
}

static const struct protocol {
	const char *name;
	step *thread[THREADS];
	bool (*ends_well)(const struct thread t[THREADS]);
	int at_first; /* a place that begins as 1, or -1 */
} protocols[] = {
	{ "a record", { record_writes, record_reads }, NULL, -1 },
	{ "a chunk begun anew", { chunk_begins_anew, chunk_is_read }, NULL, DATE },
	{ "a chunk handed over", { chunk_is_closed, chunk_is_drained_of }, NULL, -1 },
	{ "an entry of the tables", { entry_changes, entry_is_copied }, NULL, -1 },
	{ "a grant", { grant_is_put, grant_is_read }, NULL, -1 },
	{ "a process that starts", { process_starts, process_is_asked }, NULL, -1 },
	{ "a launch at a request's end", { launch_enters, request_leaves }, launch_is_in_a_request,
		INSIDE },
	{ "a loop that sleeps", { loop_sleeps, exchange_comes_back }, loop_is_woken, -1 },
	{ "a pool that is destroyed", { pool_is_visited, pool_is_forgotten },
		pool_outlives_its_visit, POOL },
	{ "memory that is wanted", { memory_is_wanted, memory_is_given }, want_is_not_lost, -1 },
	{ "a handle that is closed", { handle_is_used, handle_is_closed }, NULL, -1 },
	{ "a lock", { lock_is_taken, lock_is_taken, lock_is_taken }, lock_has_counted, -1 },
	{ "a chunk in flight", { chunk_is_queued, chunk_is_overwritten }, NULL, -1 },
};

static void begin_round(const struct protocol *p)
{
	for (int i = 0; i < PLACES; i++) {
		memory.place[i].count = 1;
		memory.place[i].store[0].value = i == p->at_first;
		memory.place[i].store[0].view = (struct view){ 0 };
	}
	memory.barrier = (struct view){ 0 };
	wrong = false;
}

static bool round_ends_well(const struct protocol *p)
{
	struct thread t[THREADS] = { 0 };
	int left = 0;
	begin_round(p);
	for (int i = 0; i < THREADS; i++) {
		t[i].at = p->thread[i] ? 0 : -1;
		left += p->thread[i] != NULL;
	}
	while (left) {
		const uint32_t i = draw(THREADS);
		if (t[i].at < 0)
			continue;
		p->thread[i](&t[i]);
		left -= t[i].at < 0;
	}
	return !wrong && (!p->ends_well || p->ends_well(t));
}

static bool rounds_end_well(const struct protocol *p, int weakened)
{
	memory.weakened = weakened;
	for (int i = 0; i < TURNS; i++)
		if (!round_ends_well(p))
			return false;
	return true;
}

static void no_round_ends_wrong(void **state)
{
	for (size_t i = 0; i < COUNT_OF(protocols); i++)
		if (!rounds_end_well(&protocols[i], -1))
			fail_msg("%s", protocols[i].name);
}

static void each_order_is_needed(void **state)
{
	for (size_t i = 0; i < COUNT_OF(protocols); i++) {
		memory.orders = 0;
		rounds_end_well(&protocols[i], -1);
		assert_in_range(memory.orders, 2, ORDERS);
		for (int k = 0, orders = memory.orders; k < orders; k++)
			if (rounds_end_well(&protocols[i], k))
				fail_msg("%s: order %d can be left out", protocols[i].name, k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_round_ends_wrong),
		cmocka_unit_test(each_order_is_needed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
