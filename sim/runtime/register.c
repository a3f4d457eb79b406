/*
 * Compiled programs register this before main(): fat binaries, and under each the host stubs of
 * kernels and the host shadows of variables.  Nothing is loaded until it is used.
 */
#include "rt.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct binary {
	void *first; /* what the handle points at: the wrapper, as programs expect */
	struct binary *next;
	void *library; /* CUlibrary, once loaded */
	bool managed_ready;
};

struct entity {
	const void *host;
	struct binary *binary;
	char *name;
	void *kernel; /* CUkernel, once found */
	bool managed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct binary *binaries;
static void *entities; /* tree of struct entity by host address */

static int compare(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct entity *)a)->host;
	uintptr_t y = (uintptr_t)((const struct entity *)b)->host;

	return x < y ? -1 : x > y;
}

static struct entity *entity_find(const void *host)
{
	struct entity key = { .host = host };
	struct entity **found = tfind(&key, &entities, compare);

	return found ? *found : NULL;
}

static void entity_add(void **handle, const void *host, const char *name, bool managed)
{
	struct entity *e = calloc(1, sizeof *e);

	if (!e)
		return;
	e->host = host;
	e->binary = (struct binary *)handle;
	e->name = strdup(name);
	e->managed = managed;
	pthread_mutex_lock(&lock);
	struct entity **slot = tsearch(e, &entities, compare);
	if (slot && *slot != e) {
		/* Registered again, by a library that was unloaded and came back. */
		struct entity old = **slot;
		**slot = *e;
		*e = old;
	}
	if (!slot || *slot != e) {
		free(e->name);
		free(e);
	}
	pthread_mutex_unlock(&lock);
}

RT_EXPORT void **__cudaRegisterFatBinary(void *wrapper);
void **__cudaRegisterFatBinary(void *wrapper)
{
	struct binary *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->first = wrapper;
	pthread_mutex_lock(&lock);
	b->next = binaries;
	binaries = b;
	pthread_mutex_unlock(&lock);
	return &b->first;
}

RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
}

/* One entity of a binary, during a walk under the lock. */
static const struct binary *wanted;
static struct entity *some;

static void visit(const void *node, VISIT order, int level)
{
	struct entity *e = *(struct entity *const *)node;

	if ((order == preorder || order == leaf) && e->binary == wanted)
		some = e;
}

static struct entity *entity_of(const struct binary *b)
{
	wanted = b;
	some = NULL;
	twalk(entities, visit);
	return some;
}

/* At exit the driver may be gone in part; only what the runtime owns is taken down. */
RT_EXPORT void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
	struct binary *b = (struct binary *)handle;
	struct entity *e;

	if (!b)
		return;
	pthread_mutex_lock(&lock);
	while ((e = entity_of(b)) != NULL) {
		tdelete(e, &entities, compare);
		free(e->name);
		free(e);
	}
	struct binary **link = &binaries;
	while (*link && *link != b)
		link = &(*link)->next;
	if (*link)
		*link = b->next;
	pthread_mutex_unlock(&lock);
	if (b->library && rt_legacy.cuLibraryUnload)
		rt_legacy.cuLibraryUnload(b->library);
	free(b);
}

RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *stub, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterFunction(void **handle, const char *host, char *stub, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp)
{
	entity_add(handle, host, name, false);
}

RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *address, const char *name,
	int external, size_t size, int constant, int global);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external,
	size_t size, int constant, int global)
{
	entity_add(handle, host, name, false);
}

RT_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
	int external, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
	int external, size_t size, int constant, int global)
{
	entity_add(handle, host, name, true);
}

RT_EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size);
void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size)
{
	entity_add(handle, host, name, false);
}

static int binary_load(struct binary *b)
{
	if (b->library)
		return 0;
	return rt_legacy.cuLibraryLoadData(&b->library, b->first, NULL, NULL, 0, NULL, NULL, 0);
}

/* Points the host's pointer of a managed variable at the variable. */
static void set_managed(const void *node, VISIT order, int level)
{
	struct entity *e = *(struct entity *const *)node;
	unsigned long long address;
	size_t size;

	if ((order != preorder && order != leaf) || e->binary != wanted || !e->managed)
		return;
	if (rt_legacy.cuLibraryGetManaged(&address, &size, e->binary->library, e->name) == 0)
		*(void **)e->host = (void *)address;
}

RT_EXPORT char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle)
{
	struct binary *b = (struct binary *)handle;
	int r = rt_begin();

	pthread_mutex_lock(&lock);
	if (!r)
		r = binary_load(b);
	if (!r && !b->managed_ready) {
		wanted = b;
		twalk(entities, set_managed);
		b->managed_ready = true;
	}
	pthread_mutex_unlock(&lock);
	rt_end(r);
	return r == 0;
}

static int kernel_locked(const void *host, void **ret_kernel)
{
	struct entity *e = entity_find(host);

	if (!e)
		return cudaErrorInvalidDeviceFunction;
	int r = binary_load(e->binary);
	if (!r && !e->kernel)
		r = rt_legacy.cuLibraryGetKernel(&e->kernel, e->binary->library, e->name);
	if (r)
		return r == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : r;
	*ret_kernel = e->kernel;
	return 0;
}

int rt_kernel(const void *host, void **ret_kernel)
{
	pthread_mutex_lock(&lock);
	int r = kernel_locked(host, ret_kernel);
	pthread_mutex_unlock(&lock);
	return r;
}

static int symbol_locked(const void *host, uint64_t *ret_address, size_t *ret_size)
{
	struct entity *e = entity_find(host);
	unsigned long long address;

	if (!e)
		return cudaErrorInvalidSymbol;
	int r = binary_load(e->binary);
	if (!r)
		r = rt_legacy.cuLibraryGetGlobal(&address, ret_size, e->binary->library, e->name);
	if (r)
		return r == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : r;
	*ret_address = address;
	return 0;
}

int rt_symbol(const void *host, uint64_t *ret_address, size_t *ret_size)
{
	pthread_mutex_lock(&lock);
	int r = symbol_locked(host, ret_address, ret_size);
	pthread_mutex_unlock(&lock);
	return r;
}

RT_FUNCTION(cudaGetSymbolAddress, (void **ret_address, const void *symbol))
{
	size_t size;
	uint64_t address = 0;
	int r = rt_begin();

	if (!r && !ret_address)
		r = cudaErrorInvalidValue;
	if (!r)
		r = rt_symbol(symbol, &address, &size);
	if (!r)
		*ret_address = (void *)address;
	return rt_end(r);
}

RT_FUNCTION(cudaGetSymbolSize, (size_t * ret_size, const void *symbol))
{
	uint64_t address;
	int r = rt_begin();

	if (!r && !ret_size)
		r = cudaErrorInvalidValue;
	return rt_end(r ? r : rt_symbol(symbol, &address, ret_size));
}
