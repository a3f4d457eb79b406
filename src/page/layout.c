/* Lanes, rows, items and how they are merged: see layout.h.  layout_read.c fills them. */
#include "page/layout.h"

#include "base/expect.h"
#include "base/hash.h"
#include "base/sort.h"

static_assert(sizeof(struct layout_detail) == 64, "it is hashed as bytes");

#define FIRST_BIN  64u      /* ns */
#define MANY       1000000u /* items */
#define DEPTH_MOST 47u      /* what is deeper shares the last row */

const char *lane_kind_name(unsigned kind)
{
	static const char *const names[LANE_KINDS] = { "stream", "spans", "ranges", "python",
		"other", "calls", "requests" };
	return kind < LANE_KINDS ? names[kind] : "other";
}

uint32_t layout_name(struct layout *t, const char *name)
{
	char **row = MAP_ROW(
		&t->name_map, map_text_key(name, strlen(name), 0), &t->names, xstrdup(name));
	return (uint32_t)(row - t->names.v);
}

/* Word by word: there may be one a call. */
static struct map_key key_of_detail(const struct layout_detail *d)
{
	uint64_t words[8], a = 0, b = 0;
	memcpy(words, d, sizeof words);
	for (int i = 0; i < 8; i++) {
		a = hash_mix(a ^ words[i]);
		b = (b ^ words[i]) * 1099511628211u + 1;
	}
	return MAP_KEY(a, b);
}

uint32_t layout_detail(struct layout *t, const struct layout_detail *d)
{
	const struct layout_detail *row =
		MAP_ROW(&t->detail_map, key_of_detail(d), &t->details, *d);
	return (uint32_t)(row - t->details.v);
}

uint32_t layout_lane(struct layout *t, const struct layout_lane *lane)
{
	const struct layout_lane *row = MAP_ROW(&t->lane_map,
		MAP_KEY((uint64_t)lane->process << 32 | lane->kind, lane->tid, lane->device,
			(uint64_t)lane->context << 32 | lane->stream),
		&t->lanes, *lane);
	return (uint32_t)(row - t->lanes.v);
}

static struct layout_row *row_of(struct layout *t, uint32_t lane, uint32_t depth)
{
	const uint32_t row = MIN(depth, DEPTH_MOST);
	return MAP_ROW(&t->row_map, MAP_KEY(lane, row), &t->rows,
		(struct layout_row){ .lane = lane, .depth = row });
}

ORDERING(by_start, struct layout_item, ORDER(a->start_ns, b->start_ns), ORDER(b->end_ns, a->end_ns),
	ORDER(a->name, b->name))

/* Calls come newest first: an order as good as the other, until all are there. */
static void tidy(struct layout_row *r, bool finally)
{
	size_t rises = 0, falls = 0;
	for (size_t i = 1; i < r->items.n; i++) {
		rises += r->items.v[i].start_ns > r->items.v[i - 1].start_ns;
		falls += r->items.v[i].start_ns < r->items.v[i - 1].start_ns;
	}
	if (finally || (falls && rises))
		SORT(r->items, by_start);
}

static bool is_short(const struct layout_item *i, uint64_t bin_ns)
{
	return i->count > 1 || i->end_ns - i->start_ns < bin_ns;
}

static void merge(struct layout_item *to, const struct layout_item *from)
{
	const bool longer = from->longest_ns > to->longest_ns ||
			    (from->longest_ns == to->longest_ns && from->name < to->name);
	to->start_ns = from->start_ns < to->start_ns ? from->start_ns : to->start_ns;
	to->end_ns = from->end_ns > to->end_ns ? from->end_ns : to->end_ns;
	to->busy_ns = sat_add(to->busy_ns, from->busy_ns);
	to->count = to->count > UINT32_MAX - from->count ? UINT32_MAX : to->count + from->count;
	to->parts += from->parts;
	to->link = 0;
	to->detail = LAYOUT_NONE;
	if (longer) {
		to->longest_ns = from->longest_ns;
		to->name = from->name;
	}
	expect(to->longest_ns <= to->busy_ns && to->longest_ns <= to->end_ns - to->start_ns,
		"the longest event is part of what it was merged into");
}

