/* See change.h. */
#include "monitor/change.h"

#include <errno.h>
#include <string.h>

#include "share/policy.h"

#include "base/banned.h"

int change_class(struct share_file *f, uint32_t pid, const char *class)
{
	const bool latency = !strcmp(class, "latency");
	int e = -ESRCH;
	if (!latency && strcmp(class, "best-effort") != 0)
		return -EINVAL;
	for (uint32_t i = 0; f && i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &f->slots[i];
		if (__atomic_load_n(&s->who.state, __ATOMIC_ACQUIRE) != SLOT_LIVE ||
			s->who.pid != pid || share_is_dead(s))
			continue;
		share_set_class(f, i, latency ? CLASS_LATENCY : CLASS_BEST_EFFORT);
		e = 0;
	}
	return e;
}

int change_policy(struct share_file *f, const char *policy)
{
	if (!policy_find(policy))
		return -EINVAL;
	if (!f)
		return -ESRCH;
	f->tuning = (struct share_tuning){ 0 };
	memset(f->arbiter.policy, 0, sizeof f->arbiter.policy);
	memcpy(f->arbiter.policy, policy, strlen(policy));
	return 0;
}
