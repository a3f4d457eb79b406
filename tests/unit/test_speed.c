/*
 * Which of two programs is faster, by the first sentence of weir diff. A small model runs both: a
 * host that reads, copies and launches, and streams on a GPU. It knows how long either takes for
 * the same items. The sentence names the right side, or says that it is not known.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "diff_file.h"
#include "maker.h"

#define PID     100u
#define START   1000000u /* what maker_new() begins with; a tick is a nanosecond */
#define CALL_NS 2000u
#define MARGIN  0.06 /* of programs that differ by less, either may be named */
#define STREAMS 4
#define INPUT   (1u << 20) /* bytes of an item */

struct program {
	unsigned steps, items;     /* items a step: its launches have as many times the blocks */
	unsigned kernels, repeats; /* kernels of an item, each launched so often */
	unsigned streams;          /* that launches take turns on */
	double kernel_ns;          /* of one item */
	double reading_ns;         /* of the host, an item */
	double noise;              /* standard deviation of the logarithm of a time */
	double crowding;           /* how much of the other streams' time one takes longer */
	bool merged;               /* all kernels of a step in one launch */
	bool prefetches;           /* reads while the GPU works */
	bool apart;                /* each stream is on a device of its own */
	bool ahead;                /* waits at the end alone */
	double starting_ns;        /* before and after all that it does */
};

static uint64_t seed = 20261125;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double between(double least, double most)
{
	return least + uniform() * (most - least);
}

static double scatter(const struct program *p)
{
	return exp(p->noise * sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform()));
}

struct machine {
	struct maker *m;
	int calls;
	const struct program *p;
	uint64_t host, stream[STREAMS];
	unsigned launched;
};

static ARRAY(struct gpu_activity) activities;
static ARRAY(struct link) links;

static void put_activity(struct machine *at, struct gpu_activity a, unsigned stream, double ns)
{
	uint64_t *free_at = &at->stream[stream];
	a.correlation = links.n + 1;
	*array_push(&links) = (struct link){ .correlation = a.correlation,
		.ticks = at->host,
		.dur = CALL_NS,
		.tid = PID,
		.fn = a.kind == GPU_KERNEL ? FN_LAUNCH : FN_HTOD };
	at->host += CALL_NS + 500;
	a.start_ns = (*free_at > at->host ? *free_at : at->host) + 500;
	a.end_ns = *free_at = a.start_ns + (uint64_t)ns;
	a.stream = 7 + stream;
	a.device = at->p->apart ? stream : 0;
	a.valid |= GPU_HAS_DEVICE | GPU_HAS_STREAM | GPU_HAS_CORRELATION;
	*array_push(&activities) = a;
}

static void put_launch(struct machine *at, unsigned kernel, double ns)
{
	const struct program *p = at->p;
	const unsigned stream = at->launched++ % p->streams, blocks = 8 * p->items;
	const double crowded = ns * (1 + p->crowding * (p->streams - 1)) * scatter(p);
	const uint64_t args[LAUNCH_WORDS] = { 0x1000 + kernel, 7 + stream, 1ull << 32 | blocks,
		32ull << 32 | 1, 1ull << 32 | 1 };
	maker_put(at->m, at->calls,
		(struct record){ .ticks = at->host,
			.dur = CALL_NS,
			.fn = FN_LAUNCH,
			.words = RECORD_WORDS + LAUNCH_WORDS },
		args);
	put_activity(at,
		(struct gpu_activity){ .kind = GPU_KERNEL,
			.name = kernel + 1,
			.grid = { blocks, 1, 1 },
			.block = { 32, 1, 1 } },
		stream, crowded);
}

static void put_copy(struct machine *at)
{
	const uint64_t bytes = (uint64_t)INPUT * at->p->items, args[] = { 1, 2, bytes };
	maker_put(at->m, at->calls,
		(struct record){ .ticks = at->host,
			.dur = CALL_NS,
			.fn = FN_HTOD,
			.words = RECORD_WORDS + 3 },
		args);
	put_activity(at,
		(struct gpu_activity){ .kind = GPU_MEMCPY,
			.bytes = bytes,
			.what = COPY_HTOD,
			.valid = GPU_HAS_BYTES },
		0, 10000.0 * at->p->items);
}

static void put_wait(struct machine *at)
{
	const uint64_t context = 0;
	uint64_t end = at->host;
	for (unsigned i = 0; i < at->p->streams; i++)
		end = at->stream[i] > end ? at->stream[i] : end;
	end += 1000;
	maker_put(at->m, at->calls,
		(struct record){ .ticks = at->host,
			.dur = (uint32_t)(end - at->host),
			.fn = FN_SYNC,
			.words = RECORD_WORDS + 1 },
		&context);
	at->host = end + 500;
}

