/*
 * Nests calls and ranges in the SQLite export. It finds the runtime's driver calls while calls are
 * written, as callers come first in a chunk. A call that outlasted its chunk comes first in a later
 * one, so those are matched at the end, and a query nests ranges.
 */
#include "export/export_sqlite.h"

#include <stdlib.h>

#include "base/expect.h"
#include "base/sort.h"

const char *const db_statements[STATEMENTS] = {
	[INHERIT] = "UPDATE calls SET outerCorrelationId = ?2 "
		    "WHERE id = ?1 AND outerCorrelationId IS NULL",
	[INHERIT_EARLIER] = "UPDATE calls SET outerCorrelationId = (SELECT MIN(correlationId) "
			    "FROM calls WHERE id BETWEEN ?2 AND ?3 AND outerId = ?1) "
			    "WHERE id = ?1 AND outerCorrelationId IS NULL",
	[ADOPT] = "UPDATE calls SET outerId = ?1, outerCorrelationId = NULL "
		  "WHERE id BETWEEN ?2 AND ?3 AND start >= ?4 AND end <= ?5",
};

static struct call_chunk *begin_chunk(struct database *d, const struct export_call *c, uint64_t id)
{
	struct call_chunk *new = array_push(&d->chunks);
	*new = (struct call_chunk){ .chunk = c->chunk,
		.first_id = id,
		.begin_ns = c->begin_ns,
		.end_ns = c->end_ns,
		.runtime = c->fn && c->fn->api == API_RUNTIME };
	return new;
}

void db_place_call(struct export *x, const struct export_call *c, uint64_t id, uint64_t *ret_outer)
{
	struct database *d = x->state;
	struct call_chunk *k = d->chunks.n ? &d->chunks.v[d->chunks.n - 1] : NULL;
	if (!k || k->chunk != c->chunk) {
		d->outer_id = 0;
		k = begin_chunk(d, c, id);
	}
	k->last_id = id;
	const bool inner = d->outer_id && c->end_ns <= d->outer_end_ns;
	*ret_outer = inner ? d->outer_id : 0;
	if (!inner && c->fn && c->fn->api == API_RUNTIME) {
		d->outer_id = id;
		d->outer_end_ns = c->end_ns;
	}
}

void db_inherit(struct export *x, const struct export_call *c, uint64_t outer)
{
	struct database *d = x->state;
	const uint64_t heir[] = { outer, c->link ? c->link->correlation : 0 };
	if (outer && c->link)
		db_run(x, d->statement[INHERIT], heir, 2);
}

ORDERING(chunk_order, struct call_chunk, ORDER(a->chunk->process, b->chunk->process),
	ORDER(a->chunk->head.tid, b->chunk->head.tid), ORDER(a->begin_ns, b->begin_ns))

/* Adopts the calls inside of the first call of `k`, in an earlier chunk of the thread. */
static void adopt(struct export *x, const struct call_chunk *k, const struct call_chunk *earlier)
{
	struct database *d = x->state;
	const uint64_t inside[] = { k->first_id, earlier->first_id, earlier->last_id,
		export_since(x, k->begin_ns), export_since(x, k->end_ns) };
	db_run(x, d->statement[ADOPT], inside, 5);
	db_run(x, d->statement[INHERIT_EARLIER], inside, 3);
}

static bool same_thread(const struct call_chunk *a, const struct call_chunk *b)
{
	return a->chunk->process == b->chunk->process && a->chunk->head.tid == b->chunk->head.tid;
}

static void nest_calls(struct export *x)
{
	struct database *d = x->state;
	SORT(d->chunks, chunk_order);
	for (size_t i = 1; i < d->chunks.n; i++) {
		const struct call_chunk *k = &d->chunks.v[i];
		size_t at = i;
		while (k->runtime && at && same_thread(&d->chunks.v[at - 1], k)) {
			adopt(x, k, &d->chunks.v[--at]);
			if (d->chunks.v[at].begin_ns < k->begin_ns)
				break;
		}
	}
}

/* Ranges that nest and calls that launched activities, each thread's in the order of time, callers
 * first. */
