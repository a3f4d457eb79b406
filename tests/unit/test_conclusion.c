/*
 * The conclusion of weir diff, for pairs of recordings whose truth is known: how much longer a
 * kernel takes, how many launches, steps and requests there are, how much they scatter, and how
 * long the program waits between them, which is the load and no speed.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "diff/fail_condition.h"
#include "diff_file.h"
#include "maker.h"

#define PID     100u
#define START   1000000u /* what maker_new() begins with; a tick is a nanosecond */
#define KERNELS 4
#define CALL_NS 2000u
#define STEP_OF 3 /* launches of a kernel in a step */

struct program {
	unsigned steps, kernels; /* kernels: of KERNELS */
	double factor;           /* of each kernel's time */
	double noise;            /* standard deviation of its logarithm */
	uint32_t host_ns;        /* of the host, in each step, before its last launch */
	uint32_t idle_ns;        /* most, between two steps */
	const char *prefix;      /* of names of kernels */
	const char *range;       /* around each step, NULL: none; with a %u it is numbered */
	bool ahead;              /* the host waits for nothing but the end */
	bool only_waits;         /* no device times */
};

static uint64_t seed = 20261124;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

struct clocks {
	uint64_t host, device;
};

static ARRAY(struct gpu_activity) activities;
static ARRAY(struct link) links;
static ARRAY(struct range) ranges;

static void put_launch(
	struct maker *m, int calls, const struct program *p, struct clocks *c, unsigned k)
{
	const uint64_t args[LAUNCH_WORDS] = { 0x1000 + k, 0, 1ull << 32 | 8, 32ull << 32 | 1,
		1ull << 32 | 1 };
	const double ns = 20000 * (k + 1) * p->factor * exp(p->noise * normal());
	maker_put(m, calls,
		(struct record){ .ticks = c->host,
			.dur = CALL_NS,
			.fn = FN_LAUNCH,
			.words = RECORD_WORDS + LAUNCH_WORDS },
		args);
	const uint64_t id = links.n + 1;
	*array_push(&links) = (struct link){
		.correlation = id, .ticks = c->host, .dur = CALL_NS, .tid = PID, .fn = FN_LAUNCH
	};
	c->host += CALL_NS + 500;
	c->device = (c->device > c->host ? c->device : c->host) + 500;
	*array_push(&activities) = (struct gpu_activity){ .start_ns = c->device,
		.end_ns = c->device + (uint64_t)ns,
		.correlation = id,
		.name = k + 1,
		.kind = GPU_KERNEL,
		.stream = 7,
		.valid = GPU_HAS_STREAM | GPU_HAS_CORRELATION };
	c->device += (uint64_t)ns;
}

static void put_wait(struct maker *m, int calls, struct clocks *c)
{
	const uint64_t stream = 7, end = (c->device > c->host ? c->device : c->host) + 1000;
	maker_put(m, calls,
		(struct record){ .ticks = c->host,
			.dur = (uint32_t)(end - c->host),
			.fn = FN_SYNC,
			.words = RECORD_WORDS + 1 },
		&stream);
	c->host = end + 500;
}

static void put_step(
	struct maker *m, int calls, const struct program *p, struct clocks *c, unsigned i)
{
	const uint64_t begin = c->host;
	for (unsigned n = 0; n < STEP_OF * p->kernels; n++) {
		if (n + 1 == STEP_OF * p->kernels)
			c->host += p->host_ns;
		put_launch(m, calls, p, c, n % p->kernels);
	}
	if (!p->ahead)
		put_wait(m, calls, c);
	if (p->range)
		*array_push(&ranges) = (struct range){ .ticks = begin,
			.dur = c->host - begin,
			.tid = PID,
			.name = 10 + i,
			.kind = RANGE_NVTX };
	c->host += 500 + (uint64_t)(p->idle_ns * uniform());
}

