/* Writes refused allocations into the recording. */
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/sys.h"
#include "hook/core/config.h"
#include "hook/core/process.h"
#include "hook/core/strings.h"
#include "hook/mem/account.h"
#include "hook/range/range.h"
#include "share/quota.h"

#define HOLDERS 3u /* that are named, those with most first */

static uint64_t held_by(const struct share_slot *s)
{
	return load_relaxed(&s->memory.used);
}

static bool is_of_group(const struct share_slot *s, const struct share_slot *own)
{
	return share_is_joined(s) && s->memory.group == own->memory.group &&
	       s->who.device == own->who.device;
}

/* The member of the group that holds most but no more than `below`. SHARE_SLOTS: nobody. */
static uint32_t next_holder(const struct member *m, uint32_t after)
{
	uint32_t best = SHARE_SLOTS;
	const struct share_slot *slots = m->file->slots;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const uint64_t bytes = held_by(&slots[i]);
		if (!bytes || !is_of_group(&slots[i], m->slot))
			continue;
		const bool comes = after == SHARE_SLOTS || bytes < held_by(&slots[after]) ||
				   (bytes == held_by(&slots[after]) && i > after);
		if (comes && (best == SHARE_SLOTS || bytes > held_by(&slots[best])))
			best = i;
	}
	return best;
}

static void put(struct bounded *b, const char *word, uint64_t value)
{
	bounded_put(b, word);
	bounded_decimal(b, value);
}

void refusal_count(const struct member *m, uint64_t bytes)
{
	add_relaxed(&m->slot->memory.refused, 1);
	refusal_report(m, bytes);
}

void refusal_report(const struct member *m, uint64_t bytes)
{
	char text[256];
	struct bounded b = BOUNDED(text);
	if (!ranges_are_kept() || !ranges_wanted())
		return;
	const struct quota_sum sum = quota_sum(m->file, m->index);
	put(&b, "asked=", bytes);
	put(&b, " quota=", sum.quota);
	put(&b, " used=", sum.used);
	put(&b, " contexts=", sum.contexts);
	uint32_t who = SHARE_SLOTS;
	for (uint32_t i = 0; i < HOLDERS; i++) {
		who = next_holder(m, who);
		if (who == SHARE_SLOTS)
			break;
		const struct share_slot *s = &m->file->slots[who];
		put(&b, " pid=", s->who.pid);
		bounded_put(&b, " program=");
		bounded_bytes(&b, s->who.name, strnlen(s->who.name, SHARE_NAME));
		put(&b, " holds=", held_by(s));
	}
	const struct range_text mark =
		range_of_weir("memory refused by the quota", string_of(bounded_end(&b)));
	range_mark(&mark);
}

#define NAP_NS    1000000
#define WANTED_NS 1000000000u /* that others know of it, when nobody waits */

bool reclaim_goes_on(struct reclaim *w, struct member *m, uint64_t bytes)
{
	const struct timespec nap = { 0, NAP_NS };
	const uint64_t now = monotonic_ns(), wait = config_get()->wait_memory_ns;
	if (!w->until_ns) {
		w->until_ns = now + wait;
		quota_want(m->file, m->index, bytes, now + (wait > WANTED_NS ? wait : WANTED_NS));
	}
	if (now >= w->until_ns)
		return false;
	sys(nanosleep, &nap, NULL);
	return true;
}

void reclaim_ends(struct member *m, bool in_vain)
{
	if (!in_vain && load_relaxed(&m->slot->memory.wanted))
		store_relaxed(&m->slot->memory.wanted, 0);
}
