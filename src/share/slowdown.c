/* Adjusts the budget of best effort to the slowdown of requests. */
#include "share/slowdown.h"

#include <string.h>

#include "base/sort.h"

#define MS           1e6
#define FEW          16u  /* requests at one setting, before it is moved */
#define FEW_ALONE    5u   /* requests alone that a baseline needs */
#define ENOUGH_ALONE 48u  /* then windows are rarer; of long ones, which vary little, ten */
#define TAIL         200u /* requests of which there is a 99th percentile */
#define TAIL_ALONE   16u
#define TAIL_SHARE   0.01 /* of requests, which wait longest */
#define QUEUED_TAIL  1.5  /* times what is allowed, of requests that come at random */
#define STREAK       8u   /* alone requests on one side of all before: alone has changed */
#define IDLE         0.9  /* so many of all alone: best effort has hardly any work */
#define LOOKS        4u   /* so many alone requests, and it is looked whether that is so */
#define OTHERS       1.5  /* times as long: requests of another kind */
#define UNDISTURBED  0.1  /* the quickest requests are those that nothing delayed */
#define LONGEST_NS   3.6e12
#define LOAD_NS      1e9   /* over which load and rate are seen */
#define LEARNS       0.125 /* how much a new run counts in the mean */

#define BAND       0.08 /* of what is allowed: that near is met */
#define GAIN       0.7
#define LOOK_NS    (50 * MS)  /* between two moves at least */
#define CEILING_NS (5e3 * MS) /* what was too much is not tried again for so long */

/* Windows in which best effort is held. */
#define CREDIT_NS   (50 * MS) /* of windows, at the begin and at most */
#define FIRST       0.2       /* of the time, until there is a baseline or have been so many */
#define FIRST_NS    5e9
#define OFTEN       0.022 /* until it is good */
#define SELDOM      0.01
#define WINDOW_NS   (8 * MS) /* and two requests */
#define WINDOW_SEES 4u       /* requests, and it ends */
#define OPENS       0.25     /* chance of a step to open one */
#define RARE        0.05     /* requests in a window */

static void push(struct slowdown_times *t, float ns)
{
	t->ns[t->count++ % SLOWDOWN_KEPT] = ns;
}

static uint32_t kept(const struct slowdown_times *t, uint32_t since)
{
	const uint32_t n = t->count - since;
	return n < SLOWDOWN_KEPT ? n : SLOWDOWN_KEPT;
}

/* The newest n, in order of time. */
static void newest(const struct slowdown_times *t, uint32_t n, float to[SLOWDOWN_KEPT])
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = t->ns[(t->count - n + i) % SLOWDOWN_KEPT];
}

/* Between the two nearest of n sorted ones. */
static double quantile(const float *v, uint32_t n, double q)
{
	const double at = q * (n - 1);
	const uint32_t i = (uint32_t)at, next = i + 1 < n ? i + 1 : i;
	return (double)v[i] + (at - i) * (double)(v[next] - v[i]);
}

static double newest_quantile(const struct slowdown_times *t, uint32_t n, double q)
{
	float v[SLOWDOWN_KEPT];
	newest(t, n, v);
	sort_floats(v, n);
	return quantile(v, n, q);
}

static struct slowdown_alone quantiles(const struct slowdown_times *t, uint32_t n)
{
	float v[SLOWDOWN_KEPT];
	newest(t, n, v);
	sort_floats(v, n);
	return (struct slowdown_alone){ .p50_ns = quantile(v, n, 0.5),
		.p90_ns = quantile(v, n, 0.9),
		.p99_ns = quantile(v, n, 0.99) };
}

/* The newest few are all above, or all below, nearly all of those before: clocks have changed, or
 * requests have. */
static bool has_changed(const struct slowdown_times *t)
{
	float v[SLOWDOWN_KEPT], last[STREAK];
	const uint32_t n = kept(t, 0);
	if (n < 3 * STREAK)
		return false;
	newest(t, n, v);
	memcpy(last, v + n - STREAK, sizeof last);
	sort_floats(v, n - STREAK);
	sort_floats(last, STREAK);
	const double high = quantile(v, n - STREAK, 0.75), low = quantile(v, n - STREAK, 0.25);
	return (double)last[0] > high || (double)last[STREAK - 1] < low;
}

