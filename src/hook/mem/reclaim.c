/* Waits for memory that other programs could return. */
#include "hook/mem/reclaim.h"

#include <time.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "hook/core/config.h"
#include "hook/core/process.h"
#include "share/quota.h"

#define NAP_NS    1000000
#define WANTED_NS 1000000000u /* that others know of it, when nobody waits */

bool reclaim_goes_on(struct reclaim *w, struct member *m, uint64_t bytes)
{
	const struct timespec nap = { 0, NAP_NS };
	const uint64_t now = clock_monotonic(), wait = config_get()->wait_memory_ns;
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
