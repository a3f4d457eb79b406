/* The policies. */
#include "share/policy.h"

#include <string.h>

#include "base/atomic.h"
#include "base/check.h"
#include "base/expect.h"
#include "share/rule.h"

#define MS            1000000u
#define SOON_NS       (5 * MS) /* until the next decision while somebody is to be kept away from */
#define IDLE_NS       (50 * MS)
#define WINDOW_NS     (100 * MS) /* over which shares are looked at */
#define TURN_NS       (5 * MS) /* that one program may be ahead of another; a switch costs a fiftieth */
#define BUDGET_LEAST  40000u
#define BUDGET_MOST   (8 * MS) /* of first ones */
#define MOVED_LEAST   (2 * MS) /* that one may become where requests stay quick */
#define TIGHTEST      0.1
#define MOST_OF_FIRST 8       /* budgets that the first one can become */
#define MOST_OF_HELD  2.4     /* and behind holds */
#define HOLD_LEAST    100000u /* a hold takes some microseconds of the host and of the device */
#define IN_CALLS_NS   (5000ull * MS) /* that requests have been quick enough, and holds come back */
#define AHEAD_NS      20000u         /* a request that can be told is expected so much early */

const struct policy_params policy_params_default = {
	.min_share = 0.02,
	.slowdown = SLOWDOWN_DEFAULT,
	.alone_ns = SHARE_ALONE_NS,
};

static double slowdown_of(uint32_t thousandths, double otherwise)
{
	const double times = thousandths / 1e3;
	return times >= SLOWDOWN_LEAST && times <= SLOWDOWN_MOST ? times : otherwise;
}

struct policy_params policy_params_of(const struct share_tuning *t)
{
	struct policy_params p = policy_params_default;
	p.min_share = t->min_share ? t->min_share / 1e6 : p.min_share;
	p.budget_ns = t->budget_ns ? t->budget_ns : p.budget_ns;
	p.full_below_ns = t->full_below_ns ? t->full_below_ns : p.full_below_ns;
	p.cap_sms = t->cap_sms;
	p.hold_ns = t->hold_ns;
	p.alone_ns = t->alone_ns ? t->alone_ns : p.alone_ns;
	p.slowdown = slowdown_of(t->slowdown, p.slowdown);
	return p;
}

static struct share_grant plain(const struct policy_program *p, const struct policy_params *params,
	enum share_mode mode, uint64_t budget_ns)
{
	return (struct share_grant){
		.class = p->class,
		.mode = mode,
		.budget_ns = budget_ns,
		.full_below_ns = UINT64_MAX,
		.max_wait_ns = p->max_wait_ns,
		.alone_ns = params->alone_ns,
	};
}

/* The shortest time, by one of slowdown.h, that a program's requests take alone; 0: not known. */
static uint64_t shortest_of(const struct policy_view *v, const struct policy_state *s,
	double (*lasts_of)(const struct slowdown_program *))
{
	uint64_t shortest = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *p = &v->program[i];
		const uint64_t measured = (uint64_t)lasts_of(&s->slowdown.program[i]);
		const uint64_t lasts = measured ? measured : p->lasts_ns;
		if (p->here && p->class == CLASS_LATENCY && lasts &&
			(!shortest || lasts < shortest))
			shortest = lasts;
	}
	return shortest;
}

/* The time by which a request may be delayed, enough for a kernel or two. */
static uint64_t budget_of(const struct policy_view *v, const struct policy_params *params,
	const struct policy_state *s)
{
	const uint64_t quarter = shortest_of(v, s, slowdown_lasts) / 4;
	return params->budget_ns ? params->budget_ns : MIN(MAX(quarter, BUDGET_LEAST), BUDGET_MOST);
}

static bool any_latency(const struct policy_view *v)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (v->program[i].here && v->program[i].class == CLASS_LATENCY)
			return true;
	return false;
}

/* A program that has got less than its floor in the last window goes on for as long as that floor
 * is of the next, whoever is active. */
