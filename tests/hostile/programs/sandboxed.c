/*
 * Programs that shut themselves in, with a filter that ends them for a system call which they do
 * not make themselves: `sandboxed WHEN HOW`, WHEN one of
 *
 *	after	in the middle of their work
 *	forks	the same, and then fork
 *	before	before they come to CUDA
 *	exec	and then become themselves again: the filter is there from the start
 *	clock	no filter: the time-stamp counter may not be read, from before CUDA is looked for
 *
 * and HOW kill (SECCOMP_RET_KILL_PROCESS) or trap (SIGSYS).
 */
#include "cu.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { BEFORE = 100, AFTER = 200000 };

#define LENGTH(array) (sizeof array / sizeof *(array))
#define DENIED(name)                                                                               \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void install(struct sock_filter *code, size_t count, bool trap)
{
	const struct sock_fprog program = { (unsigned short)count, code };

	for (size_t i = 0; trap && i < count; i++)
		if (code[i].code == (BPF_RET | BPF_K) && code[i].k == SECCOMP_RET_KILL_PROCESS)
			code[i].k = SECCOMP_RET_TRAP;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(77);
}

/* This program makes none of these calls from here on. */
static void shut_in(bool trap)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		DENIED(openat),
		DENIED(mmap),
		DENIED(munmap),
		DENIED(fallocate),
		DENIED(fstat),
		DENIED(pread64),
		DENIED(pwrite64),
		DENIED(ftruncate),
#ifdef SYS_readlink
		DENIED(readlink),
#else /* arm64 */
		DENIED(readlinkat),
#endif
		DENIED(getppid),
		DENIED(tgkill),
		DENIED(prlimit64),
		DENIED(sched_yield),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(code, LENGTH(code), trap);
}

/* And what fork() does. */
static void shut_in_further(bool trap)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		DENIED(rt_sigprocmask),
		DENIED(gettid),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(code, LENGTH(code), trap);
}

/* No program of this kind makes these calls. */
static void shut_in_loosely(bool trap)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		DENIED(ptrace),
		DENIED(mount),
		DENIED(bpf),
		DENIED(perf_event_open),
		DENIED(process_vm_readv),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(code, LENGTH(code), trap);
}

static void fork_once(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(cu_launch(BEFORE) ? 8 : 7);
	waitpid(child, &status, 0);
	printf("child: %d %d\n", WEXITSTATUS(status), WTERMSIG(status));
}

int main(int argc, char **argv)
{
	const char *when = argc > 2 ? argv[1] : "";
	const bool trap = argc > 2 && !strcmp(argv[2], "trap");

	if (!strcmp(when, "exec")) {
		shut_in_loosely(trap);
		execl("/proc/self/exe", argv[0], "filtered", argv[2], NULL);
		return 98;
	}
	if (!strcmp(when, "clock"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	cu_open();
	counts_between("cuLaunchKernel", !strcmp(when, "filtered") ? BEFORE + AFTER : 0,
		BEFORE + AFTER + BEFORE);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%s\n", when);
	if (!strcmp(when, "before"))
		shut_in(trap);
	cu_prepare();
	cu_launch(BEFORE);
	if (!strcmp(when, "after") || !strcmp(when, "forks"))
		shut_in(trap);
	if (!strcmp(when, "after"))
		shut_in_further(trap);
	printf("%d failed\n", cu_launch(AFTER));
	if (!strcmp(when, "forks"))
		fork_once();
	fflush(stdout);
	_exit(3);
}
