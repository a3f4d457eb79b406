/*
 * How well a device timeline is reconstructed: of recordings in which all of it was measured.
 *
 *	compare-reconstruction [-r RATE] [-s SEED] [-w WINDOW] [-v] [-b BUSY%] [-k KERNEL%]
 *		[-i IDLE] TRACE...
 *
 * Keeps so many launches of each trace as `weir record --gpu=predict` times them: the first few of
 * each kernel and shape, then one in RATE, as an event in front of a launch and one behind it would
 * have measured them; the first WINDOW also as CUPTI does.  If a recording timed all launches both
 * ways, the windows of CUPTI are where the library's would have been.  The rest is reconstructed
 * and held against what was measured.  Exits 1 when the time that a device was busy is off by more
 * than BUSY %, the part of the time in which it was idle by more than IDLE points, or one of the
 * ten kernels that took longest by more than KERNEL % of all kernels' time or of its own, whichever
 * is less strict.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "reconstruct/reconstruct.h"
#include "trace/activity.h"

#define FIRST_FEW       8u /* as the injected library does */
#define TOP             10u
#define WINDOWS         4u /* as the injected library opens them */
#define WINDOW_LAUNCHES 256u
#define FIRST_PAUSE     1024u
#define EVENT_NS        2500u /* from a call until the device has come to it, when it is idle */
#define EVENT_MORE      700u  /* that an event behind work comes later */

struct span {
	uint64_t from, to;
};

struct spans {
	ARRAY(struct span) v;
};

struct kernel {
	uint32_t name;
	double truth, rebuilt;
};

struct comparison {
	const struct trace *t;
	struct meta m;
	struct gpu_calls calls;
	struct measured_calls all, some;
	struct reconstruction r;
	struct chunk_buf buf;
	struct spans truth, rebuilt;
	ARRAY(struct kernel) kernels;
	struct map kernel_map;
	uint64_t seed, rate;
	int64_t window;   /* launches left that CUPTI times as well */
	uint32_t windows; /* of a recording that was timed both ways: so many have ended */
	uint64_t pause;   /* timed launches until the next */
};

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

static uint64_t shape_of(const struct gpu_call *c)
{
	uint64_t h = c->shared + 1;
	for (int i = 0; i < 3; i++)
		h = (h ^ c->grid[i]) * 0x9e3779b97f4a7c15u + c->block[i];
	return h;
}

static struct measured_call *find(struct measured_calls *all, const struct gpu_call *c)
{
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < all->v.n; i++) {
			struct measured_call *m = &all->v.v[i];
			if (m->process == c->process && m->tid == c->tid &&
				m->ticks == (k ? c->outer : c->start))
				return m;
		}
	return NULL;
}

/* As two events see it. */
static void measure(
	struct comparison *k, struct measured_call *m, const struct gpu_call *c, uint64_t before_ns)
{
	const uint64_t called = trace_ns(k->t, c->start) + EVENT_NS;
	uint64_t from = before_ns > called ? before_ns : called;
	if (from > m->start_ns)
		from = m->start_ns;
	m->event_ns = m->end_ns - from + EVENT_MORE;
	m->has_event = true;
	m->is_exact = false;
}

static int start_order(const void *one, const void *two)
{
	const struct gpu_call *a = *(struct gpu_call *const *)one,
			      *b = *(struct gpu_call *const *)two;
	return ORDER(a->start, b->start);
}

/* Before a launch that is timed with events, of a recording that was timed both ways. */
static void move_window(struct comparison *k)
{
	if (k->windows == WINDOWS)
		return;
	if (k->window > 0 && !--k->window)
		k->pause = (uint64_t)FIRST_PAUSE << 2 * k->windows++;
	else if (k->window <= 0 && (!k->pause || !--k->pause))
		k->window = WINDOW_LAUNCHES;
}

