/* Traces that are read in part: what is in the parts, at which time, and which steps are warm-up.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "maker.h"
#include "trace/activity.h"
#include "trace/part.h"
#include "trace/steps.h"

#define FILE_NAME "test_part.weir"
#define START     1000000u /* what maker_new() begins with; a tick is a nanosecond */
#define STEP      10000u
#define STEPS     10u
#define PID       100u

enum { STRING_ODD = 1, STRING_RUN, STRING_LATE, STRING_STEPS };

static void string(struct maker *m, int meta, uint64_t id, const char *text)
{
	maker_meta(m, meta, META_STRING, START, 1, &id, text, (uint32_t)strlen(text),
		(uint32_t)strlen(text));
}

static uint64_t step_begin(uint32_t i)
{
	return START + i * STEP;
}

static bool optimizes, repeats; /* what marks steps: see make_marks() */

/* Step i, from 1, makes i launches 100 apart, and waits until 5000 behind its begin. */
static bool bare; /* nothing marks steps, and the same seven kernels are launched in each */

static void make_bare(struct maker *m)
{
	static const uint64_t functions[] = { 0x20, 0x10, 0x10, 0x30, 0x10, 0x10, 0x40 };
	const int t = maker_thread(m, CHUNK_EVENTS, PID, PID + 1, "main");
	for (uint32_t i = 1; i <= STEPS; i++)
		for (uint32_t k = 0; k < COUNT_OF(functions); k++)
			maker_put(m, t,
				(struct record){ .ticks = step_begin(i) + k * 100,
					.dur = 50,
					.fn = FN_LAUNCH,
					.words = RECORD_WORDS + LAUNCH_WORDS },
				(const uint64_t[LAUNCH_WORDS]){ functions[k], 7, 1 | 1ull << 32,
					1 | 32ull << 32, 1 | 1ull << 32 });
}

static void make_steps(struct maker *m)
{
	const int t = maker_thread(m, CHUNK_EVENTS, PID, PID + 1, "main");
	const uint64_t launch[LAUNCH_WORDS] = { 0x10, 7, 1 | 1ull << 32, 1 | 32ull << 32,
		1 | 1ull << 32 };
	const uint64_t stream = 7;
	for (uint32_t i = 1; i <= STEPS; i++) {
		for (uint32_t k = 0; k < i; k++)
			maker_put(m, t,
				(struct record){ .ticks = step_begin(i) + k * 100,
					.dur = 50,
					.fn = FN_LAUNCH,
					.words = RECORD_WORDS + LAUNCH_WORDS },
				launch);
		if (repeats)
			continue; /* without a wait */
		maker_put(m, t,
			(struct record){ .ticks = step_begin(i) + 4000,
				.dur = 1000,
				.fn = FN_SYNC,
				.words = RECORD_WORDS + 1 },
			&stream);
	}
}

/* An activity for each launch, 500 behind it. */
static void make_activities(struct maker *m)
{
	struct gpu_activity w[STEPS * (STEPS + 1) / 2];
	size_t n = 0;
	for (uint32_t i = 1; i <= STEPS; i++)
		for (uint32_t k = 0; k < i; k++, n++)
			w[n] = (struct gpu_activity){ .start_ns = step_begin(i) + k * 100 + 500,
				.end_ns = step_begin(i) + k * 100 + 580,
				.correlation = n + 1,
				.valid = GPU_HAS_CORRELATION,
				.kind = GPU_KERNEL };
	maker_chunk(m, CHUNK_DEVICE, PID, 0, w, sizeof w);
}

/* "odd" around steps 1, 3, 5 …, "run" around all, "late" from the middle of step 2 to that of 4. */
static void make_ranges(struct maker *m)
{
	struct range g[STEPS] = { { .ticks = START, .dur = 2 * STEPS * STEP, .name = STRING_RUN },
		{ .ticks = step_begin(2) + 4500, .dur = 2 * STEP, .name = STRING_LATE } };
	size_t n = 2;
	for (uint32_t i = 1; i <= STEPS; i += 2)
		g[n++] = (struct range){
			.ticks = step_begin(i) - 10, .dur = 6000, .name = STRING_ODD
		};
	for (size_t i = 0; i < n; i++)
		g[i].kind = RANGE_NVTX;
	maker_chunk(m, CHUNK_RANGES, PID, PID + 1, g, (uint32_t)(n * sizeof *g));
}

