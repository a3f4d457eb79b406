/* Follows a recording while it is written. */
#include "monitor/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/atomic.h"
#include "base/expect.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "event/schema.h"
#include "trace/activity.h"
#include "trace/trace.h"

#define PIECE      65536u /* read at a time, unless a record is longer */
#define NAME_KEPT  512u
#define SPANS_MOST 65536u /* that are kept before they are added up */
#define TRIES      3u     /* looks at a granule in which no chunk has begun */

/* A chunk's counts, when it was looked at last. */
struct tally {
	uint64_t ticks; /* when it was begun: tells it from what its room is used for later */
	uint64_t calls, launches;
};

/* A chunk that may change. */
struct place {
	uint64_t offset;
	uint32_t bytes;
	uint32_t at; /* of the payload: read so far */
	bool over;   /* nothing will be added to what it is now */
	struct tally now, before;
};

/* A GPU activity of this look. */
struct span {
	uint64_t start, end;
	size_t process;
};

struct name {
	char *text;
	uint64_t hash;
};

struct follow {
	int fd;
	bool first; /* not looked at yet */
	uint64_t size, walked, reused;
	unsigned tries;
	struct trace_header header;
	struct trace *trace; /* for its schema, once that is there */
	ARRAY(struct place) places;
	ARRAY(struct follow_process) processes;
	struct map process_map, name_map;
	ARRAY(struct name) names;
	ARRAY(struct span) spans;
	ARRAY(uint8_t) bytes;
	struct chunk_buf buf;
	unsigned unpacked;      /* blocks, in this look */
	double launches_a_call; /* of the last block that was */
	const struct follow_sink *to;
};

static struct follow_process *process_of(struct follow *f, uint32_t pid)
{
	const uint32_t at = map_find(&f->process_map, MAP_KEY(pid));
	if (at != MAP_NONE)
		return &f->processes.v[at];
	if (f->processes.n >= FOLLOW_PROCESSES || (kill((pid_t)pid, 0) && errno == ESRCH))
		return NULL;
	return MAP_ROW(&f->process_map, MAP_KEY(pid), &f->processes,
		(struct follow_process){ .pid = pid });
}

static void count(struct follow *f, uint32_t pid, const struct tally *is, const struct tally *was)
{
	struct follow_process *p = f->first ? NULL : process_of(f, pid);
	if (!p)
		return;
	p->calls += is->calls > was->calls ? is->calls - was->calls : 0;
	p->launches += is->launches > was->launches ? is->launches - was->launches : 0;
}

static bool is_launch(const struct schema_fn *fn)
{
	return fn && (fn->kind == CALL_LAUNCH || fn->kind == CALL_GRAPHLAUNCH);
}

static void count_records(const struct follow *f, struct tally *t)
{
	struct records it = records_of(&f->buf);
	for (const struct record *r; (r = records_next(&it));) {
		t->calls++;
		t->launches += !r->result && !(r->flags & RECORD_CAPTURED) &&
			       is_launch(schema_find(&f->trace->schema, r->fn));
	}
}

/* For launches `bytes` says how many were captured. */
static void count_counters(const struct follow *f, struct tally *t)
{
	const struct counter *of = (const struct counter *)f->buf.payload;
	for (size_t id = 0; id < f->buf.bytes / sizeof *of; id++) {
		const uint64_t not_run = of[id].errors + of[id].bytes;
		t->calls += of[id].count;
		if (is_launch(schema_find(&f->trace->schema, (uint32_t)id)) &&
			of[id].count > not_run)
			t->launches += of[id].count - not_run;
	}
}

/* Reads one chunk, or a block, whole. */
static int load(struct follow *f, const struct chunk_ref *ref)
{
	struct trace_process process = { 0 };
	const struct trace one = { .fd = f->fd,
		.size = f->size,
		.header = f->header,
		.chunks = (struct chunk_ref *)ref,
		.chunk_count = 1,
		.processes = { .v = &process, .n = 1 } };
	return trace_load(&one, 0, &f->buf, NULL);
}

static void look_at_calls(struct follow *f, struct place *p, const struct chunk_header *h)
{
	const struct chunk_ref ref = {
		.offset = p->offset + CHUNK_PAYLOAD, .room = h->bytes - CHUNK_PAYLOAD, .head = *h
	};
	struct tally t = { .ticks = h->open.ticks };
	if ((h->state != CHUNK_OPEN && h->used > ref.room) || load(f, &ref))
		return;
	if (h->kind == CHUNK_COUNTERS)
		count_counters(f, &t);
	else
		count_records(f, &t);
	count(f, h->pid, &t, &p->now);
	p->now = t;
}

