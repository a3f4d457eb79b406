/*
 * A device that processes share: WEIR_SIM=gpu=FILE.  The tests compare the law's own times, which
 * events tell, at a speed at which the host's delays are small beside them; never how long a test
 * took.
 */
#include "sim_test.h"
#include "driver/observe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

/*
 * Eight full waves of the device, 1 ms alone: 8 blocks of 256 threads at a time on each of 132 SMs,
 * whose 64 warps make a wave four times as long.
 */
#define MILLISECOND "launch=0,wave=31250ns"
enum { FULL = 132 * 8 * 8, THREADS = 256 };

/* The processes of a test share this beside the device: a barrier, and what they found. */
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
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(120); /* who waits for one that has failed */
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

/*
 * An event behind so many kernels, which keep the device busy until the next ones have come however
 * slow the host is.
 */
static void *busy_event(void *stream, int kernels)
{
	launch(FULL, stream, kernels);
	return event(stream);
}

static void alone(int number)
{
	context();
	void *a = busy_event(NULL, 50);
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
	void *a = busy_event(NULL, 50);
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
	void *s[4], *a, *b[4];
	float longest = 0;

	context();
	for (int i = 0; i < 4; i++)
		CHILD_EXPECT(!cuStreamCreate(&s[i], 1));
	a = busy_event(s[0], 20);
	for (int i = 1; i < 4; i++)
		CHILD_EXPECT(!cuStreamWaitEvent(s[i], a, 0));
	for (int k = 0; k < 50; k++)
		for (int i = 0; i < 4; i++)
			launch(FULL, s[i], 1);
	for (int i = 0; i < 4; i++)
		b[i] = event(s[i]);
	for (int i = 0; i < 4; i++) {
		const float ms = between(a, b[i]);

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
	launch(66, NULL, 1);
	void *a = event(NULL);
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

/* The rest of 1 GiB beside 900 MiB, apart from a variable of each module. */
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
	CHILD_EXPECT(total == 1216u << 20 && about_124(free_bytes));
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
	CHILD_EXPECT(total == 1216u << 20 && about_124(free_bytes));
	CHILD_EXPECT(cuMemAlloc_v2(&address, 900u << 20) == CUDA_ERROR_OUT_OF_MEMORY);
	meet(3);
	while (atomic_load(&board->arrived) < 4)
		nap();
	CHILD_EXPECT(!cuMemAlloc_v2(&address, 900u << 20));
}

static void memory_is_there_once_for_all(void **state)
{
	const char *script = script_of("memory=1216M"); /* with two contexts */
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

/* Has the device's lock most of the time. */
static void never_lets_go(int number)
{
	size_t free_bytes, total;

	context();
	launch(FULL, NULL, 100);
	meet(0);
	for (;;)
		CHILD_EXPECT(!cuMemGetInfo_v2(&free_bytes, &total));
}

/* How often the device began anew after somebody had died while changing it. */
static uint32_t times_begun_anew(void)
{
	uint32_t epoch = 0;
	const int fd = open(device_path, O_RDONLY);

	assert_true(fd >= 0);
	if (pread(fd, &epoch, sizeof epoch, 16) != sizeof epoch)
		epoch = 0; /* it is being made */
	close(fd);
	return epoch;
}

static void who_dies_with_the_lock_stops_nobody(void **state)
{
	const char *script = script_of(MILLISECOND);
	const pid_t other = start(script, lives_on, INT_MAX),
		    third = start(script, lives_on, INT_MAX);
	int kills = 0;

	while (access(device_path, F_OK))
		nap();

	while (times_begun_anew() < 5 && kills++ < 1000) {
		const int before = atomic_load(&board->arrived);
		const pid_t pid = start(script, never_lets_go, 1);

		while (atomic_load(&board->arrived) == before)
			nap();
		nap();
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	assert_true(kills < 1000);
	atomic_store(&board->arrived, INT_MAX);
	ends_well(other);
	ends_well(third);
	ends_well(start(script, alone, 0));
}

static void a_killed_process_leaves_nothing_in_slices(void **state)
{
	killed_processes_leave_nothing_on_it(MILLISECOND ",memory=1200M", 60);
}

static void a_killed_process_leaves_nothing_with_mps(void **state)
{
	killed_processes_leave_nothing_on_it(MILLISECOND ",memory=1200M,sharing=mps", 60);
}

/* A stream on so many SMs; the green context behind it in *ret_green. */
static void *green_stream(unsigned sms, void **ret_green)
{
	struct cu_dev_resource all, part, rest;
	void *desc, *stream;
	unsigned groups = 1;

	CHILD_EXPECT(!cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHILD_EXPECT(all.u.sms == 132);
	CHILD_EXPECT(!cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, sms));
	CHILD_EXPECT(groups == 1 && part.u.sms == sms && rest.u.sms == 132 - sms);
	CHILD_EXPECT(!cuDevResourceGenerateDesc(&desc, &part, 1));
	CHILD_EXPECT(cuGreenCtxCreate(ret_green, desc, 0, 0) == CUDA_ERROR_INVALID_VALUE);
	CHILD_EXPECT(!cuGreenCtxCreate(ret_green, desc, 0, 1));
	CHILD_EXPECT(cuGreenCtxStreamCreate(&stream, *ret_green, 0, 0) == CUDA_ERROR_INVALID_VALUE);
	CHILD_EXPECT(!cuGreenCtxStreamCreate(&stream, *ret_green, 1, 0));
	return stream;
}

/* The time of a kernel of one block of 1024 threads a SM on a stream; alone twice a wave's time. */
static float one_block_a_sm(void *stream)
{
	void *a = busy_event(stream, 3);
	CHILD_EXPECT(!test_launch(function, 132, 1024, stream));
	return between(a, event(stream));
}

static _Atomic int called;

static void call(void *arg)
{
	CHILD_EXPECT(atomic_fetch_add(&called, 1) == (int)(intptr_t)arg);
}

/* Work behind a host function, and behind work of another device, comes to the device when that is
 * done. */
static void two_devices(int number)
{
	void *other, *there, *here, *graph, *exec;
	unsigned long long device;
	char text[] = "copied", back[sizeof text] = "";

	context();
	CHILD_EXPECT(!cuStreamCreate(&here, 1) && !cuMemAlloc_v2(&device, sizeof text));
	CHILD_EXPECT(!cuLaunchHostFunc(here, (void *)call, (void *)0));
	void *a = busy_event(here, 2);
	CHILD_EXPECT(!cuDevicePrimaryCtxRetain(&other, 1) && !cuCtxPushCurrent_v2(other));
	CHILD_EXPECT(!cuStreamCreate(&there, 1) && !cuStreamWaitEvent(there, a, 0));
	CHILD_EXPECT(!cuLaunchHostFunc(there, (void *)call, (void *)1));
	void *b = event(there);
	CHILD_EXPECT(!cuCtxPopCurrent_v2(&other));
	CHILD_EXPECT(!cuStreamWaitEvent(here, b, 0));
	launch(FULL, here, 2);
	CHILD_EXPECT(!cuStreamBeginCapture_v2(here, 0));
	CHILD_EXPECT(!cuMemcpyHtoDAsync_v2(device, text, sizeof text, here));
	launch(FULL, here, 2);
	CHILD_EXPECT(!cuLaunchHostFunc(here, (void *)call, (void *)2));
	CHILD_EXPECT(!cuMemcpyDtoHAsync_v2(back, device, sizeof text, here));
	CHILD_EXPECT(!cuStreamEndCapture(here, &graph));
	CHILD_EXPECT(!cuGraphInstantiateWithFlags(&exec, graph, 0) && !cuGraphLaunch(exec, here));
	void *c = event(here);
	CHILD_EXPECT(between(a, c) >= 4 && atomic_load(&called) == 3 && !strcmp(back, text));
}

static void host_functions_and_other_devices_keep_the_order(void **state)
{
	ends_well(start(script_of(MILLISECOND ",devices=2"), two_devices, 0));
}

/* The records that the double of CUPTI gets. */
static struct observed told[64];
static int told_count;

static void keep(const struct observed *what)
{
	if (what->kind == OBSERVED_KERNEL && told_count < 64)
		told[told_count++] = *what;
}

static void observed(int number)
{
	float sum = 0;

	context();
	weir_sim_observe(keep);
	void *a = busy_event(NULL, 50);
	launch(FULL, NULL, 10);
	const float ms = between(a, event(NULL));
	CHILD_EXPECT(told_count == 60);
	for (int i = 50; i < 60; i++) {
		sum += (float)(told[i].end_ns - told[i].start_ns) / 1e6f;
		CHILD_EXPECT(told[i].start_ns >= told[i - 1].end_ns);
	}
	CHILD_EXPECT(near(ms, number ? 40 : 10, .001) && near(sum, ms, .001));
	/* On the host's clock the device is as slow as it is. */
	const double real = (double)(told[59].start_ns - told[50].start_ns) / 1e6;
	CHILD_EXPECT(near(real, 36, .001));
}

static void records_and_events_tell_the_same_times(void **state)
{
	ends_well(start(script_of(MILLISECOND ",speed=.25"), observed, 0));
	ends_well(start(script_of(MILLISECOND ",speed=.25,clock=host"), observed, 1));
}

static void green(int number)
{
	void *g, *ctx, *back, *stream, *e;
	unsigned long long id;

	context();
	CHILD_EXPECT(near(one_block_a_sm(NULL), 2, .001));
	/* A block too many is a second wave, however few the missing SMs are. */
	CHILD_EXPECT(near(one_block_a_sm(green_stream(72, &g)), 4, .05));
	stream = green_stream(128, &g);
	CHILD_EXPECT(near(one_block_a_sm(stream), 4, .05));
	CHILD_EXPECT(!cuStreamGetGreenCtx(stream, &back) && back == g);
	CHILD_EXPECT(!cuStreamGetGreenCtx(NULL, &back) && back == NULL);
	CHILD_EXPECT(!cuGreenCtxGetId(g, &id) && id == 2);
	/* Made current, it is where what is launched without a word runs, too. */
	CHILD_EXPECT(!cuCtxFromGreenCtx(&ctx, g) && !cuCtxPushCurrent_v2(ctx));
	CHILD_EXPECT(!cuCtxGetCurrent(&back) && back == ctx);
	CHILD_EXPECT(near(one_block_a_sm(NULL), 4, .05));
	CHILD_EXPECT(!cuEventCreate(&e, 0) && !cuGreenCtxRecordEvent(g, e));
	CHILD_EXPECT(!cuGreenCtxWaitEvent(g, e) && !cuEventSynchronize(e));
	CHILD_EXPECT(!cuCtxPopCurrent_v2(&back) && back == ctx);
	CHILD_EXPECT(near(one_block_a_sm(NULL), 2, .001));
	CHILD_EXPECT(!cuGreenCtxDestroy(g));
	CHILD_EXPECT(test_launch(function, 1, 32, stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHILD_EXPECT(cuGreenCtxDestroy(g) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHILD_EXPECT(cuCtxSetCurrent(ctx) == CUDA_ERROR_INVALID_CONTEXT);
}

static void a_green_context_costs_what_waves_say(void **state)
{
	ends_well(start(script_of("launch=0,wave=1ms"), green, 0));
}

static void splits(int number)
{
	struct cu_dev_resource all, part[20], rest, half;
	unsigned groups = 20;
	void *desc;

	context();
	CHILD_EXPECT(!cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHILD_EXPECT(cuDeviceGetDevResource(0, &all, 7) == CUDA_ERROR_INVALID_RESOURCE_TYPE);
	CHILD_EXPECT(!cuDevSmResourceSplitByCount(NULL, &groups, &all, NULL, 0, 1));
	CHILD_EXPECT(groups == 16);
	groups = 20;
	CHILD_EXPECT(!cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, 33));
	CHILD_EXPECT(groups == 3 && part[2].u.sms == 40 && rest.u.sms == 12);
	CHILD_EXPECT(!cuDevResourceGenerateDesc(&desc, part, 3));
	CHILD_EXPECT(!cuDevResourceGenerateDesc(&desc, &rest, 1));
	half = part[1];
	part[1] = part[2];
	CHILD_EXPECT(cuDevResourceGenerateDesc(&desc, part, 2) ==
		     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	CHILD_EXPECT(cuDevSmResourceSplitByCount(part, &groups, &half, NULL, 0, 8) ==
		     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	CHILD_EXPECT(cuDevSmResourceSplitByCount(part, &groups, &all, NULL, 0, 133) ==
		     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	groups = 20;
	CHILD_EXPECT(!cuDevSmResourceSplitByCount(part, &groups, &all, NULL, 1, 33));
	CHILD_EXPECT(groups == 3 && part[0].u.sms == 34);
}

static void sms_are_split_in_steps(void **state)
{
	ends_well(start(script_of("wave=1us"), splits, 0));
}

static void priorities(int number)
{
	void *low, *high, *a, *b;

	context();
	CHILD_EXPECT(!cuStreamCreateWithPriority(&low, 1, 0));
	CHILD_EXPECT(!cuStreamCreateWithPriority(&high, 1, number ? -5 : 0));
	a = busy_event(low, 1);
	for (int i = 0; i < 4; i++) /* two waiting kernels are more than there is room for */
		launch(FULL, low, 1);
	void *wait = busy_event(low, 1);
	CHILD_EXPECT(!cuStreamWaitEvent(high, a, 0));
	launch(FULL / 8, high, 1);
	b = event(high);
	board->ms[number] = between(a, b);
	CHILD_EXPECT(!cuEventSynchronize(wait));
}

static void a_stream_of_high_priority_is_served_first(void **state)
{
	ends_well(start(script_of(MILLISECOND ",speed=.2"), priorities, 0));
	ends_well(start(script_of(MILLISECOND ",speed=.2"), priorities, 1));
	assert_true(board->ms[1] < .5);
	assert_true(board->ms[0] > .9);
}

/* A percentage of the SMs, as MPS's clients are given it. */
static void half(int number)
{
	setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", 1);
	context();
	CHILD_EXPECT(near(one_block_a_sm(NULL), number ? 4 : 2, .05));
}

static void a_percentage_binds_with_mps_only(void **state)
{
	ends_well(start(script_of("launch=0,wave=1ms"), half, 0));
	ends_well(start(script_of("launch=0,wave=1ms,sharing=mps"), half, 1));
}

static void two_slow_kernels(int number)
{
	context();
	CHILD_EXPECT(near(one_block_a_sm(NULL), number ? 2 : .2, .001));
}

static void the_hosts_clock_tells_of_a_slower_device(void **state)
{
	ends_well(start(script_of("launch=0,wave=100us,speed=.1"), two_slow_kernels, 0));
	ends_well(start(script_of("launch=0,wave=100us,speed=.1,clock=host"), two_slow_kernels, 1));
}

/* One forked before it came to CUDA is a process of its own; one forked after may do nothing. */
static void forks(int number)
{
	const pid_t early = fork();

	context();
	meet(2);
	launch(66, NULL, 1);
	void *a = event(NULL);
	launch(66, NULL, 50);
	const float ms = between(a, event(NULL));
	if (!early) {
		board->ms[1] = ms;
		_exit(0);
	}
	board->ms[0] = ms;
	ends_well(early);
	const pid_t late = fork();
	if (!late) {
		CHILD_EXPECT(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED);
		_exit(0);
	}
	ends_well(late);
	CHILD_EXPECT(!cuCtxSynchronize());
	CHILD_EXPECT(near(one_block_a_sm(NULL), 2, .05));
}

static void a_forked_child_is_a_process_of_its_own(void **state)
{
	ends_well(start(script_of("launch=0,wave=1ms,speed=.5"), forks, 0));
	/* In slices each has half of the device's time while both work. */
	assert_true(board->ms[0] + board->ms[1] > 150);
}

static void host_waits(int number)
{
	context();
	meet(number + 1);
	while (atomic_load(&board->arrived) < 2)
		nap();
}

static void refused(int number)
{
	fclose(stderr);
	_exit(cuInit(0) == CUDA_ERROR_INVALID_VALUE ? 0 : 1);
}

static void all_must_ask_for_the_same(void **state)
{
	static const char *const others[] = { "sharing=mps", "speed=.5", "memory=1G", "devices=2",
		"slice=1ms", "switch=1us" };
	const pid_t pid = start(script_of("wave=1us"), host_waits, 0);

	while (!atomic_load(&board->arrived))
		nap();
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		ends_well(start(script_of(others[i]), refused, 0));
	atomic_fetch_add(&board->arrived, 1);
	ends_well(pid);
	/* And begin anew when nobody uses it. */
	ends_well(start(script_of("launch=0,wave=100us,speed=.1"), two_slow_kernels, 0));
}

static void virtually(void)
{
	refused(0);
}

static void the_file_must_be_its_own(void **state)
{
	struct stat st;
	char link[80];

	ends_well(start(script_of("launch=0,wave=100us"), two_slow_kernels, 0));
	assert_int_equal(stat(device_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(chmod(device_path, 0622), 0);
	ends_well(start(script_of("wave=1us"), refused, 0));
	assert_int_equal(chmod(device_path, 0600), 0);
	assert_int_equal(truncate(device_path, 100), 0);
	ends_well(start(script_of("wave=1us"), refused, 0));
	assert_int_equal(truncate(device_path, 0), 0);
	ends_well(start(script_of("launch=0,wave=100us"), two_slow_kernels, 0));
	snprintf(link, sizeof link, "%s-link", device_path);
	assert_int_equal(rename(device_path, link), 0);
	assert_int_equal(symlink(link, device_path), 0);
	ends_well(start(script_of("launch=0,wave=1ms"), refused, 0));
	unlink(link);
	unlink(device_path);
	int fd = open(device_path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(write(fd, "somebody's words", 16) == 16);
	close(fd);
	ends_well(start(script_of("wave=1us"), refused, 0));
	SCRIPTED("gpu=/dev/shm/none,time=virtual", virtually);
}

int main(void)
{
#define ON_A_DEVICE(test) cmocka_unit_test_setup_teardown(test, new_device, remove_device)
	const struct CMUnitTest tests[] = {
		ON_A_DEVICE(alone_a_kernel_takes_what_the_script_says),
		ON_A_DEVICE(two_processes_take_twice_as_long_in_slices),
		ON_A_DEVICE(four_streams_of_a_process_share_it_too),
		ON_A_DEVICE(with_mps_kernels_of_two_processes_run_beside_each_other),
		ON_A_DEVICE(memory_is_there_once_for_all),
		ON_A_DEVICE(who_dies_with_the_lock_stops_nobody),
		ON_A_DEVICE(a_killed_process_leaves_nothing_in_slices),
		ON_A_DEVICE(a_killed_process_leaves_nothing_with_mps),
		ON_A_DEVICE(host_functions_and_other_devices_keep_the_order),
		ON_A_DEVICE(records_and_events_tell_the_same_times),
		ON_A_DEVICE(a_green_context_costs_what_waves_say),
		ON_A_DEVICE(sms_are_split_in_steps),
		ON_A_DEVICE(a_stream_of_high_priority_is_served_first),
		ON_A_DEVICE(a_percentage_binds_with_mps_only),
		ON_A_DEVICE(the_hosts_clock_tells_of_a_slower_device),
		ON_A_DEVICE(a_forked_child_is_a_process_of_its_own),
		ON_A_DEVICE(all_must_ask_for_the_same),
		ON_A_DEVICE(the_file_must_be_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
