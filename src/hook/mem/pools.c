/*
 * Counts stream-ordered memory from the driver's pools, and memory that graphs allocate.
 *
 * A block counts from its allocation to the call that frees it. The rest of a pool is idle: it is
 * read after each call and returned when the quota needs it. Weir refuses a graph's memory when its
 * node is made. It counts that memory once the driver says that it keeps it, from a launch to a
 * trim.
 */

#include <string.h>

#include "base/atomic.h"
#include "cuda_types.h"
#include "hook/core/captures.h"
#include "hook/core/hook_table.h"
#include "hook/core/own_calls.h"
#include "hook/mem/account.h"
#include "hook/mem/answers.h"
#include "hook/mem/served.h"
#include "share/quota.h"

#define POOLS 16u   /* of a process that are looked after */
#define TURNS 1000u /* that who destroys one waits for those that are looking at it */

#define THREAD_STREAM ((void *)2) /* CU_STREAM_PER_THREAD */

enum { POOL_RESERVED = 5, POOL_RESERVED_HIGH, POOL_USED, POOL_USED_HIGH, GRAPH_RESERVED = 2 };

/* visit() adds itself to `visitors` and then looks at `pool`; forget_pool() takes `pool` away and
 * then looks at `visitors`.  All four are seq_cst, so that one of the two sees the other. */
static struct {
	_Atomic(void *) pool;      /* NULL: none yet, or destroyed */
	_Atomic uint32_t place;    /* 1 + its device; 0: not said yet.  see_pool() stores it behind
				    * `pool`, with release; visit() looks at it behind `pool` */
	_Atomic uint32_t visitors; /* threads that may be asking the driver about it; leave()
				    * releases what they did to forget_pool() */
} pools[POOLS];
static _Atomic int graphs; /* have memory nodes; stands for itself */

void pools_forget(void)
{
	memset(pools, 0, sizeof pools);
	store_relaxed(&graphs, 0);
}

static void see_pool(void *pool, int device)
{
	for (uint32_t i = 0; i < POOLS; i++) {
		void *seen = load_acquire(&pools[i].pool);
		if (!seen && replace_if(&pools[i].pool, &seen, pool, acq_rel, acquire)) {
			store_release(&pools[i].place, (uint32_t)device + 1);
			return;
		}
		if (seen == pool)
			return;
	}
}

static void leave(uint32_t i)
{
	atomic_fetch_sub_explicit(&pools[i].visitors, 1, memory_order_release);
}

/* One of that device, which is not destroyed before leave(); or NULL. */
static void *visit(uint32_t i, int device)
{
	atomic_fetch_add_explicit(&pools[i].visitors, 1, memory_order_seq_cst);
	void *pool = atomic_load_explicit(&pools[i].pool, memory_order_seq_cst);
	if (pool && load_acquire(&pools[i].place) == (uint32_t)device + 1)
		return pool;
	leave(i);
	return NULL;
}

static void forget_pool(void *pool)
{
	for (uint32_t i = 0; i < POOLS && pool; i++) {
		if (load_acquire(&pools[i].pool) != pool)
			continue;
		atomic_store_explicit(&pools[i].place, 0, memory_order_seq_cst);
		atomic_store_explicit(&pools[i].pool, NULL, memory_order_seq_cst);
		for (uint32_t turn = 0; turn < TURNS && atomic_load_explicit(&pools[i].visitors,
								memory_order_seq_cst);
			turn++)
			sys(sched_yield);
	}
}

static uint64_t attribute(void *pool, int which)
{
	uint64_t value = 0;
	return real_at(FN_cuMemPoolGetAttribute) &&
			       !REAL(cuMemPoolGetAttribute)(pool, which, &value)
		       ? value
		       : 0;
}

static uint64_t idle_of(void *pool)
{
	const uint64_t reserved = attribute(pool, POOL_RESERVED), used = attribute(pool, POOL_USED);
	return reserved > used ? reserved - used : 0;
}

