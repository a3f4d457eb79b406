/*
 * Device memory as programs use it, for weir run --pool: pooled random SEED STEPS | answers |
 * capture | hold FILE |
 * keep FILE MIB | ask MIB. A block's bytes are looked at before it is freed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long address_t;

#define CALLS(X)                                                                                   \
	X(cuInit, unsigned)                                                                        \
	X(cuDevicePrimaryCtxRetain, void **, int)                                                  \
	X(cuDevicePrimaryCtxReset_v2, int)                                                         \
	X(cuCtxSetCurrent, void *)                                                                 \
	X(cuMemAlloc_v2, address_t *, size_t)                                                      \
	X(cuMemFree_v2, address_t)                                                                 \
	X(cuMemAllocAsync, address_t *, size_t, void *)                                            \
	X(cuMemFreeAsync, address_t, void *)                                                       \
	X(cuMemGetInfo_v2, size_t *, size_t *)                                                     \
	X(cuMemsetD8Async, address_t, unsigned char, size_t, void *)                               \
	X(cuMemcpyDtoH_v2, void *, address_t, size_t)                                              \
	X(cuMemGetAddressRange_v2, address_t *, size_t *, address_t)                               \
	X(cuPointerGetAttribute, void *, int, address_t)                                           \
	X(cuDeviceGetDefaultMemPool, void **, int)                                                 \
	X(cuMemPoolGetAttribute, void *, int, void *)                                              \
	X(cuDeviceSetMemPool, int, void *)                                                         \
	X(cuMemPoolCreate, void **, void *)                                                        \
	X(cuMemPoolTrimTo, void *, size_t)                                                         \
	X(cuStreamCreate, void **, unsigned)                                                       \
	X(cuStreamDestroy_v2, void *)                                                              \
	X(cuStreamSynchronize, void *)                                                             \
	X(cuStreamBeginCapture_v2, void *, int)                                                    \
	X(cuStreamEndCapture, void *, void **)
#define DECLARE(name, ...) static int (*name)(__VA_ARGS__);
CALLS(DECLARE)

static void must(int result, const char *what)
{
	if (!result)
		return;
	printf("%s: %d\n", what, result);
	exit(1);
}
#define MUST(call) must(call, #call)

static void begin(void)
{
	void *context, *driver = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name, ...) name = (int (*)(__VA_ARGS__))dlsym(driver, #name);
	CALLS(FIND)
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
}

enum { BLOCKS = 64, STREAMS = 3 };
static struct {
	address_t at;
	size_t bytes;
	unsigned char value;
} block[BLOCKS];
static void *stream[STREAMS]; /* the first is the default one */

static void look(int i)
{
	unsigned char first, last;
	MUST(cuStreamSynchronize(stream[i % STREAMS]));
	MUST(cuMemcpyDtoH_v2(&first, block[i].at, 1));
	MUST(cuMemcpyDtoH_v2(&last, block[i].at + block[i].bytes - 1, 1));
	if (first != block[i].value || last != block[i].value) {
		printf("a block of %zu bytes has %d and %d in place of %d\n", block[i].bytes, first,
			last, block[i].value);
		exit(1);
	}
}

static void leave(int i)
{
	if (rand() % 4 == 0)
		look(i);
	if (rand() % 16)
		MUST(cuMemFreeAsync(block[i].at, stream[i % STREAMS]));
	else
		MUST(cuMemFree_v2(block[i].at));
	block[i].at = 0;
}

static int out_of_memory;

static void take(int i)
{
	void *s = stream[i % STREAMS];
	block[i].bytes = 1 + (size_t)rand() % (rand() % 4 ? 100000 : 12000000);
	const int result = rand() % 16 ? cuMemAllocAsync(&block[i].at, block[i].bytes, s)
				       : cuMemAlloc_v2(&block[i].at, block[i].bytes);
	if (result == 2) {
		out_of_memory++;
		block[i].at = 0;
		return;
	}
	must(result, "allocation");
	block[i].value = (unsigned char)rand();
	MUST(cuMemsetD8Async(block[i].at, block[i].value, 1, s));
	MUST(cuMemsetD8Async(block[i].at + block[i].bytes - 1, block[i].value, 1, s));
}

static void use_at_random(int seed, long steps)
{
	srand((unsigned)seed);
	for (int i = 1; i < STREAMS; i++)
		MUST(cuStreamCreate(&stream[i], 1));
	for (long n = 0; n < steps; n++) {
		const int i = rand() % BLOCKS;
		if (block[i].at)
			leave(i);
		else
			take(i);
		if (n % 1000 == 999) { /* its blocks are freed in another's order */
			MUST(cuStreamSynchronize(stream[1]));
			MUST(cuStreamDestroy_v2(stream[1]));
			MUST(cuStreamCreate(&stream[1], 1));
		}
	}
	for (int i = 0; i < BLOCKS; i++)
		if (block[i].at)
			leave(i);
	printf("all blocks had what was put there; memory was %s out\n",
		out_of_memory ? "sometimes" : "never");
}

static size_t free_bytes(void)
{
	size_t bytes, total;
	MUST(cuMemGetInfo_v2(&bytes, &total));
	return bytes;
}

