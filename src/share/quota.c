/* Counts device memory against quotas. */
#include "share/quota.h"

#include <time.h>

#include "base/atomic.h"
#include "base/check.h"
#include "base/sys.h"

#define TURNS         1000 /* tries while two programs reserve at once */
#define CONTEXT_LEAST (1ull << 20)
#define CONTEXT_MOST  (1ull << 30) /* more includes unknown programs' memory: CONTEXT_ELSE */
#define CONTEXT_ELSE  (512ull << 20)

/* In one order with the writes of ask() and have(): of two programs that ask at once, at least one
 * sees that the other does. */
static uint64_t get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_seq_cst);
}

static bool is_in(const struct share_slot *s, uint64_t group)
{
	return group && (s->memory.group == group || s->memory.outer_group == group);
}

/* Whether both have some quota together. */
static bool is_together(const struct share_slot *s, const struct share_slot *own)
{
	return s == own ||
	       (share_is_joined(s) && s->who.device == own->who.device &&
		       (is_in(s, own->memory.group) || is_in(s, own->memory.outer_group)));
}

/* If a program writes nonsense, a sum stays at the largest number, and the quota is used up. */
static struct quota_sum sum_of(
	const struct share_file *f, const struct share_slot *own, uint64_t group, uint64_t quota)
{
	const struct share_device *d = &f->devices[own->who.device % SHARE_DEVICES];
	struct quota_sum sum = { .quota = quota };
	uint64_t contexts = 0;
	each_bit(i, w, get(&d->members[w])) {
		const struct share_slot *s = &f->slots[i];
		if (s != own && !(is_in(s, group) && share_is_joined(s) &&
					s->who.device == own->who.device))
			continue;
		/* asked first: have() adds to used before it takes from asked. */
		sum.asked = sat_add(sum.asked, get(&s->memory.asked));
		sum.used = sat_add(sum.used, get(&s->memory.used));
		sum.idle = sat_add(sum.idle, get(&s->memory.idle));
		contexts += load_relaxed(&s->memory.contexts);
	}
	sum.contexts = sat_mul(contexts, get(&d->who.context_bytes));
	return sum;
}

static uint64_t held(const struct quota_sum *s)
{
	return sat_add(s->used, s->contexts);
}

uint64_t quota_left(const struct quota_sum *s)
{
	return sat_sub(s->quota, held(s));
}

/* The bytes left when all have what they ask for, at least INT64_MIN. */
static int64_t slack(const struct quota_sum *s)
{
	int64_t rest;
	return __builtin_sub_overflow(quota_left(s), s->asked, &rest) ? INT64_MIN : rest;
}

/* The one of two nested quotas that is nearer to its end. */
struct quota_sum quota_sum(const struct share_file *f, uint32_t slot)
{
	const struct share_slot *own = &f->slots[slot];
	const struct share_memory *m = &own->memory;
	const struct quota_sum inner = sum_of(f, own, m->group, m->quota);
	if (!m->outer_quota)
		return inner;
	const struct quota_sum outer = sum_of(f, own, m->outer_group, m->outer_quota);
	return !inner.quota || slack(&outer) < slack(&inner) ? outer : inner;
}

static void note_peak(struct share_memory *m, uint64_t bytes)
{
	uint64_t seen = get(&m->peak);
	while (bytes > seen && !atomic_compare_exchange_weak_explicit(&m->peak, &seen, bytes,
				       memory_order_relaxed, memory_order_relaxed))
		;
}

/* If two ask at once for the last memory, the one with the lower slot goes first. */
static bool is_first(const struct share_file *f, uint32_t slot)
{
	for (uint32_t i = 0; i < slot; i++)
		if (is_together(&f->slots[i], &f->slots[slot]) && get(&f->slots[i].memory.asked))
			return false;
	return true;
}

/* One thread of a slot asks at a time. The others stop waiting for one that never ends. */
static bool ask(struct share_memory *m, uint64_t bytes, bool beside)
{
	uint64_t none = 0;
	if (beside)
		atomic_fetch_add_explicit(&m->asked, bytes, memory_order_seq_cst);
	return beside || replace_if(&m->asked, &none, bytes, seq_cst, relaxed);
}

static void withdraw(struct share_memory *m, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&m->asked, bytes, memory_order_seq_cst);
}

/* A sum meanwhile counts the bytes twice, and never misses them. */
static enum quota_answer have(struct share_memory *m, const struct quota_sum *sum, uint64_t bytes)
{
	atomic_fetch_add_explicit(&m->used, bytes, memory_order_seq_cst);
	withdraw(m, bytes);
	const uint64_t all = held(sum) + bytes;
	note_peak(m, all);
	return sum->quota && sum->idle > sum->quota - all ? QUOTA_TIGHT : QUOTA_GRANTED;
}

/* The thread that is in the way may have been taken off its processor: at most a tenth of a second
 * in all. */
