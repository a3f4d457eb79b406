/*
 * The law of a shared GPU.  The table at its end is what was measured on an H200 (132 SMs, driver
 * 580.159) with two programs: one that is latency-critical, LC, and one with best-effort work, BE;
 * the same two run here in the law's time.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "law/law.h"
#include "law_check.h"

#define US 1000

static uint64_t random_state;

static uint64_t random_bits(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t random_below(uint64_t n)
{
	return random_bits() % n;
}

/* How much later than at best the host does something. */
static uint64_t late_ns(double mean_us)
{
	const double u = ((double)(random_bits() >> 11) + 1) / 0x1p53;

	return (uint64_t)(-log(u) * mean_us * US);
}

static struct law *new_law(struct law_device device)
{
	struct law *law = malloc(law_size());

	random_state = 88172645463325252u;
	assert_non_null(law);
	assert_int_equal(law_reset(law, &device), 0);
	return law;
}

enum { LC, BE };
enum { LC_KERNELS = 10, LC_BLOCKS = 64, BE_PER_SYNC = 32, LAST = 1 };
/*
 * The times that the host and the front end of the GPU add: first, lead and sync so that each
 * program alone is as fast as on the device.  Not measured but chosen, to fit the table: how late
 * LC wakes up from its pause (200 us on average; without that all its arrivals fall into the same
 * phase of BE), and what it takes BE to notice that a kernel has ended and that the gate is open.
 */
static const uint64_t lc_first = 4500, lc_lead = 2200, lc_sync = 6000, lc_pause = 2055000,
		      be_lead = 2400, be_wake = 4500, gate_wake = 10000;

struct way {
	enum law_sharing sharing;
	bool priority; /* LC's blocks before BE's */
	unsigned
		depth; /* a gate: so many BE kernels at a time, none while LC is busy; 0: no gate */
	unsigned sms;  /* BE is held to so many, 0: to none */
};

struct program {
	unsigned blocks;
	uint64_t block_ns;
};

struct host {
	struct law *law;
	struct way way;
	struct program be;
	uint64_t lc_at, be_at, lc_began, lc_until; /* LAW_NEVER: waits for something else */
	bool lc_active, be_gated;
	unsigned sent, ended;
	uint64_t latency[8192];
	size_t requests;
};

struct found {
	double p50, p99, rate;
};

static void submit(struct law *law, unsigned client, struct program p, uint64_t lead, uint64_t tag)
{
	const struct law_work w = {
		.kind = LAW_KERNEL,
		.client = client,
		.stream = 1,
		.lead_ns = lead,
		.blocks = p.blocks,
		.block_ns = p.block_ns,
		.warps = 8,
		.per_sm = 8,
		.tag = tag,
	};
	uint64_t id;

	assert_int_equal(law_submit(law, &w, &id), 0);
}

static void lc_begins(struct host *h)
{
	const struct program p = { LC_BLOCKS, 9800 };

	h->lc_began = h->lc_at;
	h->lc_at = LAW_NEVER;
	h->lc_active = true;
	for (int i = 0; i < LC_KERNELS; i++)
		submit(h->law, LC, p, i ? lc_lead : lc_first, i == LC_KERNELS - 1 ? LAST : 0);
}

static void lc_returns(struct host *h)
{
	if (h->requests < COUNT_OF(h->latency))
		h->latency[h->requests++] = h->lc_until - h->lc_began;
	h->lc_active = false;
	h->lc_at = h->lc_until + lc_pause + late_ns(200);
	if (h->be_gated)
		h->be_at = h->lc_until + gate_wake + late_ns(3);
	h->be_gated = false;
	h->lc_until = LAW_NEVER;
}

/* BE's host may go on: it hands over what it may, and then waits for a kernel's end, or for LC. */
static void be_goes_on(struct host *h)
{
	const uint64_t now = h->be_at;

	h->be_at = LAW_NEVER;
	for (;;) {
		const bool synchronizes = h->sent % BE_PER_SYNC == 0 && h->ended < h->sent;
		const bool deep = h->way.depth && h->sent - h->ended >= h->way.depth;

		if (synchronizes || deep)
			return;
		h->be_gated = h->way.depth && h->lc_active;
		if (h->be_gated)
			return;
		submit(h->law, BE, h->be, be_lead, 0);
		h->sent++;
		if (h->way.depth) { /* one launch after the other */
			h->be_at = now + be_lead;
			return;
		}
		if (h->sent % BE_PER_SYNC == 0)
			return;
	}
}