/* The counts of a chunk when it was last seen undrained. */
static struct tally tally_of(const struct follow *f, uint64_t ticks)
{
	array_each(const struct place, p, f->places) {
		if (p->now.ticks == ticks)
			return p->now;
		if (p->before.ticks == ticks)
			return p->before;
	}
	return (struct tally){ 0 };
}

static void look_at_block(struct follow *f, const struct block_header *b, uint64_t payload)
{
	const struct tally was = tally_of(f, b->chunk.open.ticks);
	struct tally t = { .calls = b->records };
	const struct chunk_ref ref = chunk_ref_of_block(b, payload);
	if (f->first || b->chunk.kind != CHUNK_EVENTS)
		return;
	if (f->unpacked++ < FOLLOW_BLOCKS && !load(f, &ref)) {
		t.calls = 0;
		count_records(f, &t);
		f->launches_a_call = t.calls ? (double)t.launches / (double)t.calls : 0;
	} else {
		t.launches = (uint64_t)((double)t.calls * f->launches_a_call);
	}
	count(f, b->chunk.pid, &t, &was);
}

static void look_at_blocks(struct follow *f, struct place *p, const struct chunk_header *h)
{
	const uint32_t room = h->bytes - CHUNK_PAYLOAD;
	const uint32_t end = h->state == CHUNK_OPEN || h->used > room ? room : h->used;
	struct block_header b;
	while (p->at <= end && end - p->at >= sizeof b) {
		const uint64_t at = p->offset + CHUNK_PAYLOAD + p->at;
		if (read_at(f->fd, &b, sizeof b, at) || !block_sane(&b) ||
			b.bytes > end - p->at - sizeof b)
			break;
		look_at_block(f, &b, at + sizeof b);
		const uint32_t whole = (uint32_t)sizeof b + ((b.bytes + 7) & ~7u);
		p->at += whole < end - p->at ? whole : end - p->at;
	}
	p->over = h->state != CHUNK_OPEN;
}

static void keep_name(struct follow *f, uint32_t pid, const struct record *r)
{
	size_t bytes;
	const char *text = record_text(r, 1, &bytes);
	uint32_t *at =
		f->names.n < FOLLOW_NAMES ? map_get(&f->name_map, MAP_KEY(pid, r->arg[0])) : NULL;
	struct name *n = at ? array_push(&f->names) : NULL;
	if (!n)
		return;
	*n = (struct name){ .text = xstrndup(text, bytes < NAME_KEPT ? bytes : NAME_KEPT),
		.hash = hash_bytes(text, bytes) };
	*at = (uint32_t)(f->names.n - 1);
}

static void take_meta(struct follow *f, const struct chunk_header *h, const struct record *r)
{
	struct follow_process *p = process_of(f, h->pid);
	if (!p || r->words < RECORD_WORDS + 1)
		return;
	if (r->fn == META_STRING)
		keep_name(f, h->pid, r);
	else if (r->fn == META_UUID && r->words >= RECORD_WORDS + 3 && r->arg[0] < FOLLOW_DEVICES)
		memcpy(p->uuid[r->arg[0]], &r->arg[1], 16);
}

/* Up to `bytes` of the payload from p->at on; how many are there. */
static size_t read_piece(struct follow *f, const struct place *p, size_t bytes)
{
	const size_t left = p->bytes - CHUNK_PAYLOAD - p->at;
	const size_t n = MIN(left, bytes);
	f->bytes.n = 0;
	array_reserve(&f->bytes, n + 8);
	return read_at(f->fd, f->bytes.v, n, p->offset + CHUNK_PAYLOAD + p->at) ? 0 : n;
}

/* How many bytes of what was read are records that are finished. */
static size_t finished(const struct follow *f, size_t n)
{
	struct records it = { .at = f->bytes.v, .end = f->bytes.v + n, .until_zero = true };
	const uint8_t *end = f->bytes.v;
	while (records_next(&it) && !it.torn)
		end = it.at;
	return (size_t)(end - f->bytes.v);
}

