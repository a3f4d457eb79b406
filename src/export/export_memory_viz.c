/*
 * Writes PyTorch's memory snapshot, a Python pickle like that of
 * torch.cuda.memory._dump_snapshot(), for https://pytorch.org/memory_viz:
 *
 *	{ 'segments': [ { 'address', 'total_size', 'blocks': [ ... ] ... } ],
 *	  'device_traces': [ [ { 'action', 'addr', 'size', 'stream', 'time_us', 'frames' } ] ] }
 *
 * A segment is memory that PyTorch's allocator has from the driver. Here each block of the driver
 * is a segment with one block, unless the trace has segments. Each process is a device, because a
 * trace does not say on which device memory is. The pickle has protocol 4 and only opcodes that the
 * viewer's reader knows. Strings are written once and then referred to by number.
 */
#include "export/export_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/search.h"
#include "memory/memory.h"

enum { /* of Python's pickletools */
	OP_MARK = '(',
	OP_STOP = '.',
	OP_BININT = 'J',
	OP_LONG1 = 0x8a,
	OP_PROTO = 0x80,
	OP_UNICODE = 'X',
	OP_MEMOIZE = 'r', /* LONG_BINPUT */
	OP_RECALL = 'j',  /* LONG_BINGET */
	OP_DICT = '}',
	OP_LIST = ']',
	OP_SETITEMS = 'u',
	OP_APPENDS = 'e',
};

#define BATCH 1000u /* of elements appended at a time */

struct pickle {
	FILE *out;
	struct map texts; /* the text's hashes and length: its number */
	uint32_t text_count;
};

static void put_u32(struct pickle *p, uint32_t v)
{
	for (int i = 0; i < 32; i += 8)
		putc((int)(v >> i & 0xff), p->out);
}

static void put_number(struct pickle *p, uint64_t v)
{
	if (v <= INT32_MAX) {
		putc(OP_BININT, p->out);
		put_u32(p, (uint32_t)v);
		return;
	}
	/* Two's complement: one byte more when the highest bit is set. */
	int bytes = 0;
	while (bytes < 8 && v >> bytes * 8)
		bytes++;
	const bool zero = v >> (bytes * 8 - 1) & 1;
	putc(OP_LONG1, p->out);
	putc(bytes + zero, p->out);
	for (int i = 0; i < bytes; i++)
		putc((int)(v >> i * 8 & 0xff), p->out);
	if (zero)
		putc(0, p->out);
}

