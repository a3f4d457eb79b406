/* Writes the timeline into the page. */
#include "page/timeline_data.h"

#include "base/expect.h"
#include "base/json.h"
#include "page/packed.h"

enum column { GAP, LENGTH, NAME, COUNT, BUSY, DETAIL, LINK, COLUMNS };

struct writer {
	const struct report *r;
	const struct layout *t;
	struct timeline_numbers *n;
	struct packed bytes;
	struct packed column[COLUMNS]; /* of a block */
	FILE *out;
	bool fine; /* blocks are being written */
};

/* The column for the next number: in a row all are in one. */
static struct packed *to(struct writer *w, int column)
{
	return w->fine ? &w->column[column] : &w->bytes;
}

static uint64_t link_number(struct writer *w, uint32_t process, uint64_t link)
{
	const uint32_t number = link ? map_number(&w->n->link_map, MAP_KEY(process, link)) : 0;
	return link ? number + 1ull : 0;
}

static uint32_t detail_number(struct writer *w, uint32_t detail)
{
	if (detail == LAYOUT_NONE)
		return 0;
	if (!expect(detail < w->t->details.n, "what an item tells is one of all"))
		return 0;
	if (!w->n->detail[detail])
		w->n->detail[detail] = ++w->n->details;
	return w->n->detail[detail];
}

/* Items from..until-1 of a row. */
static void pack_items(struct writer *w, const struct layout_row *row, size_t from, size_t until)
{
	const uint32_t process = w->t->lanes.v[row->lane].process;
	uint64_t end = 0, link = 0;
	for (size_t i = from; i < until; i++) {
		const struct layout_item *it = &row->items.v[i];
		const uint64_t last = link;
		expect(it->end_ns >= it->start_ns, "an item does not end before it begins");
		expect(it->name < w->t->names.n, "the name of an item is one of all");
		packed_difference(to(w, GAP), it->start_ns - end);
		packed_varint(to(w, LENGTH), it->end_ns - it->start_ns);
		packed_varint(to(w, NAME), (uint64_t)it->name * 2 + (it->count > 1));
		end = it->end_ns;
		if (it->count > 1) {
			const bool parts = !w->fine && it->parts != it->count;
			packed_varint(to(w, COUNT), (uint64_t)it->count * 2 + parts);
			packed_varint(to(w, BUSY), it->busy_ns);
			if (parts)
				packed_varint(&w->bytes, it->parts);
			continue;
		}
		link = link_number(w, process, it->link);
		packed_varint(to(w, DETAIL), detail_number(w, it->detail));
		packed_difference(to(w, LINK), link - last);
	}
}

static void put_row(struct writer *w, const struct layout_row *row)
{
	pack_items(w, row, 0, row->items.n);
	putc('"', w->out);
	packed_put(&w->bytes, w->out);
	putc('"', w->out);
}

/* A row a depth; one that is not there is an empty string. */
static void put_rows(struct writer *w, size_t lane, size_t *at)
{
	const struct layout *t = w->t;
	for (uint32_t depth = 0; *at < t->rows.n && t->rows.v[*at].lane == lane; depth++) {
		fputs(depth ? "," : "", w->out);
		if (t->rows.v[*at].depth == depth)
			put_row(w, &t->rows.v[(*at)++]);
		else
			fputs("\"\"", w->out);
	}
}

static const char *thread_name(const struct report *r, const struct layout_lane *l)
{
	for (size_t i = r->threads.n; i-- > 0;)
		if (r->threads.v[i].process == l->process && r->threads.v[i].tid == l->tid)
			return r->threads.v[i].name;
	return "";
}

static void put_lane_head(const struct writer *w, const struct layout_lane *l)
{
	const struct report *r = w->r;
	const bool device = l->kind == LANE_STREAM || l->kind == LANE_SPANS;
	fprintf(w->out, "{\"kind\":\"%s\",\"pid\":%u", lane_kind_name(l->kind),
		r->trace->processes.v[l->process].pid);
	if (device)
		fprintf(w->out, ",\"device\":%u,\"context\":%u,\"stream\":%u", l->device,
			l->context, l->stream);
	else
		fprintf(w->out, ",\"tid\":%u,\"thread\":", l->tid);
	if (!device)
		json_quote(w->out, thread_name(r, l), strnlen(thread_name(r, l), 16));
	fputs(",\"rows\":[", w->out);
}

static void put_triple(FILE *out, const char *key, const uint32_t *v)
{
	fprintf(out, ",\"%s\":[%u,%u,%u]", key, v[0], v[1], v[2]);
}

