/*
 * Makes a packed trace of an import: it joins activities to calls, sorts everything, and makes a
 * block of each run of records.
 */
#include "import/import_store.h"

#include <errno.h>
#include <string.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/block.h"

#define LEVEL       6          /* zstd's */
#define CHUNK_BYTES (1u << 20) /* of a chunk's payload, about */

/* A chunk's payload while it grows. */
struct pile {
	ARRAY(uint8_t) bytes;
	uint32_t seq;
};

struct writer {
	struct store *s;
	struct block_writer to;
	struct pile pile;
	uint64_t start_ns, end_ns; /* of everything */
};

ORDERING(call_by_correlation, struct store_call, ORDER(a->correlation, b->correlation),
	ORDER(a->start_ns, b->start_ns))

ORDERING(activity_by_start, struct gpu_activity, ORDER(a->start_ns, b->start_ns),
	ORDER(a->end_ns, b->end_ns), ORDER(a->correlation, b->correlation))

/* The first call behind those of the correlation that began before the time. */
static size_t calls_before(const struct store *s, uint64_t correlation, uint64_t start_ns)
{
	const struct store_call key = { .correlation = correlation, .start_ns = start_ns };
	return SEARCH(i, 0, s->calls.n, call_by_correlation(&s->calls.v[i], &key) <= 0);
}

static bool may_own(const struct store *s, const struct store_call *c, const struct gpu_activity *w)
{
	return !w->host_ns || w->host_ns - 1 == s->threads.v[c->thread].process;
}

#define NEIGHBOURS 64 /* calls of one correlation that are looked at, on either side */

/* If several calls have one correlation, in several processes say, the last that began before the
 * work did, or else the first that began after. */
static struct store_call *call_of(struct store *s, const struct gpu_activity *w)
{
	if (!(w->valid & GPU_HAS_CORRELATION))
		return NULL;
	const size_t at = calls_before(s, w->correlation, w->start_ns);
	for (size_t i = at; i > 0 && at - i < NEIGHBOURS; i--) {
		struct store_call *c = &s->calls.v[i - 1];
		if (c->correlation != w->correlation)
			break;
		if (may_own(s, c, w))
			return c;
	}
	for (size_t i = at; i < s->calls.n && i - at < NEIGHBOURS; i++) {
		struct store_call *c = &s->calls.v[i];
		if (c->correlation != w->correlation)
			break;
		if (may_own(s, c, w))
			return c;
	}
	return NULL;
}

static void add_link(struct store *s, struct store_call *c)
{
	expect(c->thread < s->threads.n && !c->linked, "a call has a thread, and one link");
	const struct store_thread *t = &s->threads.v[c->thread];
	struct store_link *l = array_push(&s->links);
	c->linked = true;
	*l = (struct store_link){ .process = t->process,
		.link = { .correlation = c->correlation,
			.ticks = c->start_ns,
			.dur = c->dur_ns,
			.tid = t->tid,
			.fn = c->fn } };
}

static void join_activity(struct store *s)
{
	array_each(struct gpu_activity, w, s->activities) {
		struct store_call *c = call_of(s, w);
		if (c)
			w->host_ns = s->threads.v[c->thread].process + 1ull;
		else if (w->kind != GPU_SPAN)
			s->unjoined++;
		if (c && !c->linked)
			add_link(s, c);
	}
}

/* An event without a process belongs to the first: there is one, nearly always. */
static void adopt_orphans(struct store *s)
{
	if (!s->processes.n)
		store_process(s, 0, 0);
	for (size_t i = 0; i < s->activities.n; i++)
		if (!s->activities.v[i].host_ns)
			s->activities.v[i].host_ns = 1;
	for (size_t i = 0; i < s->ranges.n; i++)
		if (s->ranges.v[i].tid == STORE_NONE)
			s->ranges.v[i].tid = store_thread(s, 0, 0, 0);
}

ORDERING(call_by_end, struct store_call, ORDER(a->thread, b->thread),
	ORDER(a->start_ns + a->dur_ns, b->start_ns + b->dur_ns), ORDER(b->start_ns, a->start_ns))

ORDERING(range_by_start, struct range, ORDER(a->tid, b->tid), ORDER(a->ticks, b->ticks),
	ORDER(b->dur, a->dur), ORDER(a->external, b->external))

ORDERING(activity_by_process, struct gpu_activity, ORDER(a->host_ns, b->host_ns),
	activity_by_start(a, b))