static void put_string(struct maker *m, int meta, uint64_t id, const char *text)
{
	maker_meta(m, meta, META_STRING, START, 1, &id, text, (uint32_t)strlen(text),
		(uint32_t)strlen(text));
}

static void put_names(struct maker *m, const struct program *p)
{
	const int meta = maker_thread(m, CHUNK_META, PID, PID, "main");
	char name[64];
	for (unsigned k = 0; k < p->kernels; k++) {
		snprintf(name, sizeof name, "%skernel_%c", p->prefix ? p->prefix : "", 'a' + k);
		put_string(m, meta, k + 1, name);
		maker_name(m, meta, START, 0x1000 + k, name);
	}
	for (unsigned i = 0; i < p->steps && p->range; i++) {
		const char *number = strchr(p->range, '%');
		const int n = number ? (int)(number - p->range) : (int)strlen(p->range);
		if (number)
			snprintf(name, sizeof name, "%.*s%u", n, p->range, i);
		else
			snprintf(name, sizeof name, "%s", p->range);
		put_string(m, meta, 10 + i, name);
	}
}

static void make(const char *path, const struct program *p)
{
	struct maker *m = maker_new(path, maker_schema, 1u << 20);
	struct clocks c = { START + 1000000, START + 1000000 };
	activities.n = links.n = ranges.n = 0;
	put_names(m, p);
	const int calls = maker_thread(m, CHUNK_EVENTS, PID, PID, "main");
	for (unsigned i = 0; i < p->steps; i++)
		put_step(m, calls, p, &c, i);
	if (p->ahead)
		put_wait(m, calls, &c);
	if (!p->only_waits)
		maker_chunk(m, CHUNK_DEVICE, PID, 0, activities.v,
			(uint32_t)(activities.n * sizeof *activities.v));
	maker_chunk(m, CHUNK_LINKS, PID, 0, links.v, (uint32_t)(links.n * sizeof *links.v));
	if (ranges.n)
		maker_chunk(m, CHUNK_RANGES, PID, PID, ranges.v,
			(uint32_t)(ranges.n * sizeof *ranges.v));
	maker_finish(m, c.host + 1000000, false);
}

#define FILE_A "conclusion_a.weir"
#define FILE_B "conclusion_b.weir"

static struct diff *compare(const char *a, const char *b, double threshold)
{
	struct diff *d;
	diff_new(&d, threshold);
	add_file(d, DIFF_A, a);
	add_file(d, DIFF_B, b);
	diff_finish(d);
	return d;
}

static struct diff *pair(const struct program *a, const struct program *b, double threshold)
{
	make(FILE_A, a);
	make(FILE_B, b);
	return compare(FILE_A, FILE_B, threshold);
}

static int remove_files(void **state)
{
	unlink(FILE_A);
	unlink(FILE_B);
	array_free(&activities);
	array_free(&links);
	array_free(&ranges);
	return 0;
}

static unsigned words(const char *s)
{
	unsigned n = 0;
	for (bool in = false; *s; s++) {
		n += !in && *s != ' ';
		in = *s != ' ';
	}
	return n;
}

static void check_sentences(const struct diff *d)
{
	for (int i = 0; i < DIFF_SENTENCES; i++) {
		const char *s = d->conclusion.sentence[i];
		if (words(s) > 25 || s[strlen(s) - 1] != '.' || strchr(s, ';'))
			fail_msg("%u words: %s", words(s), s);
	}
	const struct diff_change *c = &d->conclusion.change;
	if (c->pct - c->below_pct < -100 - 1e-9)
		fail_msg("less than no time: %s", d->conclusion.sentence[2]);
}

static enum diff_verdict opposite(enum diff_verdict v)
{
	return v == VERDICT_FASTER ? VERDICT_SLOWER : v == VERDICT_SLOWER ? VERDICT_FASTER : v;
}

/* A and B change places: so does what is said of them.  A per cent of the other side is another
 * one, so beside a threshold a difference may be one in one direction alone. */
