/*
 * Virtual memory management: address ranges are reserved without access, physical memory
 * is an anonymous file, mapping one into the other is mmap(), and access is mprotect().
 * So two mappings of one handle show the same bytes, and unmapped addresses fault.
 */
#include "driver/sim.h"
#include "driver/graph.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULARITY = 2 << 20 };

struct allocation { /* CUmemGenericAllocationHandle */
	struct obj obj;
	int fd;
	size_t size;
	int device;
	unsigned refs; /* handles retained */
	unsigned maps;
	struct cu_mem_allocation_prop prop;
};

struct reservation {
	struct reservation *next;
	uint64_t base;
	size_t size;
};

static struct reservation *reservations;

static bool aligned(uint64_t x)
{
	return x % GRANULARITY == 0;
}

static struct reservation *reservation_of(uint64_t base, size_t size)
{
	struct reservation *r = reservations;

	while (r &&
		(base < r->base || base - r->base > r->size || size > r->size - (base - r->base)))
		r = r->next;
	return r;
}

int sim_cuMemGetAllocationGranularity(size_t *ret_bytes, void *prop, int option)
{
	if (!ret_bytes || !prop || (option != 0 && option != 1))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bytes = GRANULARITY;
	return CUDA_SUCCESS;
}

/* Reserves more than asked, then gives back what is in front and behind. */
static void *reserve_aligned(size_t size, size_t align)
{
	uint8_t *p = mmap(
		NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	size_t front = (align - (uint64_t)p % align) % align;
	if (front)
		munmap(p, front);
	munmap(p + front + size, align - front);
	return p + front;
}

int sim_cuMemAddressReserve(unsigned long long *ret_address, size_t size, size_t align,
	unsigned long long hint, unsigned long long flags)
{
	if (!align)
		align = GRANULARITY;
	if (!ret_address || !size || !aligned(size) || flags || (align & (align - 1)) ||
		align > (size_t)1 << 40 || size > (size_t)1 << 46)
		return CUDA_ERROR_INVALID_VALUE;
	struct reservation *r = calloc(1, sizeof *r);
	void *p = r ? reserve_aligned(size, align < GRANULARITY ? GRANULARITY : align) : NULL;
	if (!p) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*r = (struct reservation){ .next = reservations, .base = (uint64_t)p, .size = size };
	reservations = r;
	*ret_address = r->base;
	return CUDA_SUCCESS;
}

static bool any_mapped(uint64_t base, size_t size)
{
	for (uint64_t at = base; at < base + size; at += GRANULARITY)
		if (range_find(at))
			return true;
	return false;
}

int sim_cuMemAddressFree(unsigned long long address, size_t size)
{
	for (struct reservation **link = &reservations; *link; link = &(*link)->next) {
		struct reservation *r = *link;

		if (r->base != address || r->size != size)
			continue;
		if (any_mapped(address, size))
			return CUDA_ERROR_INVALID_VALUE;
		munmap((void *)address, size);
		*link = r->next;
		free(r);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static int check_prop(const struct cu_mem_allocation_prop *p)
{
	if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
		p->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->handle_types & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return device_exists(p->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static struct allocation *allocation_new(int fd, size_t size, int device)
{
	struct allocation *a = fd < 0 ? NULL : obj_new(OBJ_ALLOCATION, sizeof *a, NULL);

	if (!a)
		return NULL;
	a->fd = fd;
	a->size = size;
	a->device = device;
	a->refs = 1;
	return a;
}

int sim_cuMemCreate(
	unsigned long long *ret_handle, size_t size, void *properties, unsigned long long flags)
{
	const struct cu_mem_allocation_prop *p = properties;
	int r = check_prop(p);

	if (r)
		return r;
	if (!ret_handle || !size || !aligned(size) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = device_reserve(p->location.id, size);
	if (r)
		return r;
	int fd = memfd_create("weir-sim", MFD_CLOEXEC);
	struct allocation *a = NULL;
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		a = allocation_new(fd, size, p->location.id);
	if (!a) {
		if (fd >= 0)
			close(fd);
		device_give_back(p->location.id, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->prop = *p;
	*ret_handle = (uint64_t)a;
	return CUDA_SUCCESS;
}

static struct allocation *allocation_find(unsigned long long handle)
{
	struct allocation *a = obj_find((void *)handle, OBJ_ALLOCATION);

	return a && a->refs ? a : NULL;
}

/* Memory lives as long as a handle or a mapping of it does. */
static void drop_if_unused(struct allocation *a)
{
	if (a->refs || a->maps)
		return;
	close(a->fd);
	device_give_back(a->device, a->size);
	obj_free(a);
}

int sim_cuMemRelease(unsigned long long handle)
{
	struct allocation *a = allocation_find(handle);

	if (!a)
		return CUDA_ERROR_INVALID_VALUE;
	a->refs--;
	drop_if_unused(a);
	return CUDA_SUCCESS;
}

int sim_cuMemRetainAllocationHandle(unsigned long long *ret_handle, void *address)
{
	struct range *range = range_find((uint64_t)address);

	if (!ret_handle || !range || range->kind != RANGE_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	range->allocation->refs++;
	*ret_handle = (uint64_t)range->allocation;
	return CUDA_SUCCESS;
}

int sim_cuMemMap(unsigned long long address, size_t size, size_t offset, unsigned long long handle,
	unsigned long long flags)
{
	struct allocation *a = allocation_find(handle);
	struct range *range;

	if (!a || flags || offset || !size || !aligned(size) || !aligned(address) ||
		size > a->size || !reservation_of(address, size))
		return CUDA_ERROR_INVALID_VALUE;
	struct range like = {
		.base = address,
		.size = size,
		.kind = RANGE_MAPPED,
		.device = a->device,
		.ctx = NULL, /* outlives contexts */
		.allocation = a,
	};
	int r = range_add(&like, &range);
	if (r)
		return r;
	if (mmap((void *)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, a->fd, 0) ==
		MAP_FAILED) {
		range_remove(range);
		range_free(range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->maps++;
	return CUDA_SUCCESS;
}

/* All mapped ranges of [address, address + size) in turn; false where a hole is. */
static bool covered(uint64_t address, size_t size)
{
	for (uint64_t at = address; at < address + size;) {
		struct range *range = range_find(at);

		if (!range || range->kind != RANGE_MAPPED)
			return false;
		at = range->base + range->size;
	}
	return true;
}

static void unmap(struct range *range)
{
	struct allocation *a = range->allocation;

	mmap((void *)range->base, range->size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	range_remove(range);
	range_free(range);
	a->maps--;
	drop_if_unused(a);
}

int sim_cuMemUnmap(unsigned long long address, size_t size)
{
	if (!size || !aligned(size) || !aligned(address) || address + size < address ||
		!covered(address, size))
		return CUDA_ERROR_INVALID_VALUE;
	struct range *first = range_find(address), *last = range_find(address + size - 1);
	if (first->base != address || last->base + last->size != address + size)
		return CUDA_ERROR_INVALID_VALUE; /* not in the middle of a mapping */
	struct context *ctx;
	if (!context_get(&ctx))
		context_wait(ctx);
	for (uint64_t at = address; at < address + size;) {
		struct range *range = range_find(at);

		at = range->base + range->size;
		unmap(range);
	}
	return CUDA_SUCCESS;
}

int sim_cuMemSetAccess(unsigned long long address, size_t size, void *list, size_t count)
{
	const struct cu_mem_access_desc *d = list;
	int protection = PROT_NONE;
	uint32_t named = 0, readers = 0;

	if (!d || !count || !size || !aligned(size) || address + size < address ||
		!covered(address, size))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (d[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			!device_exists(d[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		const uint32_t device = d[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE
						? 1u << d[i].location.id
						: 0;
		named |= device;
		readers |= d[i].flags ? device : 0;
		if (d[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			protection = PROT_READ | PROT_WRITE;
		else if (d[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
			protection |= PROT_READ;
		else if (d[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (uint64_t at = address; at < address + size;) {
		struct range *range = range_find(at);

		range->flags = (unsigned)protection;
		range->readers = (range->readers & ~named) | readers;
		at = range->base + range->size;
	}
	mprotect((void *)address, size, protection);
	return CUDA_SUCCESS;
}

int sim_cuMemGetAccess(
	unsigned long long *ret_flags, unsigned long long *location, unsigned long long address)
{
	struct range *range = range_find(address);

	if (!ret_flags || !location || !range || range->kind != RANGE_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	const struct cu_mem_location *l = (const void *)location;
	if (l->type == CU_MEM_LOCATION_TYPE_DEVICE &&
		(!device_exists(l->id) || !(range->readers >> l->id & 1)))
		*ret_flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	else
		*ret_flags = range->flags & PROT_WRITE  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			     : range->flags & PROT_READ ? CU_MEM_ACCESS_FLAGS_PROT_READ
							: CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

int sim_cuMemGetAllocationPropertiesFromHandle(void *ret_prop, unsigned long long handle)
{
	struct allocation *a = allocation_find(handle);

	if (!a || !ret_prop)
		return CUDA_ERROR_INVALID_VALUE;
	*(struct cu_mem_allocation_prop *)ret_prop = a->prop;
	return CUDA_SUCCESS;
}

int sim_cuMemExportToShareableHandle(
	void *ret_handle, unsigned long long handle, int type, unsigned long long flags)
{
	struct allocation *a = allocation_find(handle);

	if (!a || !ret_handle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!(a->prop.handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_INVALID_VALUE;
	int fd = dup(a->fd);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)ret_handle = fd;
	return CUDA_SUCCESS;
}

int sim_cuMemImportFromShareableHandle(unsigned long long *ret_handle, void *os_handle, int type)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	int fd = dup((int)(intptr_t)os_handle);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	struct allocation *a = NULL;
	if (size > 0 && aligned((uint64_t)size))
		a = allocation_new(fd, (size_t)size, ctx->device);
	if (!a) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_INVALID_VALUE;
	}
	a->prop = (struct cu_mem_allocation_prop){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handle_types = type,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, ctx->device },
	};
	devices[ctx->device].used_bytes += a->size;
	*ret_handle = (uint64_t)a;
	return CUDA_SUCCESS;
}