/* "outer#N" around step N, "inner#N" in its begin, from the first of FIRST on. */
#define FIRST 4u
static bool numbered; /* whether the program numbers steps */

/* Marks of steps: "Optimizer.step#SGD.step" in the end of the steps 2, 4, 6 …, and another's in
 * that of step 3; or "pass" in the begin of those, and "layer" twice in each. */
static void make_marks(struct maker *m, int meta)
{
	struct range g[4 * STEPS];
	size_t n = 0;
	string(m, meta, STRING_STEPS, optimizes ? "Optimizer.step#SGD.step" : "pass");
	string(m, meta, STRING_STEPS + 1, optimizes ? "Optimizer.step#Adam.step" : "layer");
	for (uint32_t i = 2; i <= STEPS; i += 2) {
		g[n++] = (struct range){ .ticks = step_begin(i) + (optimizes ? 6000 : 0),
			.dur = 1000,
			.name = STRING_STEPS };
		for (uint32_t k = 0; k < 2 && repeats; k++)
			g[n++] = (struct range){ .ticks = step_begin(i) + 10 + 300 * k,
				.dur = 280,
				.name = STRING_STEPS + 1 };
	}
	if (optimizes)
		g[n++] = (struct range){
			.ticks = step_begin(3) + 6000, .dur = 3000, .name = STRING_STEPS + 1
		};
	for (size_t i = 0; i < n; i++)
		g[i].kind = RANGE_ANNOTATION;
	for (size_t i = 0; i < n; i++)
		g[i].tid = PID + 2;
	maker_chunk(m, CHUNK_RANGES, PID, PID + 2, g, (uint32_t)(n * sizeof *g));
}

static void make_numbered(struct maker *m, int meta)
{
	struct range g[2 * STEPS];
	size_t n = 0;
	for (uint32_t i = FIRST; i <= STEPS; i++) {
		char outer[32], inner[32];
		snprintf(outer, sizeof outer, "outer#%u", i);
		snprintf(inner, sizeof inner, "inner#%u", i - FIRST);
		string(m, meta, STRING_STEPS + 2 * i, outer);
		string(m, meta, STRING_STEPS + 2 * i + 1, inner);
		g[n++] = (struct range){ .ticks = step_begin(i) - 10,
			.dur = 400,
			.name = STRING_STEPS + 2 * i,
			.kind = RANGE_ANNOTATION };
		g[n++] = (struct range){ .ticks = step_begin(i) - 5,
			.dur = 200,
			.name = STRING_STEPS + 2 * i + 1,
			.kind = RANGE_NVTX };
	}
	maker_chunk(m, CHUNK_RANGES, PID, PID + 2, g, (uint32_t)(n * sizeof *g));
}

static struct trace *open_made(void)
{
	struct trace *t = NULL;
	struct error err;
	assert_int_equal(trace_open(FILE_NAME, &t, &err), 0);
	return t;
}

static void make_file(bool open)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, PID, 0, "");
	string(m, meta, STRING_ODD, "odd");
	string(m, meta, STRING_RUN, "run");
	string(m, meta, STRING_LATE, "late");
	if (bare) {
		make_bare(m);
	} else {
		make_steps(m);
		make_activities(m);
	}
	if (!repeats && !bare)
		make_ranges(m);
	if (numbered)
		make_numbered(m, meta);
	if (optimizes || repeats)
		make_marks(m, meta);
	maker_finish(m, START + 2 * STEPS * STEP, open);
}

static struct trace *make(void)
{
	make_file(false);
	return open_made();
}

static struct trace *make_cut(struct trace_cut cut)
{
	struct trace *t = make();
	struct error err;
	if (trace_cut(t, &cut, &err))
		fail_msg("%s", err.text);
	return t;
}