ORDERING(link_by_process, struct store_link, ORDER(a->process, b->process),
	ORDER(a->link.correlation, b->link.correlation), ORDER(a->link.ticks, b->link.ticks))

static void arrange(struct store *s)
{
	SORT(s->calls, call_by_correlation);
	SORT(s->activities, activity_by_start);
	join_activity(s);
	adopt_orphans(s);
	expect(s->links.n <= s->calls.n, "links are of different calls");
	expect(s->unjoined <= s->activities.n, "activities without a call are part of all");
	SORT(s->calls, call_by_end);
	SORT(s->ranges, range_by_start);
	SORT(s->activities, activity_by_process);
	SORT(s->links, link_by_process);
}

static struct chunk_header head_of(
	struct writer *w, enum chunk_kind kind, uint32_t process, const struct store_thread *t)
{
	expect(process == STORE_NONE || process < w->s->processes.n,
		"the process of a chunk is one of all");
	expect(w->pile.bytes.n % 8 == 0 || kind == CHUNK_SCHEMA, "records are of whole words");
	struct chunk_header h = { .magic = CHUNK_MAGIC,
		.kind = (uint16_t)kind,
		.state = CHUNK_LEFT,
		.bytes = (uint32_t)((w->pile.bytes.n + CHUNK_PAYLOAD + TRACE_GRAIN - 1) /
				    TRACE_GRAIN * TRACE_GRAIN),
		.used = (uint32_t)w->pile.bytes.n,
		.pid = process < w->s->processes.n ? w->s->processes.v[process].pid : 0,
		.tid = t ? t->tid : 0,
		.seq = w->pile.seq++,
		.process_start = process, /* nothing else tells two processes of one pid apart */
		.open = { w->start_ns, w->start_ns, 0 } };
	if (t)
		memcpy(h.thread, t->name, sizeof h.thread);
	return h;
}

/* Writes the pile, if there is any, as a chunk. */
static void put_pile(
	struct writer *w, enum chunk_kind kind, uint32_t process, const struct store_thread *t)
{
	if (!w->pile.bytes.n)
		return;
	const struct chunk_header h = head_of(w, kind, process, t);
	block_writer_chunk(&w->to, &h, w->pile.bytes.v, w->pile.bytes.n);
	w->pile.bytes.n = 0;
}

static void pile_up(struct writer *w, const void *data, size_t bytes)
{
	array_reserve(&w->pile.bytes, bytes);
	if (bytes)
		memcpy(w->pile.bytes.v + w->pile.bytes.n, data, bytes);
	w->pile.bytes.n += bytes;
}

static void pile_meta(struct writer *w, uint16_t id, const uint64_t *args, size_t arg_count,
	const char *text, size_t bytes)
{
	static const uint8_t zeros[8];
	const size_t words = RECORD_WORDS + arg_count + (bytes + 7) / 8;
	if (!expect(words <= UINT16_MAX, "the words of a record can be counted"))
		return;
	const struct record r = {
		.ticks = w->start_ns, .fn = id, .words = (uint16_t)words, .aux = (uint32_t)bytes
	};
	pile_up(w, &r, sizeof r);
	pile_up(w, args, arg_count * sizeof *args);
	pile_up(w, text, bytes);
	pile_up(w, zeros, -bytes & 7);
}

static void put_process(struct writer *w, const struct store_process *p)
{
	const struct store *s = w->s;
	char text[2048];
	const uint64_t parent = 0;
	if (!p->name)
		return;
	const struct store_string *name = &s->strings.v[p->name - 1];
	const struct store_string *all = &s->strings.v[(p->arguments ? p->arguments : p->name) - 1];
	const int n =
		snprintf(text, sizeof text, "%.*s%c%.*s", 1000, name->text, 0, 1000, all->text);
	pile_meta(w, META_PROCESS, &parent, 1, text, (size_t)n + 1);
}

/* Which process names which text: process << 32 | id, each pair once, sorted. */
struct uses {
	ARRAY(uint64_t) pairs;
	struct map seen;
};

static void use(struct uses *u, uint64_t process, uint32_t id)
{
	if (!id)
		return;
	uint32_t *seen = map_get(&u->seen, MAP_KEY(process, id));
	if (*seen != MAP_NONE)
		return;
	*seen = 1;
	*array_push(&u->pairs) = process << 32 | id;
}

