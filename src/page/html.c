/*
 * Writes the page: see html.h.
 *
 * Rows of the timeline and flame graphs are sequences of varints (LEB128) in base64, since there
 * may be hundreds of thousands of items; everything else is plain JSON.
 *
 *	row:   for each item: start - start of the one before, length, 2 × name + several, and
 *	       of one event: detail + 1 or 0, zigzag(link - the link before)
 *	       of several:   count, busy nanoseconds
 *	flame: for each frame, in the order in which they are drawn: depth, name, kind, total, self
 */
#include "report/report_make.h"
#include "page/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/json.h"
#include "hint/hint.h"
#include "report/memory_print.h"

#include "base/banned.h"

extern const char viewer_before[], viewer_after[]; /* made of viewer/ */

#define FRAMES_MOST 20000u

struct bytes {
	ARRAY(uint8_t) b;
	bool failed;
};

static void put_varint(struct bytes *to, uint64_t value)
{
	do {
		uint8_t *p = array_push(&to->b);
		if (!p) {
			to->failed = true;
			return;
		}
		*p = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
	} while (value >>= 7);
}

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

/* As a string of JSON; the bytes are then forgotten. */
static int put_base64(struct bytes *from, FILE *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const size_t n = from->b.n;
	putc('"', out);
	for (size_t i = 0; i < n; i += 3) {
		const uint32_t v = (uint32_t)from->b.v[i] << 16 |
				   (i + 1 < n ? (uint32_t)from->b.v[i + 1] << 8 : 0) |
				   (i + 2 < n ? from->b.v[i + 2] : 0);
		putc(digits[v >> 18], out);
		putc(digits[v >> 12 & 63], out);
		putc(i + 1 < n ? digits[v >> 6 & 63] : '=', out);
		putc(i + 2 < n ? digits[v & 63] : '=', out);
	}
	putc('"', out);
	from->b.n = 0;
	return from->failed ? -ENOMEM : 0;
}

/* ---- the timeline ---- */

struct writer {
	const struct html *h;
	FILE *out;
	struct bytes bytes;
	struct map link_map; /* process, correlation: a small number */
	uint32_t links;
	uint32_t *detail; /* by index into details: the number in the page plus 1, 0 unused */
	uint32_t details;
};

static int link_number(struct writer *w, uint32_t process, uint64_t link, uint64_t *ret_number)
{
	const uint32_t number = link ? map_number(&w->link_map, MAP_KEY(process, link)) : 0;
	*ret_number = link ? number + 1ull : 0;
	return number == MAP_NONE ? -ENOMEM : 0;
}

static uint32_t detail_number(struct writer *w, uint32_t detail)
{
	if (detail == LAYOUT_NONE)
		return 0;
	if (!expect(detail < w->h->layout->details.n, "what an item tells is one of all"))
		return 0;
	if (!w->detail[detail])
		w->detail[detail] = ++w->details;
	return w->detail[detail];
}

static int put_row(struct writer *w, const struct layout_row *row)
{
	const uint32_t process = w->h->layout->lanes.v[row->lane].process;
	uint64_t start = 0, link = 0;
	int e = 0;
	for (size_t i = 0; i < row->items.n && !e; i++) {
		const struct layout_item *it = &row->items.v[i];
		const uint64_t last = link;
		expect(it->start_ns >= start && it->end_ns >= it->start_ns,
			"the items of a row come in the order of time");
		expect(it->name < w->h->layout->names.n, "the name of an item is one of all");
		put_varint(&w->bytes, it->start_ns - start);
		put_varint(&w->bytes, it->end_ns - it->start_ns);
		put_varint(&w->bytes, (uint64_t)it->name * 2 + (it->count > 1));
		start = it->start_ns;
		if (it->count > 1) {
			put_varint(&w->bytes, it->count);
			put_varint(&w->bytes, it->busy_ns);
			continue;
		}
		e = link_number(w, process, it->link, &link);
		put_varint(&w->bytes, detail_number(w, it->detail));
		put_varint(&w->bytes, zigzag(link - last));
	}
	return e ? e : put_base64(&w->bytes, w->out);
}