static void check_swapped(const struct diff *d)
{
	struct diff *other = compare(FILE_B, FILE_A, d->threshold_pct);
	const struct diff_conclusion *c = &d->conclusion, *o = &other->conclusion;
	if (c->one != o->one ||
		(d->threshold_pct == 0 && c->change.verdict != opposite(o->change.verdict)))
		fail_msg("%s\n%s\n%s\nbut swapped: %s\n%s\n%s", c->sentence[0], c->sentence[1],
			c->sentence[2], o->sentence[0], o->sentence[1], o->sentence[2]);
	assert_true(fabs(c->side[DIFF_A] - o->side[DIFF_B]) < 1e-6);
	assert_true(fabs(c->side[DIFF_B] - o->side[DIFF_A]) < 1e-6);
	assert_int_equal(d->work.same, other->work.same);
	if (d->threshold_pct == 0)
		assert_int_equal(c->change.verdict, opposite(o->change.verdict));
	/* A lower bound of one ratio is the upper bound of the other. */
	const double lower = 1 + (c->change.pct - c->change.below_pct) / 100,
		     upper = 1 + (o->change.pct + o->change.above_pct) / 100;
	if (c->row && c->one != ONE_NONE && fabs(lower * upper - 1) > 1e-6)
		fail_msg("%s\nbut swapped: %s", c->sentence[2], o->sentence[2]);
	diff_free(other);
}

static void check_itself(const char *path)
{
	struct diff *d = compare(path, path, 0);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_SAME);
	assert_true(d->work.same);
	assert_non_null(strstr(d->conclusion.sentence[0], "No difference"));
	diff_free(d);
}

static bool covers(const struct diff_conclusion *c, double factor)
{
	const double true_pct = (factor - 1) * 100, bucket = 0.8; /* of histograms, twice */
	return c->change.pct - c->change.below_pct - bucket <= true_pct &&
	       true_pct <= c->change.pct + c->change.above_pct + bucket;
}

static struct program drawn(void)
{
	return (struct program){ .steps = 8 + (unsigned)(uniform() * 60),
		.kernels = 1 + (unsigned)(uniform() * KERNELS),
		.noise = 0.01 + 0.09 * uniform(),
		.factor = 1,
		.idle_ns = (uint32_t)(uniform() * 2000000),
		.ahead = uniform() < 0.2 };
}

/* Lengths differ by up to eight times, and so does the load. */
static void what_differs_in_speed_is_told_whatever_the_lengths(void **state)
{
	static const double factors[] = { 0.4, 0.7, 0.85, 1.2, 1.5, 3 };
	unsigned wrong = 0, uncovered = 0;
	enum { PAIRS = 300 };
	for (unsigned i = 0; i < PAIRS; i++) {
		struct program a = drawn(), b = a;
		b.factor = factors[i % COUNT_OF(factors)];
		b.steps = 8 + (unsigned)(uniform() * 60);
		b.idle_ns = (uint32_t)(uniform() * 2000000);
		struct diff *d = pair(&a, &b, 3);
		const enum diff_verdict truth = b.factor > 1 ? VERDICT_SLOWER : VERDICT_FASTER;
		wrong += d->conclusion.change.verdict != truth;
		uncovered += d->conclusion.one == ONE_LAUNCH && !covers(&d->conclusion, b.factor);
		assert_int_equal(d->work.same, a.steps == b.steps);
		check_sentences(d);
		check_swapped(d);
		diff_free(d);
	}
	if (wrong > PAIRS / 100 || uncovered > PAIRS / 100)
		fail_msg("%u of %d are wrong, %u intervals are beside", wrong, PAIRS, uncovered);
}

