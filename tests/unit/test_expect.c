/* Checks of invariants: one that holds costs nothing, one that is broken is heard of. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/expect.h"
#include "maker.h"
#include "memory/memory.h"
#include "join/nested.h"
#include "predict/predict.h"
#include "predict/tables.h"
#include "trace/trace.h"
#include "zoo.h"

#define FILE_NAME "test_expect.weir"

static void what_holds_is_true_and_silent(void **state)
{
	int asked = 0;
	assert_true(expect(asked++ == 0, "it is asked"));
	assert_true(expect_inside(asked++ == 1, "it is asked"));
	assert_true(expect_slow(asked++ == 2, "it is asked in builds for tests alone"));
	assert_int_equal(asked, EXPECT_ABORTS ? 3 : 2);
	assert_int_equal(expect_report().count, 0);
}

/* In a child: what it says of the first that is broken, and how it ends. */
static int child(void (*broken)(void), char *said, size_t room)
{
	int ends[2], status;
	size_t n = 0;
	assert_int_equal(pipe(ends), 0);
	const pid_t pid = fork();
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		signal(SIGILL, SIG_DFL); /* cmocka's would say it */
		signal(SIGABRT, SIG_DFL);
		broken();
		const struct expect_report r = expect_report();
		fprintf(stderr, "%s:%d: %s, %llu", r.file, r.line, r.what,
			(unsigned long long)r.count);
		fflush(stderr);
		_exit(0);
	}
	close(ends[1]);
	for (ssize_t got; n < room - 1 && (got = read(ends[0], said + n, room - 1 - n)) > 0;)
		n += (size_t)got;
	said[n] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void is_said(void (*broken)(void), const char *file, const char *what)
{
	char said[500];
	const int status = child(broken, said, sizeof said);
	if (!strstr(said, file) || !strstr(said, what))
		fail_msg("'%s' does not say '%s' and '%s'", said, file, what);
	if (EXPECT_ABORTS)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	else
		assert_int_equal(status, 0);
}

static void break_two(void)
{
	assert_false(expect(1 + 1 == 3, "two are three"));
	assert_false(expect(1 + 1 == 4, "two are four"));
}

static void what_is_broken_is_said_with_its_place(void **state)
{
	is_said(break_two, "test_expect.c:", "two are three");
	if (!EXPECT_ABORTS)
		is_said(break_two, "test_expect.c:", "two are three, 2");
}

static void break_inside(void)
{
	if (!expect_inside(1 + 1 == 3, "two are three"))
		_exit(7);
}

/* In other people's programs there is nobody to tell. */
static void inside_a_program_nothing_is_said(void **state)
{
	char said[100];
	const int status = child(break_inside, said, sizeof said);
	assert_string_equal(said, "");
	if (EXPECT_ABORTS)
		assert_true(WIFSIGNALED(status));
	else
		assert_int_equal(WEXITSTATUS(status), 7);
}

static void load_a_chunk_too_many(void)
{
	struct maker *m = maker_new(FILE_NAME, maker_schema, TRACE_GRAIN);
	const int a = maker_thread(m, CHUNK_EVENTS, 100, 101, "a");
	maker_put(m, a, (struct record){ .ticks = 2000000, .fn = FN_LAUNCH, .words = RECORD_WORDS },
		NULL);
	maker_finish(m, 3000000, false);
	struct trace *t;
	struct error err;
	struct chunk_buf buf = { 0 };
	if (trace_open(FILE_NAME, &t, &err))
		_exit(1);
	unlink(FILE_NAME);
	if (trace_load(t, t->chunk_count, &buf, &err) != -EINVAL)
		_exit(2);
}

static void free_one_extent_larger_than_all(void)
{
	double share;
	fragmentation_of(
		&(struct free_extents){ .count = 1, .free_bytes = 10, .largest_bytes = 11 },
		&share);
}

/* Asking and learning would look in different places. */
static void learn_where_nobody_asks(void)
{
	const struct predict_sizes sizes = { .launches = 64, .kernels = 4 };
	const size_t bytes = predict_bytes(&sizes);
	struct zoo zoo;
	struct predict p;
	struct predict_sample s = { .order = 1 };
	zoo_init(&zoo, 1, 0);
	if (predict_init(&p, aligned_alloc(64, bytes), bytes, &sizes, &zoo.device))
		_exit(1);
	s.measured_ns = zoo_launch(&zoo, 0, 0, &s.launch);
	p.mask = 0;
	predict_learn(&p, &s);
	for (uint32_t i = 0; i < sizes.launches; i++)
		if (tables_entries(p.tables)[i].key)
			_exit(2);
	_exit(7);
}

static void broken_tables_learn_nothing(void **state)
{
	char said[100];
	const int status = child(learn_where_nobody_asks, said, sizeof said);
	assert_string_equal(said, "");
	if (EXPECT_ABORTS)
		assert_true(WIFSIGNALED(status));
	else
		assert_int_equal(WEXITSTATUS(status), 7);
}

static void broken_invariants_are_reported(void **state)
{
	is_said(load_a_chunk_too_many, "load.c:", "the chunk is one of the trace's");
	is_said(free_one_extent_larger_than_all, "memory_space.c:", "one extent is part of all");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_holds_is_true_and_silent),
		cmocka_unit_test(what_is_broken_is_said_with_its_place),
		cmocka_unit_test(inside_a_program_nothing_is_said),
		cmocka_unit_test(broken_invariants_are_reported),
		cmocka_unit_test(broken_tables_learn_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
