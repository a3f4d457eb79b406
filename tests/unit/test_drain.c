/* Writing while somebody drains: room that was drained is used again, by whoever needs some. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "record/lane.h"
#include "record/writer.h"
#include "trace/activity.h"
#include "trace/drain.h"
#include "trace/trace.h"

#define FILE_NAME "drain.weir"
#define WORDS     512u
#define MIB       (1u << 20)

static struct recorder file;
static struct drain *drain;

static int begin(void **state)
{
	struct trace_header blank;
	unlink(FILE_NAME);
	lanes_forget();
	shared_forget(); /* each test is a process with a file of its own */
	file = (struct recorder){ .path = FILE_NAME };
	header_blank(&blank, 0);
	assert_int_equal(recorder_open(&file, &blank), 0);
	assert_int_equal(drain_open(FILE_NAME, &drain), 0);
	return 0;
}

static int end(void **state)
{
	drain_close(drain);
	return unlink(FILE_NAME);
}

static void finish(struct writer *w, struct record *r, uint64_t value)
{
	r->ticks = value;
	for (uint32_t i = 0; i < WORDS - RECORD_WORDS; i++)
		r->arg[i] = value;
	r->words = WORDS;
	record_commit(r, 1);
	writer_unmark(w);
}

static void put(struct writer *w, uint64_t value)
{
	struct record *r = writer_reserve(&file, w, WORDS);
	assert_non_null(r);
	finish(w, r, value);
}

static void put_many(struct writer *w, uint64_t *next, size_t bytes)
{
	for (size_t n = 0; n < bytes; n += WORDS * 8)
		put(w, ++*next);
}

/* Each of the values once, and whole. */
static void check_values(uint64_t values)
{
	struct trace *t;
	struct chunk_buf buf = { 0 };
	const struct record *r;
	uint8_t *seen = calloc(values + 1, 1);
	uint64_t found = 0, damaged = 0;
	assert_non_null(seen);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_int_equal(t->damage_count, 0);
	for (size_t at = 0; trace_next(t, CHUNK_EVENTS, &at, &buf, &damaged) == 1;) {
		for (struct records it = records_of(&buf); (r = records_next(&it)); found++) {
			assert_int_equal(r->words, WORDS);
			assert_true(r->ticks <= values && !seen[r->ticks]++);
			assert_int_equal(r->arg[WORDS - RECORD_WORDS - 1], r->ticks);
		}
	}
	assert_int_equal(damaged, 0);
	assert_int_equal(found, values);
	chunk_buf_fini(&buf);
	trace_close(t);
	free(seen);
}

/* Bursts of more than a thread keeps, which nobody drains before they are over. */
static void a_file_does_not_grow_beyond_the_largest_burst(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0, after_two = 0;
	for (int burst = 0; burst < ROUNDS(20, 6); burst++) {
		put_many(&w, &next, 8 * MIB);
		assert_true(drain_step(drain));
		if (burst == 1)
			after_two = file.header->next;
	}
	/* Packed chunks take room as well, but these records are all alike. */
	assert_in_range(file.header->next, after_two, after_two + 2 * MIB);
	assert_in_range(after_two, 8 * MIB, 18 * MIB);
	check_values(next);
}

static struct served_request *reserve_request(struct writer **ret_writer)
{
	*ret_writer = writer_of_requests(&file);
	assert_non_null(*ret_writer);
	struct served_request *q =
		writer_reserve(&file, *ret_writer, sizeof(struct served_request) / 8);
	assert_non_null(q);
	return q;
}

static void finish_request(struct writer *w, struct served_request *q, uint64_t id)
{
	q->id = id;
	store_release(shared(&q->outcome), REQUEST_ANSWERED);
	writer_unmark(w);
}

#define REQUESTS_MOST (1u << 20)

/* Each once, in a file that is still written to or was packed. */
static uint64_t count_requests(void)
{
	struct trace *t;
	struct chunk_buf buf = { 0 };
	struct served_request q;
	uint8_t *seen = calloc(REQUESTS_MOST, 1);
	uint64_t found = 0;
	assert_non_null(seen);
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	for (struct cursor at = { .t = t, .buf = &buf }; trace_next_request(&at, &q) > 0; found++)
		assert_true(q.id < REQUESTS_MOST && !seen[q.id]++);
	chunk_buf_fini(&buf);
	trace_close(t);
	free(seen);
	return found;
}