static void look_at_shares(
	const struct policy_view *v, const struct policy_params *p, struct policy_state *s)
{
	const uint64_t passed = v->now_ns - s->window_ns;
	const bool beside = any_latency(v); /* nobody else is waited for */
	if (s->window_ns && passed < WINDOW_NS)
		return;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		const double got = (double)(q->retired_ns - s->retired_then[i]);
		const bool starved = s->window_ns && beside && q->here && q->inside &&
				     q->class == CLASS_BEST_EFFORT &&
				     q->retired_ns >= s->retired_then[i] &&
				     got < p->min_share * (double)passed;
		s->paid_until_ns[i] =
			starved ? v->now_ns + (uint64_t)(p->min_share * (double)WINDOW_NS) : 0;
		s->retired_then[i] = q->retired_ns;
	}
	s->window_ns = v->now_ns;
}

static bool is_paid(const struct policy_view *v, const struct policy_state *s, uint32_t i)
{
	return v->now_ns < s->paid_until_ns[i];
}

static void fifo(const struct policy_view *v, const struct policy_params *p, struct policy_state *s,
	struct share_grant grants[SHARE_SLOTS], uint64_t *ret_again_ns)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (v->program[i].here)
			grants[i] = plain(&v->program[i], p, MODE_OPEN, 0);
	*ret_again_ns = v->now_ns + IDLE_NS;
}

static bool all_rest(const struct policy_view *v, struct policy_state *s)
{
	bool rest = true;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		if (q->here && q->class == CLASS_LATENCY &&
			!rest_look(&s->rest[i], q->who, q->requests, q->inside, v->now_ns))
			rest = false;
	}
	return rest;
}

static void strict(const struct policy_view *v, const struct policy_params *p,
	struct policy_state *s, struct share_grant grants[SHARE_SLOTS], uint64_t *ret_again_ns)
{
	const uint64_t budget = budget_of(v, p, s);
	look_at_shares(v, p, s);
	s->rests = all_rest(v, s);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		if (!q->here)
			continue;
		grants[i] = plain(q, p, q->class == CLASS_LATENCY ? MODE_OPEN : MODE_GATE, budget);
		grants[i].hold_ns = v->mps && q->class == CLASS_BEST_EFFORT ? p->hold_ns : 0;
		grants[i].rest = s->rests ? (uint32_t)v->requests + 1 : 0;
		if (q->class == CLASS_BEST_EFFORT && is_paid(v, s, i))
			grants[i].mode = MODE_BUDGET;
	}
	*ret_again_ns = v->now_ns + (any_latency(v) ? SOON_NS : IDLE_NS);
}

/* The device time since the last look. The program whose turn it is has the device: that is
 * measured, not predicted. */
static double used(const struct policy_view *v, const struct policy_state *s, uint32_t i)
{
	if (v->mps)
		return (double)(v->program[i].retired_ns - s->seen_ns[i]);
	return s->turn == i + 1 && s->charged_ns ? (double)(v->now_ns - s->charged_ns) : 0;
}

/* It may go on, and does not: it is stopped, or works on the host.  Nobody waits for it, and it for
 * nobody. */
static bool is_stalled(const struct policy_state *s, uint32_t i)
{
	return s->still_ns[i] > WINDOW_NS;
}

static void look_whether_it_moves(const struct policy_view *v, struct policy_state *s, uint32_t i)
{
	const struct policy_program *q = &v->program[i];
	if (!q->here || !q->inside || q->retired_ns != s->seen_ns[i])
		s->still_ns[i] = 0;
	else if (!s->held[i] && s->charged_ns)
		s->still_ns[i] += v->now_ns - s->charged_ns;
}

/* Work by weight; who comes anew begins where the least is, or it would have everything for as long
 * as the others have run. */
static double account(const struct policy_view *v, struct policy_state *s)
{
	double least = -1;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		look_whether_it_moves(v, s, i);
		if (!q->here || q->retired_ns < s->seen_ns[i])
			s->virtual_ns[i] = s->seen_ns[i] = 0;
		if (!q->here)
			continue;
		s->virtual_ns[i] += used(v, s, i) / (q->weight ? q->weight : 1);
		s->seen_ns[i] = q->retired_ns;
		if (q->inside && !is_stalled(s, i) && (least < 0 || s->virtual_ns[i] < least) &&
			s->virtual_ns[i] > 0)
			least = s->virtual_ns[i];
	}
	s->charged_ns = v->now_ns;
	return least < 0 ? 0 : least;
}

/* The program with work that has had least. SHARE_SLOTS: there is none. */
static uint32_t furthest_behind(const struct policy_view *v, const struct policy_state *s)
{
	uint32_t last = SHARE_SLOTS;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (v->program[i].here && v->program[i].inside && !is_stalled(s, i) &&
			(last == SHARE_SLOTS || s->virtual_ns[i] < s->virtual_ns[last]))
			last = i;
	return last;
}

