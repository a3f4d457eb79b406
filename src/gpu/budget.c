/*
 * The owners of device memory.  When a space needs more than is left, that one leaves which is used
 * least often now: what it costs to bring a space back grows with its size, and so does what its
 * leaving gives, so that the size does not count.
 */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "base/atomic.h"
#include "base/cond.h"
#include "base/monotonic.h"
#include "gpu/cuda_device.h"

#define FORGET_S 10.0 /* a use counts half after so long */
/* Seconds to wait for spaces that others hold.  If two wait for each other, the one that is still
 * being loaded gives up. */
#define PATIENCE         10
#define PATIENCE_LOADING 2
#define RETURN_NS        1e6 /* of a return, whatever its size */
#define MARGIN           1.25

static atomic_uint moves;

unsigned gpu_moves(void)
{
	return load_acquire(&moves);
}

static double now_s(void)
{
	return (double)monotonic_ns() * 1e-9;
}

static double uses(const struct gpu_space *s, double now)
{
	return s->uses * exp2((s->used_s - now) / FORGET_S);
}

/* With the budget. */
static void set_away(struct gpu_space *s, bool away)
{
	const double ns = RETURN_NS + (double)s->used * s->gpu->budget.ns_per_byte * MARGIN;
	store_relaxed(&s->away_ns, away ? (uint64_t)ns : 0);
	store_relaxed(&s->there, away ? 0 : s->mapped);
	atomic_fetch_add_explicit(&moves, 1, memory_order_release);
}

/* With the budget.  The space is held. */
static int leave(struct gpu_space *s, struct error *err)
{
	const int e = gpu_space_leave(s, err);
	if (e)
		return e;
	s->gpu->budget.there -= s->mapped;
	s->gpu->budget.crowded = true;
	set_away(s, true);
	return 0;
}

/*
 * With the budget.  Evicts the space that is used least often, of all but one.  -EAGAIN: each that
 * could leave is held; -ENOMEM: there is none.
 */
static int evict(struct gpu *g, const struct gpu_space *but, struct error *err)
{
	const double now = now_s();
	struct gpu_space *best = NULL;
	bool held = false;
	for (struct gpu_space *s = g->budget.first; s; s = s->next) {
		if (s == but)
			continue;
		if (pthread_mutex_trylock(&s->lock)) {
			held = true;
			continue;
		}
		struct gpu_space *other = s;
		if (!s->away && s->mapped && (!best || uses(s, now) < uses(best, now))) {
			other = best;
			best = s;
		}
		if (other)
			pthread_mutex_unlock(&other->lock);
	}
	if (!best)
		return held ? -EAGAIN : -ENOMEM;
	const int e = leave(best, err);
	pthread_mutex_unlock(&best->lock);
	return e;
}

/* With the budget: as evict(), but waits a bounded time for a space that is held. */
static int make_room(struct gpu *g, const struct gpu_space *but, struct error *err)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += but && but->loading ? PATIENCE_LOADING : PATIENCE;
	int e;
	while ((e = evict(g, but, err)) == -EAGAIN) {
		g->budget.waiting++;
		const int late = pthread_cond_timedwait(&g->budget.freed, &g->budget.lock, &until);
		g->budget.waiting--;
		if (late)
			return -ENOMEM;
	}
	return e;
}

int gpu_budget_make_room(struct gpu *g, const struct gpu_space *s, struct error *err)
{
	pthread_mutex_lock(&g->budget.lock);
	const int e = make_room(g, s, err);
	pthread_mutex_unlock(&g->budget.lock);
	return e;
}

int gpu_budget_take(struct gpu *g, const struct gpu_space *s, size_t bytes, struct error *err)
{
	struct gpu_budget *b = &g->budget;
	int e = 0;
	pthread_mutex_lock(&b->lock);
	while (!e && b->most && (bytes > b->most || b->there > b->most - bytes))
		e = bytes > b->most ? -ENOMEM : make_room(g, s, err);
	if (!e)
		b->there += bytes;
	else if (e == -ENOMEM)
		error_set(err, e,
			"%zu bytes more are more than the budget of %zu has: %zu are in use", bytes,
			b->most, b->there);
	pthread_mutex_unlock(&b->lock);
	return e;
}

void gpu_budget_give(struct gpu *g, size_t bytes)
{
	pthread_mutex_lock(&g->budget.lock);
	g->budget.there -= bytes;
	pthread_mutex_unlock(&g->budget.lock);
}

void gpu_budget_init(struct gpu_budget *b)
{
	cond_init_monotonic(&b->freed);
	pthread_mutex_init(&b->lock, NULL);
	b->ns_per_byte = 1 / 25.; /* until one has returned */
}

void gpu_budget_add(struct gpu_space *s, uint64_t most)
{
	struct gpu_budget *b = &s->gpu->budget;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_lock(&s->lock);
	s->loading = true;
	s->used_s = now_s();
	pthread_mutex_lock(&b->lock);
	b->most = most;
	s->next = b->first;
	b->first = s;
	pthread_mutex_unlock(&b->lock);
}

void gpu_budget_remove(struct gpu_space *s)
{
	struct gpu_budget *b = &s->gpu->budget;
	pthread_mutex_lock(&b->lock);
	for (struct gpu_space **at = &b->first; *at; at = &(*at)->next) {
		if (*at != s)
			continue;
		*at = s->next;
		break;
	}
	if (!s->away)
		b->there -= s->mapped;
	pthread_cond_broadcast(&b->freed);
	pthread_mutex_unlock(&b->lock);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_destroy(&s->lock);
}

/* It comes back, and that teaches what the next one takes. */
static int come_back(struct gpu_space *s, uint64_t *ret_ns, struct error *err)
{
	struct gpu *g = s->gpu;
	const double began = now_s();
	int e = gpu_budget_take(g, s, s->mapped, err);
	if (e)
		return e;
	e = gpu_space_return(s, err);
	if (e) {
		gpu_budget_give(g, s->mapped);
		return e;
	}
	const double ns = (now_s() - began) * 1e9;
	*ret_ns = (uint64_t)ns;
	pthread_mutex_lock(&g->budget.lock);
	const double each = fmax(ns - RETURN_NS, 0) / (double)s->used;
	g->budget.ns_per_byte += (each - g->budget.ns_per_byte) / 4;
	set_away(s, false);
	pthread_mutex_unlock(&g->budget.lock);
	return 0;
}

int gpu_space_hold(struct gpu_space *s, uint64_t *ret_ns, struct error *err)
{
	*ret_ns = 0;
	pthread_mutex_lock(&s->lock);
	const double now = now_s();
	s->uses = uses(s, now) + 1;
	s->used_s = now;
	const int e = s->away ? come_back(s, ret_ns, err) : 0;
	if (e)
		pthread_mutex_unlock(&s->lock);
	return e;
}

void gpu_space_own(struct gpu_space *s)
{
	if (s->at && !s->loading)
		pthread_mutex_lock(&s->lock);
}

void gpu_space_release(struct gpu_space *s)
{
	struct gpu_budget *b = &s->gpu->budget;
	s->loading = false;
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&b->lock);
	if (b->waiting)
		pthread_cond_broadcast(&b->freed);
	pthread_mutex_unlock(&b->lock);
}

int gpu_space_settle(struct gpu_space *s, struct error *err)
{
	struct gpu_budget *b = &s->gpu->budget;
	pthread_mutex_lock(&b->lock);
	const bool crowded = b->crowded;
	pthread_mutex_unlock(&b->lock);
	return crowded ? gpu_space_keep(s, err) : 0;
}