static void requests_of_a_server_are_drained(void **state)
{
	struct writer *w, *first;
	uint64_t id = 0, after_two = 0;
	struct served_request *open = reserve_request(&first); /* still being written */
	for (int burst = 0; burst < ROUNDS(10, 4); burst++) {
		for (size_t i = 0; i < 8 * MIB / sizeof *open; i++) {
			struct served_request *q = reserve_request(&w);
			finish_request(w, q, ++id);
		}
		assert_true(drain_step(drain));
		if (burst == 1)
			after_two = file.header->next;
	}
	assert_in_range(file.header->next, after_two, after_two + 3 * MIB);
	assert_int_equal(count_requests(), id);
	finish_request(first, open, 0);
	drain_step(drain);
	assert_int_equal(count_requests(), id + 1);
	assert_int_equal(file.header->lost_ranges, 0);
}

/* A thread takes what others of another kind have left. */
static void drained_chunks_are_anybody_s(void **state)
{
	struct writer calls = { .kind = CHUNK_EVENTS };
	struct writer ranges = { .kind = CHUNK_RANGES };
	uint64_t next = 0;
	put_many(&calls, &next, 8 * MIB);
	assert_true(drain_step(drain));
	const uint64_t before = file.header->next;
	for (uint32_t i = 0; i < 4 * MIB / sizeof(struct range); i++) {
		struct range *g = writer_reserve(&file, &ranges, sizeof *g / 8);
		assert_non_null(g);
		assert_int_equal(g->kind, 0); /* wiped */
		assert_int_equal(g->ticks, 0);
		*g = (struct range){ .ticks = i, .kind = RANGE_NVTX };
		writer_unmark(&ranges);
	}
	assert_int_equal(file.header->next, before);
	check_values(next);
}

static void *write_and_end(void *data)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	put_many(&w, data, 3 * TRACE_GRAIN);
	return NULL;
}

/*
 * The chunks of a thread that ended were drained before anybody saw that it had.  The living look
 * at a few places each time they need room, so that it takes them a while to come round.
 */
static void chunks_of_dead_threads_come_back(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0, most = 0;
	enum { THREADS = ROUNDS(1500, 400) };
	for (int round = 0; round < THREADS; round++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, write_and_end, &next), 0);
		pthread_join(thread, NULL);
		drain_step(drain);
		if (round == THREADS / 2 - 1)
			most = file.header->next;
	}
	put(&w, ++next);
	/* They have written 295 MB, or 79. */
	assert_in_range(file.header->next, most, most + 20 * MIB);
	check_values(next);
}

/* As a handler would that interrupts a record and goes through a chunk. */
static void a_chunk_waits_for_the_record_that_was_interrupted(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 1;
	struct record *r = writer_reserve(&file, &w, WORDS);
	put_many(&w, &next, 2 * TRACE_GRAIN);
	const struct chunk_header *c = w.lane->calls.kept[0].chunk,
				  *later = w.lane->calls.kept[1].chunk;
	drain_step(drain);
	assert_int_equal(c->state, CHUNK_CLOSED);
	assert_int_equal(later->state, CHUNK_FREE);
	finish(&w, r, 1);
	put_many(&w, &next, TRACE_GRAIN);
	drain_step(drain);
	assert_int_equal(c->state, CHUNK_FREE);
	check_values(next);
}

/* … and through more than a thread keeps: it comes back to memory that is there. */
static void a_chunk_stays_mapped_for_the_record_that_was_interrupted(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 1;
	struct record *r = writer_reserve(&file, &w, WORDS);
	for (int i = 0; i < 3; i++) {
		put_many(&w, &next, 4 * MIB);
		drain_step(drain);
	}
	finish(&w, r, 1);
	check_values(next);
}