/* The program that has the turn keeps it until it is ahead by one. */
static uint32_t take_turn(const struct policy_view *v, struct policy_state *s)
{
	const uint32_t behind = furthest_behind(v, s), now = s->turn - 1;
	const bool keeps = s->turn && behind != SHARE_SLOTS && v->program[now].here &&
			   v->program[now].inside && !is_stalled(s, now) &&
			   s->virtual_ns[now] <= s->virtual_ns[behind] + TURN_NS;
	s->turn = behind == SHARE_SLOTS ? 0 : keeps ? s->turn : behind + 1;
	return s->turn - 1;
}

static void fair(const struct policy_view *v, const struct policy_params *p, struct policy_state *s,
	struct share_grant grants[SHARE_SLOTS], uint64_t *ret_again_ns)
{
	const double least = account(v, s);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (v->program[i].here &&
			s->virtual_ns[i] < least - (is_stalled(s, i) ? 0 : 50.0 * TURN_NS))
			s->virtual_ns[i] = least;
	const uint32_t turn = take_turn(v, s);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		if (!q->here)
			continue;
		/* Together where they can be, as long as they are about even; else one by one. */
		const bool ahead =
			v->mps ? s->virtual_ns[i] > least + TURN_NS : q->inside && i != turn;
		const bool waits = s->held[i] = ahead && !is_stalled(s, i);
		grants[i] = plain(q, p, waits ? MODE_HOLD : MODE_BUDGET, TURN_NS);
	}
	*ret_again_ns = v->now_ns + MS;
}

/* Time that is left when the rest has run: without a deadline there is always enough. */
static double slack(const struct policy_view *v, const struct policy_program *q)
{
	if (!q->deadline_ns)
		return 1e18;
	return (double)(q->begun_ns + q->deadline_ns) - (double)v->now_ns;
}

/* A request is believed for as long as launches wait: its program may have been stopped. */
static bool is_believed(const struct policy_view *v, const struct policy_program *q)
{
	return q->inside && (!q->max_wait_ns || v->now_ns < q->begun_ns + q->max_wait_ns);
}

static uint32_t most_urgent(const struct policy_view *v)
{
	uint32_t first = SHARE_SLOTS;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		if (q->here && is_believed(v, q) && q->class == CLASS_LATENCY &&
			(first == SHARE_SLOTS || slack(v, q) < slack(v, &v->program[first])))
			first = i;
	}
	return first;
}

static void edf(const struct policy_view *v, const struct policy_params *p, struct policy_state *s,
	struct share_grant grants[SHARE_SLOTS], uint64_t *ret_again_ns)
{
	strict(v, p, s, grants, ret_again_ns);
	const uint32_t first = most_urgent(v);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		if (first != SHARE_SLOTS && i != first && q->here && q->class == CLASS_LATENCY &&
			q->deadline_ns && q->inside)
			grants[i].mode = MODE_HOLD;
	}
	*ret_again_ns = v->now_ns + (first == SHARE_SLOTS ? SOON_NS : MS);
}

/* SMs that are left beside the widest latency program; 0: none worth speaking of. */
static uint32_t room(const struct policy_view *v)
{
	uint32_t widest = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		if (!q->here || q->class != CLASS_LATENCY)
			continue;
		if (!q->widest)
			return 0;
		widest = q->widest > widest ? q->widest : widest;
	}
	const uint32_t step = v->step ? v->step : 1;
	const uint32_t left = v->sms > widest ? (v->sms - widest) / step * step : 0;
	return left >= v->sms / 4 ? left : 0; /* on less, a kernel takes too long to be worth it */
}

/* A cap for work that can't but meet the begin of a request, which it slows down for a moment only:
 * two thirds of the device, where more would be a cap in name only. */
static uint32_t wider(const struct policy_view *v, uint32_t left)
{
	const uint32_t step = v->step ? v->step : 1, most = v->sms * 2 / 3 / step * step;
	return left > most ? left : most;
}

