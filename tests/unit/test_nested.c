/* Ranges that nest, calls of a thread and links in their order, against slow versions. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "maker.h"
#include "join/links.h"
#include "join/nested.h"
#include "trace/thread_calls.h"

struct own { /* what its owner keeps of a range */
	struct nested at;
	uint32_t mark;
};

#define RANGES 300

static uint64_t pick(uint64_t seed, uint64_t below)
{
	return hash_mix(seed * 0x9e3779b97f4a7c15u + 1) % below;
}

/* Makes ranges of some threads. If they shall nest, each is cut where the one around it ends. */
static size_t make(struct own *v, uint64_t seed, bool nest)
{
	size_t n = 0;
	for (uint32_t thread = 0; thread < 4; thread++) {
		uint64_t ends[RANGES], now = 0;
		int deep = 0;
		for (int i = 0; i < RANGES / 4; i++) {
			now += pick(seed + n * 3, 4);
			while (deep && ends[deep - 1] <= now)
				deep--;
			uint64_t end = now + 1 + pick(seed + n * 7, 40);
			if (nest && deep && end > ends[deep - 1])
				end = ends[deep - 1];
			ends[deep++] = end;
			v[n] = (struct own){ .at = { .ticks = now,
						     .end = end,
						     .external = n % 5 ? 0 : 1 + n % 20,
						     .process = thread / 2,
						     .tid = 7 + thread % 2,
						     .parent = 12345 },
				.mark = (uint32_t)n };
			n++;
		}
	}
	for (size_t i = n; i-- > 1;) {
		const size_t k = pick(seed + i, i + 1);
		const struct own o = v[i];
		v[i] = v[k];
		v[k] = o;
	}
	return n;
}

/* Looking at all: the shortest that holds the moment, the later of equal ones. */
static uint32_t slow_at(const struct own *v, size_t n, uint32_t process, uint32_t tid, uint64_t at)
{
	uint32_t best = NESTED_NONE;
	for (uint32_t i = 0; i < n; i++) {
		const struct nested *s = &v[i].at;
		if (s->process != process || s->tid != tid || s->ticks > at || s->end <= at)
			continue;
		if (best == NESTED_NONE || s->end - s->ticks <= v[best].at.end - v[best].at.ticks)
			best = i;
	}
	return best;
}

static void the_innermost_range_is_found_whatever_was_asked_before(void **state)
{
	struct own v[RANGES];
	for (uint64_t seed = 1; seed < 40; seed++) {
		const size_t n = make(v, seed, true);
		size_t hint = 0;
		nested(v, n, sizeof *v);
		for (uint64_t i = 0; i < 2000; i++) {
			const uint32_t process = (uint32_t)(i % 3), tid = 6 + (uint32_t)(i / 3 % 4);
			const uint64_t at = i % 2 ? i / 8 : pick(seed + i, 300);
			assert_int_equal(nested_at(v, n, sizeof *v, process, tid, at, &hint),
				slow_at(v, n, process, tid, at));
		}
	}
}

static void a_parent_is_the_innermost_around(void **state)
{
	struct own v[RANGES];
	const size_t n = make(v, 99, true);
	uint64_t marks = 0;
	nested(v, n, sizeof *v);
	for (uint32_t i = 0; i < n; i++) {
		const struct nested *s = &v[i].at;
		marks += v[i].mark;
		if (s->parent == NESTED_NONE)
			continue;
		const struct nested *p = &v[s->parent].at;
		assert_true(s->parent < i);
		assert_true(p->process == s->process && p->tid == s->tid);
		assert_true(p->ticks <= s->ticks && s->end <= p->end);
	}
	assert_int_equal(marks, n * (n - 1) / 2); /* what is the owner's went along */
}

static bool is_inside(const struct nested *a, const struct nested *b)
{
	return a->process == b->process && a->tid == b->tid && b->ticks <= a->ticks &&
	       a->end <= b->end;
}