static void put_detail(const struct layout_detail *d, FILE *out)
{
	fputs("{\"_\":0", out);
	if (d->valid & DETAIL_SHAPE) {
		put_triple(out, "grid", d->grid);
		put_triple(out, "block", d->block);
	}
	if (d->valid & DETAIL_SHARED)
		fprintf(out, ",\"shared\":%llu", (unsigned long long)d->shared + d->shared_static);
	if (d->valid & DETAIL_REGISTERS)
		fprintf(out, ",\"registers\":%u", d->registers);
	if (d->valid & DETAIL_BYTES)
		fprintf(out, ",\"bytes\":%llu", (unsigned long long)d->bytes);
	if (d->kernel != LAYOUT_NONE)
		fprintf(out, ",\"kernel\":%u", d->kernel);
	if (d->text != LAYOUT_NONE)
		fprintf(out, ",\"text\":%u", d->text);
	if (d->error != LAYOUT_NONE)
		fprintf(out, ",\"error\":%u", d->error);
	putc('}', out);
}

/* In the order of their numbers. */
static void put_details(const struct writer *w)
{
	const struct layout *t = w->t;
	uint32_t *order = xcalloc(w->n->details + 1u, sizeof *order);
	for (size_t i = 0; i < t->details.n; i++)
		if (w->n->detail[i] &&
			expect(w->n->detail[i] <= w->n->details, "details are counted"))
			order[w->n->detail[i] - 1] = (uint32_t)i;
	fputs(",\n\"details\":[", w->out);
	for (uint32_t i = 0; i < w->n->details; i++) {
		fputs(i ? ",\n" : "", w->out);
		put_detail(&t->details.v[order[i]], w->out);
	}
	putc(']', w->out);
	free(order);
}

static void put_lanes(struct writer *w)
{
	size_t at = 0;
	for (size_t i = 0; i < w->t->lanes.n; i++) {
		fputs(i ? ",\n" : "\n", w->out);
		put_lane_head(w, &w->t->lanes.v[i]);
		put_rows(w, i, &at);
		fputs("]}", w->out);
	}
	expect(at == w->t->rows.n, "each row is in one of the lanes");
}

/* As many as there are kinds of details; kept until the end. */
static void begin(struct timeline_numbers *n, const struct layout *t)
{
	if (!n->detail)
		n->detail = xcalloc(t->details.n + 1, sizeof *n->detail);
}

void timeline_put(const struct report *r, const struct layout *t, struct timeline_numbers *n,
	uint64_t fine_items, uint64_t fine_bin_ns, FILE *out)
{
	struct writer w = { .r = r, .t = t, .n = n, .out = out };
	begin(n, t);
	fprintf(out, "{\"events\":%llu,\"items\":%llu,\"bin_ns\":%llu,",
		(unsigned long long)t->events, (unsigned long long)t->items,
		(unsigned long long)t->bin_ns);
	fprintf(out, "\"fine_items\":%llu,\"fine_bin_ns\":%llu,\"block\":%u,\"lanes\":[",
		(unsigned long long)fine_items, (unsigned long long)fine_bin_ns, TIMELINE_BLOCK);
	put_lanes(&w);
	putc(']', out);
	put_details(&w);
	putc('}', out);
	packed_fini(&w.bytes);
}

/* Column behind column, since what is alike is packed closely: their lengths, then they. */
static void put_block(struct writer *w)
{
	for (int k = 0; k < COLUMNS; k++)
		packed_varint(&w->bytes, w->column[k].b.n);
	for (int k = 0; k < COLUMNS; k++)
		packed_append(&w->bytes, &w->column[k]);
	packed_put_deflated(&w->bytes, w->out);
	putc('\n', w->out);
}

static void put_blocks(struct writer *w, const struct layout_row *row)
{
	for (size_t from = 0; from < row->items.n; from += TIMELINE_BLOCK) {
		const size_t left = row->items.n - from;
		pack_items(w, row, from, from + MIN(left, TIMELINE_BLOCK));
		put_block(w);
	}
}

void timeline_pack(
	const struct layout *t, struct timeline_numbers *n, char **ret_text, size_t *ret_bytes)
{
	FILE *memory = xcheck(open_memstream(ret_text, ret_bytes));
	struct writer w = { .t = t, .n = n, .out = memory, .fine = true };
	begin(n, t);
	for (size_t i = 0; i < t->rows.n; i++)
		put_blocks(&w, &t->rows.v[i]);
	fclose(memory);
	xcheck(*ret_text);
	for (int k = 0; k < COLUMNS; k++)
		packed_fini(&w.column[k]);
	packed_fini(&w.bytes);
}

void timeline_numbers_fini(struct timeline_numbers *n)
{
	map_fini(&n->link_map);
	free(n->detail);
	*n = (struct timeline_numbers){ 0 };
}