/* A range that was pushed after its chunk was closed: it may be popped at any time. */
static void a_chunk_waits_for_the_range_that_is_open(void **state)
{
	struct writer w = { .kind = CHUNK_RANGES };
	struct range *slots[3];
	for (int i = 0; i < 3; i++)
		slots[i] = writer_reserve(&file, &w, sizeof(struct range) / 8);
	const struct chunk_header *c = w.chunk;
	for (uint32_t i = 0; i < 3 * TRACE_GRAIN / sizeof(struct range); i++) {
		struct range *g = writer_reserve(&file, &w, sizeof *g / 8);
		*g = (struct range){ .ticks = i, .kind = RANGE_NVTX };
		writer_unmark(&w);
		drain_step(drain);
	}
	assert_int_equal(c->state, CHUNK_CLOSED);
	for (int i = 0; i < 3; i++)
		*slots[i] = (struct range){ .kind = RANGE_NVTX, .valid = i == 1 ? RANGE_OPEN : 0 };
	assert_true(chunk_unfinished(c, c->bytes));
	slots[1]->valid = 0;
	assert_false(chunk_unfinished(c, c->bytes));
}

/* Chunks that were there when the file was opened are found, wherever they have gone since. */
static void chunks_that_are_drained_after_the_file_was_opened_are_found(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0, damaged = 0, found = 0, most = 0;
	struct chunk_buf buf = { 0 };
	const struct record *r;
	struct trace *t;
	for (int i = 0; i < 3; i++) {
		put_many(&w, &next, 4 * MIB);
		drain_step(drain);
	}
	put_many(&w, &next, MIB);
	const uint64_t known = next;
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	size_t at = 0;
	for (int i = 0; i < 40; i++) { /* more than a container, too */
		put_many(&w, &next, 2 * MIB);
		drain_step(drain);
		if (i == 20)
			assert_int_equal(trace_next(t, CHUNK_EVENTS, &at, &buf, &damaged), 1);
	}
	uint8_t *seen = calloc(next + 1, 1);
	assert_non_null(seen);
	for (at = 0; trace_next(t, CHUNK_EVENTS, &at, &buf, &damaged) == 1;) {
		for (struct records it = records_of(&buf); (r = records_next(&it));) {
			assert_true(r->ticks <= next && !seen[r->ticks]++);
			found += r->ticks <= known;
			most = r->ticks > most ? r->ticks : most;
		}
	}
	assert_int_equal(damaged, 0);
	assert_int_equal(found, known);
	assert_in_range(most, known, known + 4 * TRACE_GRAIN / (WORDS * 8));
	chunk_buf_fini(&buf);
	trace_close(t);
	free(seen);
}