static void a_range_that_outlasts_another_is_not_inside_it(void **state)
{
	struct own v[RANGES];
	unsigned outlasts = 0;
	for (uint64_t seed = 1; seed < 40; seed++) {
		const size_t n = make(v, seed, false);
		nested(v, n, sizeof *v);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t up = i;
			while (up-- && !is_inside(&v[i].at, &v[up].at))
				outlasts +=
					v[up].at.tid == v[i].at.tid && v[up].at.end > v[i].at.ticks;
			assert_int_equal(v[i].at.parent, up);
		}
	}
	assert_true(outlasts > 1000);
}

/* A clock that ticks slowly: most ranges take no time, and some begin and end in one tick while
 * others are open.  A range begins behind those before it and ends before the one around it. */
static uint32_t grow(struct own *v, uint32_t n, uint32_t parent, uint64_t *now, uint64_t *seed)
{
	const uint32_t self = n++;
	v[self] = (struct own){ .at = { .ticks = *now, .process = 3, .tid = 4 }, .mark = parent };
	for (uint64_t i = pick(++*seed, 3); i-- && n < RANGES;) {
		*now += pick(++*seed, 8) == 0;
		n = grow(v, n, self, now, seed);
	}
	*now += pick(++*seed, 8) == 0;
	v[self].at.end = *now;
	return n;
}

static uint32_t mark_around(const struct own *v, uint32_t i)
{
	return v[i].at.parent == NESTED_NONE ? NESTED_NONE : v[v[i].at.parent].mark;
}

static void ranges_that_follow_each_other_in_one_tick_are_siblings(void **state)
{
	struct own v[RANGES], given[RANGES];
	unsigned empty = 0, first_in_tick = 0;
	for (uint64_t seed = 1; seed < 100000; seed += 997) {
		uint64_t now = 5, at = seed;
		uint32_t n = 0;
		while (n < RANGES)
			n = grow(v, n, NESTED_NONE, &now, &at);
		memcpy(given, v, sizeof v);
		for (uint32_t i = 0; i < n; i++)
			v[i].mark = i;
		nested(v, n, sizeof *v);
		for (uint32_t i = 0; i < n; i++) {
			/* A range of no time has no time to be around another. */
			uint32_t up = given[v[i].mark].mark;
			while (up != NESTED_NONE && given[up].at.end <= v[i].at.ticks)
				up = given[up].mark;
			assert_int_equal(mark_around(v, i), up);
			empty += v[i].at.end == v[i].at.ticks;
			first_in_tick += i + 1 < n && v[i].at.end == v[i].at.ticks &&
					 v[i + 1].at.ticks == v[i].at.ticks &&
					 v[i + 1].at.end > v[i].at.ticks;
		}
	}
	assert_true(empty > 1000 && first_in_tick > 100);
}

/* Ranges of one thread that begin in one tick, most of which take no time. */
static void make_tick(struct own *v, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct own){ .at = { .ticks = 7,
					     .end = 7 + pick(seed + i, 2) * pick(seed * 3 + i, 9),
					     .process = 1,
					     .tid = 1 },
			.mark = i };
}

/* Longer ones first, those of no time last, then each that takes time behind those of no time that
 * were given before it, one by one. */
static void put_slowly(struct own *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = i; k && v[k - 1].at.end < v[k].at.end; k--) {
			const struct own o = v[k];
			v[k] = v[k - 1];
			v[k - 1] = o;
		}
	for (uint32_t i = n; i-- > 0;)
		for (uint32_t k = i; v[k].at.end > 7 && k + 1 < n && v[k + 1].at.end == 7 &&
				     v[k + 1].mark < v[k].mark;
			k++) {
			const struct own o = v[k];
			v[k] = v[k + 1];
			v[k + 1] = o;
		}
}

static void ranges_of_no_time_keep_their_place_in_a_tick(void **state)
{
	struct own v[RANGES], slow[RANGES];
	for (uint64_t seed = 1; seed < 3000; seed++) {
		const uint32_t n = (uint32_t)pick(seed, 40);
		make_tick(v, n, seed);
		make_tick(slow, n, seed);
		put_slowly(slow, n);
		nested(v, n, sizeof *v);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(v[i].mark, slow[i].mark);
	}
	/* Half a million moved one by one would take hours. */
	const uint32_t many = 500000;
	struct own *all = calloc(many, sizeof *all);
	make_tick(all, many, 1);
	for (uint32_t i = 0; i < many; i++)
		all[i].at.end = i < many / 2 ? 7 : 8;
	nested(all, many, sizeof *all);
	for (uint32_t i = 0; i < many; i++)
		assert_int_equal(all[i].mark, i);
	free(all);
}

