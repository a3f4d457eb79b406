/*
 * Joins activities to calls in one pass, with a list of the calls that may still match.
 *
 * A number given out after a call's end cannot be that call's. So a match closes all earlier calls
 * of its thread, and those of other threads that ended before it began. Candidates are the calls
 * that overlap the last match, and later ones. A match that closes no candidate ("free") is taken
 * at once, and without losses nothing else happens. Otherwise calls lost their activities, or
 * activities their call. Each way out is tried on the next LOOK_AHEAD activities, and the one with
 * the most free matches wins.
 */
#include "join/join.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/expect.h"
#include "base/hash.h"
#include "base/search.h"
#include "base/xmalloc.h"

#define CLOCK_ERROR_NS  20000u /* how far off the device's clock may be */
#define NUMBER_EARLY_NS 5000u  /* before its call began, as others see it */
#define LOOK_AHEAD      24u
#define SCAN_MOST       512u /* candidates that are looked at for one activity */
#define NEAR_FRONT      64u
#define NEAR_GUESS      256u
#define OPTIONS         8u
#define OVERTAKEN       64u /* calls that others may overtake on their way to a number */
#define SYNCS_BACK      64u
#define MARKS           32u
#define OLD_ENOUGH      512u
#define GIVE_UP         64u
#define BLOCKED         64u
#define HANDLES         4096u /* of streams, a thread's each; a power of two */
#define STREAMS         8u
#define VOTES_LEAST     16u

static size_t run_end(const struct join_call *v, size_t from, size_t n)
{
	size_t i = from + 1;
	while (i < n && v[i - 1].begin_ns <= v[i].begin_ns)
		i++;
	return MIN(i, n);
}

static void merge(const struct join_call *a, size_t an, const struct join_call *b, size_t bn,
	struct join_call *to)
{
	while (an && bn) {
		const bool first = a->begin_ns <= b->begin_ns;
		*to++ = first ? *a : *b;
		a += first, an -= first;
		b += !first, bn -= !first;
	}
	memcpy(to, an ? a : b, (an + bn) * sizeof *to);
}

/* Merges neighbouring runs, two by two; returns how many are left. */
static size_t merge_runs(const struct join_call *from, struct join_call *to, size_t n)
{
	size_t runs = 0;
	for (size_t at = 0; at < n; runs++) {
		const size_t middle = run_end(from, at, n);
		const size_t end = middle < n ? run_end(from, middle, n) : n;
		merge(from + at, middle - at, from + middle, end - middle, to + at);
		at = end;
	}
	return runs;
}

void join_sort(struct join_call *calls, size_t count)
{
	if (count < 2 || run_end(calls, 0, count) == count)
		return;
	struct join_call *other = xmalloc(count * sizeof *other);
	struct join_call *from = calls, *to = other;
	for (size_t runs = 2; runs > 1;) {
		runs = merge_runs(from, to, count);
		struct join_call *swap = from;
		from = to;
		to = swap;
	}
	if (from != calls)
		memcpy(calls, from, count * sizeof *calls);
	free(other);
}

struct join {
	const struct join_call *calls;
	const struct join_activity *activities;
	uint32_t call_count, activity_count;
	uint32_t *next, *prev; /* candidates, by begin; [call_count] is before and behind all */
	uint64_t *until;       /* the call of activities[i] began no later */
	uint64_t *since;       /* … and ended no earlier; from syncs */
	uint32_t *ret_call;
	uint32_t *stream;   /* by call: where its activities run, 0 anywhere */
	uint64_t passed_ns; /* the call of the activity at hand ended no earlier */
	uint32_t last_call; /* matched last */
	uint64_t last_number;
	struct mark {
		uint64_t number;
		uint32_t call;
		uint32_t behind; /* the first call that began after this one had ended */
	} marks[MARKS];          /* the last matches, in a ring */
	struct mark old, new;    /* a match OLD_ENOUGH matches ago at least, and its successor */
	uint64_t numbers, steps; /* lately: numbers given out while so many calls were made */
	uint32_t matched;
	uint32_t given_up; /* activities in a row for which there was no way out */
};