/* A row a depth; one that is not there is an empty string. */
static int put_rows(struct writer *w, size_t lane, size_t *at)
{
	const struct layout *t = w->h->layout;
	int e = 0;
	for (uint32_t depth = 0; *at < t->rows.n && t->rows.v[*at].lane == lane && !e; depth++) {
		fputs(depth ? "," : "", w->out);
		if (t->rows.v[*at].depth == depth)
			e = put_row(w, &t->rows.v[(*at)++]);
		else
			fputs("\"\"", w->out);
	}
	return e;
}

static const char *thread_name(const struct report *r, const struct layout_lane *l)
{
	for (size_t i = 0; i < r->threads.n; i++)
		if (r->threads.v[i].process == l->process && r->threads.v[i].tid == l->tid)
			return r->threads.v[i].name;
	return "";
}

static void put_lane_head(const struct writer *w, const struct layout_lane *l)
{
	const struct report *r = w->h->report;
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
static int put_details(const struct writer *w)
{
	const struct layout *t = w->h->layout;
	uint32_t *order = calloc(w->details + 1u, sizeof *order);
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < t->details.n; i++)
		if (w->detail[i] && expect(w->detail[i] <= w->details, "details are counted"))
			order[w->detail[i] - 1] = (uint32_t)i;
	fputs(",\n\"details\":[", w->out);
	for (uint32_t i = 0; i < w->details; i++) {
		fputs(i ? ",\n" : "", w->out);
		put_detail(&t->details.v[order[i]], w->out);
	}
	putc(']', w->out);
	free(order);
	return 0;
}

static int put_timeline(struct writer *w)
{
	const struct layout *t = w->h->layout;
	size_t at = 0;
	int e = 0;
	fprintf(w->out, "{\"events\":%llu,\"items\":%llu,\"bin_ns\":%llu,\"lanes\":[",
		(unsigned long long)t->events, (unsigned long long)t->items,
		(unsigned long long)t->bin_ns);
	for (size_t i = 0; i < t->lanes.n && !e; i++) {
		fputs(i ? ",\n" : "\n", w->out);
		put_lane_head(w, &t->lanes.v[i]);
		e = put_rows(w, i, &at);
		fputs("]}", w->out);
	}
	expect(e || at == t->rows.n, "each row is in one of the lanes");
	putc(']', w->out);
	if (!e)
		e = put_details(w);
	putc('}', w->out);
	return e;
}

/* ---- flame graphs ---- */

static size_t frames_of(const struct flame *f, uint64_t least)
{
	size_t n = 0;
	for (size_t i = 0; i < f->nodes.n; i++)
		n += f->nodes.v[i].total_ns >= least;
	return n;
}

/* The next frame of at least that time: children, then what is beside, largest first. */
static uint32_t next_frame(const struct flame *f, uint32_t i, uint64_t least)
{
	const struct flame_node *v = f->nodes.v;
	if (v[i].first_child != FLAME_NONE && v[v[i].first_child].total_ns >= least)
		return v[i].first_child;
	while (i != FLAME_NONE && i && (v[i].next == FLAME_NONE || v[v[i].next].total_ns < least))
		i = v[i].parent;
	return i && i != FLAME_NONE ? v[i].next : FLAME_NONE;
}

