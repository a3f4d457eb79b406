/* Makes and removes temporary files. */
#include "cmd/cli/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cli/command.h"

#define LARGEST (1ull << 30)
#define PREFIX  "weir-scratch-"

static const char *const names[] = { "trace", "history" };

static int open_directory(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes a directory of this user's whose command is no more: it has no lock. */
static void sweep_one(int place, const char *name)
{
	struct stat st;
	const int fd = open_directory(place, name);
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB)) {
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			unlinkat(fd, names[i], 0);
		unlinkat(place, name, AT_REMOVEDIR);
	}
	if (fd >= 0)
		close(fd);
}

static void sweep(const char *place)
{
	DIR *d = opendir(place);
	for (struct dirent *e; d && (e = readdir(d));)
		if (!strncmp(e->d_name, PREFIX, sizeof PREFIX - 1))
			sweep_one(dirfd(d), e->d_name);
	if (d)
		closedir(d);
}

static int make_directory(struct scratch *s, const char *place)
{
	struct stat made, there;
	if (snprintf(s->directory, sizeof s->directory, "%s/" PREFIX "XXXXXX", place) >=
		(int)sizeof s->directory)
		return -ENAMETOOLONG;
	if (!mkdtemp(s->directory))
		return -errno;
	s->lock = open_directory(AT_FDCWD, s->directory);
	/* Before it was locked somebody may have taken it for one that was left. */
	if (s->lock >= 0 && !flock(s->lock, LOCK_EX | LOCK_NB) && !fstat(s->lock, &made) &&
		!lstat(s->directory, &there) && made.st_ino == there.st_ino)
		return 0;
	if (s->lock >= 0)
		close(s->lock);
	return -EAGAIN;
}

int scratch_begin(struct scratch *s, const char *const *places, int count, const char *name)
{
	int e = -ENOENT;
	for (int i = 0; i < count; i++) {
		sweep(places[i]);
		for (int tries = 0; tries < 4; tries++) {
			e = make_directory(s, places[i]);
			if (e != -EAGAIN)
				break;
		}
		if (e)
			continue;
		snprintf(s->path, sizeof s->path, "%s/%s", s->directory, name);
		return 0;
	}
	s->directory[0] = '\0';
	return e;
}

void scratch_remove(struct scratch *s)
{
	if (!*s->directory)
		return;
	unlink(s->path);
	rmdir(s->directory);
	close(s->lock);
	s->directory[0] = '\0';
}

int scratch_make(struct scratch *s, struct child *l, uint32_t control)
{
	static const char *const places[] = { "/dev/shm", "/tmp" };
	struct error err;
	const int e = scratch_begin(s, places, 2, names[0]);
	if (e)
		return complain(EXIT_ENVIRONMENT, "neither /dev/shm nor /tmp can be written: %s",
			strerror(-e));
	if (!child_trace(l, s->path, control, 0, &err)) {
		l->header->limit = LARGEST; /* whoever can't keep up loses calls, not the machine */
		return 0;
	}
	scratch_remove(s);
	return complain(EXIT_ENVIRONMENT, "%s", err.text);
}
