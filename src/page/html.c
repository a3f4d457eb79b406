/*
 * Writes the page. Rows of the timeline (timeline_data.h) and flame graphs are varints in base64,
 * because there may be hundreds of thousands of items. Everything else is plain JSON.
 *
 *	flame: for each frame, in the order in which they are drawn: depth, name, kind, total, self
 */
#include "page/html.h"

#include "base/expect.h"
#include "base/json.h"
#include "diff/diff.h"
#include "hint/hint.h"
#include "memory/memory.h"
#include "page/packed.h"
#include "report/analysis.h"
#include "report/memory_print.h"
#include "report/report_make.h"

extern const char viewer_before[], viewer_between[], viewer_after[]; /* made of viewer/ */

#define FRAMES_MOST 20000u

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

static int put_flame(const struct layout *t, const struct flame *f, FILE *out)
{
	struct packed bytes = { 0 };
	uint64_t least = 1;
	size_t frames = 0;
	if (!f || !f->nodes.v[0].total_ns)
		return fputs("null", out) < 0 ? -EIO : 0;
	while (frames_of(f, least) > FRAMES_MOST && least <= UINT64_MAX / 2)
		least *= 2;
	for (uint32_t i = 0; i != FLAME_NONE; i = next_frame(f, i, least)) {
		const struct flame_node *n = &f->nodes.v[i];
		const uint32_t name = layout_name((struct layout *)t, f->names.v[n->name]);
		packed_varint(&bytes, n->depth);
		packed_varint(&bytes, name);
		packed_varint(&bytes, n->kind);
		packed_varint(&bytes, n->total_ns);
		packed_varint(&bytes, n->self_ns);
		frames++;
	}
	expect(frames == frames_of(f, least), "all frames that are long enough are drawn");
	fprintf(out, "{\"left_out\":%zu,\"frames\":\"", frames_of(f, 1) - frames);
	packed_put(&bytes, out);
	fputs("\"}", out);
	packed_fini(&bytes);
	return 0;
}

static void put_names(const struct layout *t, FILE *out)
{
	fputs(",\n\"names\":[", out);
	for (size_t i = 0; i < t->names.n; i++) {
		fputs(i ? ",\n" : "", out);
		json_quote(out, t->names.v[i], strlen(t->names.v[i]));
	}
	putc(']', out);
}

static const char *layer_name(
	const struct report *r, enum stack_by by, uint64_t key, struct fn_name *room)
{
	if (by == STACK_CALL)
		return report_fn_name(r, (uint32_t)key, room);
	if (by == STACK_KIND)
		return memory_kind_name[key];
	return key == META_NONE ? NULL : r->meta.names.v[key].text;
}

static void put_layer_name(const struct report *r, enum stack_by by, uint64_t key, FILE *out)
{
	struct fn_name room;
	if (key == STACK_REST) {
		fprintf(out, "\"rest\":%zu", r->memory_detail->stack[by].rest);
		return;
	}
	if (by == STACK_SIZE) {
		fprintf(out, "\"from_bytes\":%llu", key ? 1ull << key : 0ull);
		return;
	}
	const char *name = layer_name(r, by, key, &room);
	fputs("\"name\":", out);
	if (name)
		json_quote(out, name, strlen(name));
	else
		fputs("null", out);
}

/* A layer's bytes at each point: differences, since most do not change. */
static void put_layer(
	const struct report *r, enum stack_by by, const struct memory_layer *l, FILE *out)
{
	struct packed bytes = { 0 };
	putc('{', out);
	put_layer_name(r, by, l->key, out);
	for (uint32_t k = 0; k < MEMORY_POINTS; k++)
		packed_difference(&bytes, l->live[k] - (k ? l->live[k - 1] : 0));
	fputs(",\"live\":\"", out);
	packed_put(&bytes, out);
	fputs("\"}", out);
	packed_fini(&bytes);
}

/* Live memory over time by its owner. */
static void put_stacks(const struct report *r, FILE *out)
{
	putc('{', out);
	for (enum stack_by by = 0; by < STACK_BYS; by++) {
		const struct memory_stack *s = &r->memory_detail->stack[by];
		fprintf(out, "%s\"%s\":[", by ? ",\n" : "", stack_by_name[by]);
		for (size_t i = 0; i < s->layers.n; i++) {
			fputs(i ? ",\n" : "", out);
			put_layer(r, by, &s->layers.v[i], out);
		}
		putc(']', out);
	}
	putc('}', out);
}

