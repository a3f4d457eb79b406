/* Charges allocations to the process's quota and returns them. */
#include "hook/mem/account.h"

#include "base/atomic.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/own_calls.h"
#include "hook/core/process.h"
#include "share/quota.h"

#define SMALL_GRAIN 512u
#define LARGE_FROM  (1ull << 20) /* from here on a block has pages of its own */
#define LARGE_GRAIN (2ull << 20)

uint64_t whole_blocks(uint64_t bytes)
{
	const uint64_t grain = bytes >= LARGE_FROM ? LARGE_GRAIN : SMALL_GRAIN;
	return bytes > UINT64_MAX - grain ? bytes : (bytes + grain - 1) / grain * grain;
}

static void measure(const struct member *m)
{
	size_t free, total;
	const uint64_t before = quota_known(m->file, m->device_index);
	if (real_at(FN_cuMemGetInfo_v2) && before != QUOTA_UNKNOWN &&
		!REAL(cuMemGetInfo_v2)(&free, &total))
		quota_measure(m->file, m->device_index, before, free, total);
}

static bool remember_context(const struct member *m, uint64_t context)
{
	bool is_new = false;
	if (!owned_lock())
		return false;
	if (!owned_find(OWNED_CONTEXT, context)) {
		is_new = owned_put(&(struct owned){ .kind = OWNED_CONTEXT,
			.key = context,
			.context = context,
			.device = (uint16_t)m->ordinal });
	}
	owned_unlock();
	return is_new;
}

static _Atomic uint64_t last_context; /* that was seen */

static void count_context(struct member *m, uint64_t context)
{
	if (remember_context(m, context)) {
		atomic_fetch_add_explicit(&m->slot->memory.contexts, 1, memory_order_seq_cst);
		share_bury(m->file); /* what the dead had is missing no more */
		measure(m);
	}
	store_relaxed(&last_context, context);
}

static void see_context(struct member *m, uint64_t context)
{
	if (context && context != load_relaxed(&last_context))
		count_context(m, context);
	else if (!load_relaxed(&m->device->who.context_bytes))
		measure(m); /* others were allocating when it was tried before */
}

void account_forget(void)
{
	store_relaxed(&last_context, 0);
}

void context_seen(struct member *m)
{
	see_context(m, (uintptr_t)current_context());
}

/* May not be on the device yet. */
static bool is_lazy(enum owned_kind kind)
{
	return kind == OWNED_MANAGED || kind == OWNED_LIMIT;
}

void account_give(uint16_t device, enum owned_kind kind, uint64_t bytes)
{
	struct member *m = member_at(device);
	if (m && kind == OWNED_CONTEXT)
		atomic_fetch_sub_explicit(&m->slot->memory.contexts, 1, memory_order_seq_cst);
	else if (m)
		quota_give(m->slot, bytes);
	if (m && is_lazy(kind))
		atomic_fetch_sub_explicit(&m->slot->memory.lazy, bytes, memory_order_seq_cst);
}

void account_changes(bool begins)
{
	each_member(m)
		quota_changes(m->slot, begins);
}

void context_ended(uint64_t context)
{
	if (!context || !owned_lock())
		return;
	for (struct owned *o = owned_next(NULL); o; o = owned_next(o)) {
		if (o->context != context)
			continue;
		account_give(o->device, o->kind, o->bytes);
		owned_drop(o);
	}
	store_relaxed(&last_context, 0);
	owned_unlock();
}

/* No handler comes while it asks, which might never let it end. */
static enum quota_answer ask(struct member *m, uint64_t bytes, bool may_wait)
{
	struct held_signals signals;
	signals_hold(&signals);
	const enum quota_answer answer =
		!may_wait ? quota_take(m->file, m->index, bytes)
			  : (quota_try(m->file, m->index, bytes) ? QUOTA_TIGHT : QUOTA_REFUSED);
	signals_release(&signals);
	return answer;
}

/* Asks the others for memory that they could give back, and waits for it if that was wanted.
 * Refused is what is not there in the end. */
