/*
 * Shapes that are told now and then, in 400 generated programs.
 *
 * A program repeats steps of layers.  Each layer is a module that multiplies (rows x depth) by
 * (depth x width) and launches one kernel whose grid follows from rows and width alone.  Shapes
 * are told in the steps 1, 2, 4, 8, ... as a live recording does.  The generator knows every
 * shape, so it knows what the sum must be.
 */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "maker.h"
#include "report/report_make.h"
#include "trace/trace.h"

#define PATH   "operator_shapes.weir"
#define ORIGIN 2000000ull
#define LAYERS 12
#define STEPS  40
#define ROWS   5 /* kinds of batches */

struct program {
	unsigned layers, steps, rows;
	bool namesakes; /* all modules have one name */
	bool silent;    /* operators launch nothing */
	bool sampled;   /* some launches were timed, which a chunk of links tells */
	uint64_t depth[LAYERS], width[LAYERS];
	unsigned batch[STEPS]; /* of each step */
};

struct sums {
	double flops;
	uint64_t costed, count;
};

static uint64_t pick(uint64_t *seed, uint64_t below)
{
	return hash_mix(++*seed * 0x9e3779b97f4a7c15u) % below;
}

static bool is_told(unsigned step)
{
	return !((step + 1) & step);
}

static uint64_t rows_of(const struct program *p, unsigned step)
{
	return 128u * (1 + p->batch[step]);
}

static double flops_of(const struct program *p, unsigned step, unsigned layer)
{
	return 2.0 * (double)(rows_of(p, step) * p->depth[layer] * p->width[layer]);
}

static struct program draw(uint64_t seed)
{
	struct program p = { .layers = 1 + (unsigned)pick(&seed, LAYERS),
		.steps = 1 + (unsigned)pick(&seed, STEPS),
		.rows = 1 + (unsigned)pick(&seed, ROWS) };
	for (unsigned i = 0; i < p.layers; i++) {
		p.depth[i] = 64 * (1 + pick(&seed, 40));
		p.width[i] = 64 * (1 + pick(&seed, 4));
	}
	for (unsigned s = 0; s < p.steps; s++)
		p.batch[s] = (unsigned)pick(&seed, p.rows);
	return p;
}

struct writing {
	struct maker *m;
	int names, calls;
	uint64_t id;
	ARRAY(struct range) ranges;
};

static uint32_t string(struct writing *w, const char *text)
{
	const uint32_t n = (uint32_t)strlen(text);
	maker_meta(w->m, w->names, META_STRING, 0, 1, &(uint64_t){ ++w->id }, text, n, n);
	return (uint32_t)w->id;
}

static void put_range(struct writing *w, struct range r)
{
	r.tid = 70;
	*array_push(&w->ranges) = r;
}

static void put_call(
	struct writing *w, const struct program *p, unsigned step, unsigned layer, uint64_t at)
{
	const uint64_t blocks = rows_of(p, step) / 64 * p->width[layer] / 64;
	if (!p->silent)
		maker_put(w->m, w->calls,
			(struct record){ .ticks = at,
				.dur = 20,
				.fn = FN_LAUNCH,
				.words = RECORD_WORDS + 5 },
			(uint64_t[5]){
				0x1000, 0, 1ull << 32 | blocks, 128ull << 32 | 1, 1ull << 32 | 1 });
}

static void put_layer(struct writing *w, const struct program *p, unsigned step, unsigned layer,
	uint64_t at, const uint32_t *modules, uint32_t operator)
{
	char args[200];
	snprintf(args, sizeof args,
		"{\"Input Dims\": [[%u,%u],[%u,%u]], \"module dtype\": \"float32\"}",
		(unsigned)rows_of(p, step), (unsigned)p->depth[layer], (unsigned)p->depth[layer],
		(unsigned)p->width[layer]);
	put_range(w,
		(struct range){
			.ticks = at, .dur = 90, .name = modules[layer], .kind = RANGE_ANNOTATION });
	put_range(w, (struct range){ .ticks = at + 10,
			     .dur = 60,
			     .name = operator,
			     .args = is_told(step) ? string(w, args) : 0,
			     .kind = RANGE_OPERATOR });
	put_call(w, p, step, layer, at + 20);
}

