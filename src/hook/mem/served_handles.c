/* Handles behind the pool: where they come from, and when they go. */
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "cuda_types.h"
#include "hook/core/config.h"
#include "hook/core/elf.h"
#include "hook/core/hook_table.h"
#include "hook/mem/account.h"
#include "hook/mem/served_state.h"
#include "hook/core/process.h"
#include "hook/core/captures.h"
#include "hook/core/metadata.h"
#include "hook/core/own_calls.h"
#include "share/quota.h"

#define MOST_BYTES  (1ull << 40)
#define MOST_RANGES (1u << 20)
#define MAPPED      64u

enum { DEVICE = 1, PINNED = 1, READ_WRITE = 3, HAS_MAPPING = 102, NO_TIMING = 2 };

static bool has_all_calls(void)
{
	static const enum fn needed[] = { FN_cuMemAddressReserve, FN_cuMemAddressFree,
		FN_cuMemCreate, FN_cuMemMap, FN_cuMemSetAccess, FN_cuMemUnmap, FN_cuMemRelease,
		FN_cuEventCreate, FN_cuEventRecord, FN_cuEventQuery, FN_cuEventSynchronize,
		FN_cuStreamWaitEvent, FN_cuStreamSynchronize, FN_cuCtxSynchronize,
		FN_cuCtxGetCurrent, FN_cuCtxPushCurrent_v2, FN_cuCtxPopCurrent_v2,
		FN_cuDeviceGetAttribute, FN_cuDeviceTotalMem_v2 };
	return ALL_FOUND(needed);
}

static bool can_map(int device)
{
	int yes = 0;
	return !REAL(cuDeviceGetAttribute)(&yes, HAS_MAPPING, device) && yes;
}

static bool is_named(const struct elf *e, const void *name)
{
	const char *prefix = name;
	return e->soname && !strncmp(e->soname, prefix, strlen(prefix));
}

static bool has_library(const char *prefix)
{
	struct elf e;
	return elf_search(&e, is_named, prefix);
}

/* Other processes open memory by handles that mapped memory does not have. */
static const char *gives_memory_away(void)
{
	if (has_library("libmpi.") || has_library("libucp."))
		return "the pool is not used: the program has MPI or UCX, which give memory to other processes";
	return config_get()->is_rank
		       ? "the pool is not used: the program is one of several ranks, which give memory to each other"
		       : NULL;
}

/* Addresses for four times what the device has: what is free in between costs nothing. */
static uint64_t addresses(int device)
{
	size_t total = 0;
	if (REAL(cuDeviceTotalMem_v2)(&total, device))
		return 0;
	const uint64_t bytes = total / SLOT_BYTES * SLOT_BYTES * 4;
	return bytes < MOST_BYTES ? bytes : MOST_BYTES;
}

static struct pool *make_pool(const struct pool_shape *shape)
{
	const size_t bytes = pool_memory(shape);
	const long map = bytes ? sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
			       : -1;
	if (sys_failed(map))
		return NULL;
	struct pool *p = (struct pool *)map;
	if (!pool_init(p, shape))
		return p;
	sys(munmap, p, bytes);
	return NULL;
}

static const char *begin(struct served *s, struct member *m)
{
	unsigned long long base = 0;
	const char *why = gives_memory_away();
	if (why)
		return why;
	if (!has_all_calls() || !can_map(m->ordinal))
		return "the pool is not used: the driver or the device can't map memory";
	const uint64_t bytes = addresses(m->ordinal);
	if (REAL(cuCtxGetCurrent)(&s->context) || !s->context || !bytes ||
		REAL(cuMemAddressReserve)(&base, bytes, SLOT_BYTES, 0, 0))
		return "the pool is not used: the driver has no addresses for it";
	const struct pool_shape shape = {
		.base = base, .bytes = bytes, .slot_bytes = SLOT_BYTES, .ranges = MOST_RANGES
	};
	s->pool = make_pool(&shape);
	if (!s->pool) {
		REAL(cuMemAddressFree)(base, bytes);
		return "the pool is not used: no memory is left for it";
	}
	s->member = m;
	s->is_ordered_only = has_library("libnvshmem"); /* PyTorch loads it, used or not */
	s->base = base;
	s->bytes = bytes;
	s->streams[CONTEXT_TAG] = (struct served_stream){ .taken = true, .stream = WHOLE_CONTEXT };
	atomic_fetch_or_explicit(&s->readers, 1ull << m->ordinal, memory_order_seq_cst);
	return NULL;
}

