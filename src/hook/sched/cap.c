/* See cap.h.  A lane that is taken is not waited for: the launch then goes uncapped. */
#include "hook/sched/cap.h"

#include <string.h>

#include "base/atomic.h"
#include "cuda_types.h"
#include "hook/core/call.h"
#include "hook/core/own_calls.h"

#define SIZES          4u /* of caps, that one program may use */
#define LANES          8u
#define NO_TIMING      2u
#define NON_BLOCKING   1u
#define GREEN_DEFAULT  1u /* CU_GREEN_CTX_DEFAULT_STREAM */
#define RESOURCE_SM    1  /* CU_DEV_RESOURCE_TYPE_SM */
#define LEAST_PRIORITY 0

struct cap_lane {
	_Atomic uint32_t taken;
	void *stream, *before, *behind; /* and events */
};

enum cap_state { CAP_NONE, CAP_MAKING, CAP_READY, CAP_IMPOSSIBLE };

/* A green context of some SMs of a device. */
static struct cap {
	_Atomic uint32_t state; /* enum cap_state */
	uint32_t sms;
	int device;
	void *context, *primary;
	struct cap_lane lane[LANES];
} caps[SIZES];

bool cap_is_safe(const struct cost *c, uint32_t sms, uint32_t cap_sms)
{
	const uint64_t resident = load_relaxed(&c->resident), blocks = load_relaxed(&c->blocks);
	if (!load_relaxed(&c->plain) || !resident || !cap_sms)
		return false;
	return blocks > sms * resident || blocks <= cap_sms * resident;
}

static bool driver_can(void)
{
	static const enum fn needed[] = { FN_cuDeviceGetDevResource, FN_cuDevSmResourceSplitByCount,
		FN_cuDevResourceGenerateDesc, FN_cuGreenCtxCreate, FN_cuGreenCtxStreamCreate,
		FN_cuEventCreate, FN_cuEventRecord, FN_cuEventRecord_ptsz, FN_cuStreamWaitEvent,
		FN_cuStreamWaitEvent_ptsz, FN_cuCtxGetCurrent, FN_cuDevicePrimaryCtxGetState,
		FN_cuDevicePrimaryCtxRetain, FN_cuDevicePrimaryCtxRelease_v2, FN_cuStreamQuery,
		FN_cuStreamDestroy_v2, FN_cuEventDestroy_v2, FN_cuGreenCtxDestroy };
	return ALL_FOUND(needed);
}

static bool make_lane(const struct cap *c, struct cap_lane *l)
{
	return !REAL(cuGreenCtxStreamCreate)(
		       &l->stream, c->context, NON_BLOCKING, LEAST_PRIORITY) &&
	       !REAL(cuEventCreate)(&l->before, NO_TIMING) &&
	       !REAL(cuEventCreate)(&l->behind, NO_TIMING);
}

/* The device's primary context; NULL: there is none now. */
static void *primary_of(int device)
{
	unsigned flags = 0;
	int active = 0;
	void *context = NULL;
	if (REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) || !active ||
		REAL(cuDevicePrimaryCtxRetain)(&context, device))
		return NULL;
	REAL(cuDevicePrimaryCtxRelease_v2)(device);
	return context;
}

static bool make(struct cap *c, int device, uint32_t sms)
{
	struct cu_dev_resource all, part;
	unsigned groups = 1;
	void *description = NULL;
	c->sms = sms;
	c->device = device;
	if (REAL(cuDeviceGetDevResource)(device, &all, RESOURCE_SM) ||
		REAL(cuDevSmResourceSplitByCount)(&part, &groups, &all, NULL, 0, sms) ||
		REAL(cuDevResourceGenerateDesc)(&description, &part, 1) ||
		REAL(cuGreenCtxCreate)(&c->context, description, device, GREEN_DEFAULT))
		return false;
	for (uint32_t i = 0; i < LANES; i++)
		if (!make_lane(c, &c->lane[i]))
			return false;
	return true;
}

/* Its state afterwards. */
static uint32_t try_to_make(struct cap *c, int device, uint32_t sms)
{
	c->primary = primary_of(device);
	/* Kernels of another context can't be launched there. */
	if (!c->primary || current_context() != c->primary)
		return CAP_NONE;
	return make(c, device, sms) ? CAP_READY : CAP_IMPOSSIBLE;
}

