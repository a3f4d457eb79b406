/* Finds and opens the directory in which programs share a GPU. */
#include "cmd/cli/sharing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cli/command.h"
#include "share/arbiter.h"

/* The whole path: the program may change its directory. */
static int find_directory(struct sharing *s, const char *directory, bool make)
{
	char whole[PATH_MAX];
	if (!directory) {
		share_directory(s->directory, getenv("XDG_RUNTIME_DIR"));
		return 0;
	}
	if (make && mkdir(directory, 0700) && errno != EEXIST)
		return complain(
			EXIT_ENVIRONMENT, "%s can't be made: %s", directory, strerror(errno));
	if (!realpath(directory, whole))
		return complain(EXIT_USAGE, "%s: %s", directory, strerror(errno));
	if (strlen(whole) >= sizeof s->directory || strchr(whole, ','))
		return complain(EXIT_USAGE,
			"%s can't be shared in: the name is too long, or has a comma", whole);
	memcpy(s->directory, whole, strlen(whole) + 1);
	return 0;
}

int sharing_open(struct sharing *s, const char *directory, bool make)
{
	char path[SHARE_PATH + 8];
	const char *why = "";
	const int code = *s->directory ? 0 : find_directory(s, directory, make);
	if (code)
		return code;
	snprintf(path, sizeof path, "%s/sched", s->directory);
	if (!make && access(path, F_OK) && errno == ENOENT)
		return 0;
	s->file = share_open(s->directory, &why);
	if (!s->file && arbiter_renew(s->directory)) {
		if (!make)
			return 0;
		s->file = share_open(s->directory, &why);
	}
	return s->file ? 0
		       : complain(EXIT_ENVIRONMENT, "%s can't be shared through: %s", path, why);
}

void sharing_close(struct sharing *s)
{
	if (s->file) {
		share_keep(s->file, s->directory);
		share_close(s->file);
	}
	s->file = NULL;
}