struct counts {
	uint64_t launches, waits, activities, ranges;
	uint64_t range_ticks; /* of all, one after the other */
	uint64_t first, last; /* ticks of calls */
};

static void count_call(struct counts *n, const struct record *r)
{
	n->launches += r->fn == FN_LAUNCH;
	n->waits += r->fn == FN_SYNC;
	n->first = n->first && n->first < r->ticks ? n->first : r->ticks;
	n->last = n->last > r->ticks ? n->last : r->ticks;
}

static struct counts count(const struct trace *t)
{
	struct counts n = { 0 };
	struct chunk_buf buf = { 0 };
	struct gpu_activity w;
	struct range g;
	for (size_t at = 0; trace_next(t, CHUNK_EVENTS, &at, &buf, NULL) > 0;) {
		struct records it = records_of(&buf);
		for (const struct record *r; (r = records_next(&it));)
			count_call(&n, r);
		assert_null(it.damaged);
	}
	struct cursor at = { .t = t, .buf = &buf };
	while (trace_next_activity(&at, &w) > 0)
		n.activities++;
	at = (struct cursor){ .t = t, .buf = &buf };
	while (trace_next_range(&at, &g) > 0) {
		n.ranges++;
		n.range_ticks += g.dur;
	}
	chunk_buf_fini(&buf);
	return n;
}

static struct counts count_cut(struct trace_cut cut)
{
	struct trace *t = make_cut(cut);
	const struct counts n = count(t);
	trace_close(t);
	return n;
}

static void without_options_all_is_read(void **state)
{
	const struct counts n = count_cut((struct trace_cut){ 0 });
	assert_int_equal(n.launches, 55);
	assert_int_equal(n.waits, STEPS);
	assert_int_equal(n.activities, 55);
	assert_int_equal(n.ranges, 7);
}

static void what_is_before_and_what_is_after_are_all(void **state)
{
	for (uint64_t ns = 1; ns < (STEPS + 1) * STEP; ns += 777) {
		const struct counts before = count_cut((struct trace_cut){ .before_ns = ns });
		const struct counts after = count_cut((struct trace_cut){ .after_ns = ns });
		assert_int_equal(before.launches + after.launches, 55);
		assert_int_equal(before.waits + after.waits, STEPS);
		assert_int_equal(before.activities + after.activities, 55);
		assert_true(!before.waits || before.last < START + ns);
		assert_true(!after.launches || after.first >= START + ns);
	}
}

static void steps_are_what_is_launched_until_a_call_waits(void **state)
{
	for (uint32_t first = 1; first <= STEPS; first++)
		for (uint32_t last = first; last <= STEPS; last++) {
			const struct counts n = count_cut((struct trace_cut){
				.steps = true, .first_step = first, .last_step = last });
			assert_int_equal(n.launches, (last * (last + 1) - first * (first - 1)) / 2);
			assert_int_equal(n.activities, n.launches);
			assert_int_equal(n.waits, last - first + 1);
		}
}

/* Calls of step N that begin in "outer#N"; of the activities, those that calls in it launched. */
static void steps_that_the_program_numbers_go_first(void **state)
{
	struct launch_time launched[STEPS * (STEPS + 1) / 2];
	size_t n = 0;
	for (uint32_t i = 1; i <= STEPS; i++)
		for (uint32_t k = 0; k < i; k++, n++)
			launched[n] = (struct launch_time){ n + 1, step_begin(i) + k * 100, 0 };
	numbered = true;
	for (uint32_t first = FIRST; first <= STEPS; first++) {
		const struct counts c = count_cut((struct trace_cut){ .steps = true,
			.first_step = first,
			.last_step = STEPS + 5,
			.launched = launched,
			.launched_count = n });
		assert_int_equal(c.launches, 4 * (STEPS - first + 1)); /* 0, 100, 200, 300 */
		assert_int_equal(c.activities, c.launches);
		assert_int_equal(c.waits, 0);
	}
	struct trace *t =
		make_cut((struct trace_cut){ .steps = true, .first_step = 5, .last_step = 6 });
	assert_string_equal(t->part.how, "steps 5 to 6 of 7, ranges outer#N");
	trace_close(t);
	t = make();
	struct error err;
	assert_int_equal(
		trace_cut(t, &(struct trace_cut){ .steps = true, .first_step = 1, .last_step = 3 },
			&err),
		-ENODATA);
	assert_string_equal(
		err.text, "there is no such step in the trace: its 7 are outer#4 to 10");
	trace_close(t);
	numbered = false;
}

