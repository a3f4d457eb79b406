/*
 * Signals at every instruction: `stepped HOW`.
 *
 * A parent, which has nothing to do with CUDA, lets its child go n instructions into what it does
 * and then sends it a signal; n is each number until it is through, without later turns of loops.
 * The child's handler does HOW there: `pairs` of ranges and calls through more chunks than a thread
 * keeps, the same after the heads of all chunks were `changed` in the file, `pushes` that nobody
 * pops, a `fork` that comes back from the handler, or a launch after it has changed the `config` of
 * the one that it interrupts.  `stacks` forks as well, but only in a launch, whose call stack is
 * copied.
 */
#include "cu.h"
#include "nvtx.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define STEPS_MOST 4000

static struct shared {
	atomic_int inside; /* the child is at it */
	atomic_int left;   /* … and was through before n instructions */
	atomic_long rounds;
} * shared;

static const char *how;
static long wrong;
static pid_t self;

/* The depths that push and pop return must be right: nothing else shows it to the program. */
static void expect(int said, int depth)
{
	if (nvtx_push && said != depth)
		wrong++;
}

static void pairs(void)
{
	for (int i = 0; i < 12000; i++) {
		NVTX(push, "handler");
		NVTX(pop);
	}
	for (int i = 0; i < 100; i++)
		cu_launch_once();
}

static void fill(int n)
{
	while (n--) {
		NVTX(push, "handler");
		NVTX(pop);
		cu_launch_once();
	}
}

/* No chunk holds anything, as far as the file says, nor is it this thread's. */
static void change_heads(void)
{
	enum { GRAIN = 65536, MAGIC_AT = 0, USED_AT = 12, TID_AT = 20 };
	const char *config = getenv("WEIR"), *path = config ? strstr(config, "record:") : NULL;
	const int fd = path ? open(path + strlen("record:"), O_RDWR | O_CLOEXEC) : -1;
	uint32_t head[8];
	for (off_t at = GRAIN; pread(fd, head, sizeof head, at) == sizeof head; at += GRAIN) {
		if (head[MAGIC_AT] != 0x4b484357)
			continue;
		pwrite(fd, "\0\0\0", 4, at + USED_AT);
		pwrite(fd, "\0\0\0", 4, at + TID_AT);
	}
	close(fd);
}

/* The child of a fork finishes what the handler interrupted, its parent after it. */
static void fork_here(void)
{
	const pid_t child = fork();
	if (child > 0)
		waitpid(child, NULL, 0);
}

static struct { /* CUlaunchAttribute: a cluster of two blocks */
	int id, unused;
	unsigned x, y, z, rest[13];
} attribute = { 4, 0, 2, 1, 1, { 0 } };

static struct { /* CUlaunchConfig */
	unsigned grid[3], block[3], shared;
	void *stream, *attributes;
	unsigned count;
} config = { { 2, 1, 1 }, { 32, 1, 1 }, 0, NULL, &attribute, 0 };

static int (*launch_ex)(const void *config, void *f, void **parameters, void **extra);

/* As if another thread did it.  The record of this launch lies behind that of the other. */
static void change_config(void)
{
	config.count = !config.count;
	cu_launch_once();
}

static void handler(int signal)
{
	if (!strcmp(how, "config"))
		change_config();
	else if (!strcmp(how, "pairs"))
		pairs();
	else if (!strcmp(how, "changed")) {
		fill(1300);
		change_heads();
		/* what was unmapped last is where nothing has been mapped since */
		fill(400 * (int)(shared->rounds % 23));
	} else if (!strcmp(how, "pushes"))
		NVTX(push, "left");
	else
		fork_here();
}

static void leave_if_forked(void)
{
	if (getpid() == self)
		return;
	NVTX(push, "child");
	NVTX(pop);
	_exit(0);
}

static uint64_t span;

static void push(void)
{
	NVTX(push_event, NVTX_EVENT(.message_type = 1, .message = "held", .category = 3));
}

static void pop(void)
{
	NVTX(pop);
}

static void start(void)
{
	span = NVTX(start, "span");
}

static void stop(void)
{
	NVTX_VOID(end, span);
}

static void call(void)
{
	if (!strcmp(how, "config"))
		launch_ex(&config, cu_kernel, NULL, NULL);
	else
		cu_launch_once();
}

static void (*const all[])(void) = { push, pop, start, stop, call };
static int at;

/* Only what lies between the two traps is stepped through; a fork's child must not meet the second.
 */
static void do_it(void)
{
	shared->inside = 1;
	__asm__ volatile("int3" ::: "memory");
	all[at]();
	leave_if_forked();
	shared->inside = 0;
	__asm__ volatile("int3" ::: "memory");
}

