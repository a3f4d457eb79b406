/* The replay as a table, and as JSON. */
#include "allocator/allocator.h"

#include <math.h>

#include "base/json.h"
#include "base/number.h"
#include "base/table.h"

static uint64_t calls_of(const struct alloc_meter *m)
{
	uint64_t n = 0;
	for (int i = 0; i < ALLOC_CALLS; i++)
		n += m->calls[i] * (i == CALL_MEM_ALLOC ? 2 : 1);
	return n;
}

static void put_head(const struct alloc_replay *r, FILE *out)
{
	const struct alloc_trace *t = r->trace;
	struct number a, b, c;
	fprintf(out, "  %s from %s, %s; at most %s live at once\n",
		number_of(&a, t->blocks, "allocation"),
		t->framework ? "the program's own allocator" : "the driver",
		number_of(&b, t->streams, "stream"), number_bytes(&c, t->live_peak));
	if (t->processes > 1)
		fprintf(out, "  process %u, which allocated most often of %u\n", t->pid,
			t->processes);
	if (!t->framework)
		fputs("  calls to the driver: if the program has an allocator of its own (PyTorch has), "
		      "these are its segments\n",
			out);
}

static void put_row(struct table *t, const struct alloc_replay *r, const struct alloc_row *row)
{
	struct alloc_row_name name;
	const struct alloc_meter *m = &row->meter;
	const double unused = alloc_row_unused(row);
	table_bytes(t, m->reserved_peak);
	table_percent(t, 100 * alloc_row_share(r, row));
	if (isnan(unused))
		table_none(t);
	else
		table_percent(t, 100 * unused);
	table_count(t, calls_of(m));
	table_ns(t, (uint64_t)m->ns);
	table_ns(t, (uint64_t)m->worst_ns);
	table_cell(t, "%s", alloc_row_name(row, &name));
}

void alloc_put_text(const struct alloc_replay *r, FILE *out, bool colour)
{
	const struct text_page p = text_page_of(out, 0, colour);
	struct number a, b;
	page_heading(&p, "Allocations replayed");
	put_head(r, out);
	fputc('\n', out);
	struct table t = table_of(
		">reserved|>live / reserved|>mean unused|>driver calls|>their time|>worst|<allocator");
	for (size_t i = 0; i < r->count; i++)
		put_row(&t, r, &r->rows[i]);
	page_end_table(&p, &t, 0);
	if (r->minimum_limit)
		fprintf(out, "  minimum limit of the pool: %s, in handles of %s\n",
			number_bytes(&a, r->minimum_limit), number_bytes(&b, r->handle_bytes));
}

static void json_row(struct json *j, const struct alloc_replay *r, const struct alloc_row *row)
{
	const struct alloc_meter *m = &row->meter;
	json_begin_object(j, NULL);
	json_str(j, "name", row->design->name);
	json_u64_or_null(j, "limit_bytes", row->setup.limit_bytes, row->setup.limit_bytes);
	json_u64(j, "reserved_peak_bytes", m->reserved_peak);
	json_put_real(j, "live_share", alloc_row_share(r, row));
	json_put_real(j, "unused_share", alloc_row_unused(row));
	json_u64(j, "worst_unused_bytes", m->worst_unused);
	json_u64(j, "driver_calls", calls_of(m));
	json_u64(j, "driver_ns", (uint64_t)m->ns);
	json_u64(j, "worst_ns", (uint64_t)m->worst_ns);
	json_u64(j, "alloc_count", m->calls[CALL_MEM_ALLOC]);
	json_u64(j, "create_count", m->calls[CALL_CREATE]);
	json_u64(j, "map_count", m->calls[CALL_MAP]);
	json_u64(j, "unmap_count", m->calls[CALL_UNMAP]);
	json_end_object(j);
}

void alloc_put_json(const struct alloc_replay *r, FILE *out)
{
	const struct alloc_trace *t = r->trace;
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	json_begin_object(&j, "replay");
	json_u64(&j, "pid", t->pid);
	json_u64(&j, "processes", t->processes);
	json_str(&j, "source", t->framework ? "allocator" : "driver");
	json_u64(&j, "allocations", t->blocks);
	json_u64(&j, "streams", t->streams);
	json_u64(&j, "live_peak_bytes", t->live_peak);
	json_u64(&j, "handle_bytes", r->handle_bytes);
	json_u64_or_null(&j, "minimum_limit_bytes", r->minimum_limit, r->minimum_limit);
	json_begin_array(&j, "allocators");
	for (size_t i = 0; i < r->count; i++)
		json_row(&j, r, &r->rows[i]);
	json_end_array(&j);
	json_end_object(&j);
	json_end_document(&j);
}