static void find_uses(const struct store *s, struct uses *u)
{
	for (size_t i = 0; i < s->activities.n; i++)
		use(u, s->activities.v[i].host_ns - 1, s->activities.v[i].name);
	array_each(const struct range, r, s->ranges) {
		expect(r->tid < s->threads.n, "the thread of a range is one of all");
		const uint32_t process = s->threads.v[r->tid].process;
		use(u, process, r->name);
		use(u, process, r->args);
		use(u, process, r->scope);
	}
	SORT(u->pairs, order_u64);
}

static void put_strings(struct writer *w, uint32_t process, const struct uses *u, size_t *at)
{
	const struct store *s = w->s;
	for (; *at < u->pairs.n && u->pairs.v[*at] >> 32 == process; ++*at) {
		const uint64_t id = (uint32_t)u->pairs.v[*at];
		expect(id && id <= s->strings.n, "the number of a text is one of all");
		const struct store_string *text = &s->strings.v[id - 1];
		pile_meta(w, META_STRING, &id, 1, text->text, text->bytes);
		if (w->pile.bytes.n > CHUNK_BYTES)
			put_pile(w, CHUNK_META, process, NULL);
	}
}

static void put_devices(struct writer *w)
{
	array_each(const struct store_device, d, w->s->devices) {
		const struct store_string *name = &w->s->strings.v[d->name - 1];
		pile_meta(w, META_DEVICE, d->args, 4, name->text, name->bytes);
	}
	if (w->s->cuda_version >= 1000) {
		const unsigned version = w->s->cuda_version;
		char text[32];
		snprintf(text, sizeof text, "cuda %u.%u", version / 1000, version % 1000 / 10);
		pile_meta(w, META_FACT, NULL, 0, text, strlen(text));
	}
	if (*w->s->message)
		pile_meta(w, META_MESSAGE, NULL, 0, w->s->message, strlen(w->s->message));
}

static void put_names(struct writer *w)
{
	struct uses uses = { 0 };
	size_t at = 0;
	find_uses(w->s, &uses);
	for (uint32_t i = 0; i < w->s->processes.n; i++) {
		w->pile.seq = 0;
		put_process(w, &w->s->processes.v[i]);
		if (!i)
			put_devices(w);
		put_strings(w, i, &uses, &at);
		put_pile(w, CHUNK_META, i, NULL);
	}
	expect(at == uses.pairs.n, "each text that is used is written");
	array_free(&uses.pairs);
	map_fini(&uses.seen);
}

static void pile_call(struct writer *w, const struct store_call *c)
{
	const bool is_long = c->dur_ns > UINT32_MAX;
	expect(c->first_arg + (size_t)c->arg_count <= w->s->args.n,
		"the arguments of a call are of all");
	const uint64_t dur = is_long ? c->dur_ns >> 10 : c->dur_ns;
	const struct record r = { .ticks = c->start_ns,
		.dur = dur > UINT32_MAX ? UINT32_MAX : (uint32_t)dur,
		.fn = c->fn,
		.words = (uint16_t)(RECORD_WORDS + c->arg_count),
		.aux = c->aux,
		.result = c->result,
		.flags = is_long ? RECORD_LONG : 0 };
	pile_up(w, &r, sizeof r);
	if (!c->arg_count)
		return;
	pile_up(w, w->s->args.v + c->first_arg, c->arg_count * sizeof(uint64_t));
}

/* True when record i of `array` begins a chunk: another owner, or the pile is full. */
#define NEW_CHUNK(w, array, i, owner)                                                              \
	((i) == (array).n || (array).v[i].owner != (array).v[(i)-1].owner ||                       \
		(w)->pile.bytes.n > CHUNK_BYTES)

static void put_calls(struct writer *w)
{
	const struct store *s = w->s;
	for (size_t i = 0; i <= s->calls.n; i++) {
		if (i && NEW_CHUNK(w, s->calls, i, thread)) {
			const struct store_thread *t = &s->threads.v[s->calls.v[i - 1].thread];
			put_pile(w, CHUNK_EVENTS, t->process, t);
		}
		if (i < s->calls.n)
			pile_call(w, &s->calls.v[i]);
	}
}