/* Five parts of 6000 each: put together they are 30000 long, and nothing in them moves within its
 * own. */
static void time_between_parts_is_taken_out(void **state)
{
	struct trace *t = make_cut((struct trace_cut){ .range = "odd" });
	const struct counts n = count(t);
	const uint64_t start = t->header.start.ticks;
	assert_int_equal(n.launches, 1 + 3 + 5 + 7 + 9);
	assert_int_equal(t->parts.n, 5);
	assert_int_equal(t->part.part_ns, 30000);
	assert_int_equal(t->header.end.mono_ns - t->header.start.mono_ns, 30000);
	assert_int_equal(start, step_begin(1) - 10);
	assert_int_equal(n.first, start + 10);
	assert_int_equal(n.last, start + 4 * 6000 + 10 + 4000);
	for (uint32_t i = 0; i < 5; i++) {
		const uint64_t begin = step_begin(2 * i + 1) - 10;
		for (uint64_t k = 0; k < 2 * STEP; k += 13)
			assert_int_equal(
				part_ticks(t, begin + k), start + i * 6000 + (k < 6000 ? k : 6000));
	}
	assert_int_equal(part_ticks(t, START), START);
	trace_close(t);
}

/* Steps 3 and 4: "run" is around them and becomes as long, "odd" begins in them, "late" ends there.
 * */
static void ranges_begin_in_a_part_or_are_around_it(void **state)
{
	struct trace *t =
		make_cut((struct trace_cut){ .steps = true, .first_step = 3, .last_step = 4 });
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = t, .buf = &buf };
	struct range g;
	uint32_t runs = 0, odds = 0;
	while (trace_next_range(&at, &g) > 0) {
		runs += g.name == STRING_RUN;
		odds += g.name == STRING_ODD;
		assert_int_not_equal(g.name, STRING_LATE);
		assert_true(g.name != STRING_RUN || g.dur == 2 * STEP);
		assert_true(g.name != STRING_ODD || g.dur == 6000);
		assert_true(g.ticks >= t->header.start.ticks);
	}
	assert_int_equal(runs, 1);
	assert_int_equal(odds, 1);
	chunk_buf_fini(&buf);
	trace_close(t);
}

static void parts_of_parts(void **state)
{
	const struct counts n = count_cut((struct trace_cut){
		.range = "odd", .steps = true, .first_step = 2, .last_step = 6 });
	assert_int_equal(n.launches, 3 + 5);
}

static void what_is_not_there_is_said(void **state)
{
	const struct {
		struct trace_cut cut;
		const char *says;
	} cases[] = {
		{ { .range = "even" }, "no range even in the trace; there are run, late, odd" },
		{ { .steps = true, .first_step = 11, .last_step = 12 }, "only 10 steps" },
		{ { .after_ns = 1000000000 }, "nothing of the trace" },
		{ { .range = "late", .steps = true, .first_step = 8, .last_step = 9 },
			"nothing of the trace" },
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct trace *t = make();
		struct error err;
		assert_int_equal(trace_cut(t, &cases[i].cut, &err), -ENODATA);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
		trace_close(t);
	}
}

/* The standard error of the mean of what is left, for each number that is left out. */
static size_t slow_warm_up(const uint64_t *length, size_t count)
{
	size_t best = 0;
	double least = INFINITY;
	for (size_t k = 0; k <= count / 2; k++) {
		const double n = (double)(count - k);
		double mean = 0, error = 0;
		for (size_t i = k; i < count; i++)
			mean += (double)length[i] / n;
		for (size_t i = k; i < count; i++)
			error += ((double)length[i] - mean) * ((double)length[i] - mean);
		error /= n * n;
		if (error < least * (1 - 1e-9)) {
			least = error;
			best = k;
		}
	}
	return best;
}

