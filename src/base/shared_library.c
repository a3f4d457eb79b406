/* Opens shared libraries at run time. */
#include "base/shared_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

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