static void put_ranges(struct writer *w)
{
	const struct store *s = w->s;
	for (size_t i = 0; i <= s->ranges.n; i++) {
		if (i && NEW_CHUNK(w, s->ranges, i, tid)) {
			const struct store_thread *t = &s->threads.v[s->ranges.v[i - 1].tid];
			put_pile(w, CHUNK_RANGES, t->process, t);
		}
		if (i == s->ranges.n)
			break;
		struct range r = s->ranges.v[i];
		r.tid = s->threads.v[r.tid].tid;
		pile_up(w, &r, sizeof r);
	}
}

static void put_activity(struct writer *w)
{
	const struct store *s = w->s;
	for (size_t i = 0; i <= s->activities.n; i++) {
		if (i && NEW_CHUNK(w, s->activities, i, host_ns))
			put_pile(w, CHUNK_DEVICE, (uint32_t)s->activities.v[i - 1].host_ns - 1,
				NULL);
		if (i == s->activities.n)
			break;
		struct gpu_activity r = s->activities.v[i];
		expect(r.host_ns && r.host_ns <= s->processes.n,
			"the process of an activity is one of all");
		r.host_ns = 0;
		pile_up(w, &r, sizeof r);
	}
}

static void put_links(struct writer *w)
{
	const struct store *s = w->s;
	for (size_t i = 0; i <= s->links.n; i++) {
		if (i && NEW_CHUNK(w, s->links, i, process))
			put_pile(w, CHUNK_LINKS, s->links.v[i - 1].process, NULL);
		if (i < s->links.n)
			pile_up(w, &s->links.v[i].link, sizeof(struct link));
	}
}

static void see(struct writer *w, uint64_t start_ns, uint64_t end_ns)
{
	w->start_ns = MIN(start_ns, w->start_ns);
	w->end_ns = MAX(end_ns, w->end_ns);
}

static void find_span(struct writer *w)
{
	const struct store *s = w->s;
	w->start_ns = UINT64_MAX;
	for (size_t i = 0; i < s->calls.n; i++)
		see(w, s->calls.v[i].start_ns, s->calls.v[i].start_ns + s->calls.v[i].dur_ns);
	for (size_t i = 0; i < s->ranges.n; i++)
		see(w, s->ranges.v[i].ticks, s->ranges.v[i].ticks + s->ranges.v[i].dur);
	for (size_t i = 0; i < s->activities.n; i++)
		see(w, s->activities.v[i].start_ns, s->activities.v[i].end_ns);
	if (w->start_ns > w->end_ns)
		w->start_ns = w->end_ns = 0;
}

#define SINCE_1970_NS 1000000000000000000ull /* in 2001: who counts so far counts from 1970 */

static struct clock_pair clocks_at(const struct store *s, uint64_t ns)
{
	const bool known = s->real_ns || ns > SINCE_1970_NS;
	return (struct clock_pair){ ns, ns, known ? s->real_ns + ns : 0 };
}

static struct trace_header header_of(const struct writer *w)
{
	const struct store *s = w->s;
	struct trace_header h = { .magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.header_bytes = sizeof h,
		.optional = FEATURE_DEVICE,
		.form = TRACE_PACKED,
		.clock = CLOCK_IS_MONOTONIC,
		.state = TRACE_FINISHED,
		.next = w->to.bytes,
		.processes = (uint32_t)s->processes.n,
		.start = clocks_at(s, w->start_ns),
		.end = clocks_at(s, w->end_ns),
		.root_pid = s->processes.n ? s->processes.v[0].pid : 0 };
	memcpy(h.program, s->program, sizeof h.program);
	memcpy(h.host, s->host, sizeof h.host);
	return h;
}

static void put_all(struct writer *w)
{
	struct store *s = w->s;
	pile_up(w, s->schema_text.v, s->schema_text.n);
	put_pile(w, CHUNK_SCHEMA, STORE_NONE, NULL);
	put_names(w);
	put_calls(w);
	put_ranges(w);
	put_links(w);
	put_activity(w);
}

int store_write(struct store *s, FILE *out, uint64_t *ret_bytes)
{
	struct writer w = { .s = s, .to = { .out = out } };
	arrange(s);
	find_span(&w);
	block_maker_init(&w.to.maker, LEVEL);
	struct trace_header h = header_of(&w);
	block_writer_put(&w.to, &h, sizeof h); /* to be written again when the length is known */
	put_all(&w);
	h = header_of(&w);
	const int e = block_writer_finish(&w.to, &h);
	block_maker_fini(&w.to.maker);
	array_free(&w.pile.bytes);
	*ret_bytes = w.to.bytes;
	return e;
}