/* Sentences of the text as they are, so that a page can't say anything else. */
static void put_said(const struct report *r, FILE *out)
{
	char *growth = NULL, *slack = NULL;
	size_t size;
	struct json j;
	FILE *to = xcheck(open_memstream(&growth, &size));
	const struct text_page p = text_page_of(to, 0, false);
	memory_put_growth(r, &p);
	fclose(to);
	to = xcheck(open_memstream(&slack, &size));
	if (report_has_device_times(r))
		analysis_put_slack(r, to);
	fclose(to);
	json_begin_compact(&j, out);
	json_str(&j, "growth", xcheck(growth));
	json_str(&j, "slack", xcheck(slack));
	json_end_object(&j);
	free(growth);
	free(slack);
}

/* The keys of one recording. */
static int put_recording(const struct html *h, FILE *out)
{
	fputs("\"report\":", out);
	report_print_json(h->report, out, true);
	fputs(",\"memory\":", out);
	memory_print_json(h->report, out, true);
	fputs(",\"said\":", out);
	put_said(h->report, out);
	fputs(",\"stacks\":", out);
	put_stacks(h->report, out);
	fputs(",\"timeline\":", out);
	timeline_put(h->report, h->layout, (struct timeline_numbers *)&h->numbers, h->fine_items,
		h->fine_bin_ns, out);
	fputs(",\n\"flame\":{\"device\":", out);
	int e = put_flame(h->layout, h->device, out);
	fputs(",\"host\":", out);
	e = e ? e : put_flame(h->layout, h->host, out);
	putc('}', out);
	put_names(h->layout, out);
	return e;
}

int html_put_data(const struct html *h, FILE *out)
{
	putc('{', out);
	int e = put_recording(h, out);
	if (h->other && !e) {
		fputs(",\n\"other\":{", out);
		e = put_recording(h->other, out);
		fputs("},\n\"diff\":", out);
		diff_print_json(h->diff, out);
	}
	fputs("}\n", out);
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

static void put_fine(const struct html *h, FILE *out)
{
	if (h->fine)
		fwrite(h->fine, 1, h->fine_bytes, out);
}

int html_put(const struct html *h, FILE *out)
{
	char *data = NULL;
	size_t bytes = 0;
	FILE *memory = xcheck(open_memstream(&data, &bytes));
	const int e = html_put_data(h, memory);
	fclose(memory);
	xcheck(data);
	if (!e) {
		fputs(viewer_before, out);
		put_escaped(data, bytes, out);
		fputs(viewer_between, out);
		put_fine(h, out);
		if (h->other)
			put_fine(h->other, out);
		fputs(viewer_after, out);
	}
	free(data);
	return e;
}

/* Everything is packed as closely as it can be kept; then the timeline gets coarser, until a page
 * opens quickly with it. */
static int make_timeline(struct html *h, const struct html_sizes *most, struct error *err)
{
	const size_t fine = most->fine > most->items ? most->fine : most->items;
	int e = layout_make(h->report, fine, &h->layout, err);
	if (e || h->layout->items <= most->items)
		return e;
	timeline_pack(h->layout, &h->numbers, &h->fine, &h->fine_bytes);
	h->fine_items = h->layout->items;
	h->fine_bin_ns = h->layout->bin_ns;
	layout_coarsen(h->layout, most->items);
	return 0;
}

static int make_flames(struct html *h, const struct trace *t, struct error *err)
{
	int e = h->report->activities.n ? flame_make(t, FLAME_DEVICE, &h->device, err) : 0;
	if (!e && h->device)
		flame_estimate(h->device, h->report);
	return e ? e : flame_make(t, FLAME_HOST, &h->host, err);
}

int html_make(
	struct html *h, const struct trace *t, const struct html_sizes *most, struct error *err)
{
	*h = (struct html){ 0 };
	int e = report_make(t, 0, FACETS_ALL, &h->report, err);
	if (e)
		return e;
	e = make_timeline(h, most, err);
	return e ? e : make_flames(h, t, err);
}

void html_fini(struct html *h)
{
	layout_free(h->layout);
	flame_free(h->device);
	flame_free(h->host);
	timeline_numbers_fini(&h->numbers);
	free(h->fine);
	if (h->report)
		report_free(h->report);
	*h = (struct html){ 0 };
}
