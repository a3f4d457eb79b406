/* A forked child's own memory that it never asked for: prints the memory that it has written to, in
 * kB, as the kernel counts it.  The parent has recorded calls and ranges of many names. */
#include "cu.h"
#include "nvtx.h"

#include <sys/wait.h>

static void print_dirty(void)
{
	static char text[4096];
	const int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	const char *line = got > 0 ? strstr(text, "Private_Dirty:") : NULL;
	if (!line)
		_exit(77);
	printf("%ld\n", strtol(line + strlen("Private_Dirty:"), NULL, 10));
	fflush(stdout);
}

int main(void)
{
	int status;
	nvtx_load();
	cu_start();
	for (int i = 0; i < 2000; i++) {
		char name[32];
		snprintf(name, sizeof name, "range %d", i);
		NVTX(push, name);
		cu_launch_once();
		NVTX(pop);
	}
	const pid_t child = fork();
	if (child == 0) {
		print_dirty();
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}
