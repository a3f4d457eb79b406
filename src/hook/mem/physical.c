/*
 * Physical memory that a program maps itself.  It is the device's until its handles are released
 * and nothing is mapped to it any more, so it is counted apart from them.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/atomic.h"
#include "cuda_types.h"
#include "hook/core/hook_table.h"
#include "hook/mem/account.h"
#include "hook/mem/answers.h"

static _Atomic uint64_t last_physical; /* number that was given */

static uint64_t handle_at(const void *handle)
{
	uint64_t value;
	memcpy(&value, handle, sizeof value);
	return value;
}

/* The caller of this function and of the next four has the lock. */
static void use(uint64_t physical)
{
	struct owned *o = owned_find(OWNED_PHYSICAL, physical);
	if (o)
		o->uses++;
}

static void leave(uint64_t physical)
{
	struct owned *o = owned_find(OWNED_PHYSICAL, physical);
	if (!o || --o->uses)
		return;
	account_give(o->device, OWNED_PHYSICAL, o->bytes);
	owned_drop(o);
}

static void add_handle(uint64_t handle, uint64_t physical)
{
	struct owned *o = owned_find(OWNED_HANDLE, handle);
	if (o)
		o->uses++;
	else if (owned_put(&(struct owned){
			 .kind = OWNED_HANDLE, .key = handle, .physical = physical, .uses = 1 }))
		use(physical);
}

/* The one that an address lies in, most often at its begin. */
static const struct owned *mapping_of(uint64_t address)
{
	const struct owned *o = owned_find(OWNED_MAPPING, address);
	for (struct owned *each = o ? NULL : owned_next(NULL); each; each = owned_next(each))
		if (each->kind == OWNED_MAPPING && address - each->key < each->bytes)
			return each;
	return o;
}

static void unmap(struct owned *o)
{
	const uint64_t physical = o->physical;
	owned_drop(o);
	leave(physical);
}

/* In place of one block: its physical memory, used once, by its handle. */
static bool created(const struct claim *c, uint64_t handle)
{
	bool counts = false;
	struct owned physical = { .kind = OWNED_PHYSICAL,
		.key = add_relaxed(&last_physical, 1) + 1,
		.bytes = c->bytes,
		.device = (uint16_t)c->member->ordinal };
	if (!owned_lock())
		return false;
	if (owned_put(&physical)) {
		add_handle(handle, physical.key);
		counts = owned_find(OWNED_PHYSICAL, physical.key)->uses;
	}
	owned_unlock();
	return counts;
}

static bool is_on_device(const struct cu_mem_allocation_prop *p)
{
	enum { DEVICE = 1 }; /* CUmemLocationType */
	return p && p->location.type == DEVICE;
}

int memory_cuMemCreate(void *handle, size_t bytes, void *properties, unsigned long long flags)
{
	struct claim c = { 0 };
	const struct cu_mem_allocation_prop *p = properties;
	if (handle && is_on_device(p) && !claim_begin_on(&c, p->location.id, bytes))
		return OUT_OF_MEMORY;
	const int result = REAL(cuMemCreate)(handle, bytes, properties, flags);
	if (result)
		return claim_end(&c, result, OWNED_PHYSICAL, 0);
	if (c.member)
		claim_settle(&c, created(&c, handle_at(handle)));
	return result;
}

/* The driver may give a handle's number out again as soon as it has it back. */
int memory_cuMemRelease(unsigned long long handle)
{
	uint64_t physical = 0;
	if (owned_lock()) {
		struct owned *o = owned_find(OWNED_HANDLE, handle);
		if (o && !--o->uses) {
			physical = o->physical;
			owned_drop(o);
		}
		owned_unlock();
	}
	account_changes(true);
	const int result = REAL(cuMemRelease)(handle);
	if (physical && owned_lock()) {
		leave(physical);
		owned_unlock();
	}
	account_changes(false);
	return result;
}

int memory_cuMemRetainAllocationHandle(void *handle, void *address)
{
	const int result = REAL(cuMemRetainAllocationHandle)(handle, address);
	if (result || !handle || !owned_lock())
		return result;
	const struct owned *o = owned_find(OWNED_HANDLE, handle_at(handle));
	const struct owned *mapping = o ? NULL : mapping_of((uint64_t)(uintptr_t)address);
	if (o || mapping)
		add_handle(handle_at(handle), o ? o->physical : mapping->physical);
	owned_unlock();
	return result;
}

/* The owner of the descriptor keeps the memory, and nobody can see who that is. So it stays counted
 * for as long as this process lives.  Behind its end those count it that have it mapped. */
