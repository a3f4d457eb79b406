/* Leaks a megabyte in each step, from one of two places, and waits for the device in a third: what
 * call stacks must say.  `leaking fork` does it in a child, `leaking late` in a library function
 * that is found when it runs. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*init)(unsigned), (*create)(void **, unsigned, int), (*alloc)(uint64_t *, size_t),
	(*release)(uint64_t), (*synchronize)(void);

static __attribute__((noinline)) uint64_t take_buffer(size_t bytes)
{
	uint64_t at = 0;
	if (alloc(&at, bytes)) /* LINE take_buffer */
		puts("no memory");
	return at;
}

static inline __attribute__((always_inline)) void wait_for_it(void)
{
	if (synchronize()) /* LINE wait_for_it */
		puts("not done");
}

static __attribute__((noinline)) void forget_it(void)
{
	take_buffer(1 << 20); /* LINE forget_it */
	wait_for_it();
	__asm__ volatile("");
}

static __attribute__((noinline)) void give_it_back(void)
{
	release(take_buffer(1 << 16)); /* LINE give_it_back */
	__asm__ volatile("");
}

static void run(void)
{
	void *context;
	init(0);
	create(&context, 0, 0);
	for (int i = 0; i < 8; i++) {
		forget_it();
		give_it_back();
	}
}

int main(int argc, char **argv)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda)
		return 1;
	*(void **)&init = dlsym(cuda, "cuInit");
	*(void **)&create = dlsym(cuda, "cuCtxCreate_v2");
	*(void **)&alloc = dlsym(cuda, "cuMemAlloc_v2");
	*(void **)&release = dlsym(cuda, "cuMemFree_v2");
	*(void **)&synchronize = dlsym(cuda, "cuCtxSynchronize");
	if (argc > 1 && !strcmp(argv[1], "fork") && fork())
		return wait(NULL) < 0;
	run();
	return 0;
}
