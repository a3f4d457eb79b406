/* See libdw.h.  Without it all else of Weir works, so it is not linked. */
#include "stack/libdw.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libdw.so.1"

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
#define SYMBOL(name) { #name, offsetof(struct libdw, name) },
	LIBDW_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

const struct libdw *libdw_open(const char **ret_why)
{
	static struct libdw found;
	static void *library;
	*ret_why = LIBRARY
		" is not here; install elfutils' library (Debian and Ubuntu: libdw1, Fedora: elfutils-libs)";
	if (library)
		return &found;
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return NULL;
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *symbol = dlsym(handle, symbols[i].name);
		if (!symbol) {
			*ret_why = LIBRARY
				" is too old: it lacks functions that elfutils has had since 0.164";
			dlclose(handle);
			return NULL;
		}
		memcpy((char *)&found + symbols[i].at, &symbol, sizeof symbol);
	}
	/* Debugging information that is not on this machine is not fetched from elsewhere. */
	unsetenv("DEBUGINFOD_URLS");
	library = handle;
	return &found;
}