static void exported(uint64_t handle)
{
	if (!owned_lock())
		return;
	const struct owned *o = owned_find(OWNED_HANDLE, handle);
	struct owned *physical = o ? owned_find(OWNED_PHYSICAL, o->physical) : NULL;
	if (physical && !physical->exported) {
		physical->exported = 1;
		physical->uses++;
	}
	owned_unlock();
}

int memory_cuMemExportToShareableHandle(
	void *shareable, unsigned long long handle, int type, unsigned long long flags)
{
	const int result = REAL(cuMemExportToShareableHandle)(shareable, handle, type, flags);
	if (!result)
		exported(handle);
	return result;
}

/* The device of a handle's memory; -1: not on a device that counts. */
static int device_of(uint64_t handle)
{
	struct cu_mem_allocation_prop p = { 0 };
	if (!real_at(FN_cuMemGetAllocationPropertiesFromHandle) ||
		REAL(cuMemGetAllocationPropertiesFromHandle)(&p, handle) || !is_on_device(&p) ||
		!member_of(p.location.id))
		return -1;
	return p.location.id;
}

int memory_cuMemImportFromShareableHandle(void *handle, void *shareable, int type)
{
	const int result = REAL(cuMemImportFromShareableHandle)(handle, shareable, type);
	const int device = result || !handle ? -1 : device_of(handle_at(handle));
	if (device < 0 || !owned_lock())
		return result;
	const struct owned physical = { .kind = OWNED_PHYSICAL,
		.key = add_relaxed(&last_physical, 1) + 1,
		.device = (uint16_t)device,
		.imported = 1 };
	if (owned_find(OWNED_HANDLE, handle_at(handle)) || owned_put(&physical))
		add_handle(handle_at(handle), physical.key);
	owned_unlock();
	return result;
}

/* With the lock. */
static struct owned *imported_of(uint64_t handle)
{
	const struct owned *o = owned_find(OWNED_HANDLE, handle);
	struct owned *physical = o ? owned_find(OWNED_PHYSICAL, o->physical) : NULL;
	return physical && physical->imported ? physical : NULL;
}

/* Claims imported memory as far as it is about to be mapped beyond all earlier mappings.  False:
 * the quota has no room for it. */
static bool claim_imported(struct claim *c, uint64_t handle, uint64_t end)
{
	*c = (struct claim){ 0 };
	if (!owned_lock())
		return true;
	const struct owned *physical = imported_of(handle);
	const int device = physical ? physical->device : 0;
	const uint64_t more = physical && end > physical->bytes ? end - physical->bytes : 0;
	owned_unlock();
	return !more || claim_begin_on(c, device, more);
}

static bool count_imported(const struct claim *c, uint64_t handle)
{
	if (!owned_lock())
		return false;
	struct owned *physical = imported_of(handle);
	if (physical)
		physical->bytes += c->bytes;
	owned_unlock();
	return physical;
}

int memory_cuMemMap(unsigned long long address, size_t bytes, size_t at, unsigned long long handle,
	unsigned long long flags)
{
	struct claim c;
	if (!claim_imported(&c, handle, at + bytes))
		return OUT_OF_MEMORY;
	const int result = REAL(cuMemMap)(address, bytes, at, handle, flags);
	if (c.member)
		claim_settle(&c, !result && count_imported(&c, handle));
	if (result || !owned_lock())
		return result;
	const struct owned *o = owned_find(OWNED_HANDLE, handle);
	if (o && owned_put(&(struct owned){ .kind = OWNED_MAPPING,
			 .key = address,
			 .bytes = bytes,
			 .physical = o->physical }))
		use(owned_find(OWNED_MAPPING, address)->physical);
	owned_unlock();
	return result;
}

/* A range of whole mappings, one behind the other, between them perhaps some that are not ours. */
static void unmapped(uint64_t address, uint64_t bytes)
{
	if (!owned_lock())
		return;
	uint64_t done = 0;
	for (struct owned *o; done < bytes && (o = owned_find(OWNED_MAPPING, address + done));) {
		done += o->bytes;
		unmap(o);
	}
	for (struct owned *o = done < bytes ? owned_next(NULL) : NULL; o; o = owned_next(o))
		if (o->kind == OWNED_MAPPING && o->key - address < bytes)
			unmap(o);
	owned_unlock();
}

int memory_cuMemUnmap(unsigned long long address, size_t bytes)
{
	account_changes(true);
	const int result = REAL(cuMemUnmap)(address, bytes);
	if (!result)
		unmapped(address, bytes);
	account_changes(false);
	return result;
}