static void note_idle(struct member *m)
{
	uint64_t idle = 0;
	for (uint32_t i = 0; i < POOLS; i++) {
		void *pool = visit(i, m->ordinal);
		if (!pool)
			continue;
		idle += idle_of(pool);
		leave(i);
	}
	store_relaxed(&m->slot->memory.idle, idle);
}

static uint64_t trim(void *pool, uint64_t excess)
{
	const uint64_t idle = idle_of(pool), part = idle < excess ? idle : excess;
	if (part)
		REAL(cuMemPoolTrimTo)(pool, attribute(pool, POOL_RESERVED) - part);
	return part;
}

void pools_trim(struct member *m)
{
	const struct quota_sum sum = quota_sum(m->file, m->index);
	const uint64_t left = quota_left(&sum);
	uint64_t excess = sum.idle > left ? sum.idle - left : 0;
	if (!real_at(FN_cuMemPoolTrimTo) || load_relaxed(&hook_hot.captures) > 0)
		return;
	for (uint32_t i = 0; i < POOLS && excess; i++) {
		void *pool = visit(i, m->ordinal);
		if (!pool)
			continue;
		excess -= trim(pool, excess);
		leave(i);
	}
	note_idle(m);
}

static bool ask_graphs(int device, uint64_t *ret_bytes)
{
	struct own_calls own;
	if (!real_at(FN_cuDeviceGetGraphMemAttribute))
		return false;
	own_calls_begin(&own);
	const int result = REAL(cuDeviceGetGraphMemAttribute)(device, GRAPH_RESERVED, ret_bytes);
	own_calls_end(&own);
	return !result;
}

/* Counts the graphs' memory on a device, as the driver reports it. */
static void count_graphs(int device)
{
	uint64_t bytes = 0;
	struct member *m = member_of(device);
	if (!m || !load_relaxed(&graphs) || !ask_graphs(device, &bytes) || !owned_lock())
		return;
	const struct owned *before = owned_find(OWNED_GRAPHS, (uint64_t)device);
	const uint64_t had = before ? before->bytes : 0;
	if (owned_put(&(struct owned){ .kind = OWNED_GRAPHS,
		    .key = (uint64_t)device,
		    .bytes = bytes,
		    .device = (uint16_t)device }))
		atomic_fetch_add_explicit(&m->slot->memory.used, bytes - had, memory_order_seq_cst);
	owned_unlock();
}

void graphs_changed(void)
{
	const struct member *m = load_relaxed(&graphs) ? member_current() : NULL;
	if (m)
		count_graphs(m->ordinal);
}

/* A node is there, or is not to be: what it takes is what the driver says from now on. */
static int node_added(const struct claim *c, int result)
{
	if (!c->member)
		return result;
	count_graphs(c->member->ordinal);
	claim_settle(c, false);
	return result;
}

static bool is_captured(void *stream, int per_thread)
{
	return load_relaxed(&hook_hot.captures) > 0 && stream_is_capturing(stream, per_thread);
}

static void *own_pool(const struct member *m)
{
	void *pool = NULL;
	if (real_at(FN_cuDeviceGetMemPool))
		REAL(cuDeviceGetMemPool)(&pool, m->ordinal);
	return pool;
}

struct request {
	struct claim claim;
	bool is_captured; /* it becomes a node, which allocates when its graph runs */
};

static int allocated(struct request *r, int result, const void *address, void *pool)
{
	uint64_t key = 0;
	struct member *m = r->claim.member;
	if (r->is_captured)
		return node_added(&r->claim, result);
	if (!result)
		memcpy(&key, address, sizeof key);
	claim_end(&r->claim, result, OWNED_ASYNC, key);
	pool = m && !pool ? own_pool(m) : pool;
	if (m && pool && !result) {
		see_pool(pool, m->ordinal);
		note_idle(m);
	}
	return result;
}