static void fetch_ends(struct host *h)
{
	struct law_done done;

	while (law_pop(h->law, LC, &done))
		if (done.tag == LAST)
			h->lc_until = done.end_ns + lc_sync + late_ns(3);
	while (law_pop(h->law, BE, &done)) {
		h->ended++;
		const bool waits = h->be_at == LAW_NEVER && !h->be_gated;
		const bool all = h->ended == h->sent;

		if (waits && (all || (h->way.depth && h->sent % BE_PER_SYNC)))
			h->be_at = done.end_ns + be_wake + late_ns(3);
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct found run(struct way way, struct program be, bool lc, bool with_be, uint64_t until)
{
	static struct host h;
	struct law_device device = LAW_H200;

	device.sharing = way.sharing;
	h = (struct host){
		.law = new_law(device),
		.way = way,
		.be = be,
		.lc_at = lc ? 500 * US : LAW_NEVER,
		.be_at = with_be ? 0 : LAW_NEVER,
		.lc_until = LAW_NEVER,
	};
	law_client_open(h.law, LC, 0, 0);
	law_client_open(h.law, BE, way.priority ? -1 : 0, way.sms);
	for (;;) {
		const uint64_t host = least(least(h.lc_at, h.be_at), h.lc_until);
		const uint64_t next = least(host, law_next(h.law));

		if (next > until)
			break;
		law_advance(h.law, next);
		fetch_ends(&h);
		if (h.lc_at <= next)
			lc_begins(&h);
		if (h.lc_until <= next)
			lc_returns(&h);
		if (h.be_at <= next)
			be_goes_on(&h);
	}
	free(h.law);
	qsort(h.latency, h.requests, sizeof h.latency[0], ascending);
	return (struct found){
		.p50 = h.requests ? (double)h.latency[h.requests / 2] / US : 0,
		.p99 = h.requests ? (double)h.latency[h.requests * 99 / 100] / US : 0,
		.rate = (double)h.ended,
	};
}

static const struct program programs[] = { { 264, 490000 }, { 264, 24500 }, { 5280, 24500 },
	{ 264, 2450000 } };
static const char *const program_names[] = { "1wave", "short", "multi", "long" };

/*
 * LC's 99th percentile in microseconds, and BE's rate as a share of its rate alone; 0: not
 * measured. Each figure may be off by 15 % and by .05.  A third number marks a cell that does not
 * meet that, and is what it may be off by instead, with .06 for the share.  One wave under MPS,
 * with and without priority: on the device LC is faster once a BE kernel has ended, and why is not
 * known.  One wave on 80 % of the SMs: the law's placing never lets LC meet the slow SMs.  Two long
 * kernels in slices: the wait on the device was shorter than the slice that the other rows agree
 * on.
 */
struct measured {
	const char *name;
	struct way way;
	double cell[4][3];
};

static const struct measured table[] = {
	{ "slices", { .sharing = LAW_SLICES },
		{ { 2391, .91 }, { 1222, .93 }, { 2411, .90 }, { 2393, .91 } } },
	{ "gate 1", { .depth = 1 }, { { 804, .89 }, { 293, .73 }, { 748, .88 }, { 1208, .92 } } },
	{ "gate 2", { .depth = 2 },
		{ { 1378, .91 }, { 316, .88 }, { 1232, .90 }, { 1887, .92, .2 } } },
	{ "gate 4", { .depth = 4 }, { { 2379, .91 }, { 377, .88 }, { 2167, .90 }, { 2398, .91 } } },
	{ "mps", { .sharing = LAW_MPS }, { { 533, .96, .22 }, { 0 }, { 2394, 1 }, { 647, 1 } } },
	{ "mps, priority", { .sharing = LAW_MPS, .priority = 1 },
		{ { 533, .96, .22 }, { 0 }, { 842, .99 }, { 646, 1 } } },
	{ "mps, priority, gate 1", { .sharing = LAW_MPS, .priority = 1, .depth = 1 },
		{ { 521, .98 }, { 0 }, { 517, .97 }, { 647, 1 } } },
	{ "mps, 90 %", { .sharing = LAW_MPS, .sms = 119 }, { { 535, .64 }, { 0 }, { 326, .89 } } },
	{ "mps, 80 %", { .sharing = LAW_MPS, .sms = 106 },
		{ { 426, .64, .5 }, { 0 }, { 229, .79 } } },
	{ "mps, 70 %", { .sharing = LAW_MPS, .sms = 92 }, { { 165, .64 }, { 0 }, { 163, .69 } } },
	{ "mps, 60 %", { .sharing = LAW_MPS, .sms = 79 },
		{ { 163, .53 }, { 0 }, { 163, .59 }, { 163, .52 } } },
	{ "mps, 104 SMs", { .sharing = LAW_MPS, .sms = 104 }, { { 226, .64 } } },
};

enum { RUN_NS = 2000000000 };

static bool is_near(const struct measured *m, int p, double alone)
{
	const double *want = m->cell[p], allowed = want[2] > 0 ? want[2] : .15;
	const struct found f = run(m->way, programs[p], true, true, RUN_NS);
	const double off = f.p99 / want[0] - 1, share = f.rate / alone;
	const bool ok = fabs(off) <= allowed && fabs(share - want[1]) <= (want[2] > 0 ? .06 : .05);

	printf("%-22s %-6s %5.0f %5.0f %+4.0f %%  %.2f %.2f%s%s\n", m->name, program_names[p],
		want[0], f.p99, 100 * off, want[1], share, want[2] > 0 ? "  known" : "",
		ok ? "" : "  WRONG");
	return ok;
}

static void two_programs_fare_as_on_the_device(void **state)
{
	const struct found lc = run((struct way){ LAW_SLICES }, programs[0], true, false, RUN_NS);
	double alone[4];
	int wrong = 0;

	printf("LC alone: median %.0f us, p99 %.0f us (measured 131, 141)\n", lc.p50, lc.p99);
	printf("%-22s %-6s %19s  %s\n", "", "", "LC p99: GPU, law", "BE share: GPU, law");
	for (int p = 0; p < 4; p++)
		alone[p] = run((struct way){ LAW_SLICES }, programs[p], false, true, RUN_NS).rate;
	for (size_t i = 0; i < COUNT_OF(table); i++)
		for (int p = 0; p < 4; p++)
			wrong += table[i].cell[p][0] > 0 && !is_near(&table[i], p, alone[p]);
	assert_int_equal(wrong, 0);
}

static struct law_work kernel(unsigned client, uint64_t alone_ns)
{
	return (struct law_work){
		.kind = LAW_KERNEL,
		.client = client,
		.blocks = 264,
		.warps = 8,
		.per_sm = 8,
		.alone_ns = alone_ns,
	};
}

static struct law *two_clients(enum law_sharing sharing, int priority, unsigned sms)
{
	struct law_device device = LAW_H200;

	device.sharing = sharing;
	struct law *law = new_law(device);
	assert_int_equal(law_client_open(law, 0, priority, 0), 0);
	assert_int_equal(law_client_open(law, 1, 0, sms), 0);
	return law;
}

static uint64_t submitted(struct law *law, struct law_work w)
{
	uint64_t id;

	assert_int_equal(law_submit(law, &w, &id), 0);
	return id;
}

/* When the only work of a client that has not been fetched ends. */
static uint64_t end_of(struct law *law, unsigned client)
{
	struct law_done done;

	while (!law_pop(law, client, &done)) {
		assert_true(law_next(law) != LAW_NEVER);
		law_advance(law, law_next(law));
	}
	return done.end_ns;
}

static void near_ns(uint64_t x, uint64_t wanted, uint64_t by)
{
	if (x + by < wanted || x > wanted + by)
		fail_msg("%llu ns is not within %llu of %llu", (unsigned long long)x,
			(unsigned long long)by, (unsigned long long)wanted);
}

static void alone_a_kernel_takes_what_it_is_said_to(void **state)
{
	static const uint64_t blocks[] = { 1, 131, 132, 133, 264, 700, 1056, 5280, 100000,
		10000000 };

	for (size_t i = 0; i < COUNT_OF(blocks); i++)
		for (unsigned warps = 1; warps <= 32; warps *= 2) {
			struct law *law = two_clients(LAW_SLICES, 0, 0);
			struct law_work w = kernel(0, 1000000);

			w.blocks = blocks[i];
			w.warps = warps;
			w.lead_ns = 2000;
			submitted(law, w);
			if (warps == 8) /* who waits may sleep for most of that */
				assert_true(law_soonest(law, 0) > 500000);
			near_ns(end_of(law, 0), 1002000, 10000);
			free(law);
		}
}

static void a_cap_costs_what_waves_say(void **state)
{
	struct law *law = two_clients(LAW_MPS, 0, 66);
	struct law_work w = kernel(1, 1000000);

	w.blocks = 132 * 8 * 8;
	submitted(law, w);
	const uint64_t half = end_of(law, 1);
	near_ns(half, 1991500, 200);
	w.first_sm = 100; /* of the device, beside the client's cap */
	w.end_sm = 132;
	submitted(law, w);
	const uint64_t quarter = end_of(law, 1);
	near_ns(quarter - half, 4098600, 300);
	/* A wave that fits half of the device is no slower there. */
	w = kernel(1, 1000000);
	w.blocks = 66;
	submitted(law, w);
	near_ns(end_of(law, 1) - quarter, 1000000, 200);
	free(law);
}

static void slices_go_round_and_a_switch_takes_time(void **state)
{
	struct law *law = two_clients(LAW_SLICES, 0, 0);

	submitted(law, kernel(0, 5000000));
	submitted(law, kernel(1, 3000000));
	/* 0: 0-2, 1: 2.1-4.1, 0: 4.2-6.2, 1: 6.3-7.3, 0: 7.4-8.4 */
	near_ns(end_of(law, 1), 7300000, 100);
	near_ns(end_of(law, 0), 8400000, 100);
	/* Given up when idle, and for nothing to the one who had it last. */
	submitted(law, kernel(0, 100000));
	near_ns(end_of(law, 0), 8500000, 100);
	assert_int_equal(law_totals(law).switches, 4);
	free(law);
}

static void blocks_of_the_higher_priority_are_placed_first(void **state)
{
	static const int stream[] = { 0, 5 };

	for (int i = 0; i < 2; i++) {
		struct law *law = two_clients(LAW_MPS, i, 0);
		struct law_work wide = kernel(1, 1000000), narrow = kernel(0, 100000);

		wide.blocks = 132 * 8 * 4;
		narrow.blocks = 132 * 8;
		narrow.priority = i ? 0 : stream[1];
		submitted(law, wide);
		submitted(law, wide);
		law_advance(law, 10000);
		submitted(law, narrow);
		assert_true(end_of(law, 0) < 700000);
		free(law);
	}
	struct law *law = two_clients(LAW_MPS, 0, 0);
	struct law_work wide = kernel(1, 1000000);
	wide.blocks = 132 * 8 * 4;
	submitted(law, wide);
	submitted(law, wide);
	law_advance(law, 10000);
	submitted(law, kernel(0, 100000));
	assert_true(end_of(law, 0) > 1000000);
	free(law);
}

static void copies_wait_for_their_engine_only(void **state)
{
	struct law *law = two_clients(LAW_SLICES, 0, 0);
	struct law_work copy = { .kind = LAW_COPY, .alone_ns = 1000 };

	submitted(law, copy);
	copy.client = 1;
	submitted(law, copy);
	copy.engine = LAW_FROM_DEVICE;
	copy.alone_ns = 1500;
	submitted(law, copy);
	assert_int_equal(end_of(law, 0), 1000);
	assert_int_equal(end_of(law, 1), 1500);
	assert_int_equal(end_of(law, 1), 2000);
	free(law);
}

static void what_is_behind_others_waits_for_all_of_them(void **state)
{
	struct law *law = two_clients(LAW_MPS, 0, 0);
	struct law_work copy = { .kind = LAW_COPY, .alone_ns = 1000, .stream = 1 }, mark = { 0 };
	uint64_t both[2];

	both[0] = submitted(law, copy);
	both[1] = submitted(law, copy);
	mark.after = both;
	mark.after_count = 2;
	const uint64_t id = submitted(law, mark);
	mark.after = &id;
	mark.after_count = 1;
	mark.lead_ns = 500;
	submitted(law, mark);
	assert_int_equal(end_of(law, 0), 1000);
	assert_int_equal(end_of(law, 0), 2000);
	assert_int_equal(end_of(law, 0), 2000);
	assert_int_equal(end_of(law, 0), 2500);
	mark.lead_ns = 0;
	submitted(law, mark); /* behind what has long ended */
	assert_int_equal(end_of(law, 0), 2500);
	free(law);
}

static void a_client_that_closes_leaves_the_device_to_others(void **state)
{
	for (int sharing = LAW_SLICES; sharing <= LAW_MPS; sharing++) {
		struct law *law = two_clients((enum law_sharing)sharing, 0, 0);
		struct law_work w = kernel(1, 50000000), copy = {
			.kind = LAW_COPY,
			.client = 1,
			.alone_ns = 50000000,
		};

		w.stream = 1;
		for (int i = 0; i < 100; i++)
			submitted(law, w);
		submitted(law, copy);
		copy.client = 0;
		copy.alone_ns = 1000;
		law_advance(law, 700000);
		submitted(law, kernel(0, 100000));
		submitted(law, copy);
		law_client_close(law, 1);
		assert_null(law_check(law));
		assert_int_equal(end_of(law, 0), 701000);
		near_ns(end_of(law, 0), 800000, 100100);
		assert_int_equal(law_next(law), LAW_NEVER);
		assert_int_equal(law_client_open(law, 1, 0, 0), 0);
		free(law);
	}
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct law *law = two_clients(LAW_MPS, 0, 0);
	const struct law_work good = kernel(0, 1000);
	struct law_work bad[10];
	uint64_t id;

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		bad[i] = good;
	bad[0].client = 2;
	bad[1].client = LAW_CLIENTS;
	bad[2].blocks = 0;
	bad[3].warps = LAW_SM_WARPS + 1;
	bad[4].per_sm = 0;
	bad[5].alone_ns = 0;
	bad[6].block_ns = 1;
	bad[7].end_sm = 133;
	bad[8].first_sm = 132;
	bad[9].alone_ns = LAW_MAX_NS + 1;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(law_submit(law, &bad[i], &id), -EINVAL);
	assert_int_equal(law_client_open(law, 0, 0, 0), -EINVAL);
	assert_int_equal(law_client_open(law, 2, 8, 0), -EINVAL);
	assert_int_equal(law_client_open(law, 2, 0, 133), -EINVAL);
	assert_int_equal(law_reset(law, &(struct law_device){ .sms = LAW_SMS + 1 }), -EINVAL);
	assert_int_equal(law_reset(law, &(struct law_device){ .sms = 1 }), -EINVAL);
	free(law);
}

static void a_full_law_takes_more_once_ends_are_fetched(void **state)
{
	struct law *law = two_clients(LAW_MPS, 0, 0);
	struct law_work w = kernel(0, 1000);
	uint64_t id;
	int n = 0;

	w.stream = 9;
	while (law_submit(law, &w, &id) == 0)
		n++;
	assert_int_equal(n, LAW_WORKS);
	assert_int_equal(law_submit(law, &w, &id), -EAGAIN);
	law_advance(law, 10000);
	assert_int_equal(law_submit(law, &w, &id), -EAGAIN);
	end_of(law, 0);
	assert_int_equal(law_submit(law, &w, &id), 0);
	assert_null(law_check(law));
	free(law);
}

enum { STORM_CLIENTS = 5, STORM_STREAMS = 4, STORM_KEPT = 4096 };

struct storm {
	struct law *law;
	bool open[STORM_CLIENTS];
	uint64_t least_ns[STORM_KEPT]; /* by the tag of a work */
	uint64_t stream_end[STORM_CLIENTS][STORM_STREAMS];
	uint32_t outstanding;
	uint64_t tags, last_id[STORM_CLIENTS], hash;
	/* The answers of law_soonest() when time began to pass; nothing, if the client got work
	 * since. */
	uint64_t soonest[STORM_CLIENTS];
	bool changed[STORM_CLIENTS];
};

static struct law_work random_kernel(void)
{
	static const unsigned warps[] = { 1, 2, 4, 8, 8, 16, 32 };
	const unsigned w = warps[random_below(COUNT_OF(warps))], fit = 64 / w < 32 ? 64 / w : 32;
	struct law_work p = {
		.kind = LAW_KERNEL,
		.warps = w,
		.per_sm = (unsigned)(1 + random_below(fit)),
		.blocks = 1 + random_below(random_below(20) ? 700 : 30000),
		.alone_ns = 1000 + random_below(random_below(8) ? 50000 : 3000000),
		.priority = (int)random_below(4) - 2,
	};

	if (random_below(2)) {
		p.block_ns = p.alone_ns / (1 + p.blocks / 1000);
		p.alone_ns = 0;
	}
	if (random_below(4) == 0) {
		p.first_sm = (unsigned)random_below(100);
		p.end_sm = p.first_sm + 1 + (unsigned)random_below(132 - p.first_sm);
	}
	return p;
}

/*
 * A kernel takes at least what one of its blocks takes alone, and what all of them would if each SM
 * did the most that it can, 16.3 warps' work at a time.  (With company a kernel can end sooner than
 * alone, by up to a quarter, where alone its youngest blocks would have starved until the end.)
 */
static uint64_t least_time(const struct law_work *p)
{
	const double all = (double)p->blocks * p->warps * (double)p->block_ns / (16.3 * 132);

	return all > (double)p->block_ns ? (uint64_t)all : p->block_ns;
}

static struct law_work random_work(void)
{
	const uint64_t kind = random_below(10);

	if (kind == 0)
		return (struct law_work){ .kind = LAW_MARK };
	if (kind == 1)
		return (struct law_work){ .kind = LAW_COPY,
			.engine = (enum law_engine)random_below(LAW_ENGINES),
			.alone_ns = random_below(40000) };
	return random_kernel();
}

static void storm_submit(struct storm *s)
{
	struct law_work p = random_work();
	uint64_t id;

	p.client = (unsigned)random_below(STORM_CLIENTS);
	p.stream = random_below(STORM_STREAMS);
	p.lead_ns = random_below(3) * 1000;
	p.tag = s->tags++ * STORM_STREAMS + p.stream;
	if (random_below(6) == 0) {
		p.after = &s->last_id[p.client];
		p.after_count = 1;
	}
	const int e = law_submit(s->law, &p, &id);
	assert_int_equal(e, s->open[p.client] ? 0 : -EINVAL);
	if (e)
		return;
	s->last_id[p.client] = id;
	s->changed[p.client] = true;
	s->least_ns[p.tag / STORM_STREAMS % STORM_KEPT] = least_time(&p);
	s->outstanding++;
}

/* In a stream one after the other, and nothing sooner than it can be. */
static void storm_ended(struct storm *s, unsigned client, const struct law_done *d)
{
	const uint64_t stream = d->tag % STORM_STREAMS;

	assert_true(d->start_ns <= d->end_ns && d->end_ns <= law_now(s->law));
	assert_true(s->changed[client] || d->end_ns >= s->soonest[client]);
	if (stream) {
		assert_true(d->start_ns >= s->stream_end[client][stream]);
		s->stream_end[client][stream] = d->end_ns;
	}
	assert_true(d->end_ns - d->start_ns >= s->least_ns[d->tag / STORM_STREAMS % STORM_KEPT]);
	s->hash = (s->hash ^ d->start_ns) * 0x9e3779b97f4a7c15u + d->end_ns;
	s->outstanding--;
}

static void storm_fetch(struct storm *s)
{
	struct law_done done;

	for (unsigned c = 0; c < STORM_CLIENTS; c++)
		while (law_pop(s->law, c, &done)) {
			storm_ended(s, c, &done);
			s->changed[c] = true;
		}
}

static void storm_toggle(struct storm *s, unsigned client)
{
	s->open[client] = !s->open[client];
	s->changed[client] = true;
	if (s->open[client]) {
		const unsigned sms = random_below(3) ? 0 : 1 + (unsigned)random_below(132);

		assert_int_equal(law_client_open(s->law, client, (int)random_below(3), sms), 0);
		return;
	}
	storm_fetch(s);
	const struct law_totals before = law_totals(s->law);
	law_client_close(s->law, client);
	s->outstanding -= (uint32_t)(law_totals(s->law).cancelled - before.cancelled);
	memset(s->stream_end[client], 0, sizeof s->stream_end[client]);
}

/* Whether time passes at once or from date to date must not matter. */
static void storm_pass(struct storm *s, uint64_t ns, bool at_once)
{
	const uint64_t until = law_now(s->law) + ns;

	for (unsigned c = 0; c < STORM_CLIENTS; c++) {
		if (s->changed[c])
			s->soonest[c] = law_soonest(s->law, c);
		s->changed[c] = false;
	}
	while (!at_once && law_next(s->law) <= until)
		law_advance(s->law, law_next(s->law));
	law_advance(s->law, until);
	storm_fetch(s);
}

static uint64_t storm(enum law_sharing sharing, uint64_t seed, unsigned count, bool at_once)
{
	struct law_device device = LAW_H200;

	device.sharing = sharing;
	struct storm s = { .law = new_law(device) };
	random_state = seed;
	for (unsigned i = 0; i < count; i++) {
		const uint64_t what = random_below(1000);

		if (what < 3)
			storm_toggle(&s, (unsigned)random_below(STORM_CLIENTS));
		else if (what < 500 && s.outstanding < 300)
			storm_submit(&s);
		else
			storm_pass(&s, random_below(what < 600 ? 2000000 : 60000), at_once);
		if (i % 64 == 0 && law_check(s.law))
			fail_msg("operation %u: not so: %s", i, law_check(s.law));
	}
	while (law_next(s.law) != LAW_NEVER)
		law_advance(s.law, law_next(s.law));
	storm_fetch(&s);
	const struct law_totals t = law_totals(s.law);
	assert_null(law_check(s.law));
	assert_int_equal(s.outstanding, 0);
	assert_int_equal(t.waiting, 0);
	assert_int_equal(t.submitted, t.done + t.lost);
	assert_int_equal(t.works, t.ended + t.cancelled);
	free(s.law);
	return s.hash;
}

static void whatever_is_asked_work_is_conserved(void **state)
{
	storm(LAW_SLICES, 7, ROUNDS(100000, 20000), true);
	storm(LAW_MPS, 8, ROUNDS(100000, 20000), true);
}

static void the_same_calls_have_the_same_answers(void **state)
{
	for (int sharing = LAW_SLICES; sharing <= LAW_MPS; sharing++) {
		const uint64_t hash =
			storm((enum law_sharing)sharing, 9, ROUNDS(20000, 5000), true);

		assert_true(hash == storm((enum law_sharing)sharing, 9, ROUNDS(20000, 5000), true));
		assert_true(
			hash == storm((enum law_sharing)sharing, 9, ROUNDS(20000, 5000), false));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_a_kernel_takes_what_it_is_said_to),
		cmocka_unit_test(a_cap_costs_what_waves_say),
		cmocka_unit_test(slices_go_round_and_a_switch_takes_time),
		cmocka_unit_test(blocks_of_the_higher_priority_are_placed_first),
		cmocka_unit_test(copies_wait_for_their_engine_only),
		cmocka_unit_test(what_is_behind_others_waits_for_all_of_them),
		cmocka_unit_test(a_client_that_closes_leaves_the_device_to_others),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(a_full_law_takes_more_once_ends_are_fetched),
		cmocka_unit_test(two_programs_fare_as_on_the_device),
		cmocka_unit_test(whatever_is_asked_work_is_conserved),
		cmocka_unit_test(the_same_calls_have_the_same_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
