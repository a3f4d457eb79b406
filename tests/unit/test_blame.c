/* Blame: generated ranges around moments, whose culprit is known. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "blame/blame.h"
#include "maker.h"
#include "trace/activity.h"

#define FILE_NAME "test_blame.weir"
#define MOMENTS   400u
#define PID       100u
#define DEPTH     12u
#define NAMES     64u

/* One of each is inside of the ranges before it; allocators and libraries are not to blame. */
static const char *const operators[] = { "aten::conv2d", "aten::bmm", "aten::empty",
	"aten::zeros_like", "aten::empty_strided", "aten::native_batch_norm" };
static const char *const modules[] = { "layer1 (Conv2d)", "fc (Linear)" };
static const char *const lines[] = { "train.py(3): <module>", "net.py(7): forward",
	"torch/nn/modules/linear.py(134): forward", "<built-in function linear>",
	"/usr/lib/python3.12/site-packages/x/y.py(1): z" };

struct want {
	const char *operator, * module, *line;
};

static struct maker *m;
static struct range ranges[MOMENTS * (DEPTH + 1)];
static size_t range_count;
static struct blame asked[MOMENTS];
static struct want want[MOMENTS];
static const char *texts[NAMES];
static size_t text_count;
static int meta;

static uint32_t text(const char *s)
{
	for (size_t i = 0; i < text_count; i++)
		if (!strcmp(texts[i], s))
			return (uint32_t)i + 1;
	const uint64_t id = text_count + 1;
	texts[text_count++] = s;
	maker_meta(
		m, meta, META_STRING, 1000000, 1, &id, s, (uint32_t)strlen(s), (uint32_t)strlen(s));
	return (uint32_t)id;
}

static const char *pick(const char *const *v, size_t n)
{
	return v[(size_t)rand() % n];
}

static bool may_be_blamed(uint16_t kind, const char *name)
{
	if (kind == RANGE_OPERATOR)
		return !strstr(name, "empty") && !strstr(name, "zeros");
	return kind != RANGE_PYTHON || !strchr("t</", name[0]) || !strncmp(name, "train", 5);
}

/* The answer is the last that may be blamed; if none may, the last. */
static void choose(const char **to, const char *name, uint16_t kind)
{
	if (!*to || may_be_blamed(kind, name) || !may_be_blamed(kind, *to))
		*to = name;
}

static void make_moment(size_t i)
{
	const uint32_t tid = 200 + i % 3;
	const uint64_t begin = 2000000 + i * 1000;
	const unsigned depth = (unsigned)rand() % DEPTH;
	struct want w = { 0 };
	for (unsigned k = 0; k < depth; k++) {
		const int what = rand() % 3;
		const uint16_t kind = what == 0   ? RANGE_OPERATOR
				      : what == 1 ? RANGE_ANNOTATION
						  : RANGE_PYTHON;
		const char *name = what == 0   ? pick(operators, COUNT_OF(operators))
				   : what == 1 ? pick(modules, COUNT_OF(modules))
					       : pick(lines, COUNT_OF(lines));
		/* Some begin in the same moment. */
		ranges[range_count++] = (struct range){ .ticks = begin + k / 2 * 10,
			.dur = 900 - k * 20 - k / 2 * 10,
			.tid = tid,
			.name = text(name),
			.kind = kind };
		choose(what == 0 ? &w.operator: what == 1 ? &w.module : &w.line, name, kind);
	}
	/* Another thread's, and one that is over. */
	ranges[range_count++] = (struct range){ .ticks = begin,
		.dur = 900,
		.tid = 300,
		.name = text("aten::mm"),
		.kind = RANGE_OPERATOR };
	asked[i] = (struct blame){ .ticks = begin + 200, .process = 0, .tid = tid };
	want[i] = w;
}

/* They come in any order. */
static void shuffle(void)
{
	for (size_t i = range_count; i-- > 1;) {
		const size_t k = (size_t)rand() % (i + 1);
		const struct range g = ranges[i];
		ranges[i] = ranges[k];
		ranges[k] = g;
	}
}

static void expect_name(const struct meta *names, uint32_t got, const char *name, const char *what)
{
	const char *is = got == META_NONE ? "nothing" : names->names.v[got].text;
	if (strcmp(is, name ? name : "nothing") != 0)
		fail_msg("%s: %s, not %s", what, is, name ? name : "nothing");
}

static void the_culprit_of_generated_ranges_is_found(void **state)
{
	struct trace *t;
	struct error err;
	struct meta names;
	srand(7);
	m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	meta = maker_thread(m, CHUNK_META, PID, 0, "");
	for (size_t i = 0; i < MOMENTS; i++)
		make_moment(i);
	shuffle();
	for (size_t i = 0; i < range_count; i += 100)
		maker_chunk(m, CHUNK_RANGES, PID, 200, ranges + i,
			(uint32_t)((range_count - i < 100 ? range_count - i : 100) *
				   sizeof *ranges));
	maker_finish(m, 3000000, false);
	assert_int_equal(trace_open(FILE_NAME, &t, &err), 0);
	assert_int_equal(meta_load(t, &names, &err), 0);
	assert_int_equal(blame_find(t, &names, asked, MOMENTS), 0);
	for (size_t i = 0; i < MOMENTS; i++) {
		expect_name(&names, asked[i].operator, want[i].operator, "operator");
		expect_name(&names, asked[i].module, want[i].module, "module");
		expect_name(&names, asked[i].line, want[i].line, "line");
	}
	meta_fini(&names);
	trace_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_culprit_of_generated_ranges_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
