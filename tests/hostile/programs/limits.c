/* Limits that the program has set itself bind the program, not what Weir writes: `limits WHICH`.
 * A file larger than RLIMIT_FSIZE would kill it with SIGXFSZ. */
#include "cu.h"

#include <signal.h>
#include <sys/resource.h>

static volatile sig_atomic_t exceeded;

static void on_signal(int signal)
{
	exceeded++;
}

static void limit(int which, rlim_t value)
{
	struct rlimit limit = { value, value };

	cu_need(setrlimit(which, &limit), "setrlimit");
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "none";
	int fd, failed;

	signal(SIGXFSZ, on_signal);
	counts_between(
		"cuLaunchKernel", 0, 20010); /* what fits is kept, the rest is counted as lost */
	cu_start();
	cu_launch(10);
	if (!strcmp(which, "fsize"))
		limit(RLIMIT_FSIZE, 4096);
	if (!strcmp(which, "as"))
		limit(RLIMIT_AS, 64 << 20);
	if (!strcmp(which, "nofile"))
		limit(RLIMIT_NOFILE, 0);
	errno = 0;
	failed = cu_launch(20000);
	printf("%d failed, errno %d, SIGXFSZ %d\n", failed, errno, (int)exceeded);
	fd = open("own", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	printf("own file: %s, errno %d\n", fd < 0 ? "refused" : "open", errno);
	return 0;
}