static void give_way(int turn)
{
	static const struct timespec nap = { .tv_nsec = 50000 };
	if (turn < TURNS / 10)
		sys(sched_yield);
	else
		sys(nanosleep, &nap, NULL);
}

static enum quota_answer take(struct share_file *f, uint32_t slot, uint64_t bytes)
{
	bool asks = false;
	struct share_memory *m = &f->slots[slot].memory;
	for (int turn = 0; turn < TURNS; turn++) {
		asks = asks || ask(m, bytes, turn > TURNS / 2);
		if (asks) {
			const struct quota_sum sum = quota_sum(f, slot);
			const uint64_t left = sum.quota ? quota_left(&sum) : UINT64_MAX;
			if (sum.asked <= left)
				return have(m, &sum, bytes);
			if (bytes > left)
				break;
			asks = is_first(f, slot);
			if (!asks)
				withdraw(m, bytes);
		}
		give_way(turn);
	}
	if (asks)
		withdraw(m, bytes);
	return QUOTA_REFUSED;
}

/* Takes back the memory of the group's dead, whether the arbiter has looked or not. */
static bool bury_group(struct share_file *f, uint32_t slot)
{
	bool buried = false;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (i != slot && is_together(&f->slots[i], &f->slots[slot]))
			buried |= share_bury_slot(f, i);
	return buried;
}

enum quota_answer quota_take(struct share_file *f, uint32_t slot, uint64_t bytes)
{
	enum quota_answer answer = take(f, slot, bytes);
	if (answer == QUOTA_REFUSED && bury_group(f, slot))
		answer = take(f, slot, bytes);
	if (answer == QUOTA_REFUSED)
		add_relaxed(&f->slots[slot].memory.refused, 1);
	return answer;
}

bool quota_try(struct share_file *f, uint32_t slot, uint64_t bytes)
{
	return take(f, slot, bytes) != QUOTA_REFUSED;
}

void quota_give(struct share_slot *s, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&s->memory.used, bytes, memory_order_seq_cst);
}

struct known {
	uint64_t bytes, contexts;
	bool changing; /* what is used, and what the device has, may differ */
};

/* Idle memory in pools is left out: the driver gives it back without a word. */
static struct known known_of(const struct share_file *f, uint32_t device)
{
	struct known k = { 0 };
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &f->slots[i];
		if (!share_is_joined(s) || s->who.device != device)
			continue;
		k.bytes = sat_add(k.bytes, get(&s->memory.used) - get(&s->memory.lazy));
		k.contexts += atomic_load_explicit(&s->memory.contexts, memory_order_seq_cst);
		k.changing |= atomic_load_explicit(&s->memory.changing, memory_order_seq_cst) != 0;
	}
	return k;
}

uint64_t quota_known(const struct share_file *f, uint32_t device)
{
	const struct known k = known_of(f, device);
	return k.changing ? QUOTA_UNKNOWN : k.bytes;
}

void quota_measure(
	struct share_file *f, uint32_t device, uint64_t before, uint64_t free, uint64_t total)
{
	struct share_device *d = &f->devices[device];
	const struct known k = known_of(f, device);
	if (k.changing || k.bytes != before || !k.contexts || free > total ||
		k.bytes >= total - free)
		return;
	const uint64_t measured = (total - free - k.bytes) / k.contexts;
	const uint64_t each = measured <= CONTEXT_MOST ? measured : CONTEXT_ELSE;
	uint64_t seen = get(&d->who.context_bytes);
	while (each >= CONTEXT_LEAST && (!seen || measured < seen) &&
		!atomic_compare_exchange_weak_explicit(&d->who.context_bytes, &seen, each,
			memory_order_relaxed, memory_order_relaxed))
		;
}

void quota_want(struct share_file *f, uint32_t slot, uint64_t bytes, uint64_t until_ns)
{
	struct share_slot *s = &f->slots[slot];
	struct share_device *d = &f->devices[s->who.device % SHARE_DEVICES];
	atomic_store_explicit(&s->memory.wanted_until_ns, until_ns, memory_order_seq_cst);
	atomic_store_explicit(&s->memory.wanted, bytes, memory_order_seq_cst);
	atomic_store_explicit(&d->who.wanted_hint, 1, memory_order_seq_cst);
}

uint64_t quota_wanted(const struct share_file *f, uint32_t slot, uint64_t now_ns)
{
	const struct share_slot *own = &f->slots[slot];
	const struct share_device *d = &f->devices[own->who.device % SHARE_DEVICES];
	uint64_t wanted = 0;
	each_bit(i, w, get(&d->members[w])) {
		const struct share_memory *m = &f->slots[i].memory;
		if (i != slot && share_is_joined(&f->slots[i]) && get(&m->wanted_until_ns) > now_ns)
			wanted = sat_add(wanted, get(&m->wanted));
	}
	return wanted;
}