/* The beliefs while a way is tried. */
struct view {
	uint64_t passed_ns;
	uint32_t from; /* candidate to begin with */
	uint32_t taken_count;
	uint32_t taken[LOOK_AHEAD + 1];
	bool loose; /* graphs: whatever they hold */
};

static void drop(struct join *j, uint32_t call)
{
	j->next[j->prev[call]] = j->next[call];
	j->prev[j->next[call]] = j->prev[call];
	j->prev[call] = JOIN_NONE;
}

static bool is_open(const struct join *j, uint32_t call)
{
	return j->prev[call] != JOIN_NONE;
}

static bool same_or_any(uint64_t a, uint64_t b)
{
	return a == b || !a || !b;
}

static bool fits(const struct join *j, uint32_t call, const struct join_activity *w, bool loose)
{
	const struct join_call *c = &j->calls[call];
	if (c->kind != w->kind || (c->blocks && w->end_ns > c->end_ns + CLOCK_ERROR_NS) ||
		!same_or_any(j->stream[call], w->stream))
		return false;
	return (loose && c->kind == JOIN_GRAPH) ||
	       (same_or_any(c->shape, w->shape) && same_or_any(c->name, w->name));
}

/* Taken, or closed by what its thread did later. */
static bool is_closed(const struct join *j, const struct view *v, uint32_t call)
{
	for (uint32_t i = v->taken_count; i-- > 0;)
		if (call <= v->taken[i] && j->calls[call].thread == j->calls[v->taken[i]].thread)
			return true;
	return false;
}

/* Threads with a candidate that would be closed by any later call of theirs. */
struct blocked {
	uint32_t threads[BLOCKED];
	uint32_t n;
};

static bool is_blocked(const struct blocked *b, uint32_t thread)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->threads[i] == thread)
			return true;
	return false;
}

/* The first candidate that fits and closes no other, or JOIN_NONE. */
static uint32_t free_match(const struct join *j, const struct view *v, uint32_t activity)
{
	const struct join_activity *w = &j->activities[activity];
	const uint64_t passed = MAX(v->passed_ns, j->since[activity]);
	uint64_t until = j->until[activity];
	uint32_t left = SCAN_MOST;
	struct blocked blocked = { .n = 0 };
	for (uint32_t c = v->from; c != j->call_count && left; c = j->next[c], left--) {
		const struct join_call *call = &j->calls[c];
		if (call->begin_ns > until)
			break;
		if (call->end_ns < passed || is_closed(j, v, c) ||
			is_blocked(&blocked, call->thread))
			continue;
		if (fits(j, c, w, v->loose))
			return c;
		if (blocked.n < BLOCKED)
			blocked.threads[blocked.n++] = call->thread;
		if (call->end_ns + NUMBER_EARLY_NS < until)
			until = call->end_ns + NUMBER_EARLY_NS;
	}
	return JOIN_NONE;
}

static void forget_passed(struct join *j, uint64_t passed_ns)
{
	j->passed_ns = MAX(j->passed_ns, passed_ns);
	for (uint32_t c = j->next[j->call_count], next; c != j->call_count; c = next) {
		next = j->next[c];
		if (j->calls[c].end_ns >= j->passed_ns)
			break;
		drop(j, c);
	}
}

/* This thread's earlier calls take no more activities. */
static void close_thread(struct join *j, uint32_t call)
{
	for (uint32_t c = j->next[j->call_count], next; c < call; c = next) {
		next = j->next[c];
		if (j->calls[c].thread == j->calls[call].thread)
			drop(j, c);
	}
}

static uint32_t first_behind(const struct join *j, uint32_t call)
{
	uint32_t i = call + 1;
	while (i < j->call_count && i - call < OVERTAKEN &&
		j->calls[i].begin_ns <= j->calls[call].end_ns + NUMBER_EARLY_NS)
		i++;
	return i;
}