static void what_does_not_differ_is_found_different_in_one_of_a_hundred_at_most(void **state)
{
	unsigned wrong = 0, uncovered = 0;
	enum { PAIRS = 300 };
	for (unsigned i = 0; i < PAIRS; i++) {
		struct program a = drawn(), b = a;
		b.steps = i % 3 ? 8 + (unsigned)(uniform() * 60) : a.steps;
		b.idle_ns = (uint32_t)(uniform() * 2000000);
		struct diff *d = pair(&a, &b, 0);
		wrong += d->conclusion.change.verdict != VERDICT_SAME;
		uncovered += !covers(&d->conclusion, 1);
		check_sentences(d);
		check_swapped(d);
		diff_free(d);
		check_itself(FILE_B);
	}
	if (wrong > PAIRS / 100 || uncovered > PAIRS / 100)
		fail_msg("%u of %d are wrong, %u intervals are beside", wrong, PAIRS, uncovered);
}

/* Names, and what ranges are called, are no part of what is concluded. */
static void renaming_changes_nothing(void **state)
{
	for (unsigned i = 0; i < 40; i++) {
		struct program a = drawn(), b = a;
		b.factor = i % 2 ? 1.3 : 1;
		b.steps = a.steps / 2;
		a.range = b.range = i % 4 ? "step %u" : NULL;
		const uint64_t at = seed;
		struct diff *one = pair(&a, &b, 3);
		seed = at;
		a.prefix = b.prefix = "void other::";
		a.range = b.range = i % 4 ? "iteration %u" : NULL;
		struct diff *two = pair(&a, &b, 3);
		assert_int_equal(one->conclusion.one, two->conclusion.one);
		assert_int_equal(one->conclusion.change.verdict, two->conclusion.change.verdict);
		assert_true(one->conclusion.side[DIFF_B] == two->conclusion.side[DIFF_B]);
		diff_free(one);
		diff_free(two);
	}
}

static const struct program decode = {
	.steps = 300, .kernels = 1, .factor = 1, .noise = 0.02, .idle_ns = 500000
};

static void says(const struct diff *d, int sentence, const char *text)
{
	if (!strstr(d->conclusion.sentence[sentence], text))
		fail_msg("'%s' is not in: %s", text, d->conclusion.sentence[sentence]);
}

static void a_shorter_recording_of_slower_kernels_is_slower(void **state)
{
	struct program b = decode;
	struct judgement j;
	struct fail_condition wall, busy, launches;
	struct error err;
	b.steps = 40;
	b.factor = 1.25;
	struct diff *d = pair(&decode, &b, 3);
	assert_int_equal(d->conclusion.one, ONE_LAUNCH);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_SLOWER);
	assert_false(d->work.same);
	says(d, 0, "One launch of kernel_a is 25 % slower in B");
	says(d, 1, "B is shorter because it ran 120 launches instead of 900.");
	says(d, 2, "from 900 and 120 launches in one recording each.");
	for (int t = 0; t < DIFF_SUMS; t++)
		assert_int_equal(d->sums[t].change.verdict, VERDICT_NONE);
	/* A total that grew by nothing but work passes, and one that only shrank by it fails. */
	assert_int_equal(condition_parse("device_busy > +5%", &busy, &err), 0);
	assert_int_equal(condition_parse("wall > 1ns", &wall, &err), 0);
	assert_int_equal(condition_parse("launches < -5%", &launches, &err), 0);
	condition_judge(&busy, d, &j);
	assert_true(j.failed && j.per == ONE_STEP && fabs(j.value - 25) < 2);
	condition_judge(&wall, d, &j);
	assert_true(j.failed && j.per == ONE_NONE);
	condition_judge(&launches, d, &j);
	assert_true(j.failed && j.per == ONE_NONE);
	diff_free(d);
}

/* Kernels as before, and a host that takes longer between their launches. */
static void a_step_is_slower_where_the_host_is(void **state)
{
	struct program b = decode;
	b.steps = 100;
	b.host_ns = 300000;
	struct diff *d = pair(&decode, &b, 3);
	assert_int_equal(d->conclusion.one, ONE_STEP);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_SLOWER);
	says(d, 0, "One step ");
	says(d, 1, "B ");
	diff_free(d);
}

