/* Demangles by the C++ runtime (Itanium C++ ABI), which is loaded for the first name that needs it.
 */
#include "base/cxx_name.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared_library.h"

#define LONGEST 8192u /* longer names stay as they are: demangling may take exponential room */

static struct runtime {
	char *(*demangle)(const char *mangled, char *buf, size_t *length, int *status);
} runtime;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_runtime(void)
{
	static const struct library_symbol symbol = { "__cxa_demangle",
		offsetof(struct runtime, demangle) };
	if (library_load("libstdc++.so.6", &symbol, 1, &runtime))
		library_load("libc++abi.so.1", &symbol, 1, &runtime);
}

char *cxx_name(const char *mangled)
{
	int status = -1;
	if (strncmp(mangled, "_Z", 2) != 0 || strlen(mangled) >= LONGEST)
		return NULL;
	pthread_once(&once, load_runtime);
	char *name = runtime.demangle ? runtime.demangle(mangled, NULL, NULL, &status) : NULL;
	if (name && status == 0)
		return name;
	free(name);
	return NULL;
}
