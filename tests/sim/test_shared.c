/*
 * A device that processes share: WEIR_SIM=gpu=FILE.  What is compared are the law's own times,
 * which events tell, at a speed at which the host's delays are small beside them; never how long a
 * test took.
 */
#include "sim_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/*
 * Eight full waves of the device, 1 ms alone: 8 blocks of 256 threads at a time on each of 132 SMs,
 * whose 64 warps make a wave four times as long.
 */
#define MILLISECOND "launch=0,wave=31250ns"
enum { FULL = 132 * 8 * 8, THREADS = 256 };

/* What the processes of a test share beside the device: a barrier, and what they found. */
struct board {
	_Atomic int arrived;
	float ms[8];
	unsigned long long bytes[8];
};

static struct board *board;
static char device_path[64], script_text[256];

static const char *script_of(const char *more)
{
	snprintf(script_text, sizeof script_text, "gpu=%s,time=real,%s", device_path, more);
	return script_text;
}

static int new_device(void **state)
{
	snprintf(device_path, sizeof device_path, "/dev/shm/weir-sim-gpu-%d", (int)getpid());
	unlink(device_path);
	board = mmap(
		NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return board == MAP_FAILED;
}

static int remove_device(void **state)
{
	unlink(device_path);
	return munmap(board, sizeof *board);
}

static void nap(void)
{
	const struct timespec t = { 0, 200000 };

	nanosleep(&t, NULL);
}

/* Waits until so many have come here. */
static void meet(int count)
{
	atomic_fetch_add(&board->arrived, 1);
	while (atomic_load(&board->arrived) < count)
		nap();
}

static pid_t start(const char *script, void (*body)(int), int number)
{
	fflush(NULL);
	const pid_t pid = fork();

	if (pid == 0) {
		setenv("WEIR_SIM", script, 1);
		body(number);
		_exit(0);
	}
	return pid;
}

static void ends_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void *function;

static void context(void)
{
	void *ctx, *module;

	CHILD_EXPECT(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx));
	CHILD_EXPECT(!cuModuleLoadData(&module, (void *)test_ptx));
	CHILD_EXPECT(!cuModuleGetFunction(&function, module, "empty"));
}

static void *event(void *stream)
{
	void *e;

	CHILD_EXPECT(!cuEventCreate(&e, 0) && !cuEventRecord(e, stream));
	return e;
}

static void launch(unsigned blocks, void *stream, int count)
{
	while (count--)
		CHILD_EXPECT(!test_launch(function, blocks, THREADS, stream));
}

static float between(void *a, void *b)
{
	float ms;

	CHILD_EXPECT(!cuEventSynchronize(b) && !cuEventElapsedTime_v2(&ms, a, b));
	return ms;
}

static bool near(double x, double wanted, double part)
{
	if (x >= wanted * (1 - part) && x <= wanted * (1 + part))
		return true;
	fprintf(stderr, "%g is not within %g of %g\n", x, part, wanted);
	return false;
}

/* An event at the end of a kernel, so that the device has work when the next ones come. */
static void *busy_event(void *stream)
{
	launch(FULL, stream, 1);
	return event(stream);
}

static void alone(int number)
{
	context();
	void *a = busy_event(NULL);
	launch(FULL, NULL, 20);
	void *b = event(NULL);
	CHILD_EXPECT(cuEventQuery(b) == CUDA_ERROR_NOT_READY);
	CHILD_EXPECT(cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY);
	CHILD_EXPECT(near(between(a, b), 20, .001));
	CHILD_EXPECT(!cuStreamQuery(NULL) && !cuEventQuery(b));
}

static void alone_a_kernel_takes_what_the_script_says(void **state)
{
	ends_well(start(script_of(MILLISECOND ",speed=.5"), alone, 0));
	ends_well(start(script_of(MILLISECOND ",speed=.5,sharing=mps"), alone, 0));
}

static void two_hundred(int number)
{
	context();
	meet(2);
	void *a = busy_event(NULL);
	launch(FULL, NULL, 200);
	board->ms[number] = between(a, event(NULL));
}

static void two_processes_take_twice_as_long_in_slices(void **state)
{
	const char *script = script_of(MILLISECOND ",speed=.5");
	const pid_t a = start(script, two_hundred, 0), b = start(script, two_hundred, 1);

	ends_well(a);
	ends_well(b);
	/* 200 slices of 2 ms, and 100 us to switch between them. */
	const float last = board->ms[0] > board->ms[1] ? board->ms[0] : board->ms[1];
	assert_true(near(last, 400 * (1 + .1 / 2), .04));
}

static void four_streams(int number)
{
	void *s[4], *a[4], *b[4];
	float longest = 0;

	context();
	for (int i = 0; i < 4; i++)
		CHILD_EXPECT(!cuStreamCreate(&s[i], 1));
	for (int i = 0; i < 4; i++)
		a[i] = event(s[i]);
	for (int k = 0; k < 50; k++)
		for (int i = 0; i < 4; i++)
			launch(FULL, s[i], 1);
	for (int i = 0; i < 4; i++)
		b[i] = event(s[i]);
	for (int i = 0; i < 4; i++) {
		const float ms = between(a[0], b[i]);

		longest = ms > longest ? ms : longest;
	}
	CHILD_EXPECT(near(longest, 200, .02));
}