static const char in_order[] =
	"SELECT 0 AS what, id, pid, tid, start, end, nameId, unicode(kind) FROM ranges "
	"WHERE kind IN " NESTING " UNION ALL "
	"SELECT 1, id, pid, tid, start, end, NULL, NULL FROM calls WHERE correlationId IS NOT NULL "
	"ORDER BY pid, tid, start, what, end DESC, id";

struct open_range {
	sqlite3_int64 id, pid, tid, start, end;
	sqlite3_int64 name;
	int kind; /* its first letter */
};

struct nesting {
	ARRAY(struct open_range) open; /* the innermost is the last */
	sqlite3_stmt *parent;          /* sets the parent of a range */
};

/* Leaves the ranges that have ended by then. */
static void leave(struct nesting *n, const struct open_range *at)
{
	for (; n->open.n; n->open.n--) {
		const struct open_range *top = &n->open.v[n->open.n - 1];
		if (top->pid == at->pid && top->tid == at->tid && top->end > at->start)
			break;
	}
}

/* How many of the open ranges are around it.  One that took no time lies before those of its tick
 * that were recorded later (join/nested.h). */
static size_t count_around(const struct nesting *n, const struct open_range *at)
{
	size_t i = n->open.n;
	while (at->end == at->start && i && n->open.v[i - 1].start == at->start &&
		n->open.v[i - 1].id > at->id)
		i--;
	return i;
}

#define LOOK_UP_MOST 256 /* ranges around; recursion that is deeper counts several times */

static bool is_repeated(const struct nesting *n, size_t around, const struct open_range *at)
{
	for (size_t i = 0; i < around && i < LOOK_UP_MOST; i++) {
		const struct open_range *up = &n->open.v[around - 1 - i];
		if (up->name == at->name && up->kind == at->kind)
			return true;
	}
	return false;
}

static void set_parent(
	struct export *x, struct nesting *n, const struct open_range *at, size_t around)
{
	struct row row = { .s = n->parent };
	db_put_int(&row, (uint64_t)n->open.v[around - 1].id);
	db_put_int(&row, is_repeated(n, around, at));
	db_put_int(&row, (uint64_t)at->id);
	db_put_row(x, &row);
}

static void place(struct export *x, struct nesting *n, sqlite3_stmt *s)
{
	const bool is_call = sqlite3_column_int(s, 0);
	const struct open_range at = { .id = sqlite3_column_int64(s, 1),
		.pid = sqlite3_column_int64(s, 2),
		.tid = sqlite3_column_int64(s, 3),
		.start = sqlite3_column_int64(s, 4),
		.end = sqlite3_column_int64(s, 5),
		.name = sqlite3_column_int64(s, 6),
		.kind = sqlite3_column_int(s, 7) };
	leave(n, &at);
	if (is_call && n->open.n) {
		struct row row = db_row(x, CALL_RANGES);
		db_put_int(&row, (uint64_t)at.id);
		db_put_int(&row, (uint64_t)n->open.v[n->open.n - 1].id);
		db_put_row(x, &row);
	}
	if (is_call)
		return;
	const size_t around = count_around(n, &at);
	if (around)
		set_parent(x, n, &at, around);
	*array_push(&n->open) = at;
}

static void nest_ranges(struct export *x)
{
	static const char set[] = "UPDATE ranges SET parentId = ?, repeated = ? WHERE id = ?";
	struct database *d = x->state;
	if (!d->ranges)
		return;
	sqlite3_stmt *s = db_prepare(x, in_order);
	struct nesting n = { .parent = db_prepare(x, set) };
	int rc = 0;
	while (!x->failed && (rc = sqlite3_step(s)) == SQLITE_ROW)
		place(x, &n, s);
	if (!x->failed && rc != SQLITE_DONE)
		db_complain(x, rc);
	sqlite3_finalize(s);
	sqlite3_finalize(n.parent);
	array_free(&n.open);
}

void db_nest(struct export *x)
{
	nest_calls(x);
	nest_ranges(x);
}
