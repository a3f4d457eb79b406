/* It looks at all of the state. */
#include "law_check.h"

#include "law/state.h"

static const char *check_set(const struct law *law, const struct set *s, uint64_t *ret_running)
{
	uint32_t used = 0, warps = 0;
	unsigned sms = 0;

	for (unsigned k = 0; k < LAW_SM_WORDS; k++)
		sms += (unsigned)__builtin_popcountll(s->sms[k]);
	if (sms != s->count || !sms)
		return "a set has as many SMs as it says";
	for (unsigned i = 0; i < s->blocks; i++) {
		const struct work *w = &law->works[s->block[i].work];

		used += w->share;
		warps += s->block[i].warps;
		*ret_running += s->block[i].units * s->count;
		if ((w->state != RUNNING && w->state != READY) || !w->resident ||
			w->client != s->block[i].client)
			return "a block belongs to a kernel that runs";
	}
	if (used != s->used || warps != s->warps)
		return "what blocks use adds up";
	if (used > ROOM || warps > LAW_SM_WARPS || s->blocks > LAW_SM_BLOCKS)
		return "no more blocks are on an SM than fit";
	return NULL;
}

static const char *check_field(const struct law *law, const struct field *f, uint64_t *ret_running)
{
	uint64_t all[LAW_SM_WORDS] = { 0 };
	unsigned sms = 0;

	for (uint32_t i = f->sets; i != NONE; i = law->sets[i].next) {
		const char *broken = check_set(law, &law->sets[i], ret_running);

		if (broken)
			return broken;
		sms += law->sets[i].count;
		for (unsigned k = 0; k < LAW_SM_WORDS; k++) {
			if (all[k] & law->sets[i].sms[k])
				return "no SM is in two sets";
			all[k] |= law->sets[i].sms[k];
		}
	}
	return sms == law->device.sms ? NULL : "each SM is in a set";
}

static const char *check_works(const struct law *law)
{
	uint64_t resident = 0, blocks = 0, waiting = 0;

	for (uint32_t i = 0; i < law->work_count; i++) {
		const struct work *w = &law->works[i];

		if (w->state == FREE || w->kind != LAW_KERNEL)
			continue;
		resident += w->resident;
		waiting += w->units * w->left;
		if (w->state == DONE && (w->left || w->resident))
			return "an ended kernel has no blocks";
	}
	for (uint32_t i = 0; i < (law->device.sharing == LAW_MPS ? 1 : LAW_CLIENTS); i++)
		for (uint32_t k = law->fields[i].sets; k != NONE; k = law->sets[k].next)
			blocks += (uint64_t)law->sets[k].blocks * law->sets[k].count;
	if (resident != blocks)
		return "kernels have the blocks that are on SMs";
	return waiting == law->totals.waiting ? NULL : "work that waits adds up";
}

const char *law_check(const struct law *law)
{
	const struct law_totals *t = &law->totals;
	const unsigned fields = law->device.sharing == LAW_MPS ? 1 : LAW_CLIENTS;
	const char *broken = check_works(law);
	uint64_t running = 0;

	for (unsigned i = 0; i < fields && !broken; i++)
		broken = check_field(law, &law->fields[i], &running);
	if (!broken && t->submitted != t->done + t->lost + t->waiting + running)
		broken = "work is neither lost nor made";
	return broken;
}
