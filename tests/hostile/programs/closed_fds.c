/* Closes every descriptor, as daemons do, and opens files of its own under the freed numbers. */
#include "cu.h"

#include <sys/stat.h>

enum { FILES = 40 };

static void close_all(const char *how)
{
	if (!strcmp(how, "closefrom")) {
		closefrom(3);
		return;
	}
	if (!strcmp(how, "range")) {
		close_range(3, ~0u, 0);
		return;
	}
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static int own_file(int i)
{
	char name[32];

	snprintf(name, sizeof name, "own.%d", i);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	dprintf(fd, "file %d\n", i);
	return fd;
}

static int intact(int fd, int i)
{
	char have[64] = "", want[64];
	struct stat st;

	snprintf(want, sizeof want, "file %d\n", i);
	if (pread(fd, have, sizeof have - 1, 0) < 0 || fstat(fd, &st))
		return 0;
	return !strcmp(have, want) && st.st_size == (off_t)strlen(want);
}

int main(int argc, char **argv)
{
	int fd[FILES], good = 0;

	cu_start();
	cu_launch(10);
	close_all(argc > 1 ? argv[1] : "loop");
	for (int i = 0; i < FILES; i++)
		fd[i] = own_file(i);
	printf("first descriptor %d, last %d\n", fd[0], fd[FILES - 1]);
	cu_launch(20000); /* more than a chunk holds */
	for (int i = 0; i < FILES; i++)
		good += intact(fd[i], i);
	printf("%d files are intact\n", good);
	counts("cuLaunchKernel", 20010);
	return 0;
}
