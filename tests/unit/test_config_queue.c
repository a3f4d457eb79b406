/* The server and the simulation of one ask for the same queue, whatever the configuration leaves to
 * the model. */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>

#include "store/config_queue.h"
#include "store/store.h"
#include "whatif/serving.h"

#define REPOSITORY "config_queue.d"

static struct error err;
static uint64_t seed = 1;

static unsigned below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static void put_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

/* A field that is there three times of four, with one of `most` values. */
static void put_field(struct buf *b, const char *name, unsigned most)
{
	if (below(4))
		buf_printf(b, "%s: %u\n", name, 1 + below(most));
}

static void put_batching(struct buf *b, unsigned rows)
{
	buf_put_text(b, "dynamic_batching {\n");
	put_field(b, "max_queue_delay_microseconds", 9000);
	if (rows && below(2))
		buf_printf(b, "preferred_batch_size: [1, %u]\n", rows);
	const bool levels = below(2);
	if (levels)
		buf_printf(b, "priority_levels: 6 default_priority_level: %u\n", 1 + below(6));
	if (below(2))
		buf_printf(b, "preserve_ordering: true\n");
	if (below(2)) {
		buf_put_text(b, "default_queue_policy {\n");
		put_field(b, "max_queue_size", 100);
		put_field(b, "default_timeout_microseconds", 5000);
		buf_put_text(b, below(3) ? "}\n" : "timeout_action: DELAY }\n");
	}
	if (levels && below(2))
		buf_printf(b, "priority_queue_policy { key: %u value { max_queue_size: %u } }\n",
			1 + below(6), 1 + below(9));
	buf_put_text(b, "}\n");
}

/* max_batch_size is said, is 0, or is not there. */
static void put_config(struct buf *b, bool batches)
{
	const unsigned kind = below(3), rows = kind == 2 && batches ? 1 + below(32) : 0;
	if (kind)
		buf_printf(b, "max_batch_size: %u\n", rows);
	if (below(3))
		put_batching(b, rows);
	if (below(4) == 0)
		buf_put_text(b, "input { name: 'a' }\n");
	if (below(4) == 0)
		buf_put_text(b, "output { name: 'c' }\n");
	if (below(2))
		buf_printf(b, "parameters { key: 'weir.weight' value { string_value: '%u' } }\n",
			1 + below(9));
	if (rows && below(2))
		buf_printf(b, "parameters { key: 'weir.buckets' value { string_value: '%u' } }\n",
			rows);
}

static struct tensor_spec spec_of(const char *name, bool batches, bool optional)
{
	return (struct tensor_spec){ (char *)name, DTYPE_FP32, { 2, { batches ? -1 : 7, 3 } },
		optional };
}

static void keep(const char *what, const char *text)
{
	struct store *store;
	assert_int_equal(store_open(REPOSITORY, &store, &err), 0);
	assert_int_equal(store_kept_write(store, what, "m", 1, text, strlen(text)), 0);
	store_close(store);
}

static void check(const struct batch_model_config *a, const struct batch_model_config *b)
{
	assert_int_equal(a->max_rows, b->max_rows);
	assert_int_equal(a->max_queue, b->max_queue);
	assert_memory_equal(a->max_class, b->max_class, sizeof a->max_class);
	assert_int_equal(a->max_delay_ns, b->max_delay_ns);
	assert_int_equal(a->preserve_ordering, b->preserve_ordering);
	assert_int_equal(a->preferreds, b->preferreds);
	assert_memory_equal(a->preferred, b->preferred, sizeof a->preferred);
	assert_int_equal(a->nbuckets, b->nbuckets);
	assert_memory_equal(a->buckets, b->buckets, sizeof a->buckets);
	assert_float_equal(a->weight, b->weight, 0);
}