static void warm_up_is_found_as_slowly(void **state)
{
	uint64_t length[64], random = 88172645463325252u;
	for (int run = 0; run < 500; run++) {
		const size_t count = 10 + (size_t)run % 54, warm = (size_t)run % 7;
		for (size_t i = 0; i < count; i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			length[i] = 1000 + random % 100 + (i < warm ? 9000 / (i + 1) : 0);
		}
		assert_int_equal(steps_warm_up(length, count), slow_warm_up(length, count));
		assert_true(warm > count / 2 || steps_warm_up(length, count) >= warm);
	}
}

static void equal_steps_have_no_warm_up(void **state)
{
	const uint64_t length[12] = { 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5 };
	assert_int_equal(steps_warm_up(length, 12), 0);
}

static void of_few_steps_those_that_differ_are_warm_up(void **state)
{
	static const struct {
		uint64_t length[5];
		size_t count, warm;
	} cases[] = { { { 100 }, 1, 0 }, { { 100, 100 }, 2, 0 }, { { 900, 100 }, 2, 1 },
		{ { 100, 101, 99 }, 3, 0 }, { { 20, 100, 101, 99 }, 4, 1 },
		{ { 900, 200, 100, 101 }, 4, 2 }, { { 100, 900, 100, 100 }, 4, 0 },
		{ { 900, 800, 700, 100, 100 }, 5, 2 }, { { 0 }, 0, 0 } };
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(steps_warm_up(cases[i].length, cases[i].count), cases[i].warm);
}

static void steps_end_with_the_optimizer(void **state)
{
	optimizes = true;
	struct trace *t =
		make_cut((struct trace_cut){ .steps = true, .first_step = 2, .last_step = 3 });
	assert_int_equal(count(t).launches, 3 + 4 + 5 + 6);
	assert_string_equal(
		t->part.how, "steps 2 to 3 of 5, each until Optimizer.step#SGD.step had ended");
	trace_close(t);
	t = make_cut((struct trace_cut){ .steady = true });
	assert_int_equal(count(t).launches, 55 - 1 - 2); /* as the first began earlier */
	trace_close(t);
	optimizes = false;
}

/* The layers inside are no steps. */
static void without_waits_steps_begin_with_the_same_range(void **state)
{
	repeats = true;
	struct trace *t =
		make_cut((struct trace_cut){ .steps = true, .first_step = 2, .last_step = 3 });
	assert_int_equal(count(t).launches, 4 + 5 + 6 + 7);
	assert_string_equal(t->part.how, "steps 2 to 3 of 5, each from one pass to the next");
	trace_close(t);
	t = make_cut((struct trace_cut){ .steps = true, .first_step = 5, .last_step = 5 });
	assert_int_equal(count(t).launches, 10);
	assert_string_equal(t->part.how, "steps 5 to 5 of 5, each from one pass to the next");
	trace_close(t);
	repeats = false;
}

/* Each begins with the kernel that comes first of those that come once. */
static void without_any_mark_steps_begin_with_the_same_kernel(void **state)
{
	bare = true;
	struct trace *t =
		make_cut((struct trace_cut){ .steps = true, .first_step = 2, .last_step = 3 });
	assert_int_equal(count(t).launches, 2 * 7);
	assert_string_equal(t->part.how, "steps 2 to 3 of 10");
	trace_close(t);
	t = make_cut((struct trace_cut){ .steps = true, .first_step = 5, .last_step = 5 });
	struct meta names;
	struct steps steps;
	struct error err;
	assert_int_equal(meta_load(t, &names, &err), 0);
	assert_int_equal(steps_load(t, &names, NULL, &steps), 0);
	assert_int_equal(steps.v.n, 1);
	assert_int_equal(steps.v.v[0].number, 5);
	assert_true(steps.v.v[0].to - steps.v.v[0].from >= 650);
	steps_fini(&steps);
	meta_fini(&names);
	trace_close(t);
	bare = false;
}

