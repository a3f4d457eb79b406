/* The hook's own predictions, outside of it: launches matched to kernels, files that come and
 * change, sentences without stdio. */
#define error_set hook_error_set
#include "hook/core/error_text.c"
#undef error_set

#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/predicted.h"
#include "record/writer.h"
#include "hook/time/cupti.h"
#include "hook/online/history_file.h"
#include "hook/online/graph_runs.h"
#include "hook/online/match.h"
#include "hook/online/overlap.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "predict/tables.h"
#include "train/train.h"
#include "zoo.h"

struct recorder hook_recorder;
union hook_hot_page hook_hot_page = { .hot.state = PROCESS_READY };
static struct trace_header header;
static char noted[4096];

void meta_message(const char *text)
{
	snprintf(noted, sizeof noted, "%s", text);
}

void process_at_exit(void)
{
}

bool cupti_end_learning(void)
{
	return true;
}

static int begin(void **state)
{
	header.clock = CLOCK_IS_MONOTONIC;
	header.start = clock_pair_now(CLOCK_IS_MONOTONIC);
	hook_recorder.header = &header;
	assert_true(match_start());
	return 0;
}

static const struct predict_kernel kernel = { .id = 7 };

/* A launch `after` ns after the recording began. */
static void push(uint64_t signature, uint64_t after, uint64_t key)
{
	const struct predict_launch l = {
		.kernel = &kernel, .key = key, .args = 1, .arg = { key }
	};
	match_push(signature, header.start.ticks + after, &l);
}

static uint64_t pop(uint64_t signature, uint64_t after)
{
	struct predict_launch l = { 0 };
	return match_pop(signature, header.start.mono_ns + after, &l) ? l.key : 0;
}

static void launches_of_one_signature_run_in_their_order(void **state)
{
	push(101, 1000, 1);
	push(103, 2000, 2);
	push(101, 3000, 3);
	match_take();
	assert_int_equal(pop(103, 100000), 2);
	assert_int_equal(pop(101, 200000), 1);
	push(101, 4000, 4);
	match_take();
	assert_int_equal(pop(101, 300000), 3);
	assert_int_equal(pop(101, 400000), 4);
	assert_int_equal(pop(101, 500000), 0);
	assert_int_equal(pop(105, 500000), 0);
}

static void a_kernel_is_not_of_a_launch_that_came_after_it(void **state)
{
	push(101, 5000000, 1);
	match_take();
	assert_int_equal(pop(101, 1000000), 0);
	assert_int_equal(pop(101, 6000000), 1);
}

static void a_ring_that_came_round_is_given_up(void **state)
{
	for (uint64_t i = 1; i <= 70000; i++)
		push(101, 1000, i);
	match_take();
	assert_int_equal(pop(101, 100000), 0);
	push(101, 2000, 99);
	match_take();
	assert_int_equal(pop(101, 100000), 99);
}

#define PUSHERS 4
#define PUSHES  200000u
static _Atomic uint32_t pushing;

/* All words of a launch say the same. */
static void *push_many(void *signature)
{
	struct predict_launch l = { .kernel = &kernel, .args = PREDICT_ARGS };
	for (uint64_t key = 1; key <= PUSHES; key++) {
		for (int i = 0; i < PREDICT_ARGS; i++)
			l.arg[i] = key;
		l.key = key;
		match_push((uintptr_t)signature, header.start.ticks, &l);
	}
	pushing--;
	return NULL;
}

static uint32_t pop_all(uint64_t signature)
{
	struct predict_launch l = { 0 };
	uint32_t n = 0;
	for (; match_pop(signature, UINT64_MAX / 2, &l); n++)
		for (uint32_t i = 0; i < l.args; i++)
			assert_int_equal(l.arg[i], l.key);
	return n;
}

