/* A recording is followed while it is written, drained and overwritten: nothing is counted twice or
 * forgotten, and what a look costs does not grow with the file. */
#include "unit.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "event/schema.h"
#include "monitor/follow.h"
#include "record/lane.h"
#include "record/writer.h"
#include "trace/drain.h"
#include "trace/trace.h"

#define FILE_NAME    "follow.weir"
#define WORDS        8u
#define DEVICE_BYTES (4u * TRACE_GRAIN)

static struct recorder file;
static struct drain *drain;
static struct follow *follow;
static struct writer *writer;
static uint16_t launch, other; /* functions of the schema */

static void put_chunk(enum chunk_kind kind, const void *payload, uint32_t bytes)
{
	struct chunk_header *c = recorder_chunk(&file, kind, TRACE_GRAIN, 0);
	assert_non_null(c);
	memcpy((char *)c + CHUNK_PAYLOAD, payload, bytes);
	c->used = bytes;
	atomic_store_explicit(&c->state, CHUNK_CLOSED, memory_order_release);
}

static void find_functions(void)
{
	struct trace *t;
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	for (uint16_t id = 1; id < 2000; id++) {
		const struct schema_fn *fn = schema_find(&t->schema, id);
		if (fn)
			*(fn->kind == CALL_LAUNCH ? &launch : &other) = id;
	}
	trace_close(t);
	assert_true(launch && other);
}

static int begin(void **state)
{
	struct trace_header blank;
	unlink(FILE_NAME);
	lanes_forget();
	shared_forget();
	file = (struct recorder){ .path = FILE_NAME, .pid = (uint32_t)getpid(), .identity = 7 };
	header_blank(&blank, 0);
	blank.launched = 1;
	assert_int_equal(recorder_open(&file, &blank), 0);
	find_functions();
	assert_int_equal(drain_open(FILE_NAME, &drain), 0);
	assert_int_equal(follow_open(FILE_NAME, &follow), 0);
	writer = calloc(1, sizeof *writer);
	if (!writer)
		return -1;
	writer->kind = CHUNK_EVENTS;
	writer->tid = file.pid;
	return 0;
}

static int end(void **state)
{
	follow_close(follow);
	drain_close(drain);
	free(writer);
	return unlink(FILE_NAME);
}

static void put_call(uint16_t fn, uint16_t result)
{
	struct record *r = writer_reserve(&file, writer, WORDS);
	assert_non_null(r);
	r->ticks = 1;
	r->result = result;
	r->words = WORDS;
	for (uint32_t i = 0; i < WORDS - RECORD_WORDS; i++)
		r->arg[i] = i;
	record_commit(r, fn);
	writer_unmark(writer);
}

static const struct follow_process *self(void)
{
	const struct follow_process *p = follow_find(follow, (uint32_t)getpid());
	assert_non_null(p);
	return p;
}

static void look(const struct follow_sink *to)
{
	follow_look(follow, to);
}

static void calls_are_counted_once_drained_or_not(void **state)
{
	uint64_t calls = 0, launches = 0;
	look(NULL);
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 777; k++) {
			const bool is_launch = k % 3 == 0, fails = k % 9 == 0;
			put_call(is_launch ? launch : other, fails ? 1 : 0);
			calls++;
			launches += is_launch && !fails;
		}
		if (i % 3)
			drain_step(drain);
		if (i % 2 == 0)
			look(NULL);
	}
	look(NULL);
	assert_int_equal(self()->calls, calls);
	assert_int_equal(self()->launches, launches);
}

static void what_was_there_before_counts_for_nothing(void **state)
{
	for (int i = 0; i < 5000; i++)
		put_call(launch, 0);
	drain_step(drain);
	look(NULL);
	for (int i = 0; i < 10; i++)
		put_call(launch, 0);
	look(NULL);
	assert_int_equal(self()->launches, 10);
}

/* A day of a thousand calls a second, drained and looked at as it goes, a thousandth of it here. */
static void a_look_does_not_cost_more_the_longer_it_lasts(void **state)
{
	size_t bytes = 0;
	look(NULL);
	for (int minute = 0; minute < 60; minute++) {
		for (int i = 0; i < 10000; i++)
			put_call(launch, 0);
		drain_step(drain);
		look(NULL);
		if (minute == 10)
			bytes = mallinfo2().uordblks;
	}
	assert_true(mallinfo2().uordblks <= bytes);
	assert_int_equal(self()->launches, 600000);
}

struct heard {
	uint64_t kernels, named, ns;
};

static void hear(void *data, const struct follow_kernel *k)
{
	struct heard *h = data;
	h->kernels++;
	h->named += !strcmp(k->name, "saxpy") && k->name_hash == hash_bytes("saxpy", 5) &&
		    k->uuid[0] == 0xab;
	h->ns += k->ran->end_ns - k->ran->start_ns;
}

/* text, and as many bytes of it as are words of the record. */
static void put_meta(uint16_t fn, uint64_t id, const char *text, uint32_t bytes)
{
	uint64_t payload[12] = { 0 };
	struct record *r = (struct record *)payload;
	r->aux = bytes;
	r->words = 12;
	r->fn = fn;
	r->arg[0] = id;
	memcpy(&r->arg[1], text, bytes);
	put_chunk(CHUNK_META, payload, sizeof payload);
}

static void put_kernels(struct chunk_header *c, uint32_t *used, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, *used += sizeof(struct gpu_activity)) {
		const struct gpu_activity w = { .start_ns = 100,
			.end_ns = 107,
			.name = 1,
			.kind = GPU_KERNEL,
			.valid = GPU_HAS_DEVICE };
		memcpy((char *)c + CHUNK_PAYLOAD + *used, &w, sizeof w);
	}
}

