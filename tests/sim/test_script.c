/* WEIR_SIM: faults, delays, devices, versions, mistakes, the call log; and many threads. */
#include "sim_test.h"

#include <pthread.h>
#include <time.h>

static char log_path[64];

static void start(void)
{
	void *ctx;

	CHILD_EXPECT(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx));
}

static void third_alloc_fails(void)
{
	unsigned long long a;

	start();
	CHILD_EXPECT(!cuMemAlloc_v2(&a, 1) && !cuMemAlloc_v2(&a, 1));
	CHILD_EXPECT(cuMemAlloc_v2(&a, 1) == CUDA_ERROR_OUT_OF_MEMORY);
	CHILD_EXPECT(!cuMemAlloc_v2(&a, 1));
	CHILD_EXPECT(cuCtxSynchronize() == 719 && cuCtxSynchronize() == 719);
}

static void a_fault_comes_at_its_call(void **state)
{
	SCRIPTED("fault=cuMemAlloc_v2:3:2,fault=cuCtxSynchronize:*:719", third_alloc_fails);
}

static void poisoned(void)
{
	unsigned long long a;
	void *stream;

	start();
	CHILD_EXPECT(!cuMemAlloc_v2(&a, 1));
	CHILD_EXPECT(cuStreamCreate(&stream, 0) == 700);
	CHILD_EXPECT(cuMemAlloc_v2(&a, 1) == 700);
}

static void a_sticky_fault_stays(void **state)
{
	SCRIPTED("fault=cuStreamCreate:1:700:sticky", poisoned);
}