static void a_launch_is_taken_whole_or_not_at_all_while_others_are_made(void **state)
{
	pthread_t threads[PUSHERS];
	pushing = PUSHERS;
	for (uintptr_t i = 0; i < PUSHERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, push_many, (void *)(101 + i)), 0);
	for (bool more = true; more;) {
		more = pushing;
		match_take();
		for (uint64_t i = 0; i < PUSHERS; i++)
			pop_all(101 + i);
	}
	for (int i = 0; i < PUSHERS; i++)
		pthread_join(threads[i], NULL);
	push(101, 0, 1); /* it goes on */
	match_take();
	assert_int_equal(pop_all(101), 1);
}

static void shapes_and_kernels_tell_signatures_apart(void **state)
{
	const uint32_t a[] = { 1, 2, 3 }, b[] = { 3, 2, 1 };
	const uint64_t s = match_signature(7, a, b, 0);
	assert_true(s == match_signature(7, a, b, 0) && s);
	assert_true(s != match_signature(8, a, b, 0));
	assert_true(s != match_signature(7, b, a, 0));
	assert_true(s != match_signature(7, a, b, 1));
}

static void a_graph_is_what_it_was_last_said_to_be(void **state)
{
	graphs_forget();
	assert_int_equal(graphs_find(77), 0);
	graphs_set(77, 5);
	graphs_set(78, 6);
	assert_int_equal(graphs_find(77), 5);
	graphs_set(77, 0);
	assert_int_equal(graphs_find(77), 0);
	assert_int_equal(graphs_find(78), 6);
	for (uint64_t exec = 1000; exec < 9000; exec++) { /* more than there is room for */
		graphs_set(exec, exec + 1);
		assert_int_equal(graphs_find(exec), exec + 1);
	}
}

/* Two launches of which kernels come mixed, and in two parts. */
static void a_run_of_a_graph_is_put_together_by_its_call(void **state)
{
	static const uint64_t ran[][4] = { /* call, signature, start, end */
		{ 1, 10, 100, 200 }, { 2, 20, 150, 160 }, { 1, 11, 50, 60 }, { 1, 12, 300, 400 }
	};
	struct graph_run *first, *second;
	uint32_t at = 0;
	graphs_forget();
	for (int i = 0; i < 4; i++)
		graphs_add(&(struct gpu_activity){ .correlation = ran[i][0],
				   .start_ns = ran[i][2],
				   .end_ns = ran[i][3],
				   .valid = GPU_HAS_CORRELATION },
			ran[i][1]);
	first = graphs_next(&at);
	second = graphs_next(&at);
	assert_non_null(second);
	assert_null(graphs_next(&at));
	assert_int_equal(first->sum, 33);
	assert_int_equal(first->from_ns, 50);
	assert_int_equal(first->to_ns, 400);
	assert_int_equal(second->sum, 20);
	assert_true(graphs_signature(33) && graphs_signature(33) != graphs_signature(20));
	assert_int_equal(graphs_signature(0), 0);
}

#define SPANS 4000
static struct span spans[SPANS];

static uint32_t random_below(uint32_t n)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return (uint32_t)(x >> 33) % n;
}

static bool meets(const struct span *a, const struct span *b)
{
	return a->from < b->to && b->from < a->to;
}

static void kernels_have_company_when_another_ran_meanwhile(void **state)
{
	uint64_t from = 0;
	overlap_forget();
	for (int i = 0; i < SPANS; i++) {
		from += 1 + random_below(100);
		spans[i] = (struct span){ from, from + 1 + random_below(80), false };
	}
	for (uint32_t at = 0, n; at < SPANS; at += n) {
		n = 1 + random_below(50);
		n = n < SPANS - at ? n : SPANS - at;
		overlap_mark(3, spans + at, n);
		for (uint32_t i = at; i < at + n; i++) {
			bool shared = false;
			for (uint32_t k = i > 300 ? i - 300 : 0; k < at + n; k++)
				shared |= k != i && meets(&spans[i], &spans[k]);
			assert_int_equal(spans[i].shared, shared);
		}
	}
}