/* Holds the worst of the stated targets: halves what may wait when it is missed, else grows. */
static void tune(const struct policy_view *v, struct policy_state *s)
{
	double worst = 0;
	if (s->tightness <= 0)
		s->tightness = 1;
	if (v->now_ns - s->tuned_ns < WINDOW_NS)
		return;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		if (q->here && q->target_p99_ns && q->p99_ns) {
			const double over = (double)q->p99_ns / (double)q->target_p99_ns;
			worst = over > worst ? over : worst;
		}
	}
	s->tuned_ns = v->now_ns;
	if (worst > 1)
		s->tightness *= 0.7;
	else if (worst > 0 && worst < 0.95)
		s->tightness *= 1.05;
	s->tightness = s->tightness < TIGHTEST ? TIGHTEST : s->tightness > 10 ? 10 : s->tightness;
}

/* There is always some; what a person asks for may be anything. */
static uint64_t tightened(uint64_t budget_ns, double by)
{
	const double ns = (double)budget_ns * by;
	return ns < 1 ? 1 : ns > 1e18 ? (uint64_t)1e18 : (uint64_t)ns;
}

static bool is_steered(const struct policy_program *q)
{
	return q->here && q->class == CLASS_LATENCY && !q->target_p99_ns;
}

/* Steers programs whose requests are to take so many times as long as alone.  Behind holds, more
 * than 2.4 times the first budget makes requests slower, and best effort hardly faster. */
static void steer(const struct policy_view *v, const struct policy_params *p,
	struct policy_state *s, uint64_t budget_ns, bool has_caps)
{
	struct slowdown_input in = { .now_ns = v->now_ns,
		.is_fixed = p->budget_ns,
		.has_caps = has_caps,
		.drains_ns = s->holds ? RULE_AHEAD_NS : 0 };
	double strictest = SLOWDOWN_MOST;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct policy_program *q = &v->program[i];
		const double target = q->slowdown > 0 ? q->slowdown : p->slowdown;
		if (q->here && q->class == CLASS_BEST_EFFORT)
			in.has_best_effort = true;
		if (!is_steered(q))
			continue;
		strictest = target < strictest ? target : strictest;
		in.seen[i] = (struct slowdown_seen){ q->who, target, q->request, q->fresh };
	}
	const double first = (double)budget_ns * (strictest - 1) / (SLOWDOWN_DEFAULT - 1);
	in.first_ns = p->budget_ns || first < BUDGET_LEAST ? (double)budget_ns : first;
	in.most_ns = s->holds ? in.first_ns * MOST_OF_HELD
			      : MAX(in.first_ns, MIN(MAX(in.first_ns * MOST_OF_FIRST, MOVED_LEAST),
							 SHARE_ALONE_NS));
	const double least =
		slowdown_least((double)shortest_of(v, s, slowdown_each_lasts), strictest);
	in.least_ns = MIN(MAX(least, BUDGET_LEAST), in.first_ns);
	slowdown_step(&s->slowdown, &in);
}

static bool any_is_steered(const struct policy_view *v)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (is_steered(&v->program[i]))
			return true;
	return false;
}

static bool any_has_target(const struct policy_view *v)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (v->program[i].here && v->program[i].target_p99_ns)
			return true;
	return false;
}

/* Takes a cap down to the part that the loop leaves. */
static uint32_t squeezed(const struct policy_view *v, const struct policy_state *s, uint32_t sms)
{
	const uint32_t step = v->step ? v->step : 1, left = SLOWDOWN_SQUEEZES - s->slowdown.squeeze;
	return left == SLOWDOWN_SQUEEZES ? sms : sms * left / SLOWDOWN_SQUEEZES / step * step;
}

/* A fixed budget is a person's word: absolute targets move it, the slowdown does not. */
static uint64_t fit_budget(const struct policy_view *v, const struct policy_params *p,
	const struct policy_state *s, uint64_t budget_ns)
{
	const uint64_t moved = (uint64_t)s->slowdown.budget_ns,
		       absolute = tightened(budget_ns, s->tightness);
	if (p->budget_ns || !any_is_steered(v) || !moved)
		return absolute;
	return any_has_target(v) && absolute < moved ? absolute : moved;
}

/* Best effort waits on the device, so that its host works ahead: once the time of requests alone is
 * known, which is measured in calls.  If requests are so short that a hold is long for them, or the
 * least budget is too much, it waits in its calls. */