static void slow_sync(void)
{
	struct timespec a, b;

	start();
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHILD_EXPECT(!cuCtxSynchronize());
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHILD_EXPECT((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 19);
}

static void a_delay_takes_real_time(void **state)
{
	SCRIPTED("delay=cuCtxSynchronize:20ms", slow_sync);
}

static void init_fails(void)
{
	fclose(stderr); /* the message is for a person, not for this test's output */
	_exit(cuInit(0) == CUDA_ERROR_INVALID_VALUE ? 0 : 1);
}

static void *add, *queue;

/* The time of 132 blocks of 32 threads, a wave, by events before and after it. */
static float lasts_ms(unsigned n, bool captured)
{
	void *a, *b, *graph, *executable;
	unsigned long long at = 0;
	void *params[] = { &at, &at, &n };
	float ms = -1;

	CHILD_EXPECT(!cuEventCreate(&a, 0) && !cuEventCreate(&b, 0));
	if (captured)
		CHILD_EXPECT(!cuStreamBeginCapture_v2(queue, 0));
	else
		CHILD_EXPECT(!cuEventRecord(a, queue));
	CHILD_EXPECT(!cuLaunchKernel(add, 132, 1, 1, 32, 1, 1, 0, queue, params, NULL));
	if (captured) {
		CHILD_EXPECT(!cuStreamEndCapture(queue, &graph));
		CHILD_EXPECT(!cuGraphInstantiateWithFlags(&executable, graph, 0));
		CHILD_EXPECT(!cuEventRecord(a, queue) && !cuGraphLaunch(executable, queue));
	}
	CHILD_EXPECT(!cuEventRecord(b, queue) && !cuStreamSynchronize(queue));
	CHILD_EXPECT(!cuEventElapsedTime_v2(&ms, a, b));
	return ms;
}

static void parameters_say(void)
{
	void *module, *empty;

	start();
	CHILD_EXPECT(!cuStreamCreate(&queue, 0));
	CHILD_EXPECT(!cuModuleLoadData(&module, (void *)test_ptx));
	CHILD_EXPECT(!cuModuleGetFunction(&add, module, "add"));
	CHILD_EXPECT(!cuModuleGetFunction(&empty, module, "empty"));
	for (int captured = 0; captured < 2; captured++) {
		const float longer = lasts_ms(1000, captured) - lasts_ms(10, captured);
		CHILD_EXPECT(longer > .0989f && longer < .0991f);
	}
	add = empty; /* of which nothing is said: 5 us whatever it is given */
	CHILD_EXPECT(lasts_ms(10, false) < .0051f && lasts_ms(1000, false) < .0051f);
}

static void a_kernel_may_last_as_long_as_a_parameter_says(void **state)
{
	SCRIPTED("kernel=add:2:100ns", parameters_say);
}

static void a_mistake_in_the_script_stops_cuInit(void **state)
{
	const char *bad[] = { "nonsense", "time=sometimes", "fault=cuNothing:1:2", "fault=cuInit",
		"fault=cuInit:0:1", "memory=many", "devices=99", "delay=cuInit:5days", "wave=-1",
		"kernel=add:2", "kernel=add:-1:1us", "@/does/not/exist", "fault=cuInit:1:2:glue",
		"version=1" };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		SCRIPTED(bad[i], init_fails);
}

static void no_devices(void)
{
	CHILD_EXPECT(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

static void eight_devices(void)
{
	int count, can;
	void *a, *b;
	unsigned long long x, y;
	char text[8] = "peer", back[8];

	start();
	CHILD_EXPECT(!cuDeviceGetCount(&count) && count == 8);
	CHILD_EXPECT(!cuDeviceCanAccessPeer(&can, 0, 7) && can == 1);
	CHILD_EXPECT(!cuDevicePrimaryCtxRetain(&a, 0) && !cuDevicePrimaryCtxRetain(&b, 7));
	CHILD_EXPECT(!cuMemAlloc_v2(&x, 8) && !cuCtxSetCurrent(b) && !cuMemAlloc_v2(&y, 8));
	CHILD_EXPECT(!cuMemcpyHtoD_v2(x, text, 8) && !cuMemcpyPeer(y, b, x, a, 8));
	CHILD_EXPECT(!cuMemcpyDtoH_v2(back, y, 8) && !strcmp(back, "peer"));
	CHILD_EXPECT(!cuCtxEnablePeerAccess(a, 0));
	CHILD_EXPECT(cuCtxEnablePeerAccess(a, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
}

static void there_are_as_many_devices_as_asked_for(void **state)
{
	SCRIPTED("devices=0", no_devices);
	SCRIPTED("devices=8", eight_devices);
}

static void old_driver(void)
{
	int version;
	void *address;

	CHILD_EXPECT(!cuDriverGetVersion(&version) && version == 11080);
	CHILD_EXPECT(cuGetProcAddress("cuInit", &address, 12000, 0) == CUDA_ERROR_INVALID_VALUE);
}

static void an_older_driver_says_its_version(void **state)
{
	SCRIPTED("version=11080", old_driver);
}

static void script_file(void)
{
	unsigned long long a;

	start();
	CHILD_EXPECT(cuMemAlloc_v2(&a, 1) == 2);
}

static void a_script_may_be_a_file(void **state)
{
	char path[] = "/tmp/weir-sim-script-XXXXXX", env[80];
	int fd = mkstemp(path);

	assert_true(dprintf(fd, "# comment\n\ndevices=2\nfault=cuMemAlloc_v2:1:2\n") > 0);
	close(fd);
	snprintf(env, sizeof env, "@%s", path);
	SCRIPTED(env, script_file);
	unlink(path);
}

static long logged(const char *path, const char *name)
{
	char line[128], word[64];
	long count, found = -1;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "%63s %ld", word, &count) == 2 && !strcmp(word, name))
			found = count;
	fclose(f);
	return found;
}

static void calls_then_dies(void)
{
	unsigned long long a;
	int (*alloc)(unsigned long long *, size_t);

	start();
	for (int i = 0; i < 12; i++)
		CHILD_EXPECT(!cuMemAlloc_v2(&a, 1));
	CHILD_EXPECT(!cuGetProcAddress("cuMemAlloc", (void **)&alloc, 13000, 0));
	CHILD_EXPECT(!alloc(&a, 1));
	kill(getpid(), 9);
}

static const char *log_env(void)
{
	static char env[96];

	snprintf(log_path, sizeof log_path, "/tmp/weir-sim-log-%d", (int)getpid());
	snprintf(env, sizeof env, "log=%s", log_path);
	return env;
}

static void the_call_log_is_right_even_when_the_program_is_killed(void **state)
{
	run_scripted(log_env(), calls_then_dies);
	assert_int_equal(logged(log_path, "cuMemAlloc_v2"), 13);
	assert_int_equal(logged(log_path, "cuGetProcAddress"), 1);
	assert_int_equal(logged(log_path, "cuInit"), 1);
	assert_int_equal(logged(log_path, "cuMemAlloc"), 0);
	unlink(log_path);
}

enum { THREADS = 200, LAUNCHES = 100 };

static void *shared_function, *shared_context;

static void *launcher(void *arg)
{
	void *stream, *event;
	unsigned long long a;

	CHILD_EXPECT(!cuCtxSetCurrent(shared_context));
	CHILD_EXPECT(!cuStreamCreate(&stream, 0) && !cuEventCreate(&event, 0));
	CHILD_EXPECT(!cuMemAlloc_v2(&a, 64));
	for (int i = 0; i < LAUNCHES; i++)
		CHILD_EXPECT(!test_launch(shared_function, 1, 32, i % 2 ? stream : NULL));
	CHILD_EXPECT(!cuEventRecord(event, stream) && !cuEventSynchronize(event));
	CHILD_EXPECT(!cuMemFree_v2(a) && !cuEventDestroy_v2(event));
	CHILD_EXPECT(!cuStreamDestroy_v2(stream));
	return arg;
}

static void crowd(void)
{
	pthread_t threads[THREADS];
	void *module;

	start();
	CHILD_EXPECT(!cuCtxGetCurrent(&shared_context));
	CHILD_EXPECT(!cuModuleLoadData(&module, (void *)test_ptx));
	CHILD_EXPECT(!cuModuleGetFunction(&shared_function, module, "empty"));
	for (int i = 0; i < THREADS; i++)
		CHILD_EXPECT(!pthread_create(&threads[i], NULL, launcher, NULL));
	for (int i = 0; i < THREADS; i++)
		CHILD_EXPECT(!pthread_join(threads[i], NULL));
	CHILD_EXPECT(!cuCtxSynchronize());
}

static void two_hundred_threads_launch_and_every_call_is_counted(void **state)
{
	SCRIPTED(log_env(), crowd);
	assert_int_equal(logged(log_path, "cuLaunchKernel"), THREADS * LAUNCHES);
	assert_int_equal(logged(log_path, "cuStreamCreate"), THREADS);
	unlink(log_path);
}

static void two_hundred_threads_launch_in_real_time(void **state)
{
	SCRIPTED("time=real,wave=1us,launch=1us", crowd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_comes_at_its_call),
		cmocka_unit_test(a_sticky_fault_stays),
		cmocka_unit_test(a_delay_takes_real_time),
		cmocka_unit_test(a_kernel_may_last_as_long_as_a_parameter_says),
		cmocka_unit_test(a_mistake_in_the_script_stops_cuInit),
		cmocka_unit_test(there_are_as_many_devices_as_asked_for),
		cmocka_unit_test(an_older_driver_says_its_version),
		cmocka_unit_test(a_script_may_be_a_file),
		cmocka_unit_test(the_call_log_is_right_even_when_the_program_is_killed),
		cmocka_unit_test(two_hundred_threads_launch_and_every_call_is_counted),
		cmocka_unit_test(two_hundred_threads_launch_in_real_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