/* Two threads take turns on one stream, and each has buffers of its own. */
static void kernels_of_a_buffer_that_comes_late_are_alone_where_they_were(void **state)
{
	struct span first[] = { { 100, 200, false }, { 500, 600, false } };
	struct span late[] = { { 200, 300, false }, { 310, 510, false }, { 600, 700, false } };
	struct span elsewhere[] = { { 100, 700, false } };
	overlap_forget();
	overlap_mark(0, first, 2);
	overlap_mark(0, late, 3);
	overlap_mark(1, elsewhere, 1);
	assert_false(first[0].shared || first[1].shared || elsewhere[0].shared);
	assert_false(late[0].shared || late[2].shared);
	assert_true(late[1].shared);
}

static void of_many_kernels_the_newest_are_remembered(void **state)
{
	overlap_forget();
	for (uint32_t i = 0; i < SPANS; i++)
		spans[i] = (struct span){ 10 * i, 10 * i + 9, false };
	overlap_mark(0, spans, SPANS);
	struct span new = { 10 * (SPANS - OVERLAP_KEPT) + 5, 10 * (SPANS - OVERLAP_KEPT) + 6,
		false };
	overlap_mark(0, &new, 1);
	assert_true(new.shared);
	overlap_mark(99, &(struct span){ 1, 2, false }, 1); /* of a device too many */
}

#define MODEL    "test_forecast.model"
#define LAUNCHES ROUNDS(2000, 400)

static struct zoo zoo;
static struct predict_sample stream[LAUNCHES];

/* A model of launches that take `factor` times what they do. */
static struct model_file *model(double factor)
{
	static struct predict_sample changed[LAUNCHES];
	struct model_file *f = NULL;
	struct train_rows rows;
	struct error err = { 0 };
	const struct train_options o = { .device = "NVIDIA H200" };
	memcpy(changed, stream, sizeof changed);
	for (int i = 0; i < LAUNCHES; i++)
		changed[i].measured_ns *= factor;
	train_rows_of(&zoo.device, changed, LAUNCHES, &rows);
	assert_int_equal(train_fit(&zoo.device, &rows, NULL, &o, &f, &err), 0);
	train_rows_fini(&rows);
	return f;
}

