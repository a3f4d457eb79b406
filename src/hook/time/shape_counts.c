/* Counts the timed launches of each kernel and shape in a small table without locks. */
#include "hook/time/shape_counts.h"

#include "base/atomic.h"
#include "base/hash.h"
#include "hook/core/captures.h"
#include "hook/core/process.h"
#include "hook/core/pages.h"
#include "hook/time/calibration.h"

#define SEEN       4096u /* kernels and shapes that are told apart */
#define SEEN_TRIES 8u
#define FIRST_FEW  8u /* of each are timed */

static struct {
	_Atomic uint32_t slot[SEEN]; /* 24 bits of a hash, never 0, and how many were wanted */
} shapes OWN_PAGES;

/* Hashes the facts by which launches of a kernel take different times. */
static uint64_t hash_of(const struct launch_shape *s)
{
	uint64_t h = 0;
	for (int i = 0; i < 3; i++)
		h = h * 31 + s->grid[i];
	for (int i = 0; i < 3; i++)
		h = h * 31 + s->block[i];
	return h + ((uint64_t)s->shared << 32);
}

/* Whether too little is known of what takes equally long. Counts may be lost to a thread that
 * counts at the same time: then it is one more. */
bool shape_is_new(uint32_t fn, const struct launch_shape *s)
{
	const uint64_t what = s->what ? (uintptr_t)s->what : fn,
		       shape = s->what ? hash_of(s) : s->bytes;
	const uint64_t h = hash_mix(hash_mix(what) ^ shape);
	const uint32_t tag = (uint32_t)(h >> 32) << 8 | 1u << 31;
	if (calibration_is_open())
		return true;
	if (load_relaxed(&hook_hot.captures) > 0)
		return false;
	for (uint32_t i = 0; i < SEEN_TRIES; i++) {
		_Atomic uint32_t *at = &shapes.slot[(h + i) % SEEN];
		uint32_t now = load_relaxed(at);
		if (!now && replace_if(at, &now, tag | 1, relaxed, relaxed))
			return true;
		if ((now & ~0xffu) != tag)
			continue;
		if ((now & 0xff) >= FIRST_FEW)
			return false;
		store_relaxed(at, now + 1);
		return true;
	}
	return false;
}

void shape_counts_forget(void)
{
	DROP(shapes);
}
