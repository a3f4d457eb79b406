/*
 * Answers a program's questions about device memory from its quota, and releases the memory of a
 * context that ends.
 */
#include "base/atomic.h"
#include "base/check.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/mem/account.h"
#include "hook/mem/answers.h"
#include "hook/mem/served.h"
#include "share/quota.h"

/* As of a card that has as much as the quota. */
static void shrink(uint64_t *free, uint64_t *total)
{
	struct served_counts c;
	struct member *m = member_current();
	if (!m)
		return;
	served_counts(m->ordinal, &c);
	*free += c.idle;
	if (!m->slot->memory.quota)
		return;
	context_seen(m);
	const struct quota_sum sum = quota_sum(m->file, m->index);
	*free = MIN(*free, quota_left(&sum) + c.idle);
	*total = MIN(*total, sum.quota);
}

int memory_cuMemGetInfo_v2(void *free, void *total)
{
	const int result = REAL(cuMemGetInfo_v2)(free, total);
	if (!result)
		shrink(free, total);
	return result;
}

int memory_cuMemGetInfo(void *free, void *total)
{
	uint64_t wide[2];
	const int result = REAL(cuMemGetInfo)(free, total);
	if (result)
		return result;
	wide[0] = *(uint32_t *)free;
	wide[1] = *(uint32_t *)total;
	shrink(&wide[0], &wide[1]);
	*(uint32_t *)free = (uint32_t)wide[0];
	*(uint32_t *)total = (uint32_t)wide[1];
	return result;
}

static uint64_t quota(void)
{
	const uint64_t bytes = config_get()->self.quota;
	return bytes ? bytes : UINT64_MAX;
}

int memory_cuDeviceTotalMem_v2(void *bytes, int device)
{
	const int result = REAL(cuDeviceTotalMem_v2)(bytes, device);
	if (!result)
		*(uint64_t *)bytes = MIN(*(uint64_t *)bytes, quota());
	return result;
}

int memory_cuDeviceTotalMem(void *bytes, int device)
{
	const int result = REAL(cuDeviceTotalMem)(bytes, device);
	if (!result)
		*(uint32_t *)bytes = (uint32_t)MIN(*(uint32_t *)bytes, quota());
	return result;
}

/* In place of one in the pool's addresses that no block is at: to the driver they are mapped. */
#define NOWHERE 16ull

int memory_cuMemGetAddressRange_v2(void *base, void *bytes, unsigned long long address)
{
	struct served_block b;
	const bool is_pool = served_find(address, &b);
	if (!is_pool || !b.bytes)
		return REAL(cuMemGetAddressRange_v2)(base, bytes, is_pool ? NOWHERE : address);
	if (base)
		*(uint64_t *)base = b.address;
	if (bytes)
		*(uint64_t *)bytes = b.bytes;
	return 0;
}

enum { RANGE_START = 11, RANGE_BYTES = 12 }; /* CUpointer_attribute */

/* These attributes are the block's, not those of the handle behind it. */
static void correct(void *data, int attribute, const struct served_block *b)
{
	if (data && attribute == RANGE_START)
		*(uint64_t *)data = b->address;
	else if (data && attribute == RANGE_BYTES)
		*(uint64_t *)data = b->bytes;
}

int memory_cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
	struct served_block b;
	const bool is_pool = served_find(address, &b);
	const int result = REAL(cuPointerGetAttribute)(
		data, attribute, is_pool && !b.bytes ? NOWHERE : address);
	if (!result && is_pool)
		correct(data, attribute, &b);
	return result;
}

int memory_cuPointerGetAttributes(
	unsigned int count, void *attributes, void *data, unsigned long long address)
{
	struct served_block b;
	const bool is_pool = served_find(address, &b);
	const int result = REAL(cuPointerGetAttributes)(
		count, attributes, data, is_pool && !b.bytes ? NOWHERE : address);
	for (unsigned int i = 0; i < count && !result && is_pool; i++)
		correct(((void **)data)[i], ((const int *)attributes)[i], &b);
	return result;
}