/* As who publishes one does it. */
static void publish(const void *bytes, size_t n)
{
	FILE *file = fopen(MODEL ".new", "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	fclose(file);
	assert_int_equal(rename(MODEL ".new", MODEL), 0);
}

static void a_model_is_taken_when_its_file_changes_and_it_is_no_worse(void **state)
{
	const struct predict_sizes sizes = { PREDICTED_LAUNCHES, PREDICTED_KERNELS };
	const size_t bytes = predict_bytes(&sizes);
	const struct predict_config config = { "", "", MODEL, "" };
	void *memory = aligned_alloc(64, bytes);
	struct predict p;
	zoo_init(&zoo, 1, 0.01);
	for (int i = 0; i < LAUNCHES; i++)
		stream[i] = zoo_next(&zoo, (uint64_t)i << 20);
	struct model_file *good = model(1), *bad = model(3), *other = model(1.01);
	assert_int_equal(predict_init(&p, memory, bytes, &sizes, &zoo.device), 0);

	publish(good, good->file_bytes);
	history_file_start(&p, &config, &zoo.device);
	assert_non_null(strstr(noted, "the model is in use, " MODEL));
	const struct predict_model *first = atomic_load(&p.model);
	assert_non_null(first);

	*noted = 0; /* nothing has changed */
	history_file_look(&p, stream, LAUNCHES);
	assert_string_equal(noted, "");
	publish(bad, bad->file_bytes);
	history_file_look(&p, stream, LAUNCHES);
	assert_non_null(strstr(noted, "the new model is worse"));
	publish("garbage", 7);
	history_file_look(&p, stream, LAUNCHES);
	assert_non_null(strstr(noted, "this is not a model"));
	assert_ptr_equal(atomic_load(&p.model), first);

	publish(other, other->file_bytes);
	history_file_look(&p, NULL, 0);
	assert_non_null(strstr(noted, "in use"));
	assert_true(atomic_load(&p.model) != first);
	unlink(MODEL);
	free(good);
	free(bad);
	free(other);
	free(memory);
}

/* A thread may have taken a model's address and be stopped before it reads: the model stays. */
static void a_model_stays_readable_however_many_come_after_it(void **state)
{
	const struct predict_sizes sizes = { PREDICTED_LAUNCHES, PREDICTED_KERNELS };
	const size_t bytes = predict_bytes(&sizes);
	const struct predict_config config = { "", "", MODEL, "" };
	void *memory = aligned_alloc(64, bytes);
	struct predict p;
	struct predict_answer before, after;
	zoo_init(&zoo, 1, 0.01);
	for (int i = 0; i < LAUNCHES; i++)
		stream[i] = zoo_next(&zoo, (uint64_t)i << 20);
	struct model_file *file = model(1);
	assert_int_equal(predict_init(&p, memory, bytes, &sizes, &zoo.device), 0);
	publish(file, file->file_bytes);
	history_file_start(&p, &config, &zoo.device);
	const struct predict_model *const first = atomic_load(&p.model), *last = first;
	assert_non_null(first);
	predict_ask(&p, &stream[0].launch, &before);

	for (int i = 0; i < 100 && !strstr(noted, "as many as it has room for"); i++) {
		last = atomic_load(&p.model);
		publish(file, file->file_bytes);
		history_file_look(&p, NULL, 0);
	}
	assert_non_null(strstr(noted, "the model is refused, " MODEL ": this process has taken"));
	assert_ptr_equal(atomic_load(&p.model), last);
	predict_swap(&p, first);
	predict_ask(&p, &stream[0].launch, &after);
	assert_memory_equal(&before, &after, sizeof before);
	unlink(MODEL);
	free(file);
	free(memory);
}

static void a_sentence_reads_as_stdio_would_write_it(void **state)
{
	struct error e;
	char wanted[sizeof e.text + 100];
#define SAME(...)                                                                                  \
	do {                                                                                       \
		snprintf(wanted, sizeof e.text, __VA_ARGS__);                                      \
		assert_int_equal(hook_error_set(&e, -5, __VA_ARGS__), -5);                         \
		assert_string_equal(e.text, wanted);                                               \
	} while (0)
	SAME("plain");
	SAME("%s is for %u.%u and %zu of %llu", "it", 9u, 0u, (size_t)1 << 40, ~0ull);
	SAME("%d and %d, off by %.1f %% and %.1f %%", -5, 7, 12.34, 0.04);
	memset(wanted, 'x', sizeof wanted);
	wanted[sizeof wanted - 1] = 0;
	hook_error_set(&e, 0, "%s", wanted);
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	assert_int_equal(hook_error_set(NULL, -3, "%s", "nobody"), -3);
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(launches_of_one_signature_run_in_their_order),
		TEST(a_kernel_is_not_of_a_launch_that_came_after_it),
		TEST(a_ring_that_came_round_is_given_up),
		TEST(a_launch_is_taken_whole_or_not_at_all_while_others_are_made),
		TEST(shapes_and_kernels_tell_signatures_apart),
		TEST(a_graph_is_what_it_was_last_said_to_be),
		TEST(a_run_of_a_graph_is_put_together_by_its_call),
		TEST(kernels_have_company_when_another_ran_meanwhile),
		TEST(kernels_of_a_buffer_that_comes_late_are_alone_where_they_were),
		TEST(of_many_kernels_the_newest_are_remembered),
		TEST(a_model_is_taken_when_its_file_changes_and_it_is_no_worse),
		TEST(a_model_stays_readable_however_many_come_after_it),
		TEST(a_sentence_reads_as_stdio_would_write_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
