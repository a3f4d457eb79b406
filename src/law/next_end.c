/*
 * The earliest time at which anything of a client can end, for a caller that sleeps until then. It
 * is never too late, whoever comes or goes, because it lets each block run as if alone and all SMs
 * do their most.
 */
#include "law/state.h"

/* Works that are looked at one by one; with more of them, the first block that ends will do. */
enum { MAX_RUNNING = 16, MOST_TENTHS = 163 /* of a warp's rate, on one SM */ };

struct running {
	uint32_t work;
	uint64_t longest_ns; /* of its blocks that are on SMs */
};

/* From the first block of those that are not on an SM yet to the last's end. */
static uint64_t rest_ns(const struct work *w)
{
	const unsigned most = (unsigned)(w->end_sm - w->first_sm) * MOST_TENTHS;
	const __uint128_t all = (__uint128_t)w->left * w->units * w->warps * 10 / most;
	return w->left ? (uint64_t)MAX((uint64_t)all, w->units) / ONE : 0;
}

static uint64_t of_timers(const struct law *law, unsigned client)
{
	uint64_t soonest = LAW_NEVER;
	for (uint32_t i = 0; i < law->timer_count; i++) {
		const struct work *w = &law->works[law->timers[i].work];
		if (w->client != client)
			continue;
		uint64_t ends = law->timers[i].at_ns;
		if (w->state == LEAD)
			ends += w->kind == LAW_KERNEL ? rest_ns(w) : w->units;
		soonest = MIN(soonest, ends);
	}
	return soonest;
}

static uint64_t of_queues(const struct law *law, const struct field *f, unsigned client)
{
	uint64_t soonest = LAW_NEVER;
	for (unsigned e = 0; e < LAW_ENGINES; e++)
		for (uint32_t i = law->queue[e].first; i != NONE; i = law->works[i].next)
			if (law->works[i].client == client)
				soonest = MIN(soonest, law->now + law->works[i].units);
	for (uint32_t i = f->ready; i != NONE; i = law->works[i].next)
		if (law->works[i].client == client)
			soonest = MIN(soonest, law->now + rest_ns(&law->works[i]));
	return soonest;
}

/* False where there is no place for one more. */
static bool note(struct running *r, unsigned *count, uint32_t work, uint64_t ns)
{
	for (unsigned i = 0; i < *count; i++)
		if (r[i].work == work) {
			r[i].longest_ns = MAX(r[i].longest_ns, ns);
			return true;
		}
	if (*count == MAX_RUNNING)
		return false;
	r[(*count)++] = (struct running){ work, ns };
	return true;
}

static uint64_t of_blocks(const struct law *law, const struct field *f, unsigned client, bool on)
{
	struct running r[MAX_RUNNING];
	uint64_t soonest = LAW_NEVER;
	unsigned count = 0;
	for (uint32_t i = f->sets; i != NONE; i = law->sets[i].next)
		for (unsigned k = 0; k < law->sets[i].blocks; k++) {
			const struct set *s = &law->sets[i];
			const struct block *b = &s->block[k];
			const uint64_t did = on ? (law->now - s->at_ns) * b->rate : 0;
			if (b->client != client || law->works[b->work].left)
				continue;
			if (!note(r, &count, b->work, (b->units - MIN(b->units, did)) / ONE))
				return law_next(law);
		}
	for (unsigned i = 0; i < count; i++)
		soonest = MIN(soonest, law->now + r[i].longest_ns);
	return soonest;
}

uint64_t law_soonest(struct law *law, unsigned client)
{
	if (client >= LAW_CLIENTS || !law->clients[client].open)
		return LAW_NEVER;
	if (law->clients[client].done.first != NONE)
		return law->now;
	const struct field *f = field_of(law, client);
	const uint64_t timers = of_timers(law, client), queues = of_queues(law, f, client);
	const uint64_t blocks = of_blocks(law, f, client, turn_field(law) == f);
	return MIN(MIN(timers, queues), blocks);
}