static void keep_some(struct comparison *k)
{
	struct {
		ARRAY(const struct gpu_call *) v;
	} order = { 0 };
	for (size_t i = 0; i < k->calls.v.n; i++)
		*array_push(&order.v) = &k->calls.v.v[i];
	SORT(order.v, start_order);
	struct map seen = { 0 }, streams = { 0 };
	uint64_t last = 0; /* end of what ran last, in any stream: streams wait for each other */
	for (size_t i = 0; i < order.v.n; i++) {
		const struct gpu_call *c = order.v.v[i];
		if (c->use != USE_LAUNCH && c->use != USE_GRAPH && c->use != USE_MOVE)
			continue;
		struct measured_call *all = find(&k->all, c), *to;
		uint32_t *n = map_get(&seen, MAP_KEY(c->what, shape_of(c), c->bytes));
		*n = *n == MAP_NONE ? 1 : *n + 1;
		uint32_t *before = map_get(&streams, MAP_KEY(c->stream, c->process));
		const uint64_t own = *before == MAP_NONE ? 0 : k->all.v.v[*before].end_ns;
		const uint64_t other = all && last <= all->start_ns ? last : 0;
		const uint64_t end = own > other ? own : other;
		if (!all)
			continue;
		*before = (uint32_t)(all - k->all.v.v);
		last = all->end_ns > last ? all->end_ns : last;
		const bool both =
			k->t->header.sampled; /* then a launch without an event had none */
		const bool is_timed =
			(!both || all->has_event) &&
			(k->window > 0 || *n <= FIRST_FEW || !(next_random(&k->seed) % k->rate));
		if (is_timed && both)
			move_window(k);
		if (!is_timed && k->window <= 0)
			continue;
		if (c->waits) /* has no stream to record events in */
			continue;
		to = array_push(&k->some.v);
		*to = *all;
		if (!both)
			measure(k, to, c, end);
		to->has_event = is_timed;
		to->is_exact = k->window > 0; /* CUPTI is on as well */
		if (!both)
			k->window -= c->use != USE_MOVE;
	}
	array_free(&order.v);
	map_fini(&seen);
	map_fini(&streams);
}

static void add_kernel(struct comparison *k, uint32_t name, uint64_t ns, bool truth)
{
	struct kernel *row = MAP_ROW(
		&k->kernel_map, MAP_KEY(name), &k->kernels, (struct kernel){ .name = name });
	*(truth ? &row->truth : &row->rebuilt) += (double)ns;
}

static void add_span(struct spans *s, const struct gpu_activity *w)
{
	*array_push(&s->v) = (struct span){ w->start_ns, w->end_ns };
}

/* Copies from host to host no device does. */
static bool runs(const struct gpu_activity *w)
{
	if (w->kind == GPU_MEMCPY && w->what == COPY_HTOH)
		return false;
	return w->kind == GPU_KERNEL || w->kind == GPU_MEMCPY || w->kind == GPU_MEMSET ||
	       w->kind == GPU_GRAPH;
}

/* Copies of each direction, and sets, are rows beside the kernels. */
#define MOVES 0x80000000u
static uint32_t move_row(const struct gpu_activity *w)
{
	return MOVES + (w->kind == GPU_MEMCPY ? w->what : 32);
}

static const char *row_name(const struct comparison *k, uint32_t name)
{
	if (name == META_NONE)
		return "?";
	if (name < MOVES)
		return k->m.names.v[name].text;
	return name == MOVES + 32 ? "memset" : copy_direction_name(name - MOVES);
}

static void take_truth(struct comparison *k)
{
	struct cursor at = { .t = k->t, .buf = &k->buf };
	struct gpu_activity w;
	while (trace_next_activity(&at, &w) > 0) {
		if (!runs(&w) || (k->t->header.sampled && w.correlation < CUPTI_CORRELATIONS))
			continue;
		add_span(&k->truth, &w);
		add_kernel(k,
			w.kind == GPU_KERNEL ? meta_find_string(&k->m, k->buf.ref->process, w.name)
					     : move_row(&w),
			w.end_ns - w.start_ns, true);
	}
}