/* The host does between two steps what it now does in the step: the same work takes less. */
static void a_step_is_faster_if_steps_end_more_often(void **state)
{
	struct program a = decode, b = decode;
	a.idle_ns = 4000000;
	b.idle_ns = 500000;
	b.host_ns = 300000;
	struct diff *d = pair(&a, &b, 3);
	assert_int_equal(d->conclusion.one, ONE_STEP);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_FASTER);
	says(d, 0, "One step is ");
	check_sentences(d);
	check_swapped(d);
	diff_free(d);
	b.steps = 200; /* or are there fewer requests? */
	d = pair(&a, &b, 3);
	says(d, 0,
		"It is not known which is faster: one step takes longer, but steps end more often");
	check_sentences(d);
	check_swapped(d);
	diff_free(d);
	a.idle_ns = 500000;
	b.steps = a.steps;
	d = pair(&a, &b, 3);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_SLOWER);
	diff_free(d);
}

/* Kernels are slower, and the same work takes less time all the same. */
static void the_same_work_as_a_whole_comes_first(void **state)
{
	struct program a = decode, b = decode;
	a.idle_ns = 4000000;
	b.idle_ns = 500000;
	b.factor = 1.25;
	struct diff *d = pair(&a, &b, 3);
	says(d, 0, "B's GPU span is ");
	says(d, 0, " for the same work, though one launch of kernel_a is 25 % slower.");
	says(d, 2, "The change of one launch is ");
	check_sentences(d);
	diff_free(d);
	/* Whatever kernels are called, and however sure it is that one takes as long. */
	a.prefix = b.prefix = "a name of many words ";
	for (int i = 0; i < 20; i++) {
		a.noise = b.noise = i * 0.02;
		b.factor = i % 2 ? 1 : 1.3;
		d = pair(&a, &b, 3);
		if (i == 0)
			says(d, 0, " is 30 % slower.");
		if (i == 1)
			says(d, 0, " takes as long.");
		if (i == 19)
			says(d, 0, " may take as long.");
		check_sentences(d);
		diff_free(d);
	}
}

/* Launches that scatter make the whole longer by chance, which contradicts nothing. */
static void a_whole_that_chance_explains_is_no_contradiction(void **state)
{
	unsigned took = 0;
	enum { PAIRS = 200 };
	for (unsigned i = 0; i < PAIRS; i++) {
		struct program a = drawn(), b;
		a.steps = 5 + (unsigned)(uniform() * 10);
		a.noise = 0.1 + 0.3 * uniform();
		a.idle_ns = 0;
		b = a;
		b.factor = i % 4 == 3 ? 0.3 : i % 2 ? 1.2 : 1;
		struct diff *d = pair(&a, &b, 3);
		took += d->conclusion.whole != VERDICT_NONE;
		check_sentences(d);
		diff_free(d);
	}
	if (took > PAIRS / 100)
		fail_msg("%u of %d are said to contradict themselves", took, PAIRS);
}

/* Less to do is no speed: the same requests, farther apart. */
static void load_is_no_speed(void **state)
{
	struct program b = decode;
	b.steps = 200;
	b.idle_ns = 5000000;
	struct diff *d = pair(&decode, &b, 3);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_SAME);
	says(d, 1, "B ran 600 launches instead of 900.");
	diff_free(d);
}

static void requests_are_compared_by_their_name(void **state)
{
	struct program a = decode, b;
	a.steps = 60;
	a.range = "handle_request";
	b = a;
	b.steps = 25;
	b.factor = 1.4;
	struct diff *d = pair(&a, &b, 3);
	struct fail_condition g;
	struct judgement j;
	struct error err;
	assert_int_equal(d->conclusion.one, ONE_REQUEST);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_SLOWER);
	says(d, 0, "One request (handle_request) is ");
	says(d, 1, "answered 25 requests instead of 60");
	assert_int_equal(condition_parse("request of handle* > +20%", &g, &err), 0);
	condition_judge(&g, d, &j);
	assert_true(j.failed);
	assert_int_equal(condition_parse("launches per request != +0%", &g, &err), 0);
	condition_judge(&g, d, &j);
	assert_true(j.known && !j.failed && j.per == ONE_REQUEST);
	diff_free(d);
}