static void merge_row(struct layout_row *r, uint64_t bin_ns)
{
	size_t n = 0;
	struct layout_item *v = r->items.v;
	for (size_t i = 0; i < r->items.n; i++) {
		const bool together = n && is_short(&v[i], bin_ns) && is_short(&v[n - 1], bin_ns) &&
				      v[i].start_ns / bin_ns == v[n - 1].start_ns / bin_ns;
		if (together)
			merge(&v[n - 1], &v[i]);
		else
			v[n++] = v[i];
	}
	r->items.n = n;
}

static void merge_rows(struct layout *t)
{
	t->items = 0;
	for (size_t i = 0; i < t->rows.n; i++) {
		merge_row(&t->rows.v[i], t->bin_ns);
		t->items += t->rows.v[i].items.n;
	}
}

/* Bins grow until no more than `most` items are left; one a row at least. */
static void shrink(struct layout *t, size_t most, bool finally)
{
	for (size_t i = 0; i < t->rows.n; i++)
		tidy(&t->rows.v[i], finally);
	if (t->bin_ns)
		merge_rows(t); /* what came since is not merged in these bins */
	while (t->items > most && t->bin_ns <= UINT64_MAX / 2) {
		t->bin_ns = t->bin_ns ? t->bin_ns * 2 : FIRST_BIN;
		merge_rows(t);
	}
}

/* While reading there are more items than asked for: the larger the less, since each takes memory.
 */
static uint64_t room_of(const struct layout *t)
{
	return t->most < MANY ? t->most * 4 : t->most + t->most / 2;
}

void layout_add(struct layout *t, uint32_t lane, uint32_t depth, const struct layout_item *item)
{
	if (t->items >= room_of(t))
		shrink(t, room_of(t) / 3 * 2, false);
	struct layout_row *row = row_of(t, lane, depth);
	struct layout_item *to = array_push(&row->items);
	expect(item->end_ns >= item->start_ns, "an item ends after it began");
	expect(lane < t->lanes.n, "the lane of an item is one of all");
	*to = *item;
	to->busy_ns = to->longest_ns = item->end_ns - item->start_ns;
	to->count = 1;
	t->items++;
	t->events++;
}

ORDERING(row_order, struct layout_row, ORDER(a->lane, b->lane), ORDER(a->depth, b->depth))

static void check_row(const struct layout_row *r)
{
	expect(r->depth <= DEPTH_MOST, "a row is no deeper than the last");
	for (size_t i = 1; i < r->items.n; i++)
		expect(r->items.v[i - 1].start_ns <= r->items.v[i].start_ns,
			"the items of a row come in the order of time");
}

static void check(const struct layout *t)
{
	uint64_t items = 0;
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct layout_row *r = &t->rows.v[i];
		items += r->items.n;
		expect(!i || row_order(r - 1, r) < 0, "a lane has one row of each depth");
		check_row(r);
	}
	expect(items == t->items, "the items of all rows add up");
	expect(t->items <= t->events, "items are events, one or more");
}

void layout_finish(struct layout *t)
{
	shrink(t, t->most, true);
	SORT(t->rows, row_order);
	check(t);
}

void layout_coarsen(struct layout *t, size_t most)
{
	for (size_t i = 0; i < t->rows.n; i++)
		for (size_t k = 0; k < t->rows.v[i].items.n; k++)
			t->rows.v[i].items.v[k].parts = 1;
	while (t->items > most && t->bin_ns <= UINT64_MAX / 2) {
		t->bin_ns = t->bin_ns ? t->bin_ns * 2 : FIRST_BIN;
		merge_rows(t);
	}
	t->most = most;
	check(t);
}

int layout_make(const struct report *r, size_t most, struct layout **ret_t, struct error *err)
{
	struct layout *t = xcalloc(1, sizeof *t);
	t->most = most;
	const int e = layout_read(t, r);
	if (e) {
		layout_free(t);
		return error_set(err, e, "the trace can't be read to its end: %s", strerror(-e));
	}
	layout_finish(t);
	*ret_t = t;
	return 0;
}

void layout_free(struct layout *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->names.n; i++)
		free(t->names.v[i]);
	for (size_t i = 0; i < t->rows.n; i++)
		array_free(&t->rows.v[i].items);
	array_free(&t->names, &t->details, &t->lanes, &t->rows);
	map_fini(&t->name_map, &t->detail_map, &t->lane_map, &t->row_map);
	free(t);
}
