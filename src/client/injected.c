/* Finds the functions of the injected library in this process. */
#include "client/client.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"

enum { UNKNOWN, MISSING, FOUND };
static _Atomic uint32_t known; /* stored with release behind `functions`, loaded with acquire */
static struct injected functions;

/* Several threads at once find the same. */
static bool find_all(void)
{
#define FIND(name, result, parameters)                                                             \
	void *name = dlsym(RTLD_DEFAULT, "weir_hook_" #name);                                      \
	if (!name)                                                                                 \
		return false;                                                                      \
	store_relaxed(shared((void **)&functions.name), name);
	INJECTED_FUNCTIONS(FIND)
#undef FIND
	return true;
}

const struct injected *injected_find(void)
{
	uint32_t now = load_acquire(&known);
	if (now == UNKNOWN) {
		now = find_all() ? FOUND : MISSING;
		if (now == MISSING)
			dlerror(); /* is nothing that the program should hear of */
		store_release(&known, now);
	}
	return now == FOUND ? &functions : NULL;
}

const struct injected *injected_in(const char *directory)
{
	const struct injected *i = injected_find();
	const char *shares = i ? i->share_directory() : NULL;
	return shares && !strcmp(shares, directory) ? i : NULL;
}