/* Whether nobody is between cap_enter() and cap_leave() and nothing runs there. */
static bool is_idle(const struct cap *c)
{
	for (uint32_t i = 0; i < LANES; i++)
		if (atomic_load_explicit(&c->lane[i].taken, memory_order_seq_cst) ||
			REAL(cuStreamQuery)(c->lane[i].stream) == NOT_READY)
			return false;
	return true;
}

static void end(struct cap *c)
{
	for (uint32_t i = 0; i < LANES; i++) {
		REAL(cuStreamDestroy_v2)(c->lane[i].stream);
		REAL(cuEventDestroy_v2)(c->lane[i].before);
		REAL(cuEventDestroy_v2)(c->lane[i].behind);
	}
	REAL(cuGreenCtxDestroy)(c->context);
	memset(c->lane, 0, sizeof c->lane);
}

/* False: somebody is at it. */
static bool leave(struct cap *c, bool also_busy)
{
	uint32_t seen = CAP_READY;
	if (!replace_if(&c->state, &seen, CAP_MAKING, seq_cst, acquire))
		return false;
	const bool ends = also_busy || is_idle(c);
	if (ends)
		end(c);
	store_release(&c->state, ends ? CAP_NONE : CAP_READY);
	return ends;
}

static struct cap *find(int device, uint32_t sms)
{
	for (uint32_t i = 0; i < SIZES; i++) {
		struct cap *c = &caps[i];
		const uint32_t seen = load_acquire(&c->state);
		if ((seen == CAP_READY || seen == CAP_IMPOSSIBLE) && c->sms == sms &&
			c->device == device)
			return c;
	}
	return NULL;
}

/* In a free place, or in that of one that nothing runs in; NULL: there is none now. */
static struct cap *make_any(int device, uint32_t sms)
{
	for (uint32_t i = 0; i < 2 * SIZES; i++) {
		struct cap *c = &caps[i % SIZES];
		uint32_t seen = CAP_NONE;
		if (load_acquire(&c->state) == CAP_MAKING)
			return NULL; /* perhaps just this one */
		if (i >= SIZES && !leave(c, false))
			continue;
		if (!replace_if(&c->state, &seen, CAP_MAKING, acquire, acquire))
			continue;
		seen = try_to_make(c, device, sms);
		store_release(&c->state, seen);
		return seen == CAP_READY ? c : NULL;
	}
	return NULL;
}

/* Made when it is first asked for, which takes a millisecond.  NULL: it can't be had, or is just
 * being made. */
static struct cap *cap_of(int device, uint32_t sms)
{
	if (!driver_can())
		return NULL;
	struct cap *c = find(device, sms);
	if (!c)
		return make_any(device, sms);
	return load_acquire(&c->state) == CAP_READY && current_context() == c->primary ? c : NULL;
}

/* The lane first, then whether the cap is still the one: whoever gives its place to another looks
 * in the opposite order (leave()). */
static struct cap_lane *take(struct cap *c, uint32_t sms, void *stream)
{
	struct cap_lane *l = &c->lane[(uintptr_t)stream * 0x9e3779b97f4a7c15u >> 61];
	uint32_t seen = 0;
	if (!replace_if(&l->taken, &seen, 1, seq_cst, relaxed))
		return NULL;
	if (atomic_load_explicit(&c->state, memory_order_seq_cst) == CAP_READY && c->sms == sms)
		return l;
	store_release(&l->taken, 0);
	return NULL;
}

struct cap_lane *cap_enter(
	int device, uint32_t cap_sms, void *stream, int per_thread, void **ret_stream)
{
	struct cap *c = cap_of(device, cap_sms);
	struct cap_lane *l = c ? take(c, cap_sms, stream) : NULL;
	if (!l)
		return NULL;
	if (REAL_OF(cuEventRecord, per_thread)(l->before, stream) ||
		REAL(cuStreamWaitEvent)(l->stream, l->before, 0)) {
		store_release(&l->taken, 0);
		return NULL;
	}
	*ret_stream = l->stream;
	return l;
}

void cap_leave(struct cap_lane *lane, void *stream, int per_thread)
{
	if (!REAL(cuEventRecord)(lane->behind, lane->stream))
		REAL_OF(cuStreamWaitEvent, per_thread)(stream, lane->behind, 0);
	store_release(&lane->taken, 0);
}

void cap_leave_contexts(bool with_all)
{
	for (uint32_t i = 0; i < SIZES; i++)
		leave(&caps[i], with_all);
}

void cap_forget(void)
{
	memset(caps, 0, sizeof caps);
}