static void put_step(struct machine *at)
{
	const struct program *p = at->p;
	const double reading = p->reading_ns * p->items * scatter(p);
	if (!p->prefetches)
		at->host += (uint64_t)reading;
	put_copy(at);
	for (unsigned n = 0; n < p->repeats * (p->merged ? 1 : p->kernels); n++)
		if (p->merged)
			put_launch(at, 9, p->kernel_ns * p->items * p->kernels);
		else
			put_launch(at, n % p->kernels, p->kernel_ns * p->items);
	if (p->prefetches)
		at->host += (uint64_t)reading;
	if (!p->ahead)
		put_wait(at);
}

static void put_names(struct maker *m)
{
	const int meta = maker_thread(m, CHUNK_META, PID, PID, "main");
	char name[32];
	for (uint64_t k = 0; k < 10; k++) {
		const uint64_t id = k + 1;
		const int n = snprintf(
			name, sizeof name, k == 9 ? "merged" : "kernel_%c", (char)('a' + k));
		maker_meta(m, meta, META_STRING, START, 1, &id, name, (uint32_t)n, (uint32_t)n);
		maker_name(m, meta, START, 0x1000 + k, name);
	}
}

/* The time of an item. */
static double run(const char *path, const struct program *p)
{
	struct machine at = { .m = maker_new(path, maker_schema, 1u << 20), .p = p };
	const uint64_t begin = START + 1000000 + (uint64_t)(p->starting_ns * uniform());
	at.host = begin;
	activities.n = links.n = 0;
	put_names(at.m);
	at.calls = maker_thread(at.m, CHUNK_EVENTS, PID, PID, "main");
	for (unsigned i = 0; i < p->steps; i++)
		put_step(&at);
	if (p->ahead)
		put_wait(&at);
	maker_chunk(at.m, CHUNK_DEVICE, PID, 0, activities.v,
		(uint32_t)(activities.n * sizeof *activities.v));
	maker_chunk(at.m, CHUNK_LINKS, PID, 0, links.v, (uint32_t)(links.n * sizeof *links.v));
	maker_finish(at.m, at.host + (uint64_t)(p->starting_ns * uniform()), false);
	return (double)(at.host - begin) / (p->steps * p->items);
}

#define FILE_A "speed_a.weir"
#define FILE_B "speed_b.weir"

static int remove_files(void **state)
{
	unlink(FILE_A);
	unlink(FILE_B);
	array_free(&activities);
	array_free(&links);
	return 0;
}

enum said { SAID_UNKNOWN, SAID_SAME, SAID_FASTER, SAID_SLOWER };

static bool has(const char *s, const char *part)
{
	return strstr(s, part) != NULL;
}

static enum said of_total(const struct diff *d, enum diff_total t)
{
	return d->sums[t].change.pct < 0 ? SAID_FASTER : SAID_SLOWER;
}

static enum said what_is_said(const struct diff *d)
{
	const char *s = d->conclusion.sentence[0];
	if (has(s, "not known"))
		return SAID_UNKNOWN;
	if (has(s, "No difference") || has(s, "took as long") || has(s, "is as long"))
		return SAID_SAME;
	if (has(s, "B took") || has(s, "GPU span"))
		return d->conclusion.all->change.pct < 0 ? SAID_FASTER : SAID_SLOWER;
	if (has(s, "B kept the GPU busy"))
		return of_total(d, TOTAL_BUSY);
	if (has(s, "faster in B") || has(s, "times as fast in B"))
		return SAID_FASTER;
	if (has(s, "slower in B") || has(s, "times as long in B"))
		return SAID_SLOWER;
	fail_msg("this says nothing: %s", s);
	return SAID_UNKNOWN;
}

static bool is_wrong(enum said said, double change)
{
	if (said == SAID_UNKNOWN || fabs(change) < MARGIN)
		return false;
	return said != (change > 0 ? SAID_SLOWER : SAID_FASTER);
}

struct scenario {
	const char *name;
	void (*change)(struct program *a, struct program *b);
};

static void be_faster(struct program *a, struct program *b)
{
	b->kernel_ns *= between(0.3, 0.95);
}

static void be_slower(struct program *a, struct program *b)
{
	b->kernel_ns *= between(1.05, 4);
}

static void be_the_same(struct program *a, struct program *b)
{
}

static void do_more(struct program *a, struct program *b)
{
	b->steps = (unsigned)(b->steps * between(1.2, 4));
	b->kernel_ns *= uniform() < 0.5 ? 1 : between(0.5, 2);
}

