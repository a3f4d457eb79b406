/* Finds Weir's own libraries beside the program. */
#include "base/library_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int library_path(const char *name, char *ret_path, size_t size)
{
	char self[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return -errno;
	self[n] = 0;
	for (int up = 0; up < 2; up++) { /* …/bin/weir: drop the last two names */
		char *slash = strrchr(self, '/');
		if (!slash)
			return -ENOENT;
		*slash = 0;
	}
	if (snprintf(ret_path, size, "%s/lib/weir/%s", self, name) >= (int)size)
		return -ENAMETOOLONG;
	return access(ret_path, R_OK) ? -errno : 0;
}
