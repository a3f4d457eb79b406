/* `weir memory --json`: sections of the report that are about memory, and what only it has. */
#include "report/memory_print.h"

#include <math.h>

#include "base/expect.h"
#include "base/json.h"
#include "hint/summary.h"
#include "report/stack_columns.h"

#include "base/banned.h"

static void put_share(struct json *j, const char *key, const struct free_extents *h)
{
	double share;
	const bool known = fragmentation_of(h, &share);
	expect(!known || (share >= 0 && share <= 1), "fragmentation is a share");
	json_put_real(j, key, known ? share : NAN);
}

/* ---- blocks ---- */

static void put_blocks(
	struct json *j, const struct report *r, const struct live_blocks *blocks, size_t most)
{
	struct rows rows = { .section = &section_memory_live, .r = r };
	rows_take(&rows, blocks->v, blocks->n < most ? blocks->n : most, sizeof *blocks->v);
	section_put_rows(j, "live", &rows);
}

/* ---- over time ---- */

static double share_of(double part, double all)
{
	expect(part >= 0 && part <= all, "a part is no more than its whole");
	return all > 0 ? part / all : NAN;
}

static void put_worst(struct json *j, const struct report *r, size_t blocks)
{
	const struct memory_unused *u = &r->memory_detail->unused;
	const uint64_t unused = u->worst_reserved - u->worst_live;
	json_begin_object(j, "worst");
	json_u64(j, "at_ns", trace_since_ns(r->trace, u->worst_ticks));
	json_u64(j, "reserved_bytes", u->worst_reserved);
	json_u64(j, "live_bytes", u->worst_live);
	json_u64(j, "unused_bytes", unused);
	json_put_real(j, "unused_share", share_of((double)unused, (double)u->worst_reserved));
	json_u64(j, "blocks", u->worst_blocks.n);
	put_blocks(j, r, &u->worst_blocks, blocks);
	json_end_object(j);
}

static void put_reserved(struct json *j, const struct report *r, size_t blocks)
{
	const struct memory_unused *u = &r->memory_detail->unused;
	if (!u->known || !u->reserved_peak)
		return json_put_null(j, "reserved");
	json_begin_object(j, "reserved");
	json_str(j, "source", reserved_source_name[u->source]);
	json_u64(j, "peak_bytes", u->reserved_peak);
	json_u64(j, "peak_at_ns", trace_since_ns(r->trace, u->peak_ticks));
	json_u64(j, "live_at_peak_bytes", u->peak_live);
	json_put_real(j, "unused_share", share_of(u->unused_area, u->reserved_area));
	json_u64(j, "unknown_ns", trace_span_ns(r->trace, u->unknown_ticks));
	put_worst(j, r, blocks);
	json_end_object(j);
}

/* ---- time in calls ---- */

static void put_call_times(struct json *j, const struct report *r)
{
	const struct memory_time *t = &r->memory_detail->time;
	json_begin_object(j, "call_time");
	json_u64(j, "count", t->count);
	json_u64(j, "timed_count", t->timed);
	json_u64_or_null(
		j, "busy_ns", t->timed == t->count, trace_span_ns(r->trace, t->busy_ticks));
	json_put_real(j, "share_of_run", memory_time_share(r, NULL));
	section_put_list(j, "calls", &section_allocation_calls, r);
	json_end_object(j);
}

/* ---- rows ---- */

static void put_row(struct json *j, const struct report *r, const struct memory_row *row)
{
	json_u64(j, "count", row->allocs);
	json_u64(j, "bytes", row->bytes);
	json_u64(j, "freed_count", row->freed);
	json_u64_or_null(j, "mean_lifetime_ns", row->freed,
		trace_span_ns(r->trace, row->freed ? row->lifetime_ticks / row->freed : 0));
	json_u64(j, "at_peak_count", row->at_peak);
	json_u64(j, "at_peak_bytes", row->at_peak_bytes);
	json_u64(j, "live_at_exit_count", row->live);
	json_u64(j, "live_at_exit_bytes", row->live_bytes);
}