/* Pools have large pages, and blocks in them of whole 512 bytes. */
static uint64_t in_grains(uint64_t bytes)
{
	return bytes > UINT64_MAX - 511 ? bytes : (bytes + 511) / 512 * 512;
}

static bool begin(
	struct request *r, const void *address, size_t bytes, void *stream, int per_thread)
{
	r->is_captured = is_captured(stream, per_thread);
	if (r->is_captured)
		store_relaxed(&graphs, 1);
	return claim_begin(&r->claim, address ? in_grains(bytes) : 0);
}

static struct served_order order_of(void *stream, int per_thread)
{
	return (struct served_order){ stream || !per_thread ? stream : THREAD_STREAM, true };
}

static int alloc_async(void *address, size_t bytes, void *stream, int per_thread)
{
	int served;
	struct request r;
	const struct served_order order = order_of(stream, per_thread);
	if (served_alloc(address, bytes, &order, &served))
		return served;
	if (!begin(&r, address, bytes, stream, per_thread))
		return OUT_OF_MEMORY;
	const int result = REAL_OF(cuMemAllocAsync, per_thread)(address, bytes, stream);
	return allocated(&r, result, address, NULL);
}

int memory_cuMemAllocAsync(void *address, size_t bytes, void *stream)
{
	return alloc_async(address, bytes, stream, 0);
}

int memory_cuMemAllocAsync_ptsz(void *address, size_t bytes, void *stream)
{
	return alloc_async(address, bytes, stream, 1);
}

static int alloc_from(void *address, size_t bytes, void *pool, void *stream, int per_thread)
{
	struct request r;
	if (!begin(&r, address, bytes, stream, per_thread))
		return OUT_OF_MEMORY;
	const int result =
		REAL_OF(cuMemAllocFromPoolAsync, per_thread)(address, bytes, pool, stream);
	return allocated(&r, result, address, pool);
}

int memory_cuMemAllocFromPoolAsync(void *address, size_t bytes, void *pool, void *stream)
{
	return alloc_from(address, bytes, pool, stream, 0);
}

int memory_cuMemAllocFromPoolAsync_ptsz(void *address, size_t bytes, void *pool, void *stream)
{
	return alloc_from(address, bytes, pool, stream, 1);
}

static bool give_begins(struct owned *o, uint64_t address)
{
	return give_begin(o, OWNED_ASYNC, address) || give_begin(o, OWNED_BLOCK, address);
}

static int freed(const struct owned *o, bool known, int result)
{
	struct member *m = known ? member_at(o->device) : NULL;
	give_end(o, known, result);
	if (m && !result && o->kind == OWNED_ASYNC)
		note_idle(m);
	if (!known && !result)
		graphs_changed();
	return result;
}

static int free_async(unsigned long long address, void *stream, int per_thread)
{
	int served;
	struct owned o;
	const struct served_order order = order_of(stream, per_thread);
	if (served_free(address, &order, &served))
		return served;
	const bool known = give_begins(&o, address);
	return freed(&o, known, REAL_OF(cuMemFreeAsync, per_thread)(address, stream));
}

int memory_cuMemFreeAsync(unsigned long long address, void *stream)
{
	return free_async(address, stream, 0);
}

int memory_cuMemFreeAsync_ptsz(unsigned long long address, void *stream)
{
	return free_async(address, stream, 1);
}

static void *default_pool(int device)
{
	void *pool = NULL;
	if (real_at(FN_cuDeviceGetDefaultMemPool))
		REAL(cuDeviceGetDefaultMemPool)(&pool, device);
	return pool;
}

/* The device whose default pool it is; -1: it is none. */
static int owner_of(void *pool)
{
	for (int i = 0; pool && i < (int)MEMBERS; i++)
		if (pool == default_pool(i))
			return i;
	return -1;
}