static void look_at_meta(struct follow *f, struct place *p, const struct chunk_header *h)
{
	struct record head;
	size_t n;
	while ((n = read_piece(f, p, sizeof head)) == sizeof head) {
		memcpy(&head, f->bytes.v, sizeof head);
		const size_t want = MAX(head.words * 8u, PIECE);
		n = finished(f, read_piece(f, p, want));
		n = n ? finished(f, read_piece(f, p, n)) : 0; /* once more, to have it whole */
		struct records it = { .at = f->bytes.v, .end = f->bytes.v + n };
		for (const struct record *r; n && (r = records_next(&it));)
			take_meta(f, h, r);
		p->at += (uint32_t)n;
		if (!n)
			break;
	}
	p->over = h->state != CHUNK_OPEN || p->bytes - CHUNK_PAYLOAD - p->at < sizeof head;
}

static void tell(struct follow *f, const struct follow_process *p, const struct gpu_activity *w)
{
	static const uint8_t unknown[16];
	const uint32_t at = map_find(&f->name_map, MAP_KEY(p->pid, w->name));
	const struct name *n = at == MAP_NONE ? NULL : &f->names.v[at];
	const bool known = w->valid & GPU_HAS_DEVICE && w->device < FOLLOW_DEVICES;
	f->to->kernel(f->to->data, &(struct follow_kernel){ .pid = p->pid,
					   .name = n && n->text ? n->text : "",
					   .name_hash = n ? n->hash : 0,
					   .uuid = known ? p->uuid[w->device] : unknown,
					   .ran = w });
}

ORDERING(by_start, struct span, ORDER(a->process, b->process), ORDER(a->start, b->start))

/* Activities at the same time count once. */
static void add_busy(struct follow *f)
{
	SORT(f->spans, by_start);
	array_each(const struct span, s, f->spans) {
		struct follow_process *p = &f->processes.v[s->process];
		if (!p->until_ns)
			p->from_ns = p->until_ns = s->start;
		if (!p->look_from_ns || s->start < p->look_from_ns)
			p->look_from_ns = s->start;
		if (s->end <= p->until_ns)
			continue;
		p->busy_ns += s->end - (s->start > p->until_ns ? s->start : p->until_ns);
		p->until_ns = s->end;
	}
	f->spans.n = 0;
}

/* Samples tell nothing of the whole.  Without memory this one is left out. */
static void keep_span(
	struct follow *f, const struct follow_process *of, const struct gpu_activity *w)
{
	if (!activity_is_work(w->kind) || f->header.sampled)
		return;
	if (f->spans.n >= SPANS_MOST)
		add_busy(f);
	*array_push(&f->spans) =
		(struct span){ w->start_ns, w->end_ns, (size_t)(of - f->processes.v) };
}

/* Up to the last slot that holds something: one before it that is filled later is passed over. */
static void look_at_activities(struct follow *f, struct place *p, const struct chunk_header *h)
{
	struct gpu_activity w;
	size_t n;
	while ((n = read_piece(f, p, PIECE) / sizeof w) > 0) {
		size_t last = 0;
		struct follow_process *of = process_of(f, h->pid);
		for (size_t i = 0; i < n; i++) {
			memcpy(&w, f->bytes.v + i * sizeof w, sizeof w);
			last = w.kind ? i + 1 : last;
			if (w.end_ns <= w.start_ns || !of || f->first)
				continue;
			keep_span(f, of, &w);
			if (w.kind == GPU_KERNEL && f->to)
				tell(f, of, &w);
		}
		p->at += (uint32_t)(last * sizeof w);
		if (last < n)
			break;
	}
	p->over = h->state != CHUNK_OPEN || p->bytes - CHUNK_PAYLOAD - p->at < sizeof w;
}

static void look_at_chunk(struct follow *f, struct place *p, const struct chunk_header *h)
{
	switch (h->kind) {
	case CHUNK_EVENTS:
		look_at_calls(f, p, h);
		p->over = h->state != CHUNK_OPEN;
		break;
	case CHUNK_COUNTERS:
		look_at_calls(f, p, h);
		break;
	case CHUNK_META:
		look_at_meta(f, p, h);
		break;
	case CHUNK_DEVICE:
		look_at_activities(f, p, h);
		break;
	case CHUNK_PACKED:
		look_at_blocks(f, p, h);
		break;
	default:
		p->over = !chunk_is_drained(h->kind) || h->state != CHUNK_OPEN;
	}
}

/* Whether what is over may become something else: chunks that are drained, or overwritten. */
static bool comes_again(const struct follow *f, const struct chunk_header *h)
{
	return f->header.mode == TRACE_FLIGHT || (f->header.launched && chunk_is_drained(h->kind));
}

