/*
 * Runs under a quota in quota.py, or observes it from outside.
 *
 *	quota work TIME       allocates and frees blocks of random sizes, with pauses, until that
 *time quota watch QUOTA     says the most that was in use, when its standard input ends quota fill
 *MIB        how many blocks of so many MiB are granted
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB   ((size_t)1 << 20)
#define HELD  8
#define GRAIN (2 * MIB)

static int (*alloc)(uint64_t *, size_t), (*give)(uint64_t), (*info)(size_t *, size_t *);

static void *find(void *library, const char *name)
{
	void *f = dlsym(library, name);
	if (f)
		return f;
	printf("no %s\n", name);
	exit(3);
}

static void begin(void)
{
	void *context = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = find(driver, "cuInit");
	int (*retain)(void **, int) = find(driver, "cuDevicePrimaryCtxRetain");
	int (*set)(void *) = find(driver, "cuCtxSetCurrent");
	alloc = find(driver, "cuMemAlloc_v2");
	give = find(driver, "cuMemFree_v2");
	info = find(driver, "cuMemGetInfo_v2");
	if (!init(0) && !retain(&context, 0) && !set(context))
		return;
	puts("no context");
	exit(3);
}

static size_t in_use(void)
{
	size_t left = 0, all = 0;
	info(&left, &all);
	return all - left;
}

static int work(time_t end)
{
	uint64_t held[HELD] = { 0 };
	unsigned seed = (unsigned)getpid();
	for (unsigned i = 0; time(NULL) < end; i++) {
		uint64_t *p = &held[i % HELD];
		if (*p && give(*p))
			return 1;
		*p = 0;
		const int result = alloc(p, (1 + rand_r(&seed) % 16) * GRAIN);
		if (result && result != 2)
			return 2;
		if (rand_r(&seed) % 16 == 0)
			usleep((useconds_t)(rand_r(&seed) % 2000));
	}
	return 0;
}

static int watch(void)
{
	size_t most = 0, samples = 0;
	struct pollfd in = { .fd = 0, .events = POLLIN };
	puts("ready");
	fflush(stdout);
	while (!poll(&in, 1, 1)) { /* others are to have the device as well */
		const size_t now = in_use();
		most = now > most ? now : most;
		samples++;
	}
	printf("%zu %zu %zu\n", most, in_use(), samples);
	return 0;
}

static int fill(size_t mib)
{
	uint64_t p;
	int n = 0;
	while (n < 1000 && !alloc(&p, mib * MIB))
		n++;
	printf("%d\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	begin();
	if (!strcmp(argv[1], "watch"))
		return watch();
	return !strcmp(argv[1], "work") ? work(atol(argv[2])) : fill((size_t)atol(argv[2]));
}