/* Whether they are others altogether: what was found for those says nothing of these. */
static bool saw_alone(struct slowdown_program *p, float ns)
{
	push(&p->alone, ns);
	if (p->alone.count % LOOKS || !has_changed(&p->alone))
		return false;
	float last[SLOWDOWN_KEPT];
	const double before = quantiles(&p->alone, kept(&p->alone, 0)).p50_ns;
	newest(&p->alone, STREAK, last);
	memcpy(p->alone.ns, last, sizeof *last * STREAK);
	p->alone.count = STREAK;
	p->known = (struct slowdown_alone){ 0 };
	const double now = quantiles(&p->alone, STREAK).p50_ns;
	return now > OTHERS * before || now * OTHERS < before;
}

/* Best effort comes: what requests took until then holds until some have been measured anew.  They
 * may have been those of a program that starts. */
static void keep_as_known(struct slowdown_program *p)
{
	struct slowdown_alone known;
	if (p->known.p50_ns <= 0 && slowdown_learnt(p, &known))
		p->known = known;
	p->alone.count = 0;
}

bool slowdown_learnt(const struct slowdown_program *p, struct slowdown_alone *ret)
{
	const uint32_t n = kept(&p->alone, 0);
	if (n < FEW_ALONE)
		return false;
	*ret = quantiles(&p->alone, n);
	ret->run = p->run;
	return ret->p50_ns > 0;
}

bool slowdown_guess(const struct slowdown_program *p, struct slowdown_alone *ret)
{
	const uint32_t n = kept(&p->beside, 0);
	if (n < FEW)
		return false;
	const double ns = newest_quantile(&p->beside, n, UNDISTURBED);
	*ret = (struct slowdown_alone){ ns, ns, ns, p->run };
	return true;
}

bool slowdown_has_begun(const struct slowdown_program *p)
{
	return p->beside.count >= FEW;
}

void slowdown_remember(
	struct slowdown_program *p, const struct slowdown_alone *known, bool was_elsewhere)
{
	p->was_elsewhere = was_elsewhere;
	if (!was_elsewhere)
		p->known = *known;
}

static bool goes_by_known(const struct slowdown_program *p)
{
	return p->known.p50_ns > 0 && kept(&p->alone, 0) < 2 * FEW_ALONE;
}

static bool baseline(const struct slowdown_program *p, struct slowdown_alone *ret)
{
	if (!goes_by_known(p))
		return slowdown_learnt(p, ret);
	*ret = p->known;
	return true;
}

/* What is known may be of others, as of a program that started: then even the quickest requests
 * take much longer, or the slowest are much quicker. */
static bool forgets_known(struct slowdown_program *p)
{
	const uint32_t n = kept(&p->beside, p->settled);
	if (!goes_by_known(p) || n < FEW ||
		(newest_quantile(&p->beside, n, UNDISTURBED) <= OTHERS * p->known.p50_ns &&
			newest_quantile(&p->beside, n, 0.9) * OTHERS >= p->known.p50_ns))
		return false;
	p->known = (struct slowdown_alone){ 0 };
	return true;
}

static struct slowdown_alone undelayed(const struct slowdown_program *p)
{
	struct slowdown_alone alone;
	return baseline(p, &alone) || slowdown_guess(p, &alone) ? alone
								: (struct slowdown_alone){ 0 };
}

double slowdown_lasts(const struct slowdown_program *p)
{
	const struct slowdown_alone alone = undelayed(p);
	return alone.p50_ns * alone.run;
}

double slowdown_each_lasts(const struct slowdown_program *p)
{
	return undelayed(p).p50_ns;
}

/* A tenth of what is allowed: less helps no request, and best effort's host can't work ahead. */
double slowdown_least(double each_ns, double target)
{
	return each_ns * (target - 1) / 10;
}

/* The natural logarithm of 1 to 100, without the C library's, which is newer than old systems. */
static double logarithm(double x)
{
	double r = 0;
	for (; x > 1.5; x /= 2)
		r += 0.693147180559945;
	const double y = (x - 1) / (x + 1);
	return r + 2 * (y + y * y * y / 3 + y * y * y * y * y / 5);
}