static void take(struct join *j, uint32_t activity, uint32_t call)
{
	const uint64_t number = j->activities[activity].correlation;
	const struct mark mark = { number, call, first_behind(j, call) };
	if (j->matched % OLD_ENOUGH == 0) {
		j->old = j->matched ? j->new : mark;
		j->new = mark;
	}
	j->marks[j->matched % MARKS] = mark;
	const uint64_t usual = j->steps ? j->numbers / j->steps : 1;
	if (j->matched++ && call > j->last_call &&
		number - j->last_number < (call - j->last_call + 4u) * 16 * (usual + 1)) {
		j->numbers += number - j->last_number;
		j->steps += call - j->last_call;
	}
	if (j->steps > 4096) {
		j->numbers /= 2;
		j->steps /= 2;
	}
	expect(call < j->call_count, "the call that is taken is one of all");
	j->ret_call[activity] = call;
	j->last_call = call;
	j->last_number = number;
	close_thread(j, call);
	drop(j, call);
	forget_passed(j, sat_sub(j->calls[call].begin_ns, NUMBER_EARLY_NS));
}

/* The index of the first call that began after `ns`. */
static uint32_t first_after(const struct join *j, uint64_t ns)
{
	return (uint32_t)SEARCH(i, 0, j->call_count, j->calls[i].begin_ns <= ns);
}

/* How many of the next GPU activities would find free matches. */
static uint32_t try_ahead(const struct join *j, struct view *v, uint32_t activity)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < LOOK_AHEAD && activity < j->activity_count; i++, activity++) {
		if (j->activities[activity].kind == JOIN_SYNC)
			continue;
		while (v->from != j->call_count && j->calls[v->from].end_ns < v->passed_ns)
			v->from = j->next[v->from];
		const uint32_t c = free_match(j, v, activity);
		if (c == JOIN_NONE)
			continue;
		v->taken[v->taken_count++] = c;
		v->passed_ns = MAX(v->passed_ns, sat_sub(j->calls[c].begin_ns, NUMBER_EARLY_NS));
		found++;
	}
	return found;
}

static uint32_t try_call(const struct join *j, uint32_t activity, uint32_t call)
{
	struct view v = {
		.passed_ns = MAX(j->passed_ns, sat_sub(j->calls[call].begin_ns, NUMBER_EARLY_NS)),
		.from = call,
		.taken_count = 1,
		.taken = { call },
	};
	for (uint32_t i = 0; i < OVERTAKEN && j->prev[v.from] != j->call_count; i++)
		v.from = j->prev[v.from];
	return 1 + try_ahead(j, &v, activity + 1);
}

struct options {
	uint32_t v[OPTIONS];
	uint32_t n;
};

static const struct mark *oldest_mark(const struct join *j)
{
	return &j->marks[j->matched < MARKS ? 0 : j->matched % MARKS];
}

/* How many of the calls before this one may have been given their number after it. */
static uint32_t count_overlaps(const struct join *j, uint32_t call)
{
	uint32_t n = 0;
	for (uint32_t i = 1; i <= OVERTAKEN && i <= call; i++)
		n += j->calls[call - i].thread != j->calls[call].thread &&
		     j->calls[call - i].end_ns + NUMBER_EARLY_NS >= j->calls[call].begin_ns;
	return n;
}

/*
 * Between two numbers there are no more calls than numbers.  Counted from many matches ago: of
 * kernels that look alike the last ones may have been taken for their neighbours.
 */
static bool has_numbers(const struct join *j, uint32_t activity, uint32_t call)
{
	const struct mark *m = &j->old;
	return !j->matched || call <= m->behind ||
	       call - m->behind <= j->activities[activity].correlation - m->number - 1 +
					   count_overlaps(j, call);
}

static bool may_be(const struct join *j, uint32_t activity, uint64_t call)
{
	const struct join_call *c = &j->calls[call];
	return is_open(j, (uint32_t)call) && c->begin_ns <= j->until[activity] &&
	       c->end_ns >= MAX(j->passed_ns, j->since[activity]) &&
	       fits(j, (uint32_t)call, &j->activities[activity], false) &&
	       has_numbers(j, activity, (uint32_t)call);
}

static bool add_option(struct options *o, uint32_t call)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->v[i] == call)
			return true;
	if (o->n < OPTIONS)
		o->v[o->n++] = call;
	return o->n < OPTIONS;
}

static void add_front(const struct join *j, uint32_t activity, struct options *o)
{
	uint32_t c = j->next[j->call_count];
	for (uint32_t i = 0; i < NEAR_FRONT && c != j->call_count && o->n < 3; i++, c = j->next[c])
		if (may_be(j, activity, c))
			add_option(o, c);
}