static enum quota_answer take(struct member *m, uint64_t bytes)
{
	struct reclaim w = { 0 };
	enum quota_answer answer;
	if (!config_get()->wait_memory_ns) {
		answer = ask(m, bytes, false);
		if (answer == QUOTA_REFUSED)
			reclaim_goes_on(&w, m, bytes);
	} else {
		do
			answer = ask(m, bytes, true);
		while (answer == QUOTA_REFUSED && reclaim_goes_on(&w, m, bytes));
		if (answer == QUOTA_REFUSED)
			answer = ask(m, bytes, false);
	}
	reclaim_ends(m, answer == QUOTA_REFUSED);
	if (answer == QUOTA_REFUSED)
		refusal_report(m, bytes);
	return answer;
}

/* Without a quota there is nobody to be asked. */
static enum quota_answer count(const struct member *m, uint64_t bytes)
{
	atomic_fetch_add_explicit(&m->slot->memory.used, bytes, memory_order_seq_cst);
	return QUOTA_GRANTED;
}

static bool begin(struct claim *c, struct member *m, uint64_t bytes)
{
	*c = (struct claim){ .bytes = bytes };
	if (!m || !bytes)
		return true;
	c->since_ns = monotonic_ns();
	c->context = (uintptr_t)current_context();
	see_context(m, c->context);
	quota_changes(m->slot, true);
	const enum quota_answer answer = m->slot->memory.quota ? take(m, bytes) : count(m, bytes);
	if (answer == QUOTA_REFUSED) {
		quota_changes(m->slot, false);
		return false;
	}
	if (answer == QUOTA_TIGHT)
		pools_trim(m);
	c->member = m;
	return true;
}

bool claim_begin(struct claim *c, uint64_t bytes)
{
	return begin(c, member_current(), bytes);
}

bool claim_begin_on(struct claim *c, int device, uint64_t bytes)
{
	return begin(c, member_of(device), bytes);
}

static bool remember(const struct claim *c, enum owned_kind kind, uint64_t key)
{
	const struct owned o = { .kind = kind,
		.key = key,
		.bytes = c->bytes,
		.context = kind == OWNED_ASYNC ? 0 : c->context,
		.device = (uint16_t)c->member->ordinal };
	if (!owned_lock())
		return false;
	const struct owned *old =
		owned_find(kind, key); /* which was freed in a way not seen here */
	if (old)
		account_give(old->device, kind, old->bytes);
	const bool kept = owned_put(&o);
	owned_unlock();
	return kept;
}

void claim_settle(const struct claim *c, bool counts)
{
	struct share_memory *memory = &c->member->slot->memory;
	if (counts)
		share_count(memory->took, monotonic_ns() - c->since_ns);
	else
		quota_give(c->member->slot, c->bytes);
	quota_changes(c->member->slot, false);
}

int claim_end(struct claim *c, int result, enum owned_kind kind, uint64_t key)
{
	if (!c->member)
		return result;
	const bool counts = !result && remember(c, kind, key);
	if (counts && is_lazy(kind))
		atomic_fetch_add_explicit(
			&c->member->slot->memory.lazy, c->bytes, memory_order_seq_cst);
	claim_settle(c, counts);
	return result;
}

bool give_begin(struct owned *ret, enum owned_kind kind, uint64_t key)
{
	if (!key || !owned_lock())
		return false;
	struct owned *o = owned_find(kind, key);
	if (o) {
		*ret = *o;
		owned_drop(o);
	}
	owned_unlock();
	const struct member *m = o ? member_at(ret->device) : NULL;
	if (m)
		quota_changes(m->slot, true);
	return o;
}

int give_end(const struct owned *o, bool known, int result)
{
	const struct member *m = known ? member_at(o->device) : NULL;
	if (!known)
		return result;
	if (!result) {
		account_give(o->device, o->kind, o->bytes);
	} else if (owned_lock()) {
		owned_put(o);
		owned_unlock();
	}
	if (m)
		quota_changes(m->slot, false);
	return result;
}
