/*
 * Rules about single kernels: whether blocks, grid, registers and shared memory suit the device.
 * All is arithmetic on the launch, because a trace does not say how a kernel spends its time. So
 * confidence is never high, and gains hold only for kernels that wait for memory or for themselves.
 */
#include "hint_rules.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/text.h"
#include "base/xmalloc.h"

#define SHORT_NS      5000u /* kernels below are mostly launch, whatever their shape */
#define FLOOR_NS      2000.0
#define SHARE_LEAST   0.01
#define GAIN_LEAST    0.1
#define OCCUPANCY_LOW 0.5
#define CEILING_NEAR  0.7 /* of what the device can compute or move */
#define NAME_CUT      80

struct fit { /* a kernel on its device */
	const struct hint_kernel *k;
	const struct hint_device *d;
	struct occupancy_launch launch;
	struct occupancy o;
	uint64_t blocks;   /* of the grid */
	uint64_t resident; /* blocks that the device holds at a time */
	double share;      /* of the analysed time, while nothing else ran */
	double most;       /* of it, that a faster kernel can save */
};

static uint64_t product(const uint32_t *v)
{
	uint64_t n = v[0];
	n = n > UINT64_MAX / (v[1] ? v[1] : 1) ? UINT64_MAX : n * v[1];
	return n > UINT64_MAX / (v[2] ? v[2] : 1) ? UINT64_MAX : n * v[2];
}

static double mean_ns(const struct hint_kernel *k)
{
	return k->count ? (double)k->total_ns / (double)k->count : 0;
}

/* The kernel's roofline, or NULL. */
static const struct roofline *roofline_of(const struct hint_facts *f, const struct hint_kernel *k)
{
	array_each(const struct activity_row, w, f->report->activities)
		if (w->kind == GPU_KERNEL && !strcmp(w->name, k->name))
			return &w->roofline;
	return NULL;
}

/* A kernel that is near a ceiling has no room, whatever its shape. */
static bool is_near_ceiling(const struct hint_facts *f, const struct hint_kernel *k)
{
	const struct roofline *l = roofline_of(f, k);
	return l && l->basis == BASIS_COST && fmax(l->flops_share, l->bytes_share) >= CEILING_NEAR;
}

/* False when the kernel does not matter, or too little is known. */
static bool fit_of(const struct hint_facts *f, const struct hint_kernel *k, struct fit *ret)
{
	struct fit t = { .k = k,
		.d = facts_device(f, k->device),
		.blocks = product(k->shape.grid),
		.share = facts_share(f, (double)k->alone_ns),
		.most = facts_most(f, k->name) };
	const uint64_t threads = product(k->shape.block);
	if (!t.d || !t.d->multiprocessors || !t.d->limits || !k->has_resources || !t.blocks ||
		threads > OCCUPANCY_THREADS_PER_BLOCK)
		return false;
	if (t.share < SHARE_LEAST || mean_ns(k) < SHORT_NS || is_near_ceiling(f, k))
		return false;
	t.launch = (struct occupancy_launch){ .threads = (uint32_t)threads,
		.regs = k->registers,
		.smem_static_bytes = k->shared_static,
		.smem_dynamic_bytes = k->shared_dynamic };
	t.o = occupancy_of(t.d->limits, &t.launch);
	expect(t.o.warps <= t.d->limits->warps_per_sm,
		"no more warps live on a multiprocessor than it has room for");
	t.resident = (uint64_t)t.o.blocks * t.d->multiprocessors;
	*ret = t;
	return t.o.blocks;
}

static char *where(const struct fit *t)
{
	const uint32_t *g = t->k->shape.grid, *b = t->k->shape.block;
	struct text_short name;
	struct number n;
	return xasprintf("%s, grid (%u,%u,%u), block (%u,%u,%u), %s",
		text_short(&name, text_kernel(t->k->name), NAME_CUT), g[0], g[1], g[2], b[0], b[1],
		b[2], number_of(&n, t->k->count, "run"));
}

/* A kernel can gain the time above the floor that no kernel is below. */
static double above_floor(const struct hint_kernel *k)
{
	return fmax(0, 1 - FLOOR_NS / mean_ns(k));
}

static double occupancy_share(const struct fit *t, uint32_t warps)
{
	return (double)warps / t->d->limits->warps_per_sm;
}

/* Calls `use` for each kernel that matters. */
static void each_kernel(const struct hint_facts *f, const struct hint_rule *rule, struct hints *to,
	void (*use)(const struct fit *t, const struct hint_rule *rule, struct hints *to))
{
	struct fit t;
	for (size_t i = 0; i < f->kernels.n; i++)
		if (fit_of(f, &f->kernels.v[i], &t))
			use(&t, rule, to);
}

/* A rule that a function of its name says for each kernel. */
#define KERNEL_RULE(name)                                                                          \
	HINT_RULE(name)                                                                            \
	{                                                                                          \
		each_kernel(f, rule, to, name);                                                    \
	}

