/*
 * inject LOG WHERE CALL N FAULT COMMAND...: runs a command with one system call of it going wrong.
 *
 * The hook makes its system calls itself, where no library in front of libc sees them, so the
 * kernel is asked: a filter (seccomp) stops the calls that are listed here for this process, which
 * traces the whole tree.  WHERE says whose calls count: `hook`, those made in libweir.so, of all
 * processes; `first`, those of the command's own process.  The Nth of them that is CALL
 *   fails with FAULT (ENOSPC, say), which the kernel then never sees;
 *   does part of its work only (FAULT `short`);
 *   or is not reached: its process is killed (`kill`).
 * With a plus behind it, ENOSPC+, all that come after it fail as well.
 * With FAULT `none` nothing happens.  LOG gets a line `call NAME` for each call that counts,
 * `fault` once it has been made, and `ended HOW` for each process but the first, where HOW is an
 * exit status or `signal N`.  The exit status is the command's, or 77: nothing can be traced here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

struct call {
	const char *name;
	int number;
};
#define CALL(name)                                                                                 \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}
static const struct call calls[] = {
	CALL(openat),
	CALL(fallocate),
	CALL(ftruncate),
	CALL(mmap),
	CALL(mremap),
	CALL(munmap),
	CALL(madvise),
	CALL(read),
	CALL(pread64),
	CALL(write),
	CALL(pwrite64),
	CALL(lseek),
	CALL(fstat),
	CALL(newfstatat),
	CALL(statfs),
	CALL(fsync),
	CALL(flock),
	CALL(rename),
	CALL(renameat),
	CALL(linkat),
	CALL(unlink),
	CALL(close),
	CALL(readlink),
	CALL(readlinkat),
	CALL(getcwd),
	CALL(prlimit64),
	CALL(getrandom),
	CALL(pipe2),
	CALL(clone),
	CALL(prctl),
	CALL(rt_sigtimedwait),
};
#define CALLS (sizeof calls / sizeof *calls)

static const struct {
	const char *name;
	int number;
} errors[] = {
	{ "EIO", EIO },
	{ "EINTR", EINTR },
	{ "ENOMEM", ENOMEM },
	{ "EAGAIN", EAGAIN },
	{ "EMFILE", EMFILE },
	{ "ENFILE", ENFILE },
	{ "ENOSPC", ENOSPC },
	{ "EACCES", EACCES },
	{ "ENOSYS", ENOSYS },
	{ "EDQUOT", EDQUOT },
	{ "EROFS", EROFS },
	{ "EFBIG", EFBIG },
	{ "EOPNOTSUPP", EOPNOTSUPP },
};

static struct {
	FILE *log;
	bool hook; /* else: the first process */
	const char *call;
	char *fault;
	bool for_good; /* and all that come after it */
	long left;     /* to let through before the one that goes wrong */
	pid_t first;
	int first_status, processes;
} run;

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	printf("system calls can't be traced here (%s)\n", what);
	exit(SKIPPED);
}

static void become(char **argv)
{
	struct sock_filter filter[CALLS + 3] = { BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	for (size_t i = 0; i < CALLS; i++)
		filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned)calls[i].number, (unsigned char)(CALLS - i), 0);
	filter[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	const struct sock_fprog program = { .len = CALLS + 3, .filter = filter };
	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		give_up("ptrace");
	raise(SIGSTOP); /* until the options are set */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		give_up("seccomp");
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static bool is_in_hook(pid_t pid, unsigned long long ip)
{
	char path[64], line[4352];
	unsigned long long from, to;
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	while (maps && !found && fgets(line, sizeof line, maps))
		found = sscanf(line, "%llx-%llx", &from, &to) == 2 && ip >= from && ip < to &&
			strstr(line, "/libweir.so");
	if (maps)
		fclose(maps);
	return found;
}

static const struct call *find_call(unsigned long long number)
{
	for (size_t i = 0; i < CALLS; i++)
		if ((unsigned long long)calls[i].number == number)
			return &calls[i];
	return NULL;
}

static int error_number(const char *name)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].number;
	fprintf(stderr, "%s is no fault that is known here\n", name);
	exit(2);
}

static void go_wrong(pid_t pid, struct user_regs_struct *regs)
{
	fprintf(run.log, "fault\n");
	if (!strcmp(run.fault, "kill")) {
		kill(pid, SIGKILL);
		return;
	}
	if (!strcmp(run.fault, "short")) {
		regs->rdx = regs->rdx > 1 ? regs->rdx / 2 : regs->rdx;
	} else {
		regs->orig_rax = (unsigned long long)-1;
		regs->rax = (unsigned long long)-error_number(run.fault);
	}
	ptrace(PTRACE_SETREGS, pid, 0, regs);
}

static void look_at(pid_t pid)
{
	struct user_regs_struct regs;
	if ((!run.hook && pid != run.first) || ptrace(PTRACE_GETREGS, pid, 0, &regs))
		return;
	const struct call *c = find_call(regs.orig_rax);
	if (!c || (run.hook && !is_in_hook(pid, regs.rip)))
		return;
	fprintf(run.log, "call %s\n", c->name);
	if (!strcmp(run.fault, "none") || strcmp(c->name, run.call) != 0)
		return;
	run.left--;
	if (!run.left || (run.left < 0 && run.for_good))
		go_wrong(pid, &regs);
}

static void ended(pid_t pid, int status)
{
	if (pid == run.first)
		run.first_status = status;
	else if (WIFSIGNALED(status))
		fprintf(run.log, "ended signal %d\n", WTERMSIG(status));
	else
		fprintf(run.log, "ended %d\n", WEXITSTATUS(status));
}

/* A stop: which signal it goes on with. */
static int stopped(pid_t pid, int status)
{
	const int event = status >> 16;
	if (event == PTRACE_EVENT_SECCOMP)
		look_at(pid);
	if (event)
		return 0;
	/* New processes and threads begin with a stop. */
	return WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
}

static void watch(void)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, 0, stopped(pid, status));
		else
			ended(pid, status);
	}
}

int main(int argc, char **argv)
{
	int status;
	if (argc < 7)
		return 2;
	run.log = fopen(argv[1], "we");
	run.hook = !strcmp(argv[2], "hook");
	run.call = argv[3];
	run.left = strtol(argv[4], NULL, 10);
	run.fault = argv[5];
	char *plus = strchr(run.fault, '+');
	run.for_good = plus;
	if (plus)
		*plus = '\0';
	if (!run.log)
		give_up(argv[1]);
	run.first = fork();
	if (run.first < 0)
		give_up("fork");
	if (!run.first)
		become(argv + 6);
	if (waitpid(run.first, &status, 0) != run.first || !WIFSTOPPED(status))
		return WIFEXITED(status) ? WEXITSTATUS(status) : SKIPPED;
	if (ptrace(PTRACE_SETOPTIONS, run.first, 0,
		    PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
			    PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC))
		give_up("ptrace");
	ptrace(PTRACE_CONT, run.first, 0, 0);
	watch();
	fclose(run.log);
	return WIFSIGNALED(run.first_status) ? 128 + WTERMSIG(run.first_status)
					     : WEXITSTATUS(run.first_status);
}
