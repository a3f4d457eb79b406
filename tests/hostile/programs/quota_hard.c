/* Allocations under a quota that are interrupted, left, cancelled, or made by bare clones.  Needs a
 * driver that may be called from a handler: the mock. */
#include "cu.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "share/segment.h"

enum { BLOCK = 4096, TIMES = 1500 };

static struct share_file *shared; /* NULL: the program is alone */
static volatile sig_atomic_t handled;
static sigjmp_buf back;

static void open_shared(void)
{
	char directory[SHARE_PATH];
	const char *why = NULL;
	const char *words = getenv("WEIR"), *at = words ? strstr(words, "share=") : NULL;
	if (!at)
		return;
	snprintf(directory, sizeof directory, "%.*s", (int)strcspn(at + 6, ","), at + 6);
	shared = share_open(directory, &why);
	cu_need(!shared, why);
}

static const struct share_memory *own(void)
{
	static const struct share_memory none;
	for (uint32_t i = 0; shared && i < SHARE_SLOTS; i++)
		if (shared->slots[i].who.state == SLOT_LIVE &&
			shared->slots[i].who.pid == (uint32_t)getpid())
			return &shared->slots[i].memory;
	return &none;
}

/* Two come and one goes first, so that places of the table are used again in another order. */
static int come_and_go(void)
{
	uint64_t p = 0, q = 0;
	int failed = cuMemAlloc_v2(&p, BLOCK) != 0;
	failed += cuMemAlloc_v2(&q, BLOCK) != 0;
	failed += cuMemFree_v2(p) != 0;
	return failed + (cuMemFree_v2(q) != 0);
}

static void ticks(void (*handler)(int), int flags)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	const struct itimerval fast = { { 0, 150 }, { 0, 150 } };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &fast, NULL);
}

static void silence(void)
{
	const struct itimerval off = { { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_IGN);
}

/* Nothing is asked for, and the next block is counted to the byte. */
static int counts_on(void)
{
	uint64_t p = 0;
	const uint64_t before = own()->used;
	int wrong = cuMemAlloc_v2(&p, BLOCK) != 0;
	wrong += shared && own()->used != before + BLOCK;
	wrong += cuMemFree_v2(p) != 0;
	wrong += own()->used != before || own()->asked;
	return wrong;
}

static volatile sig_atomic_t failed;

static void allocate_too(int signal)
{
	const int kept = errno;
	failed += come_and_go();
	handled++;
	errno = kept;
}

/* Whatever the handler meets: what it and the program had is all given back. */
static int handler(void)
{
	ticks(allocate_too, SA_NODEFER);
	while (handled < TIMES)
		failed += come_and_go();
	silence();
	return failed + (own()->used != 0) + counts_on();
}

static void jump(int signal)
{
	siglongjmp(back, 1);
}

static int left(void)
{
	volatile int jumps = 0;
	if (sigsetjmp(back, 1))
		jumps++;
	else
		ticks(jump, 0);
	while (jumps < TIMES)
		failed += come_and_go();
	silence();
	return failed + counts_on();
}

static void *until_cancelled(void *unused)
{
	for (;;) {
		come_and_go();
		pthread_testcancel();
	}
	return NULL;
}

static int cancelled(void)
{
	for (int i = 0; i < 100; i++) {
		pthread_t t;
		pthread_create(&t, NULL, until_cancelled, NULL);
		usleep(300);
		pthread_cancel(t);
		pthread_join(t, NULL);
	}
	return (own()->used != 0) + counts_on();
}

static int go_on(void *unused)
{
	int wrong = 0;
	for (int i = 0; i < TIMES; i++)
		wrong += come_and_go();
	return wrong;
}

/* It has its maker's memory and thread-local storage, and nobody has told libc of it. */
static int cloned(void)
{
	static char stack[1 << 16] __attribute__((aligned(64)));
	int status = -1, wrong = 0;
	const pid_t child = clone(
		go_on, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
	for (int i = 0; i < TIMES; i++)
		wrong += come_and_go();
	waitpid(child, &status, 0);
	return wrong + (status != 0) + counts_on();
}

/* One that ends with a block, and whose parent goes on. */
static int forked(void)
{
	int wrong = 0;
	for (int i = 0; i < 20; i++) {
		uint64_t p = 0;
		int status = -1;
		wrong += cuMemAlloc_v2(&p, BLOCK) != 0;
		const pid_t child = fork();
		if (!child) {
			wrong = cuMemFree_v2(p) != 0; /* its parent's: not its own to count */
			wrong += own()->used != 0 || cuMemAlloc_v2(&p, BLOCK) ||
				 (shared && own()->used != BLOCK);
			_exit(wrong);
		}
		waitpid(child, &status, 0);
		wrong += status != 0 || (shared && own()->used != BLOCK) || cuMemFree_v2(p);
	}
	return wrong + counts_on();
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "handler", handler },
	{ "left", left },
	{ "cancelled", cancelled },
	{ "cloned", cloned },
	{ "forked", forked },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		open_shared();
		cu_start();
		const int wrong = counts_on() + cases[i].run();
		printf("%s: %d wrong\n", argv[1], wrong);
		return wrong != 0;
	}
	return 2;
}