static int put_flame(struct writer *w, const struct flame *f)
{
	uint64_t least = 1;
	size_t frames = 0;
	if (!f || !f->nodes.v[0].total_ns)
		return fputs("null", w->out) < 0 ? -EIO : 0;
	while (frames_of(f, least) > FRAMES_MOST && least <= UINT64_MAX / 2)
		least *= 2;
	for (uint32_t i = 0; i != FLAME_NONE; i = next_frame(f, i, least)) {
		const struct flame_node *n = &f->nodes.v[i];
		const uint32_t name = layout_name(w->h->layout, f->names.v[n->name]);
		if (name == LAYOUT_NONE)
			return -ENOMEM;
		put_varint(&w->bytes, n->depth);
		put_varint(&w->bytes, name);
		put_varint(&w->bytes, n->kind);
		put_varint(&w->bytes, n->total_ns);
		put_varint(&w->bytes, n->self_ns);
		frames++;
	}
	expect(frames == frames_of(f, least), "all frames that are long enough are drawn");
	fprintf(w->out, "{\"left_out\":%zu,\"frames\":", frames_of(f, 1) - frames);
	const int e = put_base64(&w->bytes, w->out);
	putc('}', w->out);
	return e;
}

/* ---- the page ---- */

static void put_names(const struct layout *t, FILE *out)
{
	fputs(",\n\"names\":[", out);
	for (size_t i = 0; i < t->names.n; i++) {
		fputs(i ? ",\n" : "", out);
		json_quote(out, t->names.v[i], strlen(t->names.v[i]));
	}
	putc(']', out);
}

int html_put_data(const struct html *h, FILE *out)
{
	struct writer w = { .h = h, .out = out };
	w.detail = calloc(h->layout->details.n + 1, sizeof *w.detail);
	if (!w.detail)
		return -ENOMEM;
	fputs("{\"report\":", out);
	report_print_json(h->report, out);
	fputs(",\"memory\":", out);
	memory_print_json(h->report, out);
	fputs(",\"timeline\":", out);
	int e = put_timeline(&w);
	fputs(",\n\"flame\":{\"device\":", out);
	e = e ? e : put_flame(&w, h->device);
	fputs(",\"host\":", out);
	e = e ? e : put_flame(&w, h->host);
	putc('}', out);
	put_names(h->layout, out);
	fputs("}\n", out);
	free(w.detail);
	map_fini(&w.link_map);
	array_free(&w.bytes.b);
	return e;
}

/* Inside a script element only '<' can mean anything to a browser, and JSON has it in strings
 * alone. */
static void put_escaped(const char *s, size_t n, FILE *out)
{
	while (n) {
		const char *less = memchr(s, '<', n);
		const size_t plain = less ? (size_t)(less - s) : n;
		fwrite(s, 1, plain, out);
		if (less)
			fputs("\\u003c", out);
		s += plain + (less != NULL);
		n -= plain + (less != NULL);
	}
}

int html_put(const struct html *h, FILE *out)
{
	char *data = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&data, &bytes);
	if (!memory)
		return -ENOMEM;
	int e = html_put_data(h, memory);
	if (fclose(memory) && !e)
		e = -ENOMEM;
	if (!e) {
		fputs(viewer_before, out);
		put_escaped(data, bytes, out);
		fputs(viewer_after, out);
	}
	free(data);
	return e;
}

int html_make(struct html *h, const struct trace *t, const struct decoder *decoder, size_t most,
	struct error *err)
{
	struct report *report;
	struct flame *device = NULL, *host = NULL;
	*h = (struct html){ 0 };
	int e = report_make(t, decoder, 0, &report, err);
	if (e)
		return e;
	h->report = report;
	e = hints_make(report, &report->hints);
	if (e)
		return error_set(err, e, "no memory for hints");
	e = layout_make(report, most, &h->layout, err);
	if (!e && report->activities.n)
		e = flame_make(t, FLAME_DEVICE, &device, err);
	h->device = device;
	if (!e && device)
		flame_estimate(device, report);
	if (!e)
		e = flame_make(t, FLAME_HOST, &host, err);
	h->host = host;
	return e;
}

void html_fini(struct html *h)
{
	layout_free(h->layout);
	flame_free((struct flame *)h->device);
	flame_free((struct flame *)h->host);
	if (h->report)
		report_free((struct report *)h->report);
	*h = (struct html){ 0 };
}
