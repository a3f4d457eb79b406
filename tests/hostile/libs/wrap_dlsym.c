/* Preloaded, twice under two names, built without optimisation: a dlsym() that calls the next
 * one instead of jumping to it. */
#include <dlfcn.h>
#include <stddef.h>

static void *(*real)(void *handle, const char *name);

void *dlsym(void *handle, const char *name)
{
	void *found;

	if (!real)
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!real)
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!real)
		return NULL;
	found = real(handle, name);
	return found;
}
