/* Maps the header of a running recording. */
#include "trace/live_header.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int live_header_open(const char *path, bool links, struct trace_header **ret_h)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | (links ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	struct trace_header *h = mmap(NULL, TRACE_GRAIN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const off_t size = lseek(fd, 0, SEEK_END);
	int e = 0;
	close(fd);
	if (h == MAP_FAILED)
		return -EINVAL;
	if (size < (off_t)sizeof *h || memcmp(h->magic, TRACE_MAGIC, 8) != 0)
		e = -EINVAL;
	else if (size < TRACE_GRAIN || h->form != TRACE_RAW || h->state != TRACE_RECORDING)
		e = -ESTALE;
	if (e)
		live_header_close(h);
	else
		*ret_h = h;
	return e;
}

void live_header_close(struct trace_header *h)
{
	munmap(h, TRACE_GRAIN);
}