bool served_begin(struct served *s, struct member *m)
{
	struct own_calls own;
	own_calls_begin(&own);
	const char *why = begin(s, m);
	own_calls_end(&own);
	if (!why)
		return true;
	add_relaxed(&m->file->arbiter.unpooled, 1);
	meta_message(why);
	return false;
}

/* Mapped memory goes with the device's contexts, or can't be told from here. */
void served_end(struct served *s)
{
	const uint64_t backed = s->pool->counters.backed_slots * SLOT_BYTES;
	uint64_t handle;
	uint32_t slot = 0;
	served_calls(s);
	while (pool_take_backed(s->pool, &slot, &handle)) {
		REAL(cuMemUnmap)
		(pool_slot_address(s->pool, slot), SLOT_BYTES);
		REAL(cuMemRelease)(handle);
	}
	quota_give(s->member->slot, backed);
	REAL(cuMemAddressFree)(s->base, s->bytes);
	s->pool = NULL; /* its pages stay: another thread may still look */
	s->base = s->bytes = s->shares = s->host_seen = 0;
	store_relaxed(&s->readers, 0);
	s->is_tight = false;
	memset(s->streams, 0, sizeof s->streams);
}

/* A captured call is no order of the device; the legacy stream may not be asked meanwhile. */
static bool may_record(const void *stream)
{
	if (stream == ENDED_STREAM)
		return false;
	if (!load_relaxed(&hook_hot.captures))
		return true;
	return stream && stream != WHOLE_CONTEXT && !stream_is_capturing((void *)stream, 0);
}

static bool record(const struct served *s, const struct served_stream *v)
{
	if (v->stream != WHOLE_CONTEXT)
		return !REAL(cuEventRecord)(v->event, v->stream);
	return real_at(FN_cuCtxRecordEvent) && !REAL(cuCtxRecordEvent)(s->context, v->event);
}

bool served_record(struct served *s, uint32_t tag)
{
	struct served_stream *v = &s->streams[tag];
	served_calls(s);
	if (!may_record(v->stream) || (!v->event && REAL(cuEventCreate)(&v->event, NO_TIMING)) ||
		!record(s, v))
		return false;
	v->recorded = pool_now(s->pool);
	v->frees = false;
	return true;
}

static void look(struct served *s, uint32_t tag)
{
	struct served_stream *v = &s->streams[tag];
	if (!v->recorded)
		return;
	served_calls(s);
	if (REAL(cuEventQuery)(v->event) == NOT_READY)
		return;
	if (v->frees)
		pool_reached(s->pool, tag, v->recorded);
	else
		pool_settle(s->pool, tag);
	v->recorded = 0;
}

bool served_poll(struct served *s)
{
	bool some = false;
	for (uint32_t i = 1; i < POOL_TAGS && s->streams[i].taken; i++) {
		look(s, i);
		if (!s->streams[i].recorded && s->streams[i].frees && served_record(s, i))
			look(s, i);
		some |= s->streams[i].recorded != 0;
	}
	return some;
}

static bool create(struct served *s, unsigned long long *ret_handle)
{
	struct cu_mem_allocation_prop prop = { .type = PINNED,
		.location = { DEVICE, s->member->ordinal } };
	struct member *m = s->member;
	context_seen(m);
	quota_changes(m->slot, true);
	const bool granted = quota_try(m->file, m->index, SLOT_BYTES);
	const bool made = granted && !REAL(cuMemCreate)(ret_handle, SLOT_BYTES, &prop, 0);
	if (granted && !made)
		quota_give(m->slot, SLOT_BYTES);
	quota_changes(m->slot, false);
	return made;
}

/* Takes the handle of a slot that nothing uses any more. */
static bool take_idle(struct served *s, unsigned long long *ret_handle)
{
	uint32_t slot;
	uint64_t handle;
	if (!pool_take_idle(s->pool, &slot, &handle))
		return false;
	served_calls(s);
	REAL(cuMemUnmap)(pool_slot_address(s->pool, slot), SLOT_BYTES);
	*ret_handle = handle;
	return true;
}

static int find_handle(struct served *s, unsigned long long *ret_handle)
{
	if (create(s, ret_handle))
		return 0;
	s->is_tight = true;
	if (take_idle(s, ret_handle))
		return 0;
	const bool in_flight = served_poll(s);
	if (take_idle(s, ret_handle))
		return 0;
	return in_flight && s->pool->counters.waiting_slots ? SERVED_LATER : OUT_OF_MEMORY;
}