/* If the program has named the pool that it wants, its blocks are from there. */
static void print_own_pool(void *usual)
{
	static unsigned char properties[88] = { [0] = 1, [8] = 1 }; /* pinned; on device 0 */
	void *pool;
	address_t a;
	unsigned long long used;
	MUST(cuMemPoolCreate(&pool, properties));
	MUST(cuDeviceSetMemPool(0, pool));
	MUST(cuMemAllocAsync(&a, 5000, NULL));
	MUST(cuMemPoolGetAttribute(pool, 7, &used));
	printf("used of the program's own pool: %d\n", used >= 5000);
	MUST(cuMemFreeAsync(a, NULL));
	MUST(cuStreamSynchronize(NULL));
	MUST(cuDeviceSetMemPool(0, usual));
}

static void print_answers(void)
{
	void *pool;
	size_t bytes;
	address_t a = 0, b = 0, base, start;
	unsigned long long used;
	const size_t before = free_bytes();
	MUST(cuMemAlloc_v2(&a, 20000000));
	MUST(cuMemAlloc_v2(&b, 3000));
	MUST(cuMemGetAddressRange_v2(&base, &bytes, a + 12345678));
	printf("range from %lld, %zu bytes\n", (long long)(base - a), bytes);
	MUST(cuPointerGetAttribute(&start, 11, b + 2999));
	MUST(cuPointerGetAttribute(&bytes, 12, b));
	printf("attributes: from %lld, %zu bytes\n", (long long)(start - b), bytes);
	printf("aligned: %d\n", a % 512 == 0 && b % 512 == 0);
	printf("inside of a block: %d\n", cuMemFree_v2(b + 512));
	printf("free: %d\n", cuMemFree_v2(b));
	printf("free again: %d\n", cuMemFree_v2(b));
	printf("nothing: %d\n", cuMemAlloc_v2(&b, 0));
	printf("no address: %d\n", cuMemAlloc_v2(NULL, 512));
	printf("too much: %d\n", cuMemAlloc_v2(&b, (size_t)1 << 50));
	printf("free of nothing: %d\n", cuMemFree_v2(0));
	MUST(cuMemFree_v2(a));
	printf("all is free again: %d\n", free_bytes() == before);
	MUST(cuDeviceGetDefaultMemPool(&pool, 0));
	MUST(cuMemAllocAsync(&a, 5000, NULL));
	MUST(cuMemPoolGetAttribute(pool, 7, &used));
	printf("used: %d\n", used >= 5000 && used <= 5120);
	MUST(cuMemFreeAsync(a, NULL));
	MUST(cuStreamSynchronize(NULL));
	MUST(cuMemPoolTrimTo(pool, 0));
	MUST(cuMemPoolGetAttribute(pool, 5, &used));
	printf("reserved after a trim: %llu\n", used);
	printf("all is free again: %d\n", free_bytes() == before);
	print_own_pool(pool);
	MUST(cuMemAlloc_v2(&a, 1 << 20));
	MUST(cuDevicePrimaryCtxReset_v2(0));
	begin();
	printf("gone with its context: %d\n", cuMemFree_v2(a) != 0);
	printf("all is free again: %d\n", free_bytes() == before);
}

/* A captured allocation is no block yet; an earlier block stays one. */
static void capture(void)
{
	void *s, *graph;
	address_t before, node;
	MUST(cuStreamCreate(&s, 1));
	MUST(cuMemAllocAsync(&before, 1 << 20, s));
	MUST(cuStreamSynchronize(s));
	MUST(cuStreamBeginCapture_v2(s, 2));
	MUST(cuMemAllocAsync(&node, 1 << 20, s));
	MUST(cuMemsetD8Async(node, 1, 1 << 20, s));
	MUST(cuMemFreeAsync(node, s));
	MUST(cuStreamEndCapture(s, &graph));
	MUST(cuMemFreeAsync(before, s));
	MUST(cuStreamSynchronize(s));
	puts("captured");
}

/* Has had 256 MiB, and goes on with little until FILE is gone. */
static void hold(const char *file)
{
	address_t at[32];
	for (int i = 0; i < 32; i++)
		MUST(cuMemAllocAsync(&at[i], 8 << 20, NULL));
	for (int i = 0; i < 32; i++)
		MUST(cuMemFreeAsync(at[i], NULL));
	MUST(cuStreamSynchronize(NULL));
	fclose(fopen(file, "w"));
	while (!access(file, F_OK)) {
		MUST(cuMemAllocAsync(&at[0], 4096, NULL));
		MUST(cuMemFreeAsync(at[0], NULL));
		MUST(cuStreamSynchronize(NULL));
		usleep(1000);
	}
}

/* Has so much until FILE is gone. */
static void keep(const char *file, size_t mib)
{
	address_t at;
	MUST(cuMemAlloc_v2(&at, mib << 20));
	fclose(fopen(file, "w"));
	while (!access(file, F_OK))
		usleep(1000);
	MUST(cuMemFree_v2(at));
}

static void ask(size_t mib)
{
	address_t at;
	const int result = cuMemAlloc_v2(&at, mib << 20);
	printf("asked: %d\n", result);
}

int main(int argc, char **argv)
{
	begin();
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "random") && argc == 4)
		use_at_random(atoi(argv[2]), atol(argv[3]));
	else if (!strcmp(what, "answers"))
		print_answers();
	else if (!strcmp(what, "capture"))
		capture();
	else if (!strcmp(what, "hold") && argc == 3)
		hold(argv[2]);
	else if (!strcmp(what, "keep") && argc == 4)
		keep(argv[2], (size_t)atol(argv[3]));
	else if (!strcmp(what, "ask") && argc == 3)
		ask((size_t)atol(argv[2]));
	else
		return 2;
	return 0;
}