static void small_grid(const struct fit *t, const struct hint_rule *rule, struct hints *to)
{
	const uint32_t sms = t->d->multiprocessors;
	struct number n;
	if (t->blocks >= sms)
		return;
	/* A library has weighed more blocks against adding up what they compute. */
	const double gain = (1 - (double)t->blocks / sms) * above_floor(t->k) *
			    (t->k->names & NAME_LIBRARY ? 0.5 : 1);
	if (gain < GAIN_LEAST)
		return;
	hint_add(to, rule, fmin(t->share * gain, t->most), t->k->names & NAME_LIBRARY ? 0.3 : 0.6,
		where(t),
		xasprintf("%llu blocks for %u multiprocessors: %.0f %% of them have nothing to do "
			  "for %s, %.0f %% of the analysed time",
			(unsigned long long)t->blocks, sms, 100 * (1 - (double)t->blocks / sms),
			number_ns(&n, t->k->alone_ns), 100 * t->share));
}
KERNEL_RULE(small_grid)

static void tail(const struct fit *t, const struct hint_rule *rule, struct hints *to)
{
	const double waves = (double)t->blocks / (double)t->resident;
	const double gain = 1 - waves / ceil(waves);
	if (waves <= 1 || gain < GAIN_LEAST || t->k->names & NAME_LIBRARY)
		return;
	hint_add(to, rule, fmin(t->share * gain, t->most), 0.5, where(t),
		xasprintf(
			"%llu blocks, of which the device holds %llu at a time (%u on each of "
			"%u multiprocessors): %.2f waves take the time of %.0f, in %.0f %% of the "
			"analysed time",
			(unsigned long long)t->blocks, (unsigned long long)t->resident, t->o.blocks,
			t->d->multiprocessors, waves, ceil(waves), 100 * t->share));
}
KERNEL_RULE(tail)

static void lanes(const struct fit *t, const struct hint_rule *rule, struct hints *to)
{
	const uint32_t threads = t->launch.threads,
		       warps = (threads + OCCUPANCY_WARP - 1) / OCCUPANCY_WARP;
	const double gain = 1 - (double)threads / (warps * OCCUPANCY_WARP);
	if (gain < GAIN_LEAST || t->k->names & NAME_LIBRARY)
		return;
	hint_add(to, rule, fmin(t->share * gain, t->most), 0.6, where(t),
		xasprintf("%u threads a block are %u warps of 32, so %.0f %% of the lanes do "
			  "nothing, in %.0f %% of the analysed time",
			threads, warps, 100 * gain, 100 * t->share));
}
KERNEL_RULE(lanes)

/* Fewer blocks than the device holds: more room would stay empty. */
static bool fills_device(const struct fit *t)
{
	return t->blocks > t->resident && !(t->k->names & NAME_LIBRARY);
}

/* The block size of those that are usual which gives most warps; of equals the nearest. */
static uint32_t best_block(const struct fit *t, uint32_t *ret_warps)
{
	static const uint32_t sizes[] = { 64, 128, 192, 256, 384, 512, 768, 1024 };
	uint32_t best = t->launch.threads, distance = 0;
	*ret_warps = t->o.warps;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct occupancy_launch l = t->launch;
		l.threads = sizes[i];
		const uint32_t warps = occupancy_of(t->d->limits, &l).warps;
		const uint32_t far = l.threads > t->launch.threads ? l.threads - t->launch.threads
								   : t->launch.threads - l.threads;
		if (warps > *ret_warps || (warps == *ret_warps && distance && far < distance)) {
			*ret_warps = warps;
			best = l.threads;
			distance = far;
		}
	}
	return best;
}

/* Shared memory mostly grows with the block, so nothing is said of kernels that use it. */
static double block_gain(const struct fit *t, uint32_t *ret_block, uint32_t *ret_warps)
{
	if (t->k->shared_static || t->k->shared_dynamic || !fills_device(t))
		return 0;
	if (occupancy_share(t, t->o.warps) > OCCUPANCY_LOW)
		return 0;
	*ret_block = best_block(t, ret_warps);
	if (!expect(*ret_warps >= t->o.warps, "the block size advised fills no less"))
		return 0;
	return 1 - (double)t->o.warps / *ret_warps;
}

static void block_size(const struct fit *t, const struct hint_rule *rule, struct hints *to)
{
	uint32_t block, warps;
	const double gain = block_gain(t, &block, &warps);
	if (gain < 2 * GAIN_LEAST)
		return;
	hint_add(to, rule, fmin(t->share * gain, t->most), 0.4, where(t),
		xasprintf(
			"blocks of %u threads fill %u of %u warps of a multiprocessor (limited by "
			"%s). Blocks of %u would fill %u, in %.0f %% of the analysed time",
			t->launch.threads, t->o.warps, t->d->limits->warps_per_sm,
			occupancy_word(&t->o), block, warps, 100 * t->share));
}
KERNEL_RULE(block_size)

struct step { /* down to the value at which one more block fits */
	struct occupancy_cliff cliff;
	uint32_t now;
	double gain;
	bool near; /* a cliff: almost there */
};