/* Calls whose time is known: CUPTI misses what the device does while it starts. */
static void note_calls(const struct comparison *k, struct map *known)
{
	struct map exact = { 0 };
	for (size_t i = 0; i < k->all.v.n; i++) {
		const struct measured_call *m = &k->all.v.v[i];
		if (m->is_exact)
			map_number(&exact, MAP_KEY(m->process, m->tid, m->ticks));
	}
	for (size_t i = 0; i < k->calls.v.n; i++) {
		const struct gpu_call *c = &k->calls.v.v[i];
		if (map_find(&exact, MAP_KEY(c->process, c->tid, c->start)) != MAP_NONE ||
			map_find(&exact, MAP_KEY(c->process, c->tid, c->outer)) != MAP_NONE)
			map_number(known, MAP_KEY(c->process, c->tid, c->start));
	}
	map_fini(&exact);
}

/* The call of the activity at `at`; links are in the order of activities. */
static const struct rebuilt_link *link_of(const struct comparison *k, size_t at, size_t *hint)
{
	const uint64_t correlation = k->r.activities.v[at].activity.correlation;
	while (k->r.links.v[*hint].link.correlation != correlation)
		++*hint;
	return &k->r.links.v[*hint];
}

/* Names of launches and of activities are of one table. */
static void take_rebuilt(struct comparison *k)
{
	struct map known = { 0 };
	size_t hint = 0;
	note_calls(k, &known);
	for (size_t i = 0; i < k->r.activities.n; i++) {
		const struct rebuilt_link *l = link_of(k, i, &hint);
		if (map_find(&known, MAP_KEY(l->process, l->link.tid, l->link.ticks)) == MAP_NONE)
			continue;
		const struct rebuilt *a = &k->r.activities.v[i];
		const struct gpu_activity *w = &a->activity;
		const uint32_t name = w->kind != GPU_KERNEL ? move_row(w)
				      : a->is_named ? meta_find_string(&k->m, a->process, w->name)
						    : k->r.names.v[w->name - 1].name;
		add_span(&k->rebuilt, w);
		add_kernel(k, name, w->end_ns - w->start_ns, false);
	}
	map_fini(&known);
}

static int span_order(const void *one, const void *two)
{
	return ORDER(((const struct span *)one)->from, ((const struct span *)two)->from);
}

static double busy(struct spans *s)
{
	uint64_t until = 0;
	double sum = 0;
	SORT(s->v, span_order);
	for (size_t i = 0; i < s->v.n; i++) {
		const struct span *p = &s->v.v[i];
		if (p->to > until) {
			sum += (double)(p->to - (p->from > until ? p->from : until));
			until = p->to;
		}
	}
	return sum;
}

/* In percent of the time from the first to the last. */
static double idle_pct(const struct spans *s, double busy_ns)
{
	uint64_t from = UINT64_MAX, to = 0;
	for (size_t i = 0; i < s->v.n; i++) {
		from = s->v.v[i].from < from ? s->v.v[i].from : from;
		to = s->v.v[i].to > to ? s->v.v[i].to : to;
	}
	return to > from ? 100 - 100 * busy_ns / (double)(to - from) : 0;
}

static int truth_order(const void *one, const void *two)
{
	return -ORDER(((const struct kernel *)one)->truth, ((const struct kernel *)two)->truth);
}

static double worst_kernel(struct comparison *k, bool verbose, double *ret_share)
{
	double worst = 0, all = 0;
	*ret_share = 0;
	SORT(k->kernels, truth_order);
	for (size_t i = 0; i < k->kernels.n; i++)
		all += k->kernels.v[i].truth;
	for (size_t i = 0; i < k->kernels.n && i < TOP; i++) {
		const struct kernel *n = &k->kernels.v[i];
		const double off = n->truth > 0 ? 100 * (n->rebuilt - n->truth) / n->truth : 0;
		const double share = all > 0 ? 100 * (n->rebuilt - n->truth) / all : 0;
		if (verbose)
			printf("    %10.3f ms %10.3f  %+7.2f %%  %.60s\n", n->truth / 1e6,
				n->rebuilt / 1e6, off, row_name(k, n->name));
		if (fabs(off) > fabs(worst) && n->truth > all / 1000)
			worst = off;
		if (fabs(share) > fabs(*ret_share))
			*ret_share = share;
	}
	for (size_t i = TOP; verbose && i < k->kernels.n; i++)
		if (k->kernels.v[i].rebuilt > all / 10)
			printf("    %10.3f ms %10.3f  %.60s\n", k->kernels.v[i].truth / 1e6,
				k->kernels.v[i].rebuilt / 1e6, row_name(k, k->kernels.v[i].name));
	return worst;
}