/* The wait of requests that come at random grows faster than they do: that of one in a hundred, in
 * one queue whose requests are all alike. */
static double with_wait(double times, double load)
{
	const double busy = times * load < 0.95 ? times * load : 0.95;
	return times *
	       (1 + (busy > TAIL_SHARE ? logarithm(busy / TAIL_SHARE) / (2 * (1 - busy)) : 0));
}

double slowdown_allowed(double target, double load)
{
	double low = 1 + (target - 1) / 2, high = target;
	const double most = target * with_wait(1, load);
	for (int i = 0; i < 20; i++) {
		const double middle = (low + high) / 2;
		if (with_wait(middle, load) > most)
			high = middle;
		else
			low = middle;
	}
	return low;
}

static uint32_t thousandths(double times)
{
	return times > 0 ? times < 1e6 ? (uint32_t)(times * 1000 + 0.5) : 1000000000 : 0;
}

/* How far the 99th percentile is from what it may be moves what the others may take.  If requests
 * queue, a program that waits for the slow ones sees less of them than they are slower.  No budget
 * takes away a single kernel's effect on a request, so that it takes half at most. */
static void look_at_tail(struct slowdown_program *p, const struct slowdown_seen *seen)
{
	const double may = (seen->target - 1) * (p->is_regular ? 1 : QUEUED_TAIL);
	const uint32_t n = kept(&p->beside, 0);
	if (p->beside.count - p->tails < TAIL || n < TAIL || kept(&p->alone, 0) < TAIL_ALONE)
		return;
	const double times =
		quantiles(&p->beside, n).p99_ns / quantiles(&p->alone, kept(&p->alone, 0)).p99_ns;
	p->tails = p->beside.count;
	p->steer.p99 = thousandths(times);
	if (times > 1 + 1.25 * may)
		p->tail = p->tail > 0.625 ? p->tail * 0.8 : 0.5;
	else if (times < 1 + may)
		p->tail = p->tail < 0.9 ? p->tail * 1.1 : 1;
}

/* The square root, as near as is needed. */
static double root(double x)
{
	double r = x > 1 ? x : 1;
	for (int i = 0; i < 40; i++)
		r = (r + x / r) / 2;
	return r;
}

/* The noise of a ratio of medians: what chance alone makes of it. */
static double noise_of(const struct slowdown_alone *now, uint32_t n,
	const struct slowdown_alone *alone, uint32_t m)
{
	const double one = (now->p90_ns - now->p50_ns) / alone->p50_ns,
		     other = (alone->p90_ns - alone->p50_ns) / alone->p50_ns;
	return root(one * one / n + other * other / (m ? m : FEW_ALONE));
}

/* The part of the allowed slowdown that is taken: 1 is all of it. */
struct taken {
	double share, noise;
};

/* False: it is not known, and the program's steer says why. */
static bool look(struct slowdown_program *p, const struct slowdown_seen *seen, struct taken *ret)
{
	struct slowdown_alone alone;
	const uint32_t n = kept(&p->beside, p->settled);
	p->steer.alone_requests = kept(&p->alone, 0);
	if (!baseline(p, &alone)) {
		p->steer.reason = STEER_NO_BASELINE;
		return false;
	}
	p->steer.alone_p50_ns = (uint64_t)alone.p50_ns;
	look_at_tail(p, seen);
	if (n < FEW) {
		if (p->steer.reason <= STEER_NO_BASELINE)
			p->steer.reason = STEER_FEW;
		return false;
	}
	if (p->free > IDLE * (p->beside.count - p->settled)) {
		p->steer.reason = STEER_IDLE;
		return false;
	}
	const struct slowdown_alone now = quantiles(&p->beside, n);
	const double p50 = now.p50_ns / alone.p50_ns, p90 = now.p90_ns / alone.p90_ns;
	const double load = p->inside_ns / LOAD_NS;
	const double may =
		(p->is_regular ? seen->target : slowdown_allowed(seen->target, load)) - 1;
	p->steer.p50 = thousandths(p50);
	p->steer.p90 = thousandths(p90);
	*ret = (struct taken){ ((p50 > p90 ? p50 : p90) - 1) / (may * p->tail),
		noise_of(&now, n, &alone, kept(&p->alone, 0)) / (may * p->tail) };
	return true;
}