static void without_ranges_nothing_is_around(void **state)
{
	size_t hint = 5;
	nested(NULL, 0, sizeof(struct own));
	assert_int_equal(nested_at(NULL, 0, sizeof(struct own), 0, 0, 1, &hint), NESTED_NONE);
}

/* Looking at all: whether another thread is inside of named ranges all the while, and longer. */
static bool slow_is_part(const struct own *v, size_t n, const struct nested *of)
{
	for (size_t i = 0; i < n; i++) {
		const struct nested *s = &v[i].at;
		if (s->named && s->process == of->process && s->tid != of->tid &&
			s->ticks <= of->ticks && s->end >= of->end &&
			(s->ticks < of->ticks || s->end > of->end))
			return true;
	}
	return false;
}

/* The innermost named range of the one thread that is inside of some that are no other's part. */
static uint32_t slow_alone(const struct own *v, size_t n, uint32_t process, uint64_t at)
{
	uint32_t found = NESTED_NONE;
	for (uint32_t tid = 7; tid < 9; tid++) {
		const uint32_t named = nested_named(v, sizeof *v, slow_at(v, n, process, tid, at));
		uint32_t outer = named;
		for (uint32_t up = named; up != NESTED_NONE; up = v[up].at.parent)
			outer = v[up].at.named ? up : outer;
		if (named == NESTED_NONE || slow_is_part(v, n, &v[outer].at))
			continue;
		if (found != NESTED_NONE)
			return NESTED_NONE;
		found = named;
	}
	return found;
}

static void what_one_thread_alone_is_inside_of_is_found(void **state)
{
	struct own v[RANGES];
	unsigned found = 0, none = 0;
	for (uint64_t seed = 1; seed < 40; seed++) {
		struct alones a;
		const size_t n = make(v, seed, true);
		for (size_t i = 0; i < n; i++)
			v[i].at.named = pick(seed + 11 * i, 6) == 0;
		nested(v, n, sizeof *v);
		alones_make(v, n, sizeof *v, &a);
		for (uint64_t i = 0; i < 900; i++) {
			const uint32_t process = (uint32_t)(i % 3);
			const uint32_t want = slow_alone(v, n, process, i / 3);
			assert_int_equal(alones_at(&a, v, n, sizeof *v, process, i / 3), want);
			*(want == NESTED_NONE ? &none : &found) += 1;
		}
		array_free(&a.v);
	}
	assert_true(found > 1000 && none > 1000);
}

static void a_number_names_the_first_range_of_its_process(void **state)
{
	struct own v[RANGES];
	struct externals x;
	const size_t n = make(v, 3, true);
	nested(v, n, sizeof *v);
	externals_make(v, n, sizeof *v, &x);
	for (uint32_t process = 0; process < 3; process++)
		for (uint64_t id = 1; id < 25; id++) {
			uint32_t want = NESTED_NONE;
			for (uint32_t i = (uint32_t)n; i-- > 0;)
				if (v[i].at.external == id && v[i].at.process == process)
					want = i;
			assert_int_equal(externals_find(&x, process, id), want);
		}
	array_free(&x.v);
}

static void links_of_a_call_are_those_that_began_in_it(void **state)
{
	struct call_link v[200];
	struct links l = { .v = { v, 200, 0 } };
	struct links_by_call c;
	for (uint32_t i = 0; i < 200; i++)
		v[i] = (struct call_link){
			.correlation = i, .ticks = pick(i, 50), .process = i % 2, .tid = i / 2 % 3
		};
	links_by_call(&l, &c);
	for (uint64_t from = 0; from < 52; from++)
		for (uint64_t to = from; to < 52; to++) {
			size_t want = 0, found = 0;
			const struct call_link *n;
			for (size_t i = 0; i < 200; i++)
				want += v[i].process == 1 && v[i].tid == 2 && v[i].ticks >= from &&
					v[i].ticks <= to;
			for (size_t at = links_from(&c, 1, 2, from);
				(n = links_until(&c, at, 1, 2, to)); at++) {
				assert_true(n->process == 1 && n->tid == 2);
				assert_true(n->ticks >= from && n->ticks <= to);
				found++;
			}
			assert_int_equal(found, want);
		}
	array_free(&c.v);
}