static void child(void)
{
	const struct sigaction action = { .sa_handler = handler };
	const bool pushes = !strcmp(how, "pushes");
	const bool only_calls = !strcmp(how, "config") || !strcmp(how, "stacks");

	self = getpid();
	nvtx_load();
	cu_start();
	cu_launch_once();
	sigaction(SIGUSR1, &action, NULL);
	launch_ex = (int (*)(const void *, void *, void **, void **))dlsym(
		cu_library, "cuLaunchKernelEx");
	span = NVTX(start, "span");
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (at = 0; at < (int)(sizeof all / sizeof *all); at++) {
		if (only_calls && all[at] != call)
			continue;
		for (shared->left = 0; !shared->left; shared->rounds++) {
			NVTX(push, "outer");
			if (all[at] == pop)
				push();
			do_it();
			if (!pushes) /* `held` or `outer` is the innermost */
				expect(NVTX(pop), all[at] == push);
			while (nvtx_pop && nvtx_pop() >= 0)
				;
		}
	}
	printf("%ld wrong\n", wrong);
	counts("range:outer", shared->rounds);
	_exit(wrong != 0);
}

static int wait_for(pid_t pid)
{
	int status = 0;
	waitpid(pid, &status, 0);
	return status;
}

/* Up to the next trap; other signals are the child's. */
static int go_on(pid_t pid, int signal)
{
	int status;
	do {
		ptrace(PTRACE_CONT, pid, 0, signal);
		status = wait_for(pid);
		signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
	} while (WIFSTOPPED(status) && signal != SIGTRAP);
	return status;
}

static bool trapped(int status)
{
	return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

/* The child's place after each number of instructions, when it was last there step by step. */
static uintptr_t path[STEPS_MOST];

static uintptr_t *place_of(pid_t pid, struct user_regs_struct *regs)
{
	ptrace(PTRACE_GETREGS, pid, 0, regs);
	return (uintptr_t *)&regs->rip;
}

/* The last place on the way to the nth instruction at which the child is only once, or 0. */
static long landmark(long n)
{
	for (long k = n - 2; k > 0; k--) {
		long before = 0;
		while (path[before] != path[k])
			before++;
		if (before == k)
			return k;
	}
	return 0;
}

/* Lets the child run to path[k], with a trap there that is gone when it stops.  Returns waitpid()'s
 * status. The child may have gone another way, to the second trap. */
static int leap(pid_t pid, long k, bool *ret_there)
{
	struct user_regs_struct regs;
	const long code = ptrace(PTRACE_PEEKTEXT, pid, path[k], 0);
	ptrace(PTRACE_POKETEXT, pid, path[k], (code & ~0xffL) | 0xcc);
	const int status = go_on(pid, 0);
	*ret_there = false;
	if (!trapped(status))
		return status;
	ptrace(PTRACE_POKETEXT, pid, path[k], code);
	uintptr_t *const at = place_of(pid, &regs);
	*ret_there = *at == path[k] + 1;
	if (*ret_there) {
		*at = path[k];
		ptrace(PTRACE_SETREGS, pid, 0, &regs);
	}
	return status;
}

/* An instruction of a loop in a turn behind the eighth. */
static bool is_often(long n)
{
	int before = 0;
	for (long i = 0; i < n && before < 8; i++)
		before += path[i] == path[n];
	return before == 8;
}

/* From the first trap n instructions on, or more if the next one is often, then the signal, up to
 * the second trap.  Returns waitpid()'s status.  A step costs two turns of the processes, so the
 * child leaps over most of them.  Each 16th time it does not: only steps can stop in what it seldom
 * does, such as to take a chunk. */
static int drive(pid_t pid, long *n, bool *missed)
{
	struct user_regs_struct regs;
	long i = *n % 16 && !*missed ? landmark(*n) : 0;
	bool there = true;
	int status = i ? leap(pid, i, &there) : 0;
	*missed = !there;
	if (*missed)
		return status;
	for (; shared->inside && i < STEPS_MOST; i++) {
		path[i] = *place_of(pid, &regs);
		if (i >= *n && !is_often(i))
			break;
		ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
		status = wait_for(pid);
		if (!trapped(status))
			return status;
	}
	*n = i;
	shared->left = !shared->inside || i == STEPS_MOST;
	return go_on(pid, shared->inside ? SIGUSR1 : 0);
}

/* Parent and child take turns millions of times, and to wake the other is expensive on another
 * processor. */
static void stay_on_this_processor(void)
{
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof here, &here);
}

int main(int argc, char **argv)
{
	stay_on_this_processor();
	how = argc > 1 ? argv[1] : "pairs";
	setvbuf(stdout, NULL, _IONBF, 0);
	shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const pid_t pid = fork();
	if (!pid)
		child();
	int status = wait_for(pid);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) {
		puts("no process may be traced here");
		return 77;
	}
	status = go_on(pid, 0);
	bool missed = false;
	for (long n = 0; trapped(status);) {
		status = drive(pid, &n, &missed);
		n = shared->left ? 0 : n + !missed;
		if (trapped(status))
			status = go_on(pid, 0);
	}
	if (WIFSTOPPED(status))
		kill(pid, SIGKILL);
	printf("%s: status %x\n", how, (unsigned)status);
	return status != 0;
}