/* So many launches, and a wait for them `length` behind `at`; returns its end. */
static uint64_t put_part(struct maker *m, int t, uint64_t at, uint64_t launches, uint64_t length)
{
	static const uint64_t launch[LAUNCH_WORDS] = { 0x10, 7, 1 | 1ull << 32, 1 | 32ull << 32,
		1 | 1ull << 32 };
	const uint64_t stream = 7;
	for (uint64_t k = 0; k < launches; k++)
		maker_put(m, t,
			(struct record){ .ticks = at + 1 + k * (length - 21) / launches,
				.fn = FN_LAUNCH,
				.words = RECORD_WORDS + LAUNCH_WORDS },
			launch);
	maker_put(m, t,
		(struct record){ .ticks = at + length - 20,
			.dur = 20,
			.fn = FN_SYNC,
			.words = RECORD_WORDS + 1 },
		&stream);
	return at + length;
}

static size_t steps_of(struct trace *t)
{
	struct meta names;
	struct steps steps;
	struct error err;
	assert_int_equal(meta_load(t, &names, &err), 0);
	assert_int_equal(steps_load(t, &names, NULL, &steps), 0);
	const size_t n = steps.v.n;
	for (size_t i = 1; i < n; i++)
		assert_int_equal(steps.v.v[i].number, steps.v.v[i - 1].number + 1);
	steps_fini(&steps);
	meta_fini(&names);
	trace_close(t);
	return n;
}

static uint64_t below(uint64_t *chance, uint64_t n)
{
	*chance = *chance * 6364136223846793005u + 1442695040888963407u;
	return (*chance >> 33) % n;
}

/* An iteration waits for a sum that it reads, or for its data, at other places in each.  A server
 * of words waits for one word after another: each is a step. */
static void parts_that_launch_little_are_no_steps(void **state)
{
	uint64_t chance = 1;
	for (int turn = 0; turn < 200; turn++) {
		const bool words = turn % 4 == 3;
		const uint64_t iterations = 2 + below(&chance, 20),
			       more = words ? 4 : below(&chance, 4);
		struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
		const int t = maker_thread(m, CHUNK_EVENTS, PID, PID + 1, "main");
		uint64_t at = START;
		for (uint64_t i = 0; i < iterations; i++) {
			at = put_part(
				m, t, at, 50 + below(&chance, 20), 10000 + below(&chance, 5000));
			for (uint64_t k = 0; k < more; k++)
				at = put_part(m, t, at, 1 + below(&chance, 4),
					words ? 5000 : 40 + below(&chance, 250));
		}
		maker_finish(m, at, false);
		const uint64_t steps = words ? iterations * (1 + more) : iterations;
		assert_int_equal(steps_of(open_made()), steps);
		struct trace *part = open_made();
		struct error err;
		assert_int_equal(trace_cut(part,
					 &(struct trace_cut){
						 .steps = true, .first_step = 2, .last_step = 2 },
					 &err),
			0);
		assert_int_equal(steps_of(part), 1);
	}
}

static void steady_leaves_warm_up_out(void **state)
{
	struct trace *t = make_cut((struct trace_cut){ .steady = true });
	const struct counts n = count(t);
	assert_int_equal(
		n.launches, 54); /* the first step began with the recording: it is longer */
	assert_string_equal(t->part.how, "steps 2 to 10 of 10; the first is left out as warm-up");
	trace_close(t);
}

static void put_at(uint64_t offset, const void *data, size_t bytes)
{
	const int fd = open(FILE_NAME, O_RDWR);
	assert_int_equal(pwrite(fd, data, bytes, (off_t)offset), bytes);
	close(fd);
}

/* The chunk's content at that tick. */
static void go_back_chunk(struct chunk_buf *buf, uint64_t now)
{
	struct records it = records_of(buf);
	for (const struct record *r;
		buf->ref->head.kind == CHUNK_EVENTS && (r = records_next(&it));) {
		const size_t at = (size_t)((const uint8_t *)r - buf->payload);
		if (r->ticks < now)
			continue;
		memset(buf->payload + at, 0, buf->bytes - at);
		break;
	}
	struct range *g = (struct range *)buf->payload;
	struct gpu_activity *w = (struct gpu_activity *)buf->payload;
	for (size_t i = 0; buf->ref->head.kind == CHUNK_RANGES && i < buf->bytes / sizeof *g; i++) {
		if (g[i].ticks < now && range_end(&g[i]) > now) {
			g[i].valid |= RANGE_OPEN;
			g[i].dur = 0x7f0012345678; /* where the one around it is */
		}
		g[i].kind = g[i].ticks < now ? g[i].kind : 0;
	}
	for (size_t i = 0; buf->ref->head.kind == CHUNK_DEVICE && i < buf->bytes / sizeof *w; i++)
		w[i].kind = w[i].start_ns < now ? w[i].kind : 0;
}