/* The calls nearest to where it should be, before and behind. */
static void add_around(const struct join *j, uint32_t activity, uint64_t guess, struct options *o)
{
	const uint32_t most = o->n + 2;
	for (uint32_t i = 0; i < NEAR_GUESS && o->n < most; i++) {
		if (guess + i < j->call_count && may_be(j, activity, guess + i))
			add_option(o, (uint32_t)(guess + i));
		if (i && guess >= i && guess - i < j->call_count && may_be(j, activity, guess - i))
			add_option(o, (uint32_t)(guess - i));
	}
}

/* The place of the call by its number. */
static uint64_t guess_of(const struct join *j, uint32_t activity)
{
	const struct mark *m = oldest_mark(j);
	const uint64_t numbers = j->activities[activity].correlation - m->number;
	if (!j->numbers || !j->steps)
		return m->call;
	const double steps = (double)numbers * (double)j->steps / (double)j->numbers;
	return m->call + (uint64_t)MIN(steps, 4e9);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The further from where it should be, the more a way has to bring. */
static int price_of(const struct join *j, uint32_t call, uint64_t guess)
{
	return j->matched ? (63 - __builtin_clzll(distance(call, guess) | 1)) / 2 : 0;
}

/* The best way out: a call, or JOIN_NONE when this activity's call is not among them. */
static uint32_t decide(const struct join *j, uint32_t activity)
{
	struct options o = { .n = 0 };
	const uint64_t guess = guess_of(j, activity);
	const uint32_t front = j->next[j->call_count];
	if (front == j->call_count || j->calls[front].begin_ns > j->until[activity])
		return JOIN_NONE;
	add_front(j, activity, &o);
	if (j->matched)
		add_around(j, activity, guess, &o);
	add_around(j, activity, first_after(j, j->until[activity]), &o);
	if (!o.n)
		return JOIN_NONE;
	struct view without = { .passed_ns = j->passed_ns, .from = front };
	const uint32_t left = try_ahead(j, &without, activity + 1);
	uint32_t best = JOIN_NONE;
	int most = (int)left;
	for (uint32_t i = 0; i < o.n; i++) {
		const int worth = (int)try_call(j, activity, o.v[i]) - price_of(j, o.v[i], guess);
		if (worth > most ||
			(worth == most && (best == JOIN_NONE || distance(o.v[i], guess) <
									distance(best, guess)))) {
			best = o.v[i];
			most = worth;
		}
	}
	return best;
}

/* If nothing fits, as when a level left the launches out, ways out are looked for seldom. */
static uint32_t match(const struct join *j, uint32_t activity)
{
	struct view v = { .passed_ns = j->passed_ns, .from = j->next[j->call_count] };
	uint32_t c = free_match(j, &v, activity);
	if (c == JOIN_NONE && (j->given_up < GIVE_UP || activity % GIVE_UP == 0))
		c = decide(j, activity);
	if (c == JOIN_NONE && j->activities[activity].kind == JOIN_GRAPH) {
		v.loose = true;
		c = free_match(j, &v, activity);
	}
	return c;
}

/* A sync is as long as its call, so it is found by time alone. */
static uint32_t find_sync(const struct join *j, const struct join_activity *w)
{
	uint32_t best = JOIN_NONE;
	const uint32_t after = first_after(j, w->start_ns + CLOCK_ERROR_NS);
	for (uint32_t i = 0; i < SYNCS_BACK && i < after; i++) {
		const struct join_call *c = &j->calls[after - 1 - i];
		if (c->kind != JOIN_SYNC || is_open(j, after - 1 - i) ||
			!same_or_any(c->name, w->name) || c->end_ns + CLOCK_ERROR_NS < w->end_ns)
			continue;
		if (best != JOIN_NONE && distance(c->begin_ns, w->start_ns) >=
						 distance(j->calls[best].begin_ns, w->start_ns))
			continue;
		best = after - 1 - i;
	}
	expect(best == JOIN_NONE || best < j->call_count, "the sync that is found is one of all");
	return best;
}

/* Before: until holds what the syncs say of activities with lower numbers.  A start before the
 * first call may be no date at all, and says nothing about others. */
static void bound_above(struct join *j)
{
	uint64_t until = UINT64_MAX;
	const uint64_t first = j->call_count ? j->calls[0].begin_ns : 0;
	for (uint32_t i = j->activity_count; i-- > 0;) {
		const uint64_t start = j->activities[i].start_ns;
		const uint64_t most =
			start < UINT64_MAX - CLOCK_ERROR_NS ? start + CLOCK_ERROR_NS : UINT64_MAX;
		until = MIN(j->until[i], until);
		j->until[i] = MIN(most, until);
		if (most >= first)
			until = j->until[i];
	}
}

static void bound_below(struct join *j)
{
	uint64_t since = 0;
	for (uint32_t i = 0; i < j->activity_count; i++)
		j->since[i] = since = MAX(since, j->since[i]);
}

static void bound(struct join *j, bool syncs)
{
	for (uint32_t i = 0; i < j->activity_count; i++) {
		const struct join_activity *w = &j->activities[i];
		j->until[i] = UINT64_MAX;
		j->since[i] = 0;
		if (w->kind != JOIN_SYNC)
			continue;
		const uint32_t c = syncs ? find_sync(j, w) : JOIN_NONE;
		j->ret_call[i] = c;
		if (c == JOIN_NONE)
			continue;
		j->prev[c] = c; /* given */
		j->until[i] = j->calls[c].end_ns;
		j->since[i] = sat_sub(j->calls[c].begin_ns, NUMBER_EARLY_NS);
	}
	bound_above(j);
	bound_below(j);
}

static void open_calls(struct join *j)
{
	uint32_t last = j->call_count;
	for (uint32_t i = 0; i < j->call_count; i++) {
		j->prev[i] = JOIN_NONE;
		if (j->calls[i].kind == JOIN_SYNC)
			continue;
		j->prev[i] = last;
		j->next[last] = i;
		last = i;
	}
	expect(last <= j->call_count, "the last call that is open is one of all");
	j->next[last] = j->call_count;
	j->prev[j->call_count] = last;
}

static uint32_t run(struct join *j, bool syncs)
{
	open_calls(j);
	bound(j, syncs);
	j->passed_ns = j->numbers = j->steps = j->matched = j->given_up = 0;
	for (uint32_t i = 0; i < j->activity_count; i++) {
		if (j->activities[i].kind == JOIN_SYNC) {
			if (j->ret_call[i] != JOIN_NONE)
				close_thread(j, j->ret_call[i]);
			continue;
		}
		forget_passed(j, j->since[i]);
		j->ret_call[i] = JOIN_NONE;
		const uint32_t c = match(j, i);
		j->given_up = c == JOIN_NONE ? j->given_up + 1 : 0;
		if (c != JOIN_NONE)
			take(j, i, c);
	}
	expect(j->matched <= j->activity_count && j->matched <= j->call_count,
		"each activity and each call is matched once");
	return j->matched;
}

/* Waits that mislead, as they would if their numbers meant something else, are done without. */
static void run_best(struct join *j)
{
	uint32_t activity = 0, calls = 0;
	for (uint32_t i = 0; i < j->activity_count; i++)
		activity += j->activities[i].kind != JOIN_SYNC;
	for (uint32_t i = 0; i < j->call_count; i++)
		calls += j->calls[i].kind != JOIN_SYNC;
	const uint32_t least = (activity < calls ? activity : calls) / 2;
	const uint32_t with = run(j, true);
	if (with < least && activity != j->activity_count && run(j, false) <= with + with / 4)
		run(j, true);
}

/* A thread's use of a handle: the streams that most of its calls were given. */
struct handle {
	uint64_t key; /* 0: free */
	uint32_t all;
	struct {
		uint32_t stream, votes;
	} seen[STREAMS];
};

static struct handle *handle_of(struct handle *handles, const struct join_call *c)
{
	const uint64_t key = hash_mix(hash_mix(c->stream) + c->thread) | 1;
	for (uint32_t i = 0; c->stream && i < 16; i++) {
		struct handle *h = &handles[(key + i) % HANDLES];
		if (!h->key)
			h->key = key;
		if (h->key == key)
			return h;
	}
	return NULL;
}

/* If there are more streams than places, those stay that are given most (Misra and Gries). */
static void add_vote(struct handle *h, uint32_t stream)
{
	for (uint32_t i = 0; i < STREAMS; i++) {
		if (h->seen[i].votes && h->seen[i].stream != stream)
			continue;
		h->seen[i].stream = stream;
		h->seen[i].votes++;
		return;
	}
	for (uint32_t i = 0; i < STREAMS; i++)
		h->seen[i].votes--;
}

static void count_stream(struct handle *h, uint32_t stream)
{
	h->all++;
	for (uint32_t i = 0; i < STREAMS; i++)
		h->seen[i].votes += h->seen[i].stream == stream;
}

static void vote(
	const struct join *j, struct handle *handles, void (*cast)(struct handle *, uint32_t))
{
	for (uint32_t i = 0; i < j->activity_count; i++) {
		const uint32_t stream = j->activities[i].stream, call = j->ret_call[i];
		struct handle *h =
			call != JOIN_NONE && stream ? handle_of(handles, &j->calls[call]) : NULL;
		if (h)
			cast(h, stream);
	}
}

/* The one that has twice the votes of any other; 0: there is none. */
static uint32_t winner_of(const struct handle *h, uint32_t *ret_votes)
{
	uint32_t stream = 0, most = 0, second = 0;
	for (uint32_t i = 0; i < STREAMS; i++) {
		const uint32_t votes = h->seen[i].votes;
		if (votes > most) {
			second = most;
			most = votes;
			stream = h->seen[i].stream;
		} else if (votes > second) {
			second = votes;
		}
	}
	*ret_votes = most;
	return h->all >= VOTES_LEAST && most / 2 >= second ? stream : 0;
}

/* False when every call was given what it should have been. */
static bool learn_streams(struct join *j, struct handle *handles)
{
	bool against = false;
	memset(handles, 0, HANDLES * sizeof *handles);
	vote(j, handles, add_vote);
	for (uint32_t i = 0; i < HANDLES; i++)
		for (uint32_t k = 0; k < STREAMS; k++)
			handles[i].seen[k].votes = 0;
	vote(j, handles, count_stream);
	for (uint32_t i = 0; i < j->call_count; i++) {
		uint32_t votes = 0;
		const struct handle *h = handle_of(handles, &j->calls[i]);
		j->stream[i] = h ? winner_of(h, &votes) : 0;
		against |= j->stream[i] && votes < h->all;
	}
	return against;
}

static uint32_t count_found(const struct join *j)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < j->activity_count; i++)
		n += j->ret_call[i] != JOIN_NONE;
	return n;
}

