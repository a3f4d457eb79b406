/* Detects slowdowns. */
#include "monitor/regress.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/expect.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "monitor/rank.h"
#include "monitor/regress_series.h"

#define LOOKED_AT 16u /* places that are looked at for one that can go */

struct regress {
	uint32_t most, hand; /* hand: of the places that may go, the next */
	uint64_t window_ns, random;
	ARRAY(struct regress_series) all;
	struct map map; /* key to place */
	struct regress_counts counts;
	uint64_t told; /* of counts.raised: those that are in the news no more */
};

struct regress *regress_new(uint32_t most, uint64_t window_ns, uint64_t seed)
{
	struct regress *r = xcalloc(1, sizeof *r);
	r->most = MIN(most, REGRESS_SERIES);
	r->window_ns = window_ns;
	r->random = hash_mix(seed) | 1;
	return r;
}

void regress_free(struct regress *r)
{
	if (!r)
		return;
	array_free(&r->all);
	map_fini(&r->map);
	free(r);
}

uint64_t regress_text_hash(const char *text, size_t bytes)
{
	return hash_bytes(text, bytes);
}

uint64_t regress_key(const struct regress_what *w)
{
	uint64_t uuid[2], h = w->kind;
	memcpy(uuid, w->uuid, sizeof uuid);
	const uint64_t words[] = { w->program_hash, w->name_hash, uuid[0], uuid[1], w->shared,
		(uint64_t)w->grid[0] << 32 | w->grid[1], (uint64_t)w->grid[2] << 32 | w->block[0],
		(uint64_t)w->block[1] << 32 | w->block[2] };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		h = hash_mix(h * 0x9e3779b97f4a7c15u ^ words[i]);
	return h;
}

static struct regress_series *find(const struct regress *r, uint64_t key)
{
	const uint32_t i = map_find(&r->map, MAP_KEY(key));
	return i == MAP_NONE ? NULL : &r->all.v[i];
}

/* The map keeps the keys of series that went: from time to time it is made anew. */
static void tidy_map(struct regress *r)
{
	struct map new = { 0 };
	if (r->map.taken < 2 * (size_t)r->most)
		return;
	for (uint32_t i = 0; i < r->all.n; i++)
		*map_get(&new, MAP_KEY(r->all.v[i].key)) = i;
	map_fini(&r->map);
	r->map = new;
}

/* The place of a series that has had no values for long; one with an alarm only after a day. */
static struct regress_series *place_that_may_go(struct regress *r, uint64_t now)
{
	for (uint32_t n = 0; n < LOOKED_AT; n++) {
		struct regress_series *s = &r->all.v[r->hand++ % r->all.n];
		const uint64_t idle = now > s->last_ns ? now - s->last_ns : 0;
		if (idle < (regress_alarmed(s) ? 24 : 1) * REGRESS_IDLE_NS)
			continue;
		*map_get(&r->map, MAP_KEY(s->key)) = MAP_NONE;
		return s;
	}
	return NULL;
}

bool regress_begin(struct regress *r, const struct regress_what *w, uint64_t now_ns)
{
	const uint64_t key = regress_key(w);
	if (find(r, key))
		return true;
	tidy_map(r);
	uint32_t *at = map_get(&r->map, MAP_KEY(key));
	struct regress_series *s = r->all.n < r->most ? array_push(&r->all) : NULL;
	if (!s && r->all.n)
		s = place_that_may_go(r, now_ns);
	if (!s) {
		r->counts.left_out++;
		return false;
	}
	*s = (struct regress_series){
		.what = *w, .key = key, .last_ns = now_ns, .swing = (float)REGRESS_SWING
	};
	*at = (uint32_t)(s - r->all.v);
	return true;
}

static uint64_t random_below(struct regress *r, uint32_t n)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return (r->random >> 32) % n;
}

/* The level that the test must be below: shared out among the series and the windows of a day. */
static double level_of(const struct regress *r)
{
	const double windows = 86400e9 / (double)r->window_ns;
	return REGRESS_ALPHA / ((double)(r->all.n ? r->all.n : 1) * windows);
}