#define FILE_NAME "test_nested.weir"

static struct trace *begin(void)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int a = maker_thread(m, CHUNK_EVENTS, 100, 101, "a");
	const int b = maker_thread(m, CHUNK_EVENTS, 100, 102, "b");
	const uint64_t launch[] = { 0x55, 7, 8 | 1ull << 32, 1 | 256ull << 32, 1 | 1ull << 32 };
	for (uint64_t i = 0; i < 3000; i++)
		maker_put(m, i % 3 ? a : b,
			(struct record){ .ticks = 2000000 + i * 10,
				.dur = 5,
				.fn = FN_LAUNCH,
				.words = RECORD_WORDS + 5 },
			launch);
	maker_finish(m, 3000000, false);
	struct trace *t;
	struct error err;
	assert_int_equal(trace_open(FILE_NAME, &t, &err), 0);
	return t;
}

static void a_thread_is_read_backwards_from_its_last_call(void **state)
{
	struct trace *t = begin();
	struct thread_calls c;
	uint64_t last = UINT64_MAX, calls = 0;
	unsigned threads = 0, chunks = 0;
	uint32_t tid = 0;
	thread_calls_init(&c, t);
	int e = 0;
	while (!e && (e = thread_calls_next(&c)) > 0) {
		assert_int_equal(c.new_thread, c.buf.ref->head.tid != tid);
		tid = c.buf.ref->head.tid;
		last = c.new_thread ? UINT64_MAX : last;
		threads += c.new_thread;
		chunks++;
		for (size_t i = c.calls.n; i-- > 0; calls++) {
			assert_true(c.calls.v[i]->ticks < last);
			last = c.calls.v[i]->ticks;
		}
		e = 0;
	}
	assert_int_equal(e, 0);
	assert_int_equal(threads, 2);
	assert_int_equal(calls, 3000);
	assert_true(chunks > 2);
	thread_calls_fini(&c);
	trace_close(t);
	unlink(FILE_NAME);
}

static void chunks_of_a_thread_are_in_the_order_of_age(void **state)
{
	struct trace *t = begin();
	struct thread_chunks old, new;
	trace_thread_chunks(t, false, &old);
	trace_thread_chunks(t, true, &new);
	assert_int_equal(old.v.n, new.v.n);
	for (size_t i = 1; i < old.v.n; i++) {
		const struct chunk_header *a = &t->chunks[old.v.v[i - 1]].head;
		const struct chunk_header *b = &t->chunks[old.v.v[i]].head;
		assert_true(a->tid < b->tid || (a->tid == b->tid && a->seq < b->seq));
		a = &t->chunks[new.v.v[i - 1]].head;
		b = &t->chunks[new.v.v[i]].head;
		assert_true(a->tid < b->tid || (a->tid == b->tid && a->seq > b->seq));
	}
	array_free(&old.v);
	array_free(&new.v);
	trace_close(t);
	unlink(FILE_NAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_innermost_range_is_found_whatever_was_asked_before),
		cmocka_unit_test(a_parent_is_the_innermost_around),
		cmocka_unit_test(a_range_that_outlasts_another_is_not_inside_it),
		cmocka_unit_test(ranges_that_follow_each_other_in_one_tick_are_siblings),
		cmocka_unit_test(ranges_of_no_time_keep_their_place_in_a_tick),
		cmocka_unit_test(without_ranges_nothing_is_around),
		cmocka_unit_test(what_one_thread_alone_is_inside_of_is_found),
		cmocka_unit_test(a_number_names_the_first_range_of_its_process),
		cmocka_unit_test(links_of_a_call_are_those_that_began_in_it),
		cmocka_unit_test(a_thread_is_read_backwards_from_its_last_call),
		cmocka_unit_test(chunks_of_a_thread_are_in_the_order_of_age),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
