/*
 * The cost of holding a stream on the device, by the way of holding: a kernel that reads a word of
 * host memory until it is 0, a wait of the stream for that word, a host function, and an event for
 * comparison.
 *
 *	cc -O2 -I/usr/local/cuda/include -o hold bench/sched/hold.c -lcuda && ./hold
 *
 * Kernels of 20 us follow each other in one stream, with such a hold behind each and nothing to
 * wait for; then a closed hold is opened from the host.  The word lies in a file that processes
 * could share.  Under MPS as well.
 */
#include <cuda.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		CUresult result_ = (call);                                                         \
		if (result_) {                                                                     \
			fprintf(stderr, "%s: CUDA error %d\n", #call, result_);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define ROUNDS  5
#define KERNELS 400
#define OPENED  50
#define BYTES   65536u

static const char source[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry spin(.param .u64 ns)\n{\n.reg .u64 %t<2>;\n.reg .pred %p;\n"
	"ld.param.u64 %t0, [ns];\nmov.u64 %t1, %globaltimer;\nadd.u64 %t0, %t0, %t1;\n"
	"L: mov.u64 %t1, %globaltimer;\nsetp.lt.u64 %p, %t1, %t0;\n@%p bra L;\nret;\n}\n"
	".visible .entry hold(.param .u64 word)\n{\n.reg .u64 %t<2>;\n.reg .pred %p;\n"
	"ld.param.u64 %t0, [word];\nL: ld.volatile.global.u64 %t1, [%t0];\n"
	"setp.ne.u64 %p, %t1, 0;\n@%p bra L;\nret;\n}\n";

enum way { NOTHING, KERNEL, WAIT, HOST_FUNCTION, EVENT, WAYS };
static const char *const names[WAYS] = { "nothing", "a kernel that reads a word",
	"cuStreamWaitValue64", "cuLaunchHostFunc", "cuEventRecord" };

static CUstream stream;
static CUfunction spin, hold;
static CUevent event;
static CUdeviceptr word_on_device;
static volatile uint64_t *word;

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int order(const void *one, const void *two)
{
	const double a = *(const double *)one, b = *(const double *)two;
	return (a > b) - (a < b);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, order);
	return v[n / 2];
}

static void CUDA_CB nothing(void *data)
{
}

static void launch(CUfunction f, unsigned blocks, unsigned threads, uint64_t argument)
{
	void *arguments[] = { &argument };
	CHECK(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
}

static void put(enum way way)
{
	if (way == KERNEL)
		launch(hold, 1, 1, word_on_device);
	else if (way == WAIT)
		CHECK(cuStreamWaitValue64(stream, word_on_device, 0, CU_STREAM_WAIT_VALUE_EQ));
	else if (way == HOST_FUNCTION)
		CHECK(cuLaunchHostFunc(stream, nothing, NULL));
	else if (way == EVENT)
		CHECK(cuEventRecord(event, stream));
}

static void set_up(void)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	char path[] = "/dev/shm/holdXXXXXX";
	const int fd = mkstemp(path);
	if (fd < 0 || unlink(path) || ftruncate(fd, BYTES))
		exit(1);
	word = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, source));
	CHECK(cuModuleGetFunction(&spin, module, "spin"));
	CHECK(cuModuleGetFunction(&hold, module, "hold"));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuMemHostRegister((void *)word, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(&word_on_device, (void *)word, 0));
}

static double of_kernels(enum way way)
{
	CHECK(cuStreamSynchronize(stream));
	const double begin = now_us();
	for (int i = 0; i < KERNELS; i++) {
		launch(spin, 264, 256, 20000);
		put(way);
	}
	CHECK(cuStreamSynchronize(stream));
	return (now_us() - begin) / KERNELS;
}

static double of_opening(enum way way)
{
	double took[OPENED];
	for (int i = 0; i < OPENED; i++) {
		*word = 1;
		put(way);
		usleep(300);
		const double begin = now_us();
		*word = 0;
		CHECK(cuStreamSynchronize(stream));
		took[i] = now_us() - begin;
	}
	return median(took, OPENED);
}

int main(void)
{
	double took[WAYS][ROUNDS];
	set_up();
	for (int round = 0; round < ROUNDS; round++)
		for (int way = 0; way < WAYS; way++)
			took[way][round] = of_kernels((enum way)way);
	for (int way = 0; way < WAYS; way++)
		printf("%-28s %6.2f us a kernel\n", names[way], median(took[way], ROUNDS));
	printf("opened, until the host knows: %.1f us (kernel), %.1f us (cuStreamWaitValue64)\n",
		of_opening(KERNEL), of_opening(WAIT));
	return 0;
}