static void restart(struct slowdown *s, enum share_steering reason)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		struct slowdown_program *p = &s->program[i];
		if (!p->who)
			continue;
		p->settled = p->beside.count;
		p->free = 0;
		p->steer.reason = reason;
	}
}

static void tell(struct slowdown *s, enum share_steering reason)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (s->program[i].who)
			s->program[i].steer.reason = reason;
}

static void set(struct slowdown *s, const struct slowdown_input *in, double budget_ns)
{
	s->grew = budget_ns > s->budget_ns;
	s->moved = true;
	s->budget_ns = budget_ns < in->least_ns  ? in->least_ns
		       : budget_ns > in->most_ns ? in->most_ns
						 : budget_ns;
	restart(s, s->grew ? STEER_MORE : STEER_LESS);
}

static void squeeze(struct slowdown *s, const struct slowdown_input *in, bool more)
{
	s->squeeze = more ? s->squeeze + 1 : s->squeeze - 1;
	s->squeezed_ns = in->now_ns;
	restart(s, more ? STEER_LESS : STEER_MORE);
}

static void take_back(struct slowdown *s, const struct slowdown_input *in, double share)
{
	const double by = 1 / (1 + GAIN * (share - 1));
	if (s->budget_ns <= in->least_ns) {
		if (in->has_caps && s->squeeze < SLOWDOWN_SQUEEZES)
			squeeze(s, in, true);
		else
			tell(s, STEER_LEAST);
		return;
	}
	if (s->grew && share > 1.3) {
		s->ceiling_ns = s->budget_ns;
		s->ceiling_until_ns = in->now_ns + (uint64_t)CEILING_NS;
	}
	set(s, in, s->budget_ns * (by < 0.5 ? 0.5 : by));
}

static void give_more(struct slowdown *s, const struct slowdown_input *in, double share)
{
	const double by = 1 / (1 + GAIN * (share - 1));
	double to = s->budget_ns * (by > 1.6 ? 1.6 : by);
	if (s->squeeze) {
		if (share < 0.5 || in->now_ns - s->squeezed_ns > (uint64_t)CEILING_NS)
			squeeze(s, in, false);
		return;
	}
	if (in->now_ns < s->ceiling_until_ns && to > 0.9 * s->ceiling_ns)
		to = 0.9 * s->ceiling_ns;
	if (s->budget_ns >= in->most_ns)
		tell(s, STEER_MOST);
	else if (to > s->budget_ns * 1.02)
		set(s, in, to);
	else
		tell(s, STEER_HOLDS);
}

static void move(struct slowdown *s, const struct slowdown_input *in)
{
	struct taken worst = { 0 };
	bool any = false;
	if (in->now_ns - s->looked_ns < (uint64_t)LOOK_NS)
		return;
	s->looked_ns = in->now_ns;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		struct taken t;
		if (in->seen[i].who && forgets_known(&s->program[i]))
			s->moved = false;
		if (!in->seen[i].who || !look(&s->program[i], &in->seen[i], &t))
			continue;
		if (!any || t.share > worst.share)
			worst = t;
		any = true;
	}
	if (in->is_fixed) {
		tell(s, STEER_FIXED);
		return;
	}
	if (!any)
		return;
	const double band = BAND + (worst.noise < 0.5 ? worst.noise : 0.5);
	if (worst.share > 1 + band)
		take_back(s, in, worst.share);
	else if (worst.share < 1 - band + BAND / 2)
		give_more(s, in, worst.share < 0 ? 0 : worst.share);
	else
		tell(s, STEER_HOLDS);
}

static double random_of(struct slowdown *s)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(s->random >> 11) / 9007199254740992.0;
}

/* The share of the time that windows may take, to learn what requests take alone. */
static double share_of(const struct slowdown_program *p, double lasts)
{
	struct slowdown_alone known;
	const bool is_long = lasts > WINDOW_NS, has_baseline = baseline(p, &known);
	if (kept(&p->alone, 0) >= (is_long ? 2 * FEW_ALONE : ENOUGH_ALONE) ||
		(is_long && p->known.p50_ns > 0))
		return SELDOM;
	return has_baseline || p->was_elsewhere || p->windows_ns > FIRST_NS ? OFTEN : FIRST;
}