static void four_streams_of_a_process_share_it_too(void **state)
{
	ends_well(start(script_of(MILLISECOND ",speed=.5"), four_streams, 0));
}

static void both_in_mps(int number)
{
	context();
	meet(2);
	void *a = busy_event(NULL);
	/* Each fills half of the places on the SMs and leaves half of the capacity to others. */
	launch(66, NULL, 100);
	board->ms[number] = between(a, event(NULL));
}

static void with_mps_kernels_of_two_processes_run_beside_each_other(void **state)
{
	/* 66 blocks on 132 SMs: the two are on different ones, and neither waits for the other. */
	const char *script = script_of("launch=0,wave=1ms,sharing=mps,speed=.5");
	const pid_t a = start(script, both_in_mps, 0), b = start(script, both_in_mps, 1);

	ends_well(a);
	ends_well(b);
	assert_true(board->ms[0] < 130 && board->ms[1] < 130);
}

/* What 900 MiB leave of 1 GiB, apart from a variable of each module. */
static bool about_124(size_t bytes)
{
	return bytes <= 124u << 20 && bytes >= (124u << 20) - 4096;
}

static void takes_900(int number)
{
	unsigned long long address;
	size_t free_bytes, total;

	context();
	CHILD_EXPECT(!cuMemAlloc_v2(&address, 900u << 20));
	meet(1);
	meet(3);
	CHILD_EXPECT(!cuMemGetInfo_v2(&free_bytes, &total));
	CHILD_EXPECT(total == 1u << 30 && about_124(free_bytes));
	CHILD_EXPECT(!cuMemFree_v2(address));
	meet(4);
}

static void wants_900(int number)
{
	unsigned long long address;
	size_t free_bytes, total;

	context();
	while (atomic_load(&board->arrived) < 1)
		nap();
	CHILD_EXPECT(!cuMemGetInfo_v2(&free_bytes, &total));
	CHILD_EXPECT(total == 1u << 30 && about_124(free_bytes));
	CHILD_EXPECT(cuMemAlloc_v2(&address, 900u << 20) == CUDA_ERROR_OUT_OF_MEMORY);
	meet(3);
	while (atomic_load(&board->arrived) < 4)
		nap();
	CHILD_EXPECT(!cuMemAlloc_v2(&address, 900u << 20));
}

static void memory_is_there_once_for_all(void **state)
{
	const char *script = script_of("memory=1G");
	const pid_t a = start(script, takes_900, 0), b = start(script, wants_900, 1);

	ends_well(b);
	ends_well(a);
}

/* Works until it is killed, at whatever moment that is. */
static void never_ends(int number)
{
	unsigned long long address;
	void *stream;

	context();
	CHILD_EXPECT(!cuStreamCreate(&stream, 1));
	for (;;) {
		CHILD_EXPECT(!cuMemAlloc_v2(&address, 700u << 20));
		meet(0);
		for (int i = 0; i < 20; i++)
			launch(FULL, i % 2 ? stream : NULL, 5);
		CHILD_EXPECT(!cuStreamSynchronize(stream));
		CHILD_EXPECT(!cuMemFree_v2(address));
	}
}

static void lives_on(int number)
{
	context();
	while (atomic_load(&board->arrived) < number) {
		launch(FULL, NULL, 20);
		CHILD_EXPECT(!cuCtxSynchronize());
	}
}

static void has_it_alone(int number)
{
	unsigned long long address;

	context();
	CHILD_EXPECT(!cuMemAlloc_v2(&address, 1000u << 20));
	alone(0);
}

static void wait_ms(long ms)
{
	const struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

static void killed_processes_leave_nothing_on_it(const char *settings, int kills)
{
	const char *script = script_of(settings);
	const pid_t other = start(script, lives_on, kills);

	srand(1);
	for (int i = 0; i < kills; i++) {
		const int before = atomic_load(&board->arrived);
		const pid_t pid = start(script, never_ends, 1);

		while (atomic_load(&board->arrived) == before)
			nap();
		wait_ms(rand() % 8);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	ends_well(other);
	ends_well(start(script, has_it_alone, 0));
}

static void a_killed_process_leaves_nothing_in_slices(void **state)
{
	killed_processes_leave_nothing_on_it(MILLISECOND ",memory=1G", 60);
}

static void a_killed_process_leaves_nothing_with_mps(void **state)
{
	killed_processes_leave_nothing_on_it(MILLISECOND ",memory=1G,sharing=mps", 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			alone_a_kernel_takes_what_the_script_says, new_device, remove_device),
		cmocka_unit_test_setup_teardown(
			two_processes_take_twice_as_long_in_slices, new_device, remove_device),
		cmocka_unit_test_setup_teardown(
			four_streams_of_a_process_share_it_too, new_device, remove_device),
		cmocka_unit_test_setup_teardown(
			with_mps_kernels_of_two_processes_run_beside_each_other, new_device,
			remove_device),
		cmocka_unit_test_setup_teardown(
			memory_is_there_once_for_all, new_device, remove_device),
		cmocka_unit_test_setup_teardown(
			a_killed_process_leaves_nothing_in_slices, new_device, remove_device),
		cmocka_unit_test_setup_teardown(
			a_killed_process_leaves_nothing_with_mps, new_device, remove_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