static int let_reach(const struct served *s, uint64_t address, uint64_t bytes)
{
	struct cu_mem_access_desc access[MEMBERS];
	size_t n = 0;
	for (uint64_t left = load_relaxed(&s->readers); left; left &= left - 1)
		access[n++] = (struct cu_mem_access_desc){ { DEVICE, __builtin_ctzll(left) },
			READ_WRITE };
	return REAL(cuMemSetAccess)(address, bytes, access, n);
}

static void release(struct served *s, unsigned long long handle)
{
	quota_changes(s->member->slot, true);
	REAL(cuMemRelease)(handle);
	quota_give(s->member->slot, SLOT_BYTES);
	quota_changes(s->member->slot, false);
}

/* Slots beside each other that are mapped and not yet to be reached: the driver takes as long to
 * let the device reach one as many. */
struct mapped_run {
	uint32_t first, n;
	unsigned long long handle[MAPPED];
};

static bool map(
	const struct served *s, uint32_t slot, unsigned long long handle, struct mapped_run *m)
{
	if (REAL(cuMemMap)(pool_slot_address(s->pool, slot), SLOT_BYTES, 0, handle, 0))
		return false;
	m->first = m->n ? m->first : slot;
	m->handle[m->n++] = handle;
	return true;
}

static bool reach(struct served *s, struct mapped_run *m)
{
	const uint64_t address = pool_slot_address(s->pool, m->first);
	const bool reached = !m->n || !let_reach(s, address, m->n * SLOT_BYTES);
	for (uint32_t i = 0; i < m->n; i++) {
		if (reached) {
			pool_back(s->pool, m->first + i, m->handle[i]);
			continue;
		}
		REAL(cuMemUnmap)(address + i * SLOT_BYTES, SLOT_BYTES);
		release(s, m->handle[i]);
	}
	m->n = 0;
	return reached;
}

static int back_slot(struct served *s, uint32_t slot, struct mapped_run *m)
{
	unsigned long long handle;
	if (m->n && (m->n == MAPPED || slot != m->first + m->n) && !reach(s, m))
		return OUT_OF_MEMORY;
	const int failed = find_handle(s, &handle);
	if (failed)
		return failed;
	if (map(s, slot, handle, m))
		return 0;
	release(s, handle);
	return OUT_OF_MEMORY;
}

static int back(struct served *s, const struct pool_place *at)
{
	struct mapped_run m = { 0 };
	int failed = 0;
	for (uint32_t slot = at->first_slot; !failed && pool_next_missing(s->pool, at, &slot);
		slot++)
		failed = back_slot(s, slot, &m);
	return reach(s, &m) ? failed : OUT_OF_MEMORY;
}

int served_back(struct served *s, const struct pool_place *at)
{
	served_calls(s);
	const int result = back(s, at);
	served_publish(s);
	return result;
}

bool served_release_idle(struct served *s)
{
	unsigned long long handle;
	const bool taken = take_idle(s, &handle);
	if (taken)
		release(s, handle);
	served_publish(s);
	return taken;
}

void served_let_reach(struct served *s)
{
	const uint32_t slots = (uint32_t)(s->bytes / SLOT_BYTES);
	const struct pool_place whole = { .n_slots = slots };
	served_calls(s);
	for (uint32_t i = 0; i < slots; i++) {
		uint32_t missing = i;
		if (!pool_next_missing(s->pool, &whole, &missing) || missing != i)
			let_reach(s, pool_slot_address(s->pool, i), SLOT_BYTES);
	}
}

void served_give_wanted(struct served *s)
{
	struct member *m = s->member;
	_Atomic uint64_t *hint = &m->device->who.wanted_hint;
	if (!load_relaxed(hint))
		return;
	/* First cleared: who wants some after the look sets it again.  A program sees its own wait
	 * as well, but only others can answer it. */
	atomic_store_explicit(hint, 0, memory_order_seq_cst);
	const uint64_t now = monotonic_ns();
	const uint64_t wanted = quota_wanted(m->file, m->index, now);
	if (wanted ||
		atomic_load_explicit(&m->slot->memory.wanted_until_ns, memory_order_seq_cst) > now)
		atomic_store_explicit(hint, 1, memory_order_seq_cst);
	if (!wanted)
		return;
	served_poll(s);
	for (uint64_t given = 0; given < wanted && served_release_idle(s); given += SLOT_BYTES)
		add_relaxed(&m->slot->memory.given, SLOT_BYTES);
}