int memory_cuMemPoolTrimTo(void *pool, size_t keep)
{
	struct member *m = member_current();
	const int result = REAL(cuMemPoolTrimTo)(pool, keep);
	if (!result)
		served_trim(owner_of(pool), keep);
	if (m)
		note_idle(m);
	return result;
}

int memory_cuMemPoolDestroy(void *pool)
{
	struct member *m = member_current();
	forget_pool(pool);
	const int result = REAL(cuMemPoolDestroy)(pool);
	if (m)
		note_idle(m);
	return result;
}

/* The default pool's answer includes blocks of the library's pool: the default pool, where the
 * program has asked for them. */
int memory_cuMemPoolGetAttribute(void *pool, int what, void *value)
{
	struct served_counts c;
	const int result = REAL(cuMemPoolGetAttribute)(pool, what, value);
	if (result || what < POOL_RESERVED || what > POOL_USED_HIGH)
		return result;
	served_counts(owner_of(pool), &c);
	*(uint64_t *)value += what == POOL_RESERVED        ? c.reserved
			      : what == POOL_RESERVED_HIGH ? c.reserved_peak
			      : what == POOL_USED          ? c.used
							   : c.used_peak;
	return result;
}

int memory_cuDeviceSetMemPool(int device, void *pool)
{
	const int result = REAL(cuDeviceSetMemPool)(device, pool);
	if (!result)
		served_use_driver(device, pool != default_pool(device));
	return result;
}

int memory_cuMemPoolSetAccess(void *pool, void *map, size_t count)
{
	const struct cu_mem_access_desc *d = map;
	const int result = REAL(cuMemPoolSetAccess)(pool, map, count);
	const int owner = result ? -1 : owner_of(pool);
	for (size_t i = 0; !result && i < count; i++)
		if (d[i].flags)
			served_reach(owner, d[i].location.id);
	return result;
}

static bool node_begins(struct claim *c, const struct cu_mem_alloc_node_params *p)
{
	*c = (struct claim){ 0 };
	if (!p)
		return true;
	store_relaxed(&graphs, 1);
	return claim_begin_on(c, p->pool.location.id, whole_blocks(p->bytes));
}

int memory_cuGraphAddMemAllocNode(void *node, void *graph, void *on, size_t count, void *params)
{
	struct claim c;
	if (!node_begins(&c, params))
		return OUT_OF_MEMORY;
	return node_added(&c, REAL(cuGraphAddMemAllocNode)(node, graph, on, count, params));
}

/* NULL: of another kind. */
static const struct cu_mem_alloc_node_params *memory_of(const struct cu_graph_node_params *p)
{
	enum { MEM_ALLOC = 10 }; /* CUgraphNodeType */
	return p && p->type == MEM_ALLOC ? &p->u.alloc : NULL;
}

int memory_cuGraphAddNode(void *node, void *graph, void *on, size_t count, void *params)
{
	struct claim c;
	if (!node_begins(&c, memory_of(params)))
		return OUT_OF_MEMORY;
	return node_added(&c, REAL(cuGraphAddNode)(node, graph, on, count, params));
}

int memory_cuGraphAddNode_v2(
	void *node, void *graph, void *on, void *edges, size_t count, void *params)
{
	struct claim c;
	if (!node_begins(&c, memory_of(params)))
		return OUT_OF_MEMORY;
	return node_added(&c, REAL(cuGraphAddNode_v2)(node, graph, on, edges, count, params));
}

static int launched(int result)
{
	if (!result)
		graphs_changed();
	return result;
}

int memory_cuGraphLaunch(void *graph, void *stream)
{
	return launched(REAL(cuGraphLaunch)(graph, stream));
}

int memory_cuGraphLaunch_ptsz(void *graph, void *stream)
{
	return launched(REAL(cuGraphLaunch_ptsz)(graph, stream));
}

int memory_cuDeviceGraphMemTrim(int device)
{
	account_changes(true);
	const int result = REAL(cuDeviceGraphMemTrim)(device);
	count_graphs(device);
	account_changes(false);
	return result;
}
