/* A flight recording keeps what was closed last, whoever is slow or dies meanwhile. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/chunk.h"
#include "record/lane.h"

#define FILE_NAME "flight.weir"
#define RING      64u /* granules, each a chunk */
#define THREADS   6u
#define CHUNKS    4096u /* of a thread, at most */

static struct recorder file;
static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

static int begin(void **state)
{
	struct trace_header blank;
	unlink(FILE_NAME);
	lanes_forget();
	shared_forget();
	file = (struct recorder){ .path = FILE_NAME };
	header_blank(&blank, 0);
	blank.mode = TRACE_FLIGHT;
	blank.limit = RING * TRACE_GRAIN;
	assert_int_equal(recorder_open(&file, &blank), 0);
	return 0;
}

static int end(void **state)
{
	return unlink(FILE_NAME);
}

/* A recorded thread: it fills a chunk, takes the next and closes the one before. */
struct thread {
	uint32_t tid, seq; /* seq: of the open chunk, plus 1 */
	struct mapped open;
};

static void go_on(struct thread *t)
{
	const struct chunk_birth birth = { .tid = t->tid, .seq = t->seq };
	const struct mapped m = chunk_new(&file, CHUNK_EVENTS, TRACE_GRAIN, t->tid, &birth);
	assert_non_null(m.chunk);
	if (t->open.chunk) {
		chunk_close(&file, &t->open, 0);
		chunk_leave(&file, &t->open);
	}
	t->open = m;
	t->seq++;
}

static bool held[THREADS][CHUNKS];

static uint32_t look(void)
{
	struct chunk_header c;
	uint32_t n = 0;
	const int fd = open(FILE_NAME, O_RDONLY);
	memset(held, 0, sizeof held);
	for (uint64_t at = TRACE_GRAIN; at < file.header->next; at += TRACE_GRAIN) {
		assert_int_equal(pread(fd, &c, sizeof c, (off_t)at), sizeof c);
		if (c.magic != CHUNK_MAGIC || c.kind != CHUNK_EVENTS || c.tid >= THREADS)
			continue;
		assert_true(c.seq < CHUNKS && !held[c.tid][c.seq]);
		held[c.tid][c.seq] = true;
		n++;
	}
	close(fd);
	return n;
}

/* Each thread's newest chunks, in a row, but for so many that stand alone before it. */
static void check_row(const struct thread *t, uint32_t alone)
{
	uint32_t oldest = t->seq;
	while (oldest && held[t->tid][oldest - 1])
		oldest--;
	assert_true(oldest < t->seq || !t->seq);
	for (uint32_t i = 0; i < oldest; i++)
		alone -= held[t->tid][i];
	assert_true(alone <= CHUNKS);
}

/* The order of closing, of all threads together. */
struct closing {
	uint32_t tid, seq;
};

static void play(uint64_t number)
{
	static struct closing closed[CHUNKS];
	struct thread threads[THREADS] = { 0 };
	uint32_t n = 0;
	seed = number;
	const uint32_t room = RING - (uint32_t)(file.header->next / TRACE_GRAIN);
	const uint32_t count = 2 + below(THREADS - 1), slow = 20 + below(60);
	for (uint32_t i = 0; i < count; i++) {
		threads[i].tid = i;
		go_on(&threads[i]);
	}
	for (uint32_t step = 0; step < 600; step++) {
		/* The first one is slow. */
		struct thread *t = &threads[below(slow) ? 1 + below(count - 1) : 0];
		go_on(t);
		closed[n++] = (struct closing){ t->tid, t->seq - 2 };
	}
	const uint32_t kept = look() - count;
	assert_int_equal(kept + count, room);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(held[closed[i].tid][closed[i].seq], i >= n - kept);
	for (uint32_t i = 0; i < count; i++)
		check_row(&threads[i], 0);
}

static void what_was_closed_last_is_kept(void **state)
{
	for (uint64_t i = 1; i <= 40; i++) {
		end(state);
		begin(state);
		play(i);
	}
}

static void *run(void *thread)
{
	struct thread *t = thread;
	const uint32_t rounds = t->tid ? 2000 : 100;
	for (uint32_t i = 0; i < rounds; i++)
		go_on(t);
	return NULL;
}

static void threads_at_once_keep_their_newest(void **state)
{
	struct thread threads[THREADS] = { 0 };
	pthread_t id[THREADS];
	for (uint32_t i = 0; i < THREADS; i++) {
		threads[i].tid = i;
		assert_int_equal(pthread_create(&id[i], NULL, run, &threads[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	look();
	for (uint32_t i = 0; i < THREADS; i++)
		check_row(&threads[i], 0);
	assert_true(file.header->next <= (RING + 2 * THREADS) * TRACE_GRAIN);
}

/* A process killed at any step leaves its open chunk, and at most one that it had taken out of the
 * queue, to nobody.  The others go on. */
static void killed_processes_stop_nobody(void **state)
{
	struct thread own = { .tid = 1 };
	const uint32_t kills = 60;
	for (uint32_t i = 0; i < kills; i++) {
		int go[2];
		char byte;
		assert_int_equal(pipe(go), 0);
		const pid_t child = fork();
		if (!child) {
			struct thread other = { .tid = THREADS + i };
			for (uint64_t k = 0;; k++) {
				go_on(&other);
				if (k == 5 && write(go[1], "", 1) != 1)
					_exit(1);
			}
		}
		assert_int_equal(read(go[0], &byte, 1), 1);
		for (uint32_t k = below(40); k; k--)
			go_on(&own);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(go[0]);
		close(go[1]);
		for (uint32_t k = 0; k < 20; k++)
			go_on(&own);
	}
	const uint64_t grown = file.header->next;
	for (uint32_t k = 0; k < 3 * RING; k++)
		go_on(&own);
	look();
	check_row(&own, kills);
	assert_int_equal(file.header->next, grown);
	assert_true(grown <= (RING + 2 * kills) * TRACE_GRAIN);
}

/* Whatever others have written where the ends of the queue and the links are. */
static void damaged_links_harm_nobody(void **state)
{
	struct thread own = { .tid = 1 };
	for (uint32_t i = 0; i < 300; i++) {
		const uint64_t word =
			(uint64_t)below(1 << 30) << 32 | below(i % 3 ? 200 : 1u << 31);
		for (uint32_t k = 0; k < 5; k++)
			go_on(&own);
		if (i % 4 == 0)
			file.header->free = word;
		else if (i % 4 == 1)
			file.header->newest_closed = word;
		else if (i % 4 == 2)
			memcpy((char *)own.open.chunk + sizeof *own.open.chunk, &word, sizeof word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_closed_last_is_kept, begin, end),
		cmocka_unit_test_setup_teardown(threads_at_once_keep_their_newest, begin, end),
		cmocka_unit_test_setup_teardown(killed_processes_stop_nobody, begin, end),
		cmocka_unit_test_setup_teardown(damaged_links_harm_nobody, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