static void compare(
	struct comparison *k, const char *path, bool verbose, const double limits[3], int *bad)
{
	double share;
	take_truth(k);
	take_rebuilt(k);
	const double truth = busy(&k->truth), rebuilt = busy(&k->rebuilt);
	const double off = truth > 0 ? 100 * (rebuilt - truth) / truth : 0;
	const char *slash = strrchr(path, '/');
	printf("%-30s %6zu %6zu %6zu  %9.3f %9.3f ms %+7.2f %%", slash ? slash + 1 : path,
		k->truth.v.n, k->rebuilt.v.n, k->some.v.n, truth / 1e6, rebuilt / 1e6, off);
	const double worst = (printf("%s", verbose ? "\n" : ""), worst_kernel(k, verbose, &share));
	const double idle = idle_pct(&k->rebuilt, rebuilt) - idle_pct(&k->truth, truth);
	const bool is_bad = fabs(off) > limits[0] || fabs(idle) > limits[2] ||
			    (fabs(worst) > limits[1] && fabs(share) > limits[1]);
	printf(" %+7.2f %+6.2f %%  idle %+5.2f  %" PRIu64 " guessed %" PRIu64 " bounded%s\n", worst,
		share, idle, k->r.guessed, k->r.bounded, is_bad ? "  BAD" : "");
	*bad |= is_bad;
}

static int compare_file(const char *path, uint64_t rate, uint64_t seed, int64_t window,
	bool verbose, const double limits[3])
{
	struct comparison k = { .rate = rate, .seed = seed, .window = window };
	struct trace *t;
	struct error err;
	int bad = 0;
	if (trace_open(path, &t, &err)) {
		printf("%s\n", err.text);
		return 1;
	}
	k.t = t;
	if (t->header.sampled)
		k.window = 0;
	if (meta_load(t, &k.m, &err) || gpu_calls_load(t, &k.calls) ||
		measured_calls_load(t, &k.m, &k.all))
		abort();
	keep_some(&k);
	measured_calls_join(&k.some);
	memcpy(&k.some.activities, &k.all.activities, sizeof k.some.activities);
	reconstruct(t, &k.m, &k.calls, &k.some, &k.r);
	compare(&k, path, verbose, limits, &bad);
	reconstruction_fini(&k.r);
	array_free(&k.calls.v);
	memset(&k.some.activities, 0, sizeof k.some.activities); /* they are the other's */
	measured_calls_fini(&k.all);
	measured_calls_fini(&k.some);
	array_free(&k.truth.v);
	array_free(&k.rebuilt.v);
	array_free(&k.kernels);
	map_fini(&k.kernel_map);
	chunk_buf_fini(&k.buf);
	meta_fini(&k.m);
	trace_close(t);
	return bad;
}

int main(int argc, char **argv)
{
	uint64_t rate = 16, seed = 1;
	double limits[] = { 3, 5, 3 };
	int64_t window = 128;
	bool verbose = false;
	int bad = 0;
	for (int o; (o = getopt(argc, argv, "r:s:w:b:k:i:v")) != -1;)
		switch (o) {
		case 'r':
			rate = strtoull(optarg, NULL, 10);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 10);
			break;
		case 'w':
			window = strtoll(optarg, NULL, 10);
			break;
		case 'b':
			limits[0] = strtod(optarg, NULL);
			break;
		case 'i':
			limits[2] = strtod(optarg, NULL);
			break;
		case 'k':
			limits[1] = strtod(optarg, NULL);
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return 2;
		}
	printf("%-30s %6s %6s %6s  %9s %9s     off       worst kernel\n", "trace", "truth", "built",
		"timed", "busy", "built");
	for (int i = optind; i < argc; i++)
		bad |= compare_file(argv[i], rate ? rate : 1, seed, window, verbose, limits);
	return bad;
}