static void put_calls(struct json *j, const struct report *r)
{
	const struct memory_rows *rows = &r->memory_detail->calls;
	struct fn_name room;
	json_begin_array(j, "by_call");
	for (size_t i = 0; i < rows->n; i++) {
		json_begin_object(j, NULL);
		json_str(j, "name", report_fn_name(r, (uint32_t)rows->v[i].key, &room));
		put_row(j, r, &rows->v[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_classes(struct json *j, const struct report *r)
{
	const struct memory_rows *rows = &r->memory_detail->classes;
	json_begin_array(j, "by_size");
	for (size_t i = 0; i < rows->n; i++) {
		json_begin_object(j, NULL);
		json_u64(j, "from_bytes", rows->v[i].key ? 1ull << rows->v[i].key : 0);
		put_row(j, r, &rows->v[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_origins(struct json *j, const struct report *r)
{
	const struct memory_detail *d = r->memory_detail;
	json_begin_array(j, "by_thread");
	for (size_t i = 0; i < d->origins.n; i++) {
		const struct memory_source *s = &d->sources.v[d->origins.v[i].key];
		json_begin_object(j, NULL);
		json_u64(j, "pid", r->trace->processes.v[s->process].pid);
		json_u64(j, "tid", s->tid);
		json_u64_or_null(j, "stream", s->has_stream, s->stream);
		json_u64_or_null(j, "pool", s->has_stream, s->pool);
		put_row(j, r, &d->origins.v[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_operators(struct json *j, const struct report *r)
{
	const struct memory_detail *d = r->memory_detail;
	json_begin_array(j, "by_operator");
	for (size_t i = 0; i < d->operators.n; i++) {
		json_begin_object(j, NULL);
		json_str_or_null(j, "name", d->operators.v[i].name);
		json_u64(j, "at_peak_count", d->operators.v[i].at_peak);
		json_u64(j, "at_peak_bytes", d->operators.v[i].at_peak_bytes);
		json_str_or_null(j, "module", d->operators.v[i].module);
		json_str_or_null(j, "line", d->operators.v[i].line);
		json_end_object(j);
	}
	json_end_array(j);
}

/* ---- space ---- */

static void put_extents(struct json *j, const char *key, const struct free_extents *h)
{
	json_begin_object(j, key);
	json_u64(j, "span_bytes", h->reach_bytes);
	json_u64(j, "free_bytes", h->free_bytes);
	json_u64(j, "largest_free_extent_bytes", h->largest_bytes);
	json_u64(j, "free_extents", h->count);
	put_share(j, "fragmentation", h);
	json_end_object(j);
}

static void put_spaces(struct json *j, const char *key, const struct memory_space *spaces)
{
	json_begin_object(j, key);
	for (int k = 0; k < MEMORY_KINDS; k++) {
		if (!spaces[k].used)
			continue;
		json_begin_object(j, memory_kind_name[k]);
		json_u64(j, "live_bytes", spaces[k].live_bytes);
		put_extents(j, "pages", &spaces[k].pages);
		put_extents(j, "span", &spaces[k].span);
		json_end_object(j);
	}
	json_end_object(j);
}

static void put_level(struct json *j, const char *key, const struct level *l)
{
	json_begin_object(j, key);
	json_u64(j, "peak_bytes", l->most);
	json_u64(j, "at_exit_bytes", l->now);
	json_end_object(j);
}

static void put_vmm(struct json *j, const struct report *r)
{
	const struct memory_vmm *v = &r->memory_detail->vmm;
	json_begin_object(j, "virtual_memory");
	json_u64(j, "creates", v->creates);
	json_u64(j, "maps", v->maps);
	json_u64(j, "reserves", v->reserves);
	json_u64(j, "unknown", v->unknown);
	put_level(j, "reserved", &v->reserved);
	put_level(j, "mapped", &v->mapped);
	put_level(j, "backed", &v->backed);
	put_level(j, "segments", &v->segments);
	json_u64(j, "segments_at_peak_bytes", v->segments_at_peak);
	json_end_object(j);
}

/* ---- the rest ---- */

static void put_growth(struct json *j, const struct report *r)
{
	const struct memory_growth *g = &r->memory_detail->growth;
	if (g->mark == MARK_NONE)
		return json_put_null(j, "growth");
	json_begin_object(j, "growth");
	json_str(j, "mark", g->mark == MARK_KERNEL ? "launch" : "allocation");
	if (g->mark == MARK_KERNEL)
		json_str(j, "kernel", g->kernel ? g->kernel : "(unknown kernel)");
	else
		json_u64(j, "size", g->size);
	json_u64(j, "marks", g->marks);
	json_u64_or_null(j, "marks_per_period", g->period, g->period);
	json_u64(j, "periods", g->periods);
	json_put_real(
		j, "bytes_per_period", g->periods >= GROWTH_PERIODS ? g->bytes_a_period : NAN);
	json_put_real(j, "confidence", g->periods >= GROWTH_PERIODS ? g->confidence : NAN);
	json_end_object(j);
}

static void put_ratio(struct json *j, const char *key, double a, double b)
{
	json_put_real(j, key, b > 0 ? a / b : NAN);
}

static void put_churn(struct json *j, const struct report *r)
{
	const struct memory_detail *d = r->memory_detail;
	json_begin_object(j, "churn");
	const bool known = memory_knows_use(r, &r->gpu_memory);
	put_ratio(j, "bytes_per_second",
		(double)(r->gpu_memory.allocated_bytes - d->before_bytes) * 1e9,
		known ? (double)(r->wall_ns - r->off_ns) : 0);
	json_u64_or_null(j, "pairs", known, d->matched);
	put_ratio(j, "pairs_per_launch", (double)d->matched, known ? (double)r->launches : 0);
	json_end_object(j);
}

static void put_refusal(
	struct json *j, const char *key, const struct report *r, const struct refusal *x)
{
	json_begin_object(j, key);
	json_u64(j, "at_ns", trace_since_ns(r->trace, x->ticks));
	json_u64(j, "asked_bytes", x->asked);
	json_u64(j, "quota_bytes", x->quota);
	json_u64(j, "used_bytes", x->used);
	json_u64(j, "context_bytes", x->contexts);
	json_begin_array(j, "holders");
	for (uint32_t i = 0; i < x->holders; i++) {
		json_begin_object(j, NULL);
		json_u64(j, "pid", x->holder[i].pid);
		json_str(j, "program", x->holder[i].program);
		json_u64(j, "bytes", x->holder[i].bytes);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void put_refused(struct json *j, const struct report *r)
{
	struct refusals refused;
	memory_refusals(r, &refused);
	if (!refused.count)
		return;
	json_begin_object(j, "refused");
	json_u64(j, "count", refused.count);
	put_refusal(j, "first", r, &refused.first);
	put_refusal(j, "largest", r, &refused.largest);
	json_end_object(j);
}

static void put_all(struct json *j, const struct report *r, size_t blocks)
{
	struct summary summary;
	summary_make_memory(r, &summary);
	summary_put_json(&summary, j);
	section_put_json(j, &section_memory_members, r);
	put_churn(j, r);
	put_growth(j, r);
	put_call_times(j, r);
	put_calls(j, r);
	put_classes(j, r);
	put_origins(j, r);
	put_operators(j, r);
	if (r->memory_detail->stacks)
		section_put_list(j, "by_call_stack", &section_memory_stacks, r);
	put_spaces(j, "space_at_peak", r->memory_detail->at_peak);
	put_spaces(j, "space_at_exit", r->memory_detail->at_end);
	put_vmm(j, r);
	put_refused(j, r);
	put_blocks(j, r, &r->live, blocks);
	put_reserved(j, r, blocks);
	section_put_list(j, "series", &section_memory_over_time, r);
	json_end_object(j);
}

void memory_print_json(const struct report *r, FILE *out)
{
	struct json j;
	json_begin_document(&j, out);
	put_all(&j, r, LIVE_SHOWN);
}

void memory_print_json_all(const struct report *r, FILE *out)
{
	struct json j;
	json_begin_document(&j, out);
	put_all(&j, r, SIZE_MAX);
}

void memory_print_json_compact(const struct report *r, FILE *out)
{
	struct json j;
	json_begin_compact(&j, out);
	put_all(&j, r, LIVE_SHOWN);
}
