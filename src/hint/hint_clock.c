/* The rule about clocks: what the GPU's own limits cost, as NVML sampled them beside the program.
 */
#include "hint_rules.h"

#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "base/xmalloc.h"
#include "model/gpu_state.h"

struct slowed {
	uint64_t kernel_ns, ns; /* kernels, while the clock was low; for how long it was */
	double lost_ns;         /* what they took more, if they take time as the clock goes */
	uint16_t mhz, reasons;  /* lowest; of all phases */
};

static struct slowed slowed_of(const struct gpu_state *g)
{
	struct slowed sum = { .mhz = UINT16_MAX };
	array_each(const struct gpu_slow, s, g->slow) {
		sum.kernel_ns = sat_add(sum.kernel_ns, s->kernel_ns);
		sum.ns = sat_add(sum.ns, s->ns);
		sum.lost_ns += (double)s->kernel_ns *
			       (1 - (double)s->mhz / g->range[METRIC_SM_CLOCK].high);
		sum.mhz = MIN(s->mhz, sum.mhz);
		sum.reasons |= s->reasons;
	}
	return sum;
}

/* "power cap, hardware: hot"; "" when the driver does not say. */
static void put_reasons(char to[static 160], uint16_t reasons)
{
	size_t at = 0;
	to[0] = '\0';
	for (unsigned i = 0; i < 16; i++) {
		const char *name = reasons >> i & 1 ? throttle_reason_name(i) : NULL;
		const int n = name ? snprintf(to + at, 160 - at, "%s%s", at ? ", " : "", name) : 0;
		if (n < 0 || (size_t)n >= 160 - at)
			return;
		at += (size_t)n;
	}
}

static void add(const struct hint_facts *f, const struct hint_rule *rule, struct hints *to,
	const struct gpu_state *g, const struct slowed *s)
{
	char reasons[160];
	struct number kernels, phases;
	put_reasons(reasons, s->reasons);
	char *evidence = xasprintf(
		"kernels ran for %s while the SM clock was below its highest, at %u "
		"to %.0f MHz, which was so for %s%s%s. The estimate is by the lowest clock",
		number_ns(&kernels, s->kernel_ns), s->mhz, g->range[METRIC_SM_CLOCK].high,
		number_ns(&phases, s->ns), *reasons ? ", and the driver says: " : "", reasons);
	hint_add(to, rule, fmin(facts_share(f, s->lost_ns), facts_most(f, NULL)), 0.5,
		xasprintf("GPU %u", g->device), evidence);
}

HINT_RULE(clock)
{
	const struct gpu_states *states = f->report->gpu_states;
	for (size_t i = 0; states && i < states->gpus.n; i++) {
		const struct slowed s = slowed_of(&states->gpus.v[i]);
		if (s.lost_ns > 0)
			add(f, rule, to, &states->gpus.v[i], &s);
	}
}