/* False when that is not what limits the kernel, or another block size would do. */
static bool step_of(const struct fit *t, enum occupancy_limit limit, enum occupancy_knob knob,
	uint32_t now, struct step *ret)
{
	uint32_t block, warps;
	struct step s = { .now = now };
	if (t->o.limiter != limit || !fills_device(t) ||
		occupancy_share(t, t->o.warps) >= OCCUPANCY_LOW ||
		block_gain(t, &block, &warps) >= 2 * GAIN_LEAST)
		return false;
	s.cliff = occupancy_more(t->d->limits, &t->launch, knob);
	if (!s.cliff.found)
		return false;
	if (!expect(s.cliff.value < now && s.cliff.warps > t->o.warps,
		    "one more block fits with less of what limits"))
		return false;
	s.gain = 1 - (double)t->o.warps / s.cliff.warps;
	s.near = knob == OCCUPANCY_BY_REGS ? now - s.cliff.value <= 8
					   : now - s.cliff.value <= now / 20;
	*ret = s;
	return s.gain >= GAIN_LEAST;
}

static bool registers_of(const struct fit *t, struct step *ret)
{
	return step_of(t, OCCUPANCY_REGISTERS, OCCUPANCY_BY_REGS, t->k->registers, ret);
}

static bool shared_of(const struct fit *t, struct step *ret)
{
	return step_of(t, OCCUPANCY_SHARED, OCCUPANCY_BY_SMEM,
		t->k->shared_static + t->k->shared_dynamic, ret);
}

static void add_step(const struct fit *t, const struct step *s, const struct hint_rule *rule,
	struct hints *to, const char *unit)
{
	struct number blocks;
	hint_add(to, rule, fmin(t->share * s->gain, t->most), s->near ? 0.5 : 0.4, where(t),
		xasprintf("%u %s let %s (%u of %u warps) live on a multiprocessor. With %u "
			  "it would be %u (%u warps), in %.0f %% of the analysed time",
			s->now, unit, number_of(&blocks, t->o.blocks, "block"), t->o.warps,
			t->d->limits->warps_per_sm, s->cliff.value, s->cliff.blocks, s->cliff.warps,
			100 * t->share));
}

#define REGISTERS "registers a thread"
#define SHARED    "bytes of shared memory a block"

static void registers(const struct fit *t, const struct hint_rule *rule, struct hints *to)
{
	struct step s;
	if (registers_of(t, &s) && !s.near)
		add_step(t, &s, rule, to, REGISTERS);
}
KERNEL_RULE(registers)

static void shared(const struct fit *t, const struct hint_rule *rule, struct hints *to)
{
	struct step s;
	if (shared_of(t, &s) && !s.near)
		add_step(t, &s, rule, to, SHARED);
}
KERNEL_RULE(shared)

static void cliff(const struct fit *t, const struct hint_rule *rule, struct hints *to)
{
	struct step s;
	if (registers_of(t, &s) && s.near) {
		add_step(t, &s, rule, to, REGISTERS);
		return;
	}
	if (shared_of(t, &s) && s.near)
		add_step(t, &s, rule, to, SHARED);
}
KERNEL_RULE(cliff)

/* The driver's earlier answer for the same kernel and block, or NULL. */
static const struct hint_answer *answer_of(const struct hint_facts *f, const struct fit *t)
{
	array_each(const struct hint_answer, a, f->answers)
		if (a->name_id != META_NONE && a->name_id == t->k->name_id &&
			a->threads == t->launch.threads &&
			a->dynamic_bytes == t->launch.smem_dynamic_bytes)
			return a;
	return NULL;
}

/*
 * Registers, shared memory, warps and blocks would allow more than the driver does.  Only barriers
 * are left: a kernel that names one by a register is given all sixteen.
 */
HINT_RULE(barriers)
{
	struct fit t;
	for (size_t i = 0; i < f->kernels.n; i++) {
		if (!fit_of(f, &f->kernels.v[i], &t) || !t.d->limits->barriers_per_sm)
			continue;
		const struct hint_answer *a = answer_of(f, &t);
		const uint32_t barriers =
			a && a->blocks ? t.d->limits->barriers_per_sm / a->blocks : 0;
		if (barriers < 2 || a->blocks >= t.o.blocks || t.k->names & NAME_LIBRARY ||
			t.blocks <= (uint64_t)a->blocks * t.d->multiprocessors)
			continue;
		const double gain = 1 - (double)a->blocks / t.o.blocks;
		if (gain < GAIN_LEAST)
			continue;
		hint_add(to, rule, fmin(t.share * gain, t.most), 0.5, where(&t),
			xasprintf(
				"the driver lets %u blocks live on a multiprocessor, where all but "
				"barriers would allow %u: a block has %u barriers of the "
				"multiprocessor's %u, in %.0f %% of the analysed time",
				a->blocks, t.o.blocks, barriers, t.d->limits->barriers_per_sm,
				100 * t.share));
	}
}