/* The host leaves each step at once; what a step takes is on the device. */
static void numbered_steps_of_a_host_that_is_ahead_are_compared_on_the_device(void **state)
{
	struct program a = decode, b;
	a.steps = 60;
	a.range = "step %u";
	a.ahead = true;
	b = a;
	b.factor = 1.3;
	struct diff *d = pair(&a, &b, 3);
	assert_int_equal(d->conclusion.one, ONE_STEP);
	assert_true(d->conclusion.by_device);
	assert_int_equal(d->conclusion.change.verdict, VERDICT_SLOWER);
	assert_true(d->work.same);
	diff_free(d);
}

static void what_has_nothing_in_common_is_not_judged(void **state)
{
	struct program a = decode, b;
	struct fail_condition g;
	struct judgement j;
	struct error err;
	a.steps = b.steps = 1;
	a.prefix = "one::";
	b = decode;
	b.steps = 1;
	b.prefix = "two::";
	struct diff *d = pair(&a, &b, 3);
	assert_int_equal(d->conclusion.one, ONE_NONE);
	says(d, 0, "It is not known which is faster");
	assert_int_equal(condition_parse("wall > +5%", &g, &err), 0);
	condition_judge(&g, d, &j);
	assert_true(j.undecided && !j.failed && !j.known);
	diff_free(d);
}

/* Several runs of each, which differ more than their launches do. */
static void several_runs_are_compared_by_how_they_differ(void **state)
{
	unsigned found = 0, wrong = 0;
	enum { PAIRS = ROUNDS(100, 20), RUNS = 4 };
	for (unsigned i = 0; i < PAIRS; i++) {
		struct diff *d;
		diff_new(&d, 0);
		for (unsigned r = 0; r < 2 * RUNS; r++) {
			struct program p = decode;
			p.steps = 10 + (unsigned)(uniform() * 20);
			p.kernels = 2;
			p.factor = exp(0.03 * normal()) * (r % 2 && i % 2 ? 1.5 : 1);
			make(FILE_A, &p);
			add_file(d, r % 2 ? DIFF_B : DIFF_A, FILE_A);
		}
		diff_finish(d);
		const enum diff_verdict v = d->conclusion.change.verdict;
		found += i % 2 && v == VERDICT_SLOWER;
		wrong += i % 2 ? v == VERDICT_FASTER : v != VERDICT_SAME;
		says(d, 2, "from 4 and 4 recordings.");
		check_sentences(d);
		diff_free(d);
	}
	if (found < PAIRS * 95 / 200 || wrong > PAIRS / 100)
		fail_msg("found %u of %d, %u wrong", found, PAIRS / 2, wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_differs_in_speed_is_told_whatever_the_lengths),
		cmocka_unit_test(
			what_does_not_differ_is_found_different_in_one_of_a_hundred_at_most),
		cmocka_unit_test(renaming_changes_nothing),
		cmocka_unit_test(a_shorter_recording_of_slower_kernels_is_slower),
		cmocka_unit_test(a_step_is_slower_where_the_host_is),
		cmocka_unit_test(a_step_is_faster_if_steps_end_more_often),
		cmocka_unit_test(the_same_work_as_a_whole_comes_first),
		cmocka_unit_test(a_whole_that_chance_explains_is_no_contradiction),
		cmocka_unit_test(load_is_no_speed),
		cmocka_unit_test(requests_are_compared_by_their_name),
		cmocka_unit_test(numbered_steps_of_a_host_that_is_ahead_are_compared_on_the_device),
		cmocka_unit_test(what_has_nothing_in_common_is_not_judged),
		cmocka_unit_test(several_runs_are_compared_by_how_they_differ),
	};
	return cmocka_run_group_tests(tests, NULL, remove_files);
}
