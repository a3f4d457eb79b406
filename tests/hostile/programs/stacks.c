/*
 * Calls CUDA on stacks of all kinds: what follows a stack in memory may be anything, or nothing,
 * and whoever copies a piece of it must not read there.
 *
 *	stacks edge      a stack that ends where nothing is mapped, a few bytes above the call
 *	stacks fiber     of makecontext(), in memory of malloc()
 *	stacks small     of the smallest thread that may be, and of one that is half of a page deep
 *	stacks signal    of a signal handler (sigaltstack), which interrupts a call
 *	stacks deep      ten thousand functions deep, in the main thread and in another
 *	stacks turnover  of many threads, whose stacks are unmapped meanwhile
 */
#include "cu.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE   4096u
#define PAGES  16u
#define ROUNDS 20

static int failed, made;

static __attribute__((noinline)) void call_it(void)
{
	uint64_t block = 0;
	failed += cuMemAlloc_v2(&block, 4096) != 0;
	failed += cuCtxSynchronize() != 0;
	failed += cuMemFree_v2(block) != 0;
	made++;
}

/* A stack between two pages that nobody may touch. */
static char *guarded_stack(void)
{
	char *all = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cu_need(all == MAP_FAILED || mprotect(all + PAGE, PAGES * PAGE, PROT_READ | PROT_WRITE),
		"a stack");
	return all + PAGE;
}

static ucontext_t here, there;

static void in_fiber(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		call_it();
		swapcontext(&there, &here);
	}
}

static void run_fiber(char *stack, size_t bytes)
{
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = bytes;
	there.uc_link = &here;
	makecontext(&there, in_fiber, 0);
	for (int i = 0; i < ROUNDS; i++)
		swapcontext(&here, &there);
}

static void edge(void)
{
	run_fiber(guarded_stack(), PAGES * PAGE);
}

static void fiber(void)
{
	for (int i = 0; i < 4; i++) {
		char *stack = malloc(PAGES * PAGE);
		run_fiber(stack, PAGES * PAGE);
		free(stack);
	}
}

static void *in_thread(void *arg)
{
	failed += cuCtxSetCurrent(cu_context) != 0;
	call_it();
	return NULL;
}

static void run_thread(void *stack, size_t bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	if (stack)
		pthread_attr_setstack(&attributes, stack, bytes);
	else if (bytes)
		pthread_attr_setstacksize(&attributes, bytes);
	cu_need(pthread_create(&thread, &attributes, in_thread, NULL), "a thread");
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static void small(void)
{
	run_thread(NULL, (size_t)PTHREAD_STACK_MIN + 4 * PAGE);
	run_thread(guarded_stack(), PAGES * PAGE);
}

static void on_signal(int signal)
{
	const int before = errno;
	call_it();
	errno = before;
}

static void signals(void)
{
	char *stack = guarded_stack();
	const stack_t other = { .ss_sp = stack, .ss_size = PAGES * PAGE };
	const struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	cu_need(sigaltstack(&other, NULL) || sigaction(SIGUSR1, &act, NULL), "a signal");
	for (int i = 0; i < ROUNDS; i++) {
		errno = 100 + i;
		raise(SIGUSR1);
		call_it();
		failed += errno != 100 + i;
	}
}

static __attribute__((noinline)) int descend(int depth)
{
	if (!depth) {
		call_it();
		return 1;
	}
	const int below = descend(depth - 1);
	__asm__ volatile("" : : "r"(below) : "memory"); /* no tail call */
	return below + 1;
}

static void *descend_in_thread(void *arg)
{
	failed += cuCtxSetCurrent(cu_context) != 0;
	failed += descend(10000) != 10001;
	return NULL;
}

static void deep(void)
{
	pthread_t thread;
	failed += descend(10000) != 10001;
	cu_need(pthread_create(&thread, NULL, descend_in_thread, NULL), "a thread");
	pthread_join(thread, NULL);
}

static void turnover(void)
{
	for (int i = 0; i < 200; i++) {
		char *stack = guarded_stack();
		run_thread(stack, PAGES * PAGE);
		munmap(stack - PAGE, (PAGES + 2) * PAGE);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = { { "edge", edge }, { "fiber", fiber }, { "small", small },
		{ "signal", signals }, { "deep", deep }, { "turnover", turnover } };
	const char *kind = argc > 1 ? argv[1] : "";
	cu_start();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kind, kinds[i].name))
			kinds[i].run();
	printf("%d made, %d failed\n", made, failed);
	counts("cuMemAlloc_v2", made);
	counts("cuCtxSynchronize", made);
	return !made;
}