static void let_grow_to(uint64_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* As a thread does that finds none: it asks again after a while. */
static bool finds_room(struct writer *w, uint64_t *next)
{
	w->skip = 0;
	struct record *r = writer_reserve(&file, w, WORDS);
	if (r)
		finish(w, r, ++*next);
	return r;
}

static void fill(struct writer *w, uint64_t *next)
{
	while (finds_room(w, next))
		;
}

/* Draining makes room for what comes, so the room that it needs itself is there. */
static void a_full_disk_is_drained(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0;
	drain_step(drain);
	let_grow_to(file.header->next + MIB);
	fill(&w, &next);
	assert_true(drain_step(drain));
	assert_true(finds_room(&w, &next));
	let_grow_to(RLIM_INFINITY);
	check_values(next);
}

/* Records that can't be packed tighter use the reserve up; nobody closes a chunk when there is
 * room again, and yet it goes on. */
static void draining_goes_on_when_there_is_room_again(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0, rounds = 0;
	drain_step(drain);
	let_grow_to(file.header->next + MIB);
	do {
		while (finds_room(&w, &next)) {
			struct record *r = (struct record *)(w.pos - WORDS * 8);
			for (uint32_t i = 0; i < WORDS - RECORD_WORDS - 1; i++)
				r->arg[i] = hash_mix(next * WORDS + i);
		}
	} while (drain_step(drain) && ++rounds < 100);
	assert_in_range(rounds, 1, 99);
	let_grow_to(RLIM_INFINITY);
	assert_true(drain_step(drain));
	check_values(next);
}

/* Room that was taken and never got, or by a process that died at that moment. */
static void a_hole_does_not_end_the_draining(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0;
	put_many(&w, &next, MIB);
	assert_true(drain_step(drain));
	file.header->next += 3 * TRACE_GRAIN;
	put_many(&w, &next, 8 * MIB);
	assert_true(drain_step(drain));
	const uint64_t before = file.header->next;
	put_many(&w, &next, 6 * MIB);
	assert_int_equal(file.header->next, before);
	check_values(next);
}

/* The recording as it is now says so, however large its file is. */
static void expect_cut(void)
{
	struct trace *t;
	assert_true(drain_is_cut(drain));
	file.header->stopped = STOP_CUT; /* as weir record does */
	assert_int_equal(trace_open(FILE_NAME, &t, NULL), 0);
	assert_true(t->damage_count);
	assert_non_null(strstr(t->damage.v[0].what, "the file was cut off"));
	trace_close(t);
}

static uint64_t file_size(void)
{
	struct stat st;
	assert_int_equal(stat(FILE_NAME, &st), 0);
	return (uint64_t)st.st_size;
}

/* A file that somebody makes smaller is not filled up again with nothing. */
static void a_file_that_was_cut_off_stays_so(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0;
	put_many(&w, &next, 8 * MIB);
	assert_true(drain_step(drain));
	assert_false(drain_is_cut(drain));
	put_many(&w, &next, 2 * MIB);
	assert_int_equal(truncate(FILE_NAME, 3 * TRACE_GRAIN), 0);
	assert_false(drain_step(drain));
	assert_int_equal(file_size(), 3 * TRACE_GRAIN);
	expect_cut();
	assert_false(drain_step(drain));
	assert_int_equal(file_size(), 3 * TRACE_GRAIN);
}

/* It grew since the last look, and is now exactly as long as it was then. */
static void a_file_that_grew_and_was_cut_off_between_two_looks_is_known(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0;
	put_many(&w, &next, MIB);
	assert_true(drain_step(drain));
	assert_false(drain_is_cut(drain));
	const uint64_t before = file_size();
	assert_int_equal(before % TRACE_GRAIN, 0);
	put_many(&w, &next, 16 * MIB);
	assert_true(file_size() > before);
	assert_int_equal(truncate(FILE_NAME, (long)before), 0);
	assert_false(drain_step(drain));
	assert_true(drain_is_cut(drain));
	assert_int_equal(file_size(), before);
}

/* A thread that takes room makes it larger than it was. */
static void a_file_that_was_cut_off_and_grew_again_is_known(void **state)
{
	struct writer w = { .kind = CHUNK_EVENTS };
	uint64_t next = 0;
	put_many(&w, &next, MIB);
	assert_true(drain_step(drain));
	const uint64_t before = file_size();
	assert_int_equal(truncate(FILE_NAME, 3 * TRACE_GRAIN), 0);
	assert_non_null(recorder_chunk(&file, CHUNK_META, MIB, 1));
	assert_true(file_size() > before);
	assert_false(drain_step(drain));
	expect_cut();
}

static void a_file_that_is_gone_is_an_error(void **state)
{
	struct drain *none = NULL;
	assert_int_equal(drain_open("absent.weir", &none), -ENOENT);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_gone_is_an_error),
		cmocka_unit_test_setup_teardown(
			a_file_does_not_grow_beyond_the_largest_burst, begin, end),
		cmocka_unit_test_setup_teardown(requests_of_a_server_are_drained, begin, end),
		cmocka_unit_test_setup_teardown(drained_chunks_are_anybody_s, begin, end),
		cmocka_unit_test_setup_teardown(chunks_of_dead_threads_come_back, begin, end),
		cmocka_unit_test_setup_teardown(
			a_chunk_waits_for_the_record_that_was_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(
			a_chunk_stays_mapped_for_the_record_that_was_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(
			a_chunk_waits_for_the_range_that_is_open, begin, end),
		cmocka_unit_test_setup_teardown(
			chunks_that_are_drained_after_the_file_was_opened_are_found, begin, end),
		cmocka_unit_test_setup_teardown(a_full_disk_is_drained, begin, end),
		cmocka_unit_test_setup_teardown(
			draining_goes_on_when_there_is_room_again, begin, end),
		cmocka_unit_test_setup_teardown(a_hole_does_not_end_the_draining, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_was_cut_off_stays_so, begin, end),
		cmocka_unit_test_setup_teardown(
			a_file_that_grew_and_was_cut_off_between_two_looks_is_known, begin, end),
		cmocka_unit_test_setup_teardown(
			a_file_that_was_cut_off_and_grew_again_is_known, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