static void write_trace(const struct program *p)
{
	struct writing w = { .m = maker_new(PATH, maker_schema, 1u << 20) };
	uint32_t modules[LAYERS];
	char name[60];
	w.names = maker_thread(w.m, CHUNK_META, 7, 70, "main");
	w.calls = maker_thread(w.m, CHUNK_EVENTS, 7, 70, "main");
	maker_name(w.m, w.names, 0, 0x1000, "gemm");
	const uint32_t operator= string(&w, "aten::mm");
	for (unsigned i = 0; i < p->layers; i++) {
		snprintf(name, sizeof name, "%u (Linear)", p->namesakes ? 0 : i);
		modules[i] = string(&w, name);
	}
	for (unsigned s = 0; s < p->steps; s++) {
		const uint64_t at = ORIGIN + s * 10000ull;
		snprintf(name, sizeof name, "step %u", s);
		put_range(&w, (struct range){ .ticks = at,
				      .dur = 9000,
				      .name = string(&w, name),
				      .kind = RANGE_ANNOTATION });
		for (unsigned i = 0; i < p->layers; i++)
			put_layer(&w, p, s, i, at + 100 * (i + 1), modules, operator);
	}
	maker_chunk(
		w.m, CHUNK_RANGES, 7, 70, w.ranges.v, (uint32_t)(w.ranges.n * sizeof *w.ranges.v));
	array_free(&w.ranges);
	if (p->sampled)
		maker_chunk(w.m, CHUNK_LINKS, 7, 70,
			&(struct link){ .correlation = 1, .ticks = ORIGIN, .tid = 70 },
			sizeof(struct link));
	maker_finish(w.m, ORIGIN + p->steps * 10000ull, false);
}

static struct sums report(void)
{
	struct trace *t;
	struct report *r;
	struct error err;
	struct sums s = { 0 };
	assert_int_equal(trace_open(PATH, &t, &err), 0);
	assert_int_equal(report_make(t, 1, FACETS_BUT_HINTS, &r, &err), 0);
	for (size_t i = 0; i < r->operators.n; i++) {
		const struct operator_row *o = &r->operators.v[i];
		if (o->kind != RANGE_OPERATOR)
			continue;
		s.flops += o->roofline.flops;
		s.costed += o->roofline.count;
		s.count += o->count;
	}
	report_free(r);
	trace_close(t);
	unlink(PATH);
	return s;
}

/* A module that was told of a batch as large tells the shape. */
static bool is_known(const struct program *p, unsigned step)
{
	for (unsigned s = 0; s < p->steps; s++)
		if (is_told(s) && p->batch[s] == p->batch[step])
			return true;
	return false;
}

static struct sums expected(const struct program *p, bool alike)
{
	struct sums s = { .count = (uint64_t)p->steps * p->layers };
	for (unsigned step = 0; step < p->steps; step++) {
		if (!is_told(step) && !(alike && is_known(p, step)))
			continue;
		for (unsigned i = 0; i < p->layers; i++)
			s.flops += flops_of(p, step, i);
		s.costed += p->layers;
	}
	return s;
}

static void check(const struct program *p, uint64_t seed, bool alike)
{
	const struct sums want = expected(p, alike);
	write_trace(p);
	const struct sums got = report();
	if (got.flops != want.flops || got.costed != want.costed || got.count != want.count)
		fail_msg("program %d: %.0f FLOPs in %d of %d calls, not %.0f in %d of %d",
			(int)seed, got.flops, (int)got.costed, (int)got.count, want.flops,
			(int)want.costed, (int)want.count);
}

static void calls_of_a_module_take_the_shape_that_was_told(void **state)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		const struct program p = draw(seed * 1000);
		check(&p, seed, true);
	}
}

static void recordings_of_some_launches_are_no_imports(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct program p = draw(seed * 1000);
		p.sampled = true;
		check(&p, seed, true);
	}
}

static void calls_that_launch_nothing_take_no_shape(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct program p = draw(seed * 1000);
		p.silent = true;
		check(&p, seed, false);
	}
}

/* The depth is not in the grid: only the place tells layers of one width apart, or nothing does. */
static void namesakes_are_told_apart_or_stay_unknown(void **state)
{
	unsigned complete = 0;
	for (uint64_t seed = 0; seed < 80; seed++) {
		struct program p = draw(seed * 1000);
		p.namesakes = true;
		p.rows = 1;
		memset(p.batch, 0, sizeof p.batch);
		const struct sums all = expected(&p, true), least = expected(&p, false);
		write_trace(&p);
		const struct sums got = report();
		assert_true(got.costed >= least.costed && got.costed <= all.costed);
		assert_true(got.flops >= least.flops && got.flops <= all.flops);
		complete += got.costed == all.costed;
		if (got.costed == all.costed && got.flops != all.flops)
			fail_msg("program %d: %.0f FLOPs, not %.0f", (int)seed, got.flops,
				all.flops);
	}
	assert_int_equal(complete, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_a_module_take_the_shape_that_was_told),
		cmocka_unit_test(recordings_of_some_launches_are_no_imports),
		cmocka_unit_test(calls_that_launch_nothing_take_no_shape),
		cmocka_unit_test(namesakes_are_told_apart_or_stay_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