/* Mapped memory has none: the driver says so, and why is said in the recording. */
int memory_cuIpcGetMemHandle(void *handle, unsigned long long address)
{
	struct served_block b;
	if (served_find(address, &b) && b.bytes)
		meta_message(
			"the program shares memory with another process, which the pool does not allow: run it without --pool");
	return REAL(cuIpcGetMemHandle)(handle, address);
}

static int device_of(void *context)
{
	void *current;
	int device = -1;
	if (!real_at(FN_cuCtxPushCurrent_v2) || !real_at(FN_cuCtxPopCurrent_v2) ||
		!real_at(FN_cuCtxGetDevice) || REAL(cuCtxPushCurrent_v2)(context))
		return -1;
	REAL(cuCtxGetDevice)(&device);
	REAL(cuCtxPopCurrent_v2)(&current);
	return device;
}

/* The peer reaches all memory that it has and will have. */
int memory_cuCtxEnablePeerAccess(void *peer, unsigned int flags)
{
	const struct member *m = member_current();
	const int result = REAL(cuCtxEnablePeerAccess)(peer, flags);
	if (!result && m)
		served_reach(device_of(peer), m->ordinal);
	return result;
}

int memory_cuStreamDestroy(void *stream)
{
	served_stream_ends(stream);
	return REAL(cuStreamDestroy)(stream);
}

int memory_cuStreamDestroy_v2(void *stream)
{
	served_stream_ends(stream);
	return REAL(cuStreamDestroy_v2)(stream);
}

static int context_left(void *context, int result)
{
	if (!result) {
		context_ended((uintptr_t)context);
		served_context_ended(context);
	}
	account_changes(false);
	return result;
}

/* memory_NAME() of a call that ends a context. */
#define ENDS_CONTEXT(name)                                                                         \
	int memory_##name(void *context)                                                           \
	{                                                                                          \
		account_changes(true);                                                             \
		return context_left(context, REAL(name)(context));                                 \
	}
ENDS_CONTEXT(cuCtxDestroy)
ENDS_CONTEXT(cuCtxDestroy_v2)
ENDS_CONTEXT(cuCtxDetach)

static bool primary_is_active(int device)
{
	unsigned int flags;
	int active = 0;
	return real_at(FN_cuDevicePrimaryCtxGetState) &&
	       !REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) && active;
}

/* The driver tells which context it is only to who retains it. */
static uint64_t primary_of(int device)
{
	void *context = NULL;
	int (*release)(int) = real_at(FN_cuDevicePrimaryCtxRelease_v2);
	if (!release || !real_at(FN_cuDevicePrimaryCtxRetain) || !primary_is_active(device) ||
		REAL(cuDevicePrimaryCtxRetain)(&context, device))
		return 0;
	release(device);
	return (uintptr_t)context;
}

/* It lives as long as anybody retains it. */
static int leave_primary(int (*leave)(int), int device)
{
	const uint64_t context = primary_of(device);
	account_changes(true);
	const int result = leave(device);
	if (!result && context && !primary_is_active(device)) {
		context_ended(context);
		served_context_ended((void *)(uintptr_t)context);
	}
	account_changes(false);
	return result;
}

#define LEAVES_PRIMARY(name)                                                                       \
	int memory_##name(int device)                                                              \
	{                                                                                          \
		return leave_primary(REAL(name), device);                                          \
	}
LEAVES_PRIMARY(cuDevicePrimaryCtxRelease)
LEAVES_PRIMARY(cuDevicePrimaryCtxRelease_v2)
LEAVES_PRIMARY(cuDevicePrimaryCtxReset)
LEAVES_PRIMARY(cuDevicePrimaryCtxReset_v2)

void memory_start(void)
{
	const struct config *c = config_get();
	if (c->sched) /* without a quota too: others see what it has */
		store_release(&hook_hot.memory, 1);
}

void memory_forget(void)
{
	owned_forget();
	pools_forget();
	account_forget();
	served_forget();
}
