/* Preloaded: a malloc() that asks the driver for its context, as allocators that keep memory per
 * device do, and that counts what is allocated while a driver call is under way. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);

atomic_long malloc_inside;
_Thread_local int driver_depth;
int (*malloc_ask)(void **context);

void *malloc(size_t size)
{
	static _Thread_local int asking;
	void *context;

	if (driver_depth) {
		atomic_fetch_add(&malloc_inside, 1);
	} else if (malloc_ask && !asking) {
		asking++;
		malloc_ask(&context);
		asking--;
	}
	return __libc_malloc(size);
}