static void place_waits(const struct policy_view *v, const struct policy_params *p,
	struct policy_state *s, uint64_t first_ns)
{
	bool any = false, known = true, too_slow = false;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_steer *t = &s->slowdown.program[i].steer;
		if (!is_steered(&v->program[i]))
			continue;
		any = true;
		known = known && t->alone_p50_ns;
		too_slow = too_slow ||
			   (t->reason == STEER_LEAST && (t->p50 > t->target || t->p90 > t->target));
	}
	if (s->holds && too_slow)
		s->calls_until_ns = v->now_ns + IN_CALLS_NS;
	s->holds = any && known && v->mps && !p->hold_ns && !p->budget_ns &&
		   first_ns >= 2 * HOLD_LEAST && v->now_ns >= s->calls_until_ns;
}

/* Together, so that caps and holds tighten with the budget. */
static void fit_one(const struct policy_view *v, const struct policy_params *p,
	const struct policy_state *s, uint32_t left, struct share_grant *g)
{
	const uint64_t first = g->budget_ns;
	const uint32_t sms = squeezed(v, s, left), ahead = sms ? squeezed(v, s, wider(v, left)) : 0;
	g->budget_ns = fit_budget(v, p, s, first);
	const uint64_t full = g->budget_ns < first || p->budget_ns ? g->budget_ns : first;
	g->full_below_ns = p->full_below_ns ? p->full_below_ns : RULE_FULL_BUDGETS * full;
	g->hold_ns = g->hold_ns && full < first ? g->hold_ns * full / first + 1 : g->hold_ns;
	if (s->holds)
		g->hold_ns = g->budget_ns > HOLD_LEAST ? g->budget_ns : HOLD_LEAST;
	g->ahead_ns = AHEAD_NS;
	g->cap_sms = (uint16_t)(ahead ? sms : 0);
	g->cap_ahead_sms = (uint16_t)ahead;
	g->mode = g->cap_sms ? MODE_CAP : MODE_GATE;
}

static void fit(const struct policy_view *v, const struct policy_params *p, struct policy_state *s,
	struct share_grant grants[SHARE_SLOTS], uint64_t *ret_again_ns)
{
	const uint32_t beside = v->mps ? room(v) : 0,
		       asked = p->cap_sms < v->sms ? p->cap_sms : v->sms;
	const uint32_t left = beside && asked ? asked : beside;
	strict(v, p, s, grants, ret_again_ns);
	tune(v, s);
	const uint64_t first_ns = budget_of(v, p, s);
	steer(v, p, s, first_ns, left > 0);
	place_waits(v, p, s, first_ns);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		struct share_grant *g = &grants[i];
		if (!v->program[i].here || v->program[i].class != CLASS_BEST_EFFORT)
			continue;
		if (g->mode == MODE_GATE)
			fit_one(v, p, s, left, g);
		if (s->slowdown.window)
			g->mode = MODE_HOLD;
	}
	if (s->slowdown.window)
		*ret_again_ns = v->now_ns + MS;
}

const struct policy policies[] = {
	{ "fifo", "nobody waits, as with the driver alone", fifo },
	{ "strict", "best effort waits while a latency program is inside a request", strict },
	{ "fair", "device time by weight for all programs, whatever their class", fair },
	{ "edf",
		"like strict, and among latency programs the one with the earliest deadline goes first",
		edf },
	{ "fit",
		"like strict. Under MPS, best-effort kernels that fit may also run beside a request, on some of the SMs",
		fit },
	{ NULL },
};

const struct policy *policy_find(const char *name)
{
	for (const struct policy *p = policies; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

void policy_check(const struct policy_view *v, const struct share_grant grants[SHARE_SLOTS],
	uint64_t again_ns)
{
	expect(again_ns > v->now_ns, "a policy wants to be asked again later than now");
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_grant *g = &grants[i];
		if (!v->program[i].here)
			continue;
		expect(g->mode <= MODE_HOLD, "a grant has a mode that there is");
		expect(g->mode == MODE_OPEN || g->budget_ns, "who is regulated has a budget");
		expect(g->cap_sms <= v->sms && g->cap_ahead_sms <= v->sms,
			"caps are of SMs that the device has");
		expect(!g->cap_sms == !g->cap_ahead_sms, "there are both caps or none");
		expect(g->mode != MODE_CAP || g->cap_sms, "who is to be capped has a cap");
		expect(!g->cap_sms || v->mps, "caps are for programs that run together");
		expect(!g->hold_ns || v->mps, "so are holds: a slice would be spent on them");
	}
}
