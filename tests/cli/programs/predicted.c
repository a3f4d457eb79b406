/*
 * Launches one kernel over and over, with several scalars, and says that each took as long as its
 * scalar asks: `predicted [ROUNDS [PER CENT]]`, what launches take from the second half of the
 * rounds on.  For tests of weir record --predict, on the simulated driver and the CUPTI beside
 * this.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake_cupti.h"

static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry scale(.param .u64 x, .param .u32 n)\n{\n\tret;\n}\n";

static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	void *, void **, void **);
static void *kernel;
static uint64_t device_ns; /* when the device will be idle */
static uint32_t correlation;

static void need(int failed, const char *what)
{
	if (failed) {
		printf("%s: %d\n", what, failed);
		exit(1);
	}
}

static void set_up(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *module, *context;
	need(!driver, "libcuda.so.1");
	int (*init)(unsigned) = dlsym(driver, "cuInit");
	int (*retain)(void **, int) = dlsym(driver, "cuDevicePrimaryCtxRetain");
	int (*set_current)(void *) = dlsym(driver, "cuCtxSetCurrent");
	int (*load)(void **, const void *) = dlsym(driver, "cuModuleLoadData");
	int (*get)(void **, void *, const char *) = dlsym(driver, "cuModuleGetFunction");
	*(void **)&launch = dlsym(driver, "cuLaunchKernel");
	need(init(0), "cuInit");
	need(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(set_current(context), "cuCtxSetCurrent");
	need(load(&module, ptx), "cuModuleLoadData");
	need(get(&kernel, module, "scale"), "cuModuleGetFunction");
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run(uint32_t n, uint64_t ns)
{
	uint64_t address = 0x7f0000000000 + correlation * 4096ull;
	void *params[] = { &address, &n };
	need(launch(kernel, 64, 1, 1, 256, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
	const uint64_t now = now_ns();
	device_ns = (device_ns > now ? device_ns : now) + 1000;
	fake_ran(&(struct fake_kernel){ .name = "scale",
		.start = device_ns,
		.end = device_ns + ns,
		.grid = { 64, 1, 1 },
		.block = { 256, 1, 1 },
		.correlation = ++correlation });
	device_ns += ns;
}

int main(int argc, char **argv)
{
	static const uint32_t scalars[] = { 1000, 2000, 4000, 16000 };
	const int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
	const uint64_t percent = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
	set_up();
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < 4; k++)
			run(scalars[k],
				scalars[k] * 10ull * (i < rounds / 2 ? 100 : percent) / 100);
		cuptiActivityFlushAll(0);
	}
	return 0;
}
