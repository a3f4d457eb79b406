/* See libdw.h.  Without it all else of Weir works, so it is not linked. */
#include "stack/libdw.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/shared_library.h"

#define LIBRARY "libdw.so.1"

static const struct library_symbol symbols[] = {
#define SYMBOL(name) { #name, offsetof(struct libdw, name) },
	LIBDW_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

const struct libdw *libdw_open(const char **ret_why)
{
	static struct libdw found;
	static bool is_here;
	if (is_here)
		return &found;
	const int e = library_load(LIBRARY, symbols, sizeof symbols / sizeof *symbols, &found);
	*ret_why =
		e == -ENOSYS ? LIBRARY
			" is too old: it lacks functions that elfutils has had since 0.164"
			     : LIBRARY
			" is missing. Install elfutils' library (Debian and Ubuntu: libdw1, Fedora: elfutils-libs)";
	if (e)
		return NULL;
	/* Debugging information that is not on this machine is not fetched from elsewhere. */
	unsetenv("DEBUGINFOD_URLS");
	is_here = true;
	return &found;
}
