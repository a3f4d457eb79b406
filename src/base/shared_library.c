/* Opens shared libraries at run time, and finds those beside the program. */
#include "base/shared_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int library_load(const char *file, const struct library_symbol *symbols, size_t n, void *functions)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return -ENOENT;
	for (size_t i = 0; i < n; i++) {
		void *symbol = dlsym(library, symbols[i].name);
		if (!symbol) {
			dlclose(library);
			return -ENOSYS;
		}
		memcpy((char *)functions + symbols[i].at, &symbol, sizeof symbol);
	}
	return 0;
}

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
