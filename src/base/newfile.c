/* Writes a file that gets its name once it is whole. */
#include "base/newfile.h"
#include "base/xmalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES    200
#define PAUSE_NS 5000000 /* between them, while somebody else makes the same file */

static bool is_same(int fd, const char *path)
{
	struct stat a, b;
	return !fstat(fd, &a) && !lstat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* File systems without locks have no two makers, as far as anybody can know. */
static bool lock(int fd)
{
	return !flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
}

/* Removes a file that its maker left.  -EBUSY: he is still at it. */
static int remove_left(const char *temp)
{
	const int fd = open(temp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int e = lock(fd) ? 0 : -EBUSY;
	if (!e && is_same(fd, temp) && unlink(temp))
		e = -errno;
	close(fd);
	return e;
}

/* Calls take() until the name is free. */
static int take_name(struct newfile *f, int (*take)(struct newfile *f))
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int e = -EBUSY;
	for (int i = 0; i < TRIES; i++) {
		e = take(f);
		if (e == -EEXIST)
			e = remove_left(f->temp);
		else if (e != -ESTALE)
			return e;
		if (e == -EBUSY)
			nanosleep(&pause, NULL);
		else if (e && e != -ESTALE)
			return e;
	}
	return -EBUSY;
}

static int make_named(struct newfile *f)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const int fd = open(f->temp, flags, 0600);
	if (fd < 0)
		return -errno;
	/* Somebody may have taken it for one that was left, before the lock. */
	const bool ours = lock(fd) && is_same(fd, f->temp);
	f->out = ours ? fdopen(fd, "w+") : NULL;
	if (!f->out)
		close(fd);
	f->named = f->out;
	return ours ? (f->out ? 0 : -ENOMEM) : -ESTALE;
}

static int make_unnamed(struct newfile *f)
{
	char *slash = strrchr(f->temp, '/');
	char directory[2] = ".";
	if (slash)
		*slash = '\0';
	const char *in = !slash ? directory : slash == f->temp ? "/" : f->temp;
	const int fd = open(in, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	const int e = fd < 0 ? -errno : 0;
	if (slash)
		*slash = '/';
	if (e)
		return e;
	f->out = !lock(fd) ? NULL : fdopen(fd, "w+");
	if (!f->out)
		close(fd);
	return f->out ? 0 : -ENOTSUP;
}

/* A name can't be given to a file in the place of another: one beside it comes first. */
static int give_name(struct newfile *f)
{
	char self[32];
	snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(f->out));
	if (linkat(AT_FDCWD, self, AT_FDCWD, f->temp, AT_SYMLINK_FOLLOW))
		return -errno;
	f->named = true;
	return 0;
}

int newfile_open_named(struct newfile *f, const char *path)
{
	*f = (struct newfile){ .path = path, .temp = xasprintf("%s.unfinished", path) };
	return take_name(f, make_named);
}

int newfile_open(struct newfile *f, const char *path)
{
	*f = (struct newfile){ .path = path, .temp = xasprintf("%s.unfinished", path) };
	return make_unnamed(f) ? take_name(f, make_named) : 0;
}

int newfile_close(struct newfile *f, int e)
{
	if (!e && (fflush(f->out) || ferror(f->out) || fsync(fileno(f->out))))
		e = errno ? -errno : -EIO;
	if (!e && !f->named)
		e = take_name(f, give_name);
	if (!e && rename(f->temp, f->path))
		e = -errno;
	if (e && f->named)
		unlink(f->temp);
	if (f->out)
		fclose(f->out);
	free(f->temp);
	*f = (struct newfile){ 0 };
	return e;
}