/* The viewer decodes UTF-8; what is none becomes a question mark. */
static void put_text(struct pickle *p, const char *text)
{
	const size_t all = strlen(text), n = MIN(all, 4096);
	uint32_t *number = map_get(&p->texts, map_text_key(text, n, 0));
	if (*number != MAP_NONE) {
		putc(OP_RECALL, p->out);
		put_u32(p, *number);
		return;
	}
	putc(OP_UNICODE, p->out);
	put_u32(p, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		putc((unsigned char)text[i] < 0x80 ? text[i] : '?', p->out);
	expect(p->text_count < p->texts.taken, "each text is written once");
	*number = p->text_count++;
	putc(OP_MEMOIZE, p->out);
	put_u32(p, *number);
}

static void begin_dict(struct pickle *p)
{
	putc(OP_DICT, p->out);
	putc(OP_MARK, p->out);
}

static void end_dict(struct pickle *p)
{
	putc(OP_SETITEMS, p->out);
}

static void begin_list(struct pickle *p)
{
	putc(OP_LIST, p->out);
	putc(OP_MARK, p->out);
}

static void end_list(struct pickle *p)
{
	putc(OP_APPENDS, p->out);
}

/* Between elements of a long list, so that a reader's stack stays small. */
static void next_batch(struct pickle *p, uint64_t *count)
{
	if (++*count % BATCH)
		return;
	putc(OP_APPENDS, p->out);
	putc(OP_MARK, p->out);
}

static void key_number(struct pickle *p, const char *key, uint64_t v)
{
	put_text(p, key);
	put_number(p, v);
}

static void key_text(struct pickle *p, const char *key, const char *v)
{
	put_text(p, key);
	put_text(p, v);
}

struct snapshot {
	struct block_log log;
	struct export *x;
	struct pickle p;
	uint32_t process; /* whose events are written */
	uint64_t count;
	ARRAY(struct block_event) segments; /* the trace's own that are live, sorted */
	ARRAY(struct block_event) live;     /* at the end, by process and address */
};

static void put_frame(struct pickle *p, const char *name)
{
	begin_dict(p);
	key_text(p, "filename", "");
	key_number(p, "line", 0);
	key_text(p, "name", name);
	end_dict(p);
}

static void put_frames(struct snapshot *s, const struct block_event *e)
{
	const struct schema_fn *fn = schema_find(&s->x->trace->schema, e->fn_id);
	put_text(&s->p, "frames");
	begin_list(&s->p);
	put_frame(&s->p, fn ? fn->name : "(unknown function)");
	if (e->range != META_NONE)
		put_frame(&s->p, s->x->meta->names.v[e->range].text);
	end_list(&s->p);
}

static void put_action(struct snapshot *s, const char *action, const struct block_event *e,
	const struct block_event *alloc)
{
	const uint64_t start = s->x->trace->header.start.real_ns;
	begin_dict(&s->p);
	key_text(&s->p, "action", action);
	key_number(&s->p, "addr", e->pointer);
	key_number(&s->p, "size", e->bytes);
	key_number(&s->p, "stream", alloc->stream);
	key_number(&s->p, "time_us", (start + trace_since_ns(s->x->trace, e->ticks)) / 1000);
	put_frames(s, alloc);
	end_dict(&s->p);
	next_batch(&s->p, &s->count);
}

/* Whether a live segment of the trace holds the block; otherwise it is its own. */
static bool is_held(const struct snapshot *s, const struct block_event *e)
{
	const size_t low = SEARCH(i, 0, s->segments.n, s->segments.v[i].pointer <= e->pointer);
	const struct block_event *g = low ? &s->segments.v[low - 1] : NULL;
	return g && e->pointer - g->pointer < g->bytes &&
	       e->bytes <= g->bytes - (e->pointer - g->pointer);
}

static void add_segment(struct snapshot *s, const struct block_event *e)
{
	size_t i = s->segments.n;
	array_reserve(&s->segments, 1);
	while (i && s->segments.v[i - 1].pointer > e->pointer)
		i--;
	expect(i == s->segments.n || s->segments.v[i].pointer >= e->pointer,
		"segments stand in the order of their addresses");
	memmove(s->segments.v + i + 1, s->segments.v + i,
		(s->segments.n - i) * sizeof *s->segments.v);
	s->segments.v[i] = *e;
	s->segments.n++;
}

static void remove_segment(struct snapshot *s, const struct block_event *e)
{
	size_t i = 0;
	while (i < s->segments.n && s->segments.v[i].pointer != e->pointer)
		i++;
	if (i == s->segments.n)
		return;
	s->segments.n--;
	memmove(s->segments.v + i, s->segments.v + i + 1,
		(s->segments.n - i) * sizeof *s->segments.v);
}

static void put_event(void *context, const struct block_event *e, struct block_event *alloc)
{
	struct snapshot *s = context;
	if (e->process != s->process)
		return;
	switch (e->what) {
	case SEGMENT_ALLOC:
		add_segment(s, e);
		put_action(s, "segment_alloc", e, alloc);
		break;
	case SEGMENT_FREE:
		remove_segment(s, e);
		put_action(s, "segment_free", e, alloc);
		break;
	case BLOCK_ALLOC:
		alloc->mark = !is_held(s, e);
		if (alloc->mark)
			put_action(s, "segment_alloc", e, alloc);
		put_action(s, "alloc", e, alloc);
		break;
	case BLOCK_FREE:
		put_action(s, "free_requested", e, alloc);
		put_action(s, "free_completed", e, alloc);
		if (alloc->mark)
			put_action(s, "segment_free", e, alloc);
		break;
	default: /* what was refused changes nothing */
		break;
	}
}

static void keep_live(void *context, const struct block_event *e)
{
	struct snapshot *s = context;
	if (e->process == s->process)
		*array_push(&s->live) = *e;
}

static void put_block(struct snapshot *s, const struct block_event *e, uint64_t at, uint64_t bytes)
{
	begin_dict(&s->p);
	key_number(&s->p, "address", at);
	key_number(&s->p, "size", bytes);
	key_number(&s->p, "requested_size", e ? bytes : 0);
	key_text(&s->p, "state", e ? "active_allocated" : "inactive");
	if (e) {
		put_frames(s, e);
	} else {
		put_text(&s->p, "frames");
		begin_list(&s->p);
		end_list(&s->p);
	}
	end_dict(&s->p);
}

/* Blocks from live[first] on that lie in the segment, with what is free between. */
static uint64_t put_blocks(
	struct snapshot *s, const struct block_event *g, size_t first, size_t end)
{
	uint64_t at = g->pointer, used = 0, count = 0;
	begin_list(&s->p);
	for (size_t i = first; i < end; i++) {
		const struct block_event *b = &s->live.v[i];
		if (b->what != BLOCK_ALLOC || b->pointer < at)
			continue;
		if (b->pointer > at)
			put_block(s, NULL, at, b->pointer - at);
		put_block(s, b, b->pointer, b->bytes);
		at = b->pointer + b->bytes;
		used += b->bytes;
		next_batch(&s->p, &count);
	}
	if (at < g->pointer + g->bytes)
		put_block(s, NULL, at, g->pointer + g->bytes - at);
	end_list(&s->p);
	return used;
}

static void put_segment(struct snapshot *s, size_t first, size_t end, uint64_t *count)
{
	const struct block_event *g = &s->live.v[first];
	begin_dict(&s->p);
	key_number(&s->p, "device", g->process);
	key_number(&s->p, "address", g->pointer);
	key_number(&s->p, "total_size", g->bytes);
	key_number(&s->p, "stream", g->stream);
	key_text(&s->p, "segment_type", g->bytes > 1 << 20 ? "large" : "small");
	put_frames(s, g);
	put_text(&s->p, "blocks");
	const uint64_t used = put_blocks(s, g, first, end);
	key_number(&s->p, "allocated_size", used);
	key_number(&s->p, "active_size", used);
	key_number(&s->p, "requested_size", used);
	end_dict(&s->p);
	next_batch(&s->p, count);
}

static void put_segments(struct snapshot *s, uint64_t *count)
{
	for (size_t i = 0, end; i < s->live.n; i = end) {
		const struct block_event *g = &s->live.v[i];
		const uint64_t stop = g->pointer + g->bytes;
		end = i + 1;
		while (g->what == SEGMENT_ALLOC && end < s->live.n &&
			s->live.v[end].what == BLOCK_ALLOC && s->live.v[end].pointer < stop &&
			s->live.v[end].bytes <= stop - s->live.v[end].pointer)
			end++;
		put_segment(s, i, end, count);
	}
}

static int play(struct snapshot *s, uint32_t process)
{
	const struct block_sink sink = { put_event, keep_live, s };
	s->process = process;
	s->segments.n = 0;
	s->count = 0;
	begin_list(&s->p);
	size_t i = 0;
	while (i < s->log.events.n && s->log.events.v[i].process != process)
		i++;
	const int e = i == s->log.events.n ? 0 : block_log_play(&s->log, s->x, &sink);
	end_list(&s->p);
	return e;
}

static int put_all(struct snapshot *s)
{
	const size_t processes = s->x->trace->processes.n;
	uint64_t count = 0;
	int e = 0;
	putc(OP_PROTO, s->p.out);
	putc(4, s->p.out);
	begin_dict(&s->p);
	put_text(&s->p, "device_traces");
	begin_list(&s->p);
	for (uint32_t i = 0; i < processes && !e; i++)
		e = play(s, i);
	end_list(&s->p);
	put_text(&s->p, "segments");
	begin_list(&s->p);
	put_segments(s, &count);
	end_list(&s->p);
	end_dict(&s->p);
	putc(OP_STOP, s->p.out);
	return e;
}

static int begin_viz(struct export *x)
{
	struct snapshot *s = xcalloc(1, sizeof *s);
	s->x = x;
	s->p.out = x->out;
	x->state = s;
	return 0;
}

static void call_viz(struct export *x, const struct export_call *c)
{
	struct snapshot *s = x->state;
	block_log_add(&s->log, c);
}

static int end_viz(struct export *x)
{
	return put_all(x->state);
}

static void cleanup_viz(struct export *x)
{
	struct snapshot *s = x->state;
	if (!s)
		return;
	array_free(&s->log.events, &s->segments, &s->live);
	map_fini(&s->p.texts);
	free(s);
}

const struct exporter export_memory_viz = {
	.name = "memory_viz",
	.suffixes = ".pickle",
	.begin = begin_viz,
	.call = call_viz,
	.end = end_viz,
	.cleanup = cleanup_viz,
};