static void close_window(struct regress *r, struct regress_series *s)
{
	const bool before = regress_alarmed(s);
	const uint32_t n = MIN(s->taken, REGRESS_SAMPLES);
	sort_floats(s->sample, n);
	r->counts.tests += series_push(s, rank_median(s->sample, n), level_of(r));
	s->taken = 0;
	if (regress_alarmed(s) && !before) {
		s->raised_ns = s->last_ns;
		s->told = false;
		r->counts.raised++;
	} else if (before && !regress_alarmed(s)) {
		r->counts.ended++;
	}
}

bool regress_add(
	struct regress *r, uint64_t key, uint32_t pid, uint64_t at_ns, uint64_t duration_ns)
{
	struct regress_series *s = find(r, key);
	if (!s)
		return false;
	if (s->taken && at_ns > s->window_ns && at_ns - s->window_ns >= r->window_ns)
		close_window(r, s);
	if (!s->taken)
		s->window_ns = at_ns;
	if (at_ns > s->last_ns && at_ns - s->last_ns >= REGRESS_SILENT_NS)
		s->unbroken = 0;
	s->last_ns = at_ns > s->last_ns ? at_ns : s->last_ns;
	s->pid = pid;
	r->counts.values++;
	/* Each value of a window has the same chance to be in the sample (Vitter 1985, R). */
	const uint64_t place =
		s->taken < REGRESS_SAMPLES ? s->taken : random_below(r, s->taken + 1);
	s->taken += s->taken < UINT32_MAX - 1;
	if (place < REGRESS_SAMPLES)
		s->sample[place] = logf((float)(duration_ns ? duration_ns : 1));
	return true;
}

int regress_accept(struct regress *r, uint64_t key)
{
	struct regress_series *s = find(r, key);
	if (!s || !regress_alarmed(s))
		return -ESRCH;
	series_accept(s);
	return 0;
}

bool regress_fires(const struct regress_series *s, uint64_t now_ns)
{
	return regress_alarmed(s) &&
	       (now_ns < s->last_ns || now_ns - s->last_ns < REGRESS_SILENT_NS);
}

uint32_t regress_count(const struct regress *r)
{
	return (uint32_t)r->all.n;
}

const struct regress_series *regress_at(const struct regress *r, uint32_t i)
{
	return &r->all.v[i];
}

struct regress_counts regress_counts(const struct regress *r)
{
	return r->counts;
}

/* A list of a few, the slowest first: each is put where it belongs. */
uint32_t regress_firing(
	const struct regress *r, uint64_t now_ns, uint32_t most, const struct regress_series *ret[])
{
	uint32_t n = 0, all = 0;
	array_each(const struct regress_series, s, r->all) {
		if (!regress_fires(s, now_ns))
			continue;
		all++;
		if (n == most && (!most || ret[most - 1]->effect >= s->effect))
			continue;
		uint32_t at = n < most ? n++ : most - 1;
		for (; at && ret[at - 1]->effect < s->effect; at--)
			ret[at] = ret[at - 1];
		ret[at] = s;
	}
	return all;
}

const struct regress_series *regress_news(struct regress *r)
{
	for (size_t i = 0; i < r->all.n && r->told < r->counts.raised; i++) {
		struct regress_series *s = &r->all.v[i];
		if (!regress_alarmed(s) || s->told)
			continue;
		s->told = true;
		return s;
	}
	r->told = r->counts.raised;
	return NULL;
}

int regress_save(const struct regress *r, void **ret_data, size_t *ret_bytes)
{
	return saved_put(r->all.v, r->all.n, ret_data, ret_bytes);
}

int regress_load(
	struct regress *r, const void *data, size_t bytes, uint64_t now_ns, struct error *err)
{
	uint32_t count;
	const int e = saved_check(data, bytes, &count, err);
	for (uint32_t i = 0; !e && i < count; i++) {
		struct regress_series s;
		saved_get(data, i, &s);
		if (!regress_begin(r, &s.what, now_ns))
			continue;
		struct regress_series *to = find(r, regress_key(&s.what));
		if (!expect(to, "a series that was begun is there"))
			continue;
		s.key = to->key;
		s.last_ns = s.raised_ns = now_ns;
		s.told = regress_alarmed(&s);
		*to = s;
	}
	return e;
}
