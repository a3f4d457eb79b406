/* See cap.h.  A lane that is taken is not waited for: the launch then goes uncapped. */
#include "hook/sched/cap.h"

#include <string.h>

#include "cuda_types.h"
#include "hook/hook_table.h"

#define LANES          8u
#define NO_TIMING      2u
#define NON_BLOCKING   1u
#define GREEN_DEFAULT  1u /* CU_GREEN_CTX_DEFAULT_STREAM */
#define RESOURCE_SM    1  /* CU_DEV_RESOURCE_TYPE_SM */
#define LEAST_PRIORITY 0

struct cap_lane {
	uint32_t taken;
	void *stream, *before, *behind; /* and events */
};

static struct {
	uint32_t state; /* 0: none, 1: being made, 2: there, 3: can't be had */
	uint32_t sms;
	int device;
	void *context;
	struct cap_lane lane[LANES];
} cap;

bool cap_is_safe(const struct cost *c, uint32_t sms, uint32_t cap_sms)
{
	if (!c->plain || !c->resident || !cap_sms)
		return false;
	return c->blocks > (uint64_t)sms * c->resident ||
	       c->blocks <= (uint64_t)cap_sms * c->resident;
}

static bool driver_can(void)
{
	static const enum fn needed[] = { FN_cuDeviceGetDevResource, FN_cuDevSmResourceSplitByCount,
		FN_cuDevResourceGenerateDesc, FN_cuGreenCtxCreate, FN_cuGreenCtxStreamCreate,
		FN_cuEventCreate, FN_cuEventRecord, FN_cuEventRecord_ptsz, FN_cuStreamWaitEvent,
		FN_cuStreamWaitEvent_ptsz };
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!hook_real[needed[i]])
			return false;
	return true;
}

static bool make_lane(struct cap_lane *l)
{
	return !REAL(cuGreenCtxStreamCreate, void **, void *, unsigned, int)(
		       &l->stream, cap.context, NON_BLOCKING, LEAST_PRIORITY) &&
	       !REAL(cuEventCreate, void **, unsigned)(&l->before, NO_TIMING) &&
	       !REAL(cuEventCreate, void **, unsigned)(&l->behind, NO_TIMING);
}

static bool make(int device, uint32_t sms)
{
	struct cu_dev_resource all, part;
	unsigned groups = 1;
	void *description = NULL;
	if (!driver_can() ||
		REAL(cuDeviceGetDevResource, int, void *, int)(device, &all, RESOURCE_SM) ||
		REAL(cuDevSmResourceSplitByCount, void *, unsigned *, const void *, void *,
			unsigned, unsigned)(&part, &groups, &all, NULL, 0, sms) ||
		REAL(cuDevResourceGenerateDesc, void **, void *, unsigned)(
			&description, &part, 1) ||
		REAL(cuGreenCtxCreate, void **, void *, int, unsigned)(
			&cap.context, description, device, GREEN_DEFAULT))
		return false;
	for (uint32_t i = 0; i < LANES; i++)
		if (!make_lane(&cap.lane[i]))
			return false;
	cap.sms = sms;
	cap.device = device;
	return true;
}

/* Another number of SMs than before: as it was made; one size a program is enough. */
static bool is_there(int device, uint32_t sms)
{
	uint32_t seen = 0;
	if (__atomic_compare_exchange_n(
		    &cap.state, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		seen = make(device, sms) ? 2 : 3;
		__atomic_store_n(&cap.state, seen, __ATOMIC_RELEASE);
	}
	return seen == 2 && cap.device == device;
}

static struct cap_lane *take(void *stream)
{
	struct cap_lane *l = &cap.lane[(uintptr_t)stream * 0x9e3779b97f4a7c15u >> 61];
	uint32_t seen = 0;
	return __atomic_compare_exchange_n(
		       &l->taken, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
		       ? l
		       : NULL;
}

static int record(void *event, void *stream, int per_thread)
{
	return per_thread ? REAL(cuEventRecord_ptsz, void *, void *)(event, stream)
			  : REAL(cuEventRecord, void *, void *)(event, stream);
}

static int await(void *stream, void *event, int per_thread)
{
	return per_thread ? REAL(cuStreamWaitEvent_ptsz, void *, void *, unsigned)(stream, event, 0)
			  : REAL(cuStreamWaitEvent, void *, void *, unsigned)(stream, event, 0);
}

struct cap_lane *cap_enter(
	int device, uint32_t cap_sms, void *stream, int per_thread, void **ret_stream)
{
	if (!is_there(device, cap_sms))
		return NULL;
	struct cap_lane *l = take(stream);
	if (!l)
		return NULL;
	if (record(l->before, stream, per_thread) || await(l->stream, l->before, 0)) {
		__atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE);
		return NULL;
	}
	*ret_stream = l->stream;
	return l;
}

void cap_leave(struct cap_lane *lane, void *stream, int per_thread)
{
	if (!record(lane->behind, lane->stream, 0))
		await(stream, lane->behind, per_thread);
	__atomic_store_n(&lane->taken, 0, __ATOMIC_RELEASE);
}

void cap_forget(void)
{
	memset(&cap, 0, sizeof cap);
}
