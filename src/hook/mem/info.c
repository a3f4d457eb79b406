/* What a program is told of the device's memory; what ends with contexts. */
#include "hook/hook_table.h"
#include "hook/config.h"
#include "hook/mem/account.h"
#include "hook/mem/answers.h"
#include "hook/mem/pools.h"
#include "share/quota.h"

/* ---- how much there is ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* As of a card that has as much as the quota. */
static void shrink(uint64_t *free, uint64_t *total)
{
	struct member *m = member_current();
	if (!m || !m->slot->memory.quota)
		return;
	context_seen(m);
	const struct quota_sum sum = quota_sum(m->file, m->index);
	*free = least(*free, quota_left(&sum));
	*total = least(*total, sum.quota);
}

int memory_cuMemGetInfo_v2(void *free, void *total)
{
	const int result = REAL(cuMemGetInfo_v2, void *, void *)(free, total);
	if (!result)
		shrink(free, total);
	return result;
}

int memory_cuMemGetInfo(void *free, void *total)
{
	uint64_t wide[2];
	const int result = REAL(cuMemGetInfo, void *, void *)(free, total);
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
	const uint64_t bytes = config_get()->memory_bytes;
	return bytes ? bytes : UINT64_MAX;
}

int memory_cuDeviceTotalMem_v2(void *bytes, int device)
{
	const int result = REAL(cuDeviceTotalMem_v2, void *, int)(bytes, device);
	if (!result)
		*(uint64_t *)bytes = least(*(uint64_t *)bytes, quota());
	return result;
}

int memory_cuDeviceTotalMem(void *bytes, int device)
{
	const int result = REAL(cuDeviceTotalMem, void *, int)(bytes, device);
	if (!result)
		*(uint32_t *)bytes = (uint32_t)least(*(uint32_t *)bytes, quota());
	return result;
}

/* ---- contexts that end ---- */

int memory_cuCtxDestroy(void *context)
{
	const int result = REAL(cuCtxDestroy, void *)(context);
	if (!result)
		context_ended((uintptr_t)context, -1);
	return result;
}

int memory_cuCtxDestroy_v2(void *context)
{
	const int result = REAL(cuCtxDestroy_v2, void *)(context);
	if (!result)
		context_ended((uintptr_t)context, -1);
	return result;
}

int memory_cuCtxDetach(void *context)
{
	const int result = REAL(cuCtxDetach, void *)(context);
	if (!result)
		context_ended((uintptr_t)context, -1);
	return result;
}

/* The primary context lives as long as anybody retains it.  Others of its device may live on: what
 * they have is then counted again from their next call. */
static int primary_left(int device, int result)
{
	unsigned int flags;
	int active = 1;
	if (!result && hook_real[FN_cuDevicePrimaryCtxGetState] &&
		!REAL(cuDevicePrimaryCtxGetState, int, unsigned int *, int *)(
			device, &flags, &active) &&
		!active)
		context_ended(0, device);
	return result;
}

int memory_cuDevicePrimaryCtxRelease(int device)
{
	return primary_left(device, REAL(cuDevicePrimaryCtxRelease, int)(device));
}

int memory_cuDevicePrimaryCtxRelease_v2(int device)
{
	return primary_left(device, REAL(cuDevicePrimaryCtxRelease_v2, int)(device));
}

int memory_cuDevicePrimaryCtxReset(int device)
{
	return primary_left(device, REAL(cuDevicePrimaryCtxReset, int)(device));
}

int memory_cuDevicePrimaryCtxReset_v2(int device)
{
	return primary_left(device, REAL(cuDevicePrimaryCtxReset_v2, int)(device));
}

/* ---- the part ---- */

void memory_start(void)
{
	const struct config *c = config_get();
	if (c->sched && c->memory_bytes)
		__atomic_store_n(&hook_hot.memory, 1, __ATOMIC_RELEASE);
}

void memory_forget(void)
{
	owned_forget();
	pools_forget();
	account_forget();
}