/* Makes of the file what it was at that tick, or what it has become. */
static void go_to(const struct trace *t, uint64_t now)
{
	struct chunk_buf buf = { 0 };
	for (size_t i = 0; i < t->chunk_count; i++) {
		assert_int_equal(trace_load(t, i, &buf, NULL), 0);
		go_back_chunk(&buf, now);
		put_at(t->chunks[i].offset, buf.payload, buf.bytes);
	}
	chunk_buf_fini(&buf);
}

static int count_grown(const struct trace_cut *cut, uint64_t now, struct counts *ret_counts)
{
	struct error err;
	make_file(true);
	struct trace *whole = open_made();
	go_to(whole, now);
	trace_close(whole);
	struct trace *t = open_made();
	const int e = trace_cut(t, cut, &err);
	if (!e) {
		*ret_counts = count(t);
		make_file(true); /* it grows */
		const struct counts grown = count(t);
		assert_memory_equal(&grown, ret_counts, sizeof grown);
	}
	trace_close(t);
	return e;
}

/* A part that is asked for while a program runs is what it will be of the whole recording, until
 * then; and it stays so. */
static void a_part_of_what_is_still_recorded_is_that_until_then(void **state)
{
	const struct trace_cut cuts[] = { { .range = "run" }, { .range = "odd" },
		{ .range = "late" }, { .before_ns = 2 * STEP }, { .after_ns = STEP + STEP / 2 },
		{ .steps = true, .first_step = 2, .last_step = 3 }, { .steady = true } };
	unsigned equal = 0;
	for (uint32_t step = 2; step < STEPS; step++)
		for (size_t i = 0; i < COUNT_OF(cuts); i++) {
			const uint64_t now = step_begin(step) + 5000;
			struct counts n, want;
			struct trace_cut until = cuts[i];
			if (count_grown(&cuts[i], now, &n))
				continue;
			if (!until.before_ns || until.before_ns > now - START)
				until.before_ns = now - START + 1;
			want = count_cut(until);
			/* A range that is open ends a tick later: behind the last call. */
			assert_true(n.range_ticks <= want.range_ticks &&
				    n.range_ticks + want.ranges >= want.range_ticks);
			n.range_ticks = want.range_ticks;
			assert_memory_equal(&n, &want, sizeof n);
			equal++;
		}
	assert_true(equal > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_options_all_is_read),
		cmocka_unit_test(what_is_before_and_what_is_after_are_all),
		cmocka_unit_test(steps_are_what_is_launched_until_a_call_waits),
		cmocka_unit_test(steps_that_the_program_numbers_go_first),
		cmocka_unit_test(time_between_parts_is_taken_out),
		cmocka_unit_test(ranges_begin_in_a_part_or_are_around_it),
		cmocka_unit_test(parts_of_parts),
		cmocka_unit_test(what_is_not_there_is_said),
		cmocka_unit_test(warm_up_is_found_as_slowly),
		cmocka_unit_test(equal_steps_have_no_warm_up),
		cmocka_unit_test(of_few_steps_those_that_differ_are_warm_up),
		cmocka_unit_test(steps_end_with_the_optimizer),
		cmocka_unit_test(without_waits_steps_begin_with_the_same_range),
		cmocka_unit_test(without_any_mark_steps_begin_with_the_same_kernel),
		cmocka_unit_test(parts_that_launch_little_are_no_steps),
		cmocka_unit_test(steady_leaves_warm_up_out),
		cmocka_unit_test(a_part_of_what_is_still_recorded_is_that_until_then),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