/* A handle that stands for several streams costs matches: then it is as it was. */
static void run_by_streams(struct join *j)
{
	const size_t bytes = (j->activity_count + 1) * sizeof *j->ret_call;
	struct handle *handles = xcalloc(HANDLES, sizeof *handles);
	uint32_t *before = xmalloc(bytes);
	for (int i = 0; i < 2 && learn_streams(j, handles); i++) {
		memcpy(before, j->ret_call, j->activity_count * sizeof *before);
		const uint32_t found = count_found(j);
		run_best(j);
		if (count_found(j) >= found)
			continue;
		memcpy(j->ret_call, before, j->activity_count * sizeof *before);
		break;
	}
	free(handles);
	free(before);
}

int join_calls(const struct join_call *calls, size_t call_count,
	const struct join_activity *activities, size_t activity_count, uint32_t *ret_call)
{
	if (call_count >= JOIN_NONE || activity_count >= JOIN_NONE)
		return -EOVERFLOW;
	struct join j = {
		.calls = calls,
		.activities = activities,
		.call_count = (uint32_t)call_count,
		.activity_count = (uint32_t)activity_count,
		.next = xmalloc((call_count + 1) * sizeof *j.next),
		.prev = xmalloc((call_count + 1) * sizeof *j.prev),
		.until = xmalloc((activity_count + 1) * sizeof *j.until),
		.since = xmalloc((activity_count + 1) * sizeof *j.since),
		.stream = xcalloc(call_count + 1, sizeof *j.stream),
		.ret_call = ret_call,
	};
	run_best(&j);
	run_by_streams(&j);
	free_all(j.next, j.prev, j.until, j.since, j.stream);
	return 0;
}
