/* Reads and writes the file of a baseline. */
#include "monitor/baseline_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"
#include "trace/trace.h"

#define LARGEST (16u << 20)

static int load(struct regress *r, int fd, const char *path, uint64_t now_ns, struct error *err)
{
	struct stat st;
	struct error why = { "" };
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return error_set(err, -EINVAL, "%s is no file of yours", path);
	if (st.st_size > (off_t)LARGEST)
		return error_set(err, -EINVAL, "%s is too large for a baseline", path);
	char *data = xmalloc((size_t)st.st_size + 1);
	int e = read_at(fd, data, (size_t)st.st_size, 0);
	if (e)
		e = error_set(err, e, "%s can't be read: %s", path, strerror(-e));
	else if (regress_load(r, data, (size_t)st.st_size, now_ns, &why))
		e = error_set(err, -EINVAL, "%s: %s. Remove it to begin anew", path, why.text);
	free(data);
	return e;
}

int baseline_load(struct regress *r, const char *path, uint64_t now_ns, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return error_set(err, -errno, "%s can't be read: %s", path, strerror(errno));
	const int e = load(r, fd, path, now_ns, err);
	close(fd);
	return e;
}

int baseline_save(const struct regress *r, const char *path, struct error *err)
{
	struct newfile f;
	void *data;
	size_t bytes;
	int e = regress_save(r, &data, &bytes);
	if (e)
		return error_set(err, e, "%s can't be written: %s", path, strerror(-e));
	e = newfile_open(&f, path);
	if (!e && fwrite(data, 1, bytes, f.out) != bytes)
		e = -EIO;
	e = newfile_close(&f, e);
	free(data);
	return e ? error_set(err, e, "%s can't be written: %s", path, strerror(-e)) : 0;
}