static void kernels_are_told_of_once_and_by_name(void **state)
{
	const uint32_t room = (DEVICE_BYTES - CHUNK_PAYLOAD) / sizeof(struct gpu_activity);
	struct heard heard = { 0 };
	const struct follow_sink to = { hear, &heard };
	uint64_t put = 0;
	size_t bytes = 0;
	look(&to);
	put_meta(META_STRING, 1, "saxpy", 5);
	put_meta(META_UUID, 0, "\xab and so on.....", 16);
	for (int i = 0; i < 40; i++) {
		struct chunk_header *c = recorder_chunk(&file, CHUNK_DEVICE, DEVICE_BYTES, 0);
		uint32_t used = 0;
		assert_non_null(c);
		put_kernels(c, &used, room / 2);
		look(&to);
		put_kernels(c, &used, room - room / 2);
		put += room;
		c->used = used;
		atomic_store_explicit(&c->state, CHUNK_CLOSED, memory_order_release);
		if (i % 2)
			look(&to);
		if (i == 10)
			bytes = mallinfo2().uordblks;
	}
	look(&to);
	look(&to);
	assert_true(mallinfo2().uordblks <= bytes);
	assert_int_equal(heard.kernels, put);
	assert_int_equal(heard.named, put);
	assert_int_equal(heard.ns, 7 * put);
}

static void put_activities(struct gpu_activity *v, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		v[i].valid = GPU_HAS_DEVICE;
	put_chunk(CHUNK_DEVICE, v, count * (uint32_t)sizeof *v);
}

/* In whatever order they come; what waits is not at work. */
static void what_ran_at_once_is_busy_once(void **state)
{
	struct gpu_activity first[] = { { .start_ns = 1500, .end_ns = 2500, .kind = GPU_MEMCPY },
		{ .start_ns = 1000, .end_ns = 2000, .kind = GPU_KERNEL },
		{ .start_ns = 3000, .end_ns = 4000, .kind = GPU_MEMSET },
		{ .start_ns = 1000, .end_ns = 9000, .kind = GPU_SYNC } };
	struct gpu_activity second[] = { { .start_ns = 3500, .end_ns = 4500, .kind = GPU_KERNEL } };
	look(NULL);
	put_activities(first, 4);
	look(NULL);
	assert_int_equal(self()->from_ns, 1000);
	assert_int_equal(self()->until_ns, 4000);
	assert_int_equal(self()->busy_ns, 2500);
	put_activities(second, 1);
	look(NULL);
	assert_int_equal(self()->until_ns, 4500);
	assert_int_equal(self()->busy_ns, 3000);
}

#define DAMAGED      "follow-damaged.weir"
#define DAMAGED_MOST (2u << 20)

static uint64_t lot;

static uint64_t draw(uint64_t n)
{
	return hash_mix(++lot) % n;
}

/* In the headers of chunks and what follows them, where it tells most. */
static void damage(uint8_t *bytes, size_t size)
{
	for (uint64_t n = 1 + draw(6); n; n--) {
		const size_t granule = draw(size / TRACE_GRAIN) * TRACE_GRAIN;
		const size_t at = granule + (draw(3) ? draw(400) : draw(TRACE_GRAIN));
		const uint64_t kind = draw(4);
		bytes[at] = kind == 0 ? 0xff : kind == 1 ? 0 : (uint8_t)(bytes[at] ^ 1u << draw(8));
	}
}

static void write_over(const uint8_t *bytes, size_t size)
{
	FILE *out = fopen(DAMAGED, "r+");
	out = out ? out : fopen(DAMAGED, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, size, out), size);
	fclose(out);
}

static void follow_damaged(const uint8_t *whole, uint8_t *bytes, size_t size)
{
	struct heard heard = { 0 };
	const struct follow_sink to = { hear, &heard };
	struct follow *f;
	memcpy(bytes, whole, size);
	damage(bytes, size);
	write_over(bytes, size);
	if (follow_open(DAMAGED, &f))
		return;
	for (int look = 0; look < 4; look++) {
		follow_look(f, &to);
		damage(bytes, size);
		write_over(bytes, size);
	}
	follow_close(f);
}

static void put_all_kinds(void)
{
	uint32_t used = 0;
	put_meta(META_STRING, 1, "saxpy", 5);
	put_meta(META_UUID, 0, "\xab and so on.....", 16);
	for (int i = 0; i < 6000; i++)
		put_call(i % 3 ? other : launch, 0);
	drain_step(drain);
	struct chunk_header *c = recorder_chunk(&file, CHUNK_DEVICE, DEVICE_BYTES, 0);
	assert_non_null(c);
	put_kernels(c, &used, 100);
}

static void no_damage_does_harm(void **state)
{
	static uint8_t whole[DAMAGED_MOST], bytes[DAMAGED_MOST];
	put_all_kinds();
	FILE *in = fopen(FILE_NAME, "r");
	assert_non_null(in);
	const size_t size = fread(whole, 1, sizeof whole, in) / TRACE_GRAIN * TRACE_GRAIN;
	fclose(in);
	assert_in_range(size, 6 * TRACE_GRAIN, DAMAGED_MOST);
	for (int round = 0; round < 200; round++)
		follow_damaged(whole, bytes, size);
	unlink(DAMAGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_are_counted_once_drained_or_not, begin, end),
		cmocka_unit_test_setup_teardown(
			what_was_there_before_counts_for_nothing, begin, end),
		cmocka_unit_test_setup_teardown(
			a_look_does_not_cost_more_the_longer_it_lasts, begin, end),
		cmocka_unit_test_setup_teardown(kernels_are_told_of_once_and_by_name, begin, end),
		cmocka_unit_test_setup_teardown(what_ran_at_once_is_busy_once, begin, end),
		cmocka_unit_test_setup_teardown(no_damage_does_harm, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