/* How long windows are to be, so that one sees some requests; 0: nobody needs one, or requests are
 * so rare that none would be seen. */
static double wanted(const struct slowdown *s, const struct slowdown_input *in, double *ret_share)
{
	double ns = 0;
	*ret_share = SELDOM;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct slowdown_program *p = &s->program[i];
		const double lasts = p->requests > 0 ? p->inside_ns / p->requests : 0;
		const double own = WINDOW_NS + 2 * lasts + in->drains_ns;
		if (!in->seen[i].who || p->requests * own / LOAD_NS < RARE)
			continue;
		ns = own > ns ? own : ns;
		const double share = share_of(p, lasts);
		*ret_share = share > *ret_share ? share : *ret_share;
	}
	return ns;
}

static void open_and_close(struct slowdown *s, const struct slowdown_input *in, double passed)
{
	double share = SELDOM;
	const double ns = in->has_best_effort && !in->is_fixed ? wanted(s, in, &share) : 0;
	if (s->window) {
		s->window_ns += passed;
		s->windows_ns += passed;
		s->credit_ns -= passed;
	}
	if (!in->has_best_effort)
		passed = 0;
	s->passed_ns += passed;
	const double most = CREDIT_NS > 2 * ns ? CREDIT_NS : 2 * ns;
	s->credit_ns += passed * share;
	s->credit_ns = s->credit_ns < most ? s->credit_ns : most;
	if (s->window)
		s->window = ns > 0 && s->window_saw < WINDOW_SEES && s->window_ns < ns;
	else if (ns > 0 && s->credit_ns >= ns && random_of(s) < OPENS) {
		s->window = true;
		s->window_ns = s->window_saw = 0;
	}
}

/* Nothing that a program says is taken for more than a duration. */
static void take(struct slowdown *s, uint32_t i, const struct slowdown_input *in, double passed)
{
	struct slowdown_program *p = &s->program[i];
	const struct slowdown_seen *seen = &in->seen[i];
	const double left = LOAD_NS / (LOAD_NS + passed);
	if (p->who != seen->who)
		*p = (struct slowdown_program){ .who = seen->who, .tail = 1 };
	if (!seen->who)
		return;
	p->steer.target = thousandths(seen->target);
	p->windows_ns += s->window ? passed : 0;
	p->inside_ns *= left;
	p->requests *= left;
	for (uint32_t k = 0; k < seen->count; k++) {
		const double ns = (double)(seen->request[k] >> 13),
			     count = (double)(seen->request[k] >> 3 & 1023),
			     run = seen->request[k] & SHARE_PART ? 1 : count;
		const bool alone = seen->request[k] & SHARE_ALONE;
		if (ns < 1 || ns > LONGEST_NS || count < 1)
			continue;
		p->run += (p->run > 0 ? LEARNS : 1) * (run - p->run);
		p->is_regular = seen->request[k] & SHARE_REGULAR;
		p->inside_ns += count * ns;
		p->requests += count / run;
		if (alone && saw_alone(p, (float)ns))
			s->moved = false;
		s->window_saw += alone;
		if (!in->has_best_effort || s->window)
			continue;
		push(&p->beside, (float)ns);
		p->free += alone;
	}
}

void slowdown_step(struct slowdown *s, const struct slowdown_input *in)
{
	const double passed =
		s->now_ns && in->now_ns > s->now_ns ? (double)(in->now_ns - s->now_ns) : 0;
	if (!s->now_ns) {
		s->random = in->now_ns | 1;
		s->credit_ns = CREDIT_NS;
	}
	if (!s->moved)
		s->budget_ns = in->first_ns;
	s->budget_ns = s->budget_ns < in->most_ns ? s->budget_ns : in->most_ns;
	s->now_ns = in->now_ns;
	for (uint32_t i = 0; i < SHARE_SLOTS && in->has_best_effort && !s->had_best_effort; i++)
		keep_as_known(&s->program[i]);
	s->had_best_effort = in->has_best_effort;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		take(s, i, in, passed < LOAD_NS ? passed : LOAD_NS);
	open_and_close(s, in, passed < LOAD_NS ? passed : LOAD_NS);
	if (in->has_best_effort)
		move(s, in);
}