static void take_larger_steps(struct program *a, struct program *b)
{
	a->steps *= 2;
	b->items = 2;
	b->kernel_ns *= between(0.6, 1.2);
}

static void take_smaller_steps(struct program *a, struct program *b)
{
	take_larger_steps(b, a);
	const struct program other = *a;
	*a = *b;
	*b = other;
}

static void read_ahead(struct program *a, struct program *b)
{
	a->ahead = b->ahead = false;
	a->prefetches = uniform() < 0.5;
	b->prefetches = !a->prefetches;
}

static void read_slower(struct program *a, struct program *b)
{
	b->reading_ns *= between(1.2, 5);
}

static void merge_kernels(struct program *a, struct program *b)
{
	a->kernels = b->kernels = 2 + (unsigned)(uniform() * 4);
	a->merged = uniform() < 0.3;
	b->merged = !a->merged;
	b->kernel_ns *= between(0.5, 1.3);
}

static void use_streams(struct program *a, struct program *b)
{
	struct program *of = uniform() < 0.5 ? a : b;
	of->streams = 2 + (unsigned)(uniform() * (STREAMS - 1));
	of->crowding = between(0.3, 1.3);
	a->repeats = b->repeats = 4;
}

static void use_devices(struct program *a, struct program *b)
{
	use_streams(a, b);
	a->crowding = b->crowding = 0;
	a->apart = b->apart = true;
}

/* An item takes more launches of the same kernels, each of which takes less. */
static void launch_more(struct program *a, struct program *b)
{
	b->repeats *= 2;
	b->kernel_ns *= between(0.3, 0.8);
}

static const struct scenario scenarios[] = {
	{ "the same work, faster", be_faster },
	{ "the same work, slower", be_slower },
	{ "the same", be_the_same },
	{ "more work", do_more },
	{ "larger steps", take_larger_steps },
	{ "smaller steps", take_smaller_steps },
	{ "read ahead", read_ahead },
	{ "slower reading", read_slower },
	{ "merged kernels", merge_kernels },
	{ "other streams", use_streams },
	{ "other devices", use_devices },
	{ "more launches", launch_more },
};

static struct program drawn(void)
{
	return (struct program){ .steps = 12 + (unsigned)(uniform() * 40),
		.items = 1,
		.kernels = 1 + (unsigned)(uniform() * 4),
		.repeats = 1 + (unsigned)(uniform() * 4),
		.streams = 1,
		.kernel_ns = between(20000, 200000),
		.reading_ns = between(10000, 600000),
		.noise = between(0.005, 0.05),
		.ahead = uniform() < 0.2,
		.starting_ns = uniform() < 0.5 ? 100000 : between(1e7, 1e9) };
}

static void check_pairs(const struct scenario *s)
{
	enum { PAIRS = ROUNDS(100, 15), RUNS = 4 };
	unsigned wrong = 0, unknown = 0;
	char first[800] = "";
	for (unsigned i = 0; i < PAIRS; i++) {
		struct program a = drawn(), b = a;
		struct diff *d;
		s->change(&a, &b);
		double one = 0, other = 0;
		diff_new(&d, 3);
		for (unsigned runs = i % 4 == 3 ? RUNS : 1; runs; runs--) {
			one += run(FILE_A, &a);
			other += run(FILE_B, &b);
			add_file(d, DIFF_A, FILE_A);
			add_file(d, DIFF_B, FILE_B);
		}
		diff_finish(d);
		const enum said said = what_is_said(d);
		unknown += said == SAID_UNKNOWN;
		if (is_wrong(said, other / one - 1) && !wrong++)
			snprintf(first, sizeof first, "%.3g of A's time an item: %s %s",
				other / one, d->conclusion.sentence[0], d->conclusion.sentence[1]);
		diff_free(d);
	}
	if (wrong || unknown)
		print_error("%s: %u of %d wrong, %u not known. %s\n", s->name, wrong, PAIRS,
			unknown, first);
	if (wrong || unknown)
		fail();
}

static void the_first_sentence_names_the_faster_one_or_none(void **state)
{
	check_pairs(*state);
}

/* test_speed [SEED] */
int main(int argc, char **argv)
{
	seed += argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0;
	struct CMUnitTest tests[COUNT_OF(scenarios)];
	for (size_t i = 0; i < COUNT_OF(scenarios); i++)
		tests[i] = (struct CMUnitTest){ scenarios[i].name,
			the_first_sentence_names_the_faster_one_or_none, NULL, NULL,
			(void *)(uintptr_t)&scenarios[i] };
	return cmocka_run_group_tests(tests, NULL, remove_files);
}