static void server_and_simulation_ask_for_the_same_queue(void **state)
{
	unsigned completed = 0;
	mkdir(REPOSITORY, 0777);
	mkdir(REPOSITORY "/m", 0777);
	mkdir(REPOSITORY "/m/1", 0777);
	put_file(REPOSITORY "/m/1/model.onnx", "");
	keep(STORE_LATENCY, "weir-latency 1\nmargin 0.1 deviation 0.02\nrows 1 ns 500000 runs 7\n");
	for (int i = 0; i < 100; i++) {
		const bool batches = below(4);
		const struct tensor_spec in[] = { spec_of("a", batches, false),
			spec_of("b", batches, true) };
		const struct tensor_spec out = spec_of("c", batches, false);
		const uint64_t delay_ns = below(3) * 1000;
		struct buf text = { 0 }, warnings = { 0 };
		struct serving w = { .delay_ns = delay_ns };
		struct model_config *c;
		put_config(&text, batches);
		put_file(REPOSITORY "/m/config.pbtxt", buf_text(&text));
		/* The server, which has loaded the model, */
		assert_int_equal(config_read(text.v ? text.v : "", text.n, "config.pbtxt", &c,
					 &warnings, &err),
			0);
		assert_int_equal(config_complete(c, in, 2, &out, 1, &err), 0);
		const struct batch_model_config asked = config_queue(c, delay_ns);
		const struct config_wait wait = config_wait(c, 0);
		completed += c->max_batch_size == CONFIG_DEFAULT_BATCH;
		char *own = config_model_text(in, 2, &out, 1);
		keep(STORE_MODEL, own);
		free(own);
		/* and the simulation, which has what the server kept. */
		if (serving_load(&w, REPOSITORY, &err))
			fail_msg("%s\n%s", err.text, buf_text(&text));
		check(&asked, &w.models.v[0].simulated.config);
		assert_int_equal(wait.class, w.models.v[0].simulated.class);
		assert_int_equal(wait.timeout_ns, w.models.v[0].simulated.timeout_ns);
		serving_fini(&w);
		config_free(c);
		buf_free(&text);
		buf_free(&warnings);
	}
	assert_true(completed > 10);
}

static void each_level_has_its_own_queue(void **state)
{
#define LEVEL(key, size)                                                                           \
	" priority_queue_policy { key: " key " value { max_queue_size: " size " } }"
#define OTHERS " default_queue_policy { max_queue_size: 9 }"
	static const struct {
		const char *batching;
		uint32_t all, of[BATCH_CLASSES];
	} rows[] = {
		{ "", BATCH_QUEUE, { 0 } },
		{ OTHERS, 9, { 0 } },
		{ "default_priority_level: 1 priority_levels: 2" OTHERS, 18, { 9, 9 } },
		{ "default_priority_level: 1 priority_levels: 2" OTHERS LEVEL("1", "3"), 12,
			{ 3, 9 } },
		{ "default_priority_level: 1 priority_levels: 2" LEVEL("1", "3"), BATCH_QUEUE,
			{ 3, 0 } },
		{ "default_priority_level: 1 priority_levels: 6" OTHERS LEVEL("5", "2"), 47,
			{ 9, 9, 9, 20 } },
		{ "default_priority_level: 1 priority_levels: 4294967295" OTHERS, BATCH_QUEUE_MOST,
			{ 9, 9, 9, BATCH_QUEUE_MOST } },
		{ "default_queue_policy { max_queue_size: 4294967295 }", BATCH_QUEUE_MOST, { 0 } },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct buf text = { 0 }, warnings = { 0 };
		struct model_config *c;
		buf_printf(&text, "max_batch_size: 2 dynamic_batching { %s }", rows[i].batching);
		if (config_read(text.v, text.n, "config.pbtxt", &c, &warnings, &err))
			fail_msg("%s", err.text);
		const struct batch_model_config b = config_queue(c, 0);
		assert_int_equal(b.max_queue, rows[i].all);
		for (uint32_t k = 0; k < BATCH_CLASSES; k++)
			assert_int_equal(b.max_class[k], rows[i].of[k]);
		config_free(c);
		buf_free(&text);
		buf_free(&warnings);
	}
}

static void a_request_waits_by_its_level(void **state)
{
	static const char text[] =
		"max_batch_size: 2 dynamic_batching { priority_levels: 5 default_priority_level: 2 "
		"priority_queue_policy { key: 1 value { default_timeout_microseconds: 9 } } "
		"priority_queue_policy { key: 3 value { timeout_action: DELAY "
		"default_timeout_microseconds: 9 } } }";
	static const struct {
		uint64_t priority, timeout_ns;
		uint32_t class;
	} rows[] = { { 0, BATCH_NEVER, 1 }, { 1, 9000, 0 }, { 2, BATCH_NEVER, 1 },
		{ 3, BATCH_NEVER, 2 }, { 5, BATCH_NEVER, 3 }, { 6, BATCH_NEVER, 1 },
		{ UINT64_MAX, BATCH_NEVER, 1 } };
	struct buf warnings = { 0 };
	struct model_config *c;
	assert_int_equal(
		config_read(text, sizeof text - 1, "config.pbtxt", &c, &warnings, &err), 0);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct config_wait wait = config_wait(c, rows[i].priority);
		assert_int_equal(wait.class, rows[i].class);
		assert_int_equal(wait.timeout_ns, rows[i].timeout_ns);
	}
	config_free(c);
	buf_free(&warnings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_and_simulation_ask_for_the_same_queue),
		cmocka_unit_test(each_level_has_its_own_queue),
		cmocka_unit_test(a_request_waits_by_its_level),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