/* Whether the place is to be looked at again. */
static bool look_at_place(struct follow *f, struct place *p)
{
	struct chunk_header h;
	const bool overwritten = load_relaxed(&f->header.reused) != f->reused;
	if (p->over && f->header.mode == TRACE_FLIGHT && !overwritten)
		return true;
	if (read_at(f->fd, &h, sizeof h, p->offset) || h.magic != CHUNK_MAGIC ||
		h.bytes != p->bytes || h.state == CHUNK_FREE)
		return true;
	if (h.open.ticks != p->now.ticks) {
		p->before = p->now;
		p->now = (struct tally){ .ticks = h.open.ticks };
		p->at = 0;
		p->over = false;
	}
	if (!p->over)
		look_at_chunk(f, p, &h);
	return !p->over || comes_again(f, &h);
}

/* Granules that were taken since: a chunk, or one that will be. */
static void walk(struct follow *f)
{
	const uint64_t end =
		load_relaxed(&f->header.next) < f->size ? load_relaxed(&f->header.next) : f->size;
	while (f->walked < end && end - f->walked >= TRACE_GRAIN) {
		struct chunk_header h;
		const bool there = !read_at(f->fd, &h, sizeof h, f->walked) &&
				   h.magic == CHUNK_MAGIC && chunk_sane(&h, end - f->walked);
		if (!there && !f->first && ++f->tries < TRIES)
			return;
		if (there)
			*array_push(&f->places) =
				(struct place){ .offset = f->walked, .bytes = h.bytes };
		f->walked += there ? h.bytes : TRACE_GRAIN;
		f->tries = 0;
	}
}

/* Blocks first: what is drained is still known as it was. */
static void look_at_places(struct follow *f)
{
	size_t kept = 0;
	array_each(struct place, p, f->places) {
		struct chunk_header h;
		if (!p->over && !read_at(f->fd, &h, sizeof h, p->offset) &&
			h.magic == CHUNK_MAGIC && h.kind == CHUNK_PACKED && h.bytes == p->bytes)
			look_at_place(f, p);
	}
	for (size_t i = 0; i < f->places.n; i++) {
		struct place p = f->places.v[i];
		if (look_at_place(f, &p))
			f->places.v[kept++] = p;
	}
	f->places.n = kept;
}

void follow_look(struct follow *f, const struct follow_sink *to)
{
	struct stat st;
	if (read_at(f->fd, &f->header, sizeof f->header, 0) || fstat(f->fd, &st))
		return;
	f->size = (uint64_t)st.st_size;
	f->to = to;
	f->unpacked = 0;
	for (size_t i = 0; i < f->processes.n; i++)
		f->processes.v[i].look_from_ns = 0;
	walk(f);
	look_at_places(f);
	add_busy(f);
	f->reused = load_relaxed(&f->header.reused);
	f->first = false;
}

static void forget_names(struct follow *f)
{
	for (size_t i = 0; i < f->names.n; i++)
		free(f->names.v[i].text);
	array_free(&f->names);
}

/* The schema is all that is wanted of it: the list of chunks may be long. */
static int open_trace(struct follow *f, const char *path)
{
	const int e = trace_open(path, &f->trace, NULL);
	if (e)
		return e;
	free(f->trace->chunks);
	f->trace->chunks = NULL;
	f->trace->chunk_count = 0;
	return f->trace->schema.fn_count ? 0 : -EAGAIN;
}

int follow_open(const char *path, struct follow **ret_f)
{
	struct follow *f = xcalloc(1, sizeof *f);
	f->first = true;
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int e = f->fd < 0 ? -errno : open_trace(f, path);
	if (!e && f->trace->header.form != TRACE_RAW)
		e = -EINVAL;
	if (e) {
		follow_close(f);
		return e;
	}
	f->header = f->trace->header;
	f->walked = f->header.header_bytes;
	*ret_f = f;
	return 0;
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	trace_close(f->trace);
	forget_names(f);
	array_free(&f->places, &f->processes, &f->spans, &f->bytes);
	map_fini(&f->process_map, &f->name_map);
	chunk_buf_fini(&f->buf);
	free(f);
}

const struct trace_header *follow_header(const struct follow *f)
{
	return &f->header;
}

uint64_t follow_file_bytes(const struct follow *f)
{
	return f->size;
}

const struct follow_process *follow_find(const struct follow *f, uint32_t pid)
{
	const uint32_t at = map_find(&f->process_map, MAP_KEY(pid));
	return at == MAP_NONE ? NULL : &f->processes.v[at];
}
