/*
 * Perfetto's trace format (perfetto.dev, protos/perfetto/trace): a Trace of TracePackets.
 * Each process and thread is a track, each call a slice with its arguments as annotations.
 * Names are interned: sent once, then numbered.
 *
 * Numbers of names: a function's is its id; an argument's 64 × id + index + 1; a kernel's
 * its index plus 1.
 */
#include "report/export.h"

#include <errno.h>
#include <stdlib.h>

#include "report/proto.h"

#include "base/banned.h"

enum { TRACE_PACKET = 1 };
enum {
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_TRACK = 60
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11
};
enum { TYPE_BEGIN = 1, TYPE_END = 2 };
enum { INTERNED_CATEGORY = 1, INTERNED_EVENT = 2, INTERNED_ANNOTATION = 3, INTERNED_STRING = 29 };
enum { IID = 1, IID_TEXT = 2 };
enum {
	NOTE_NAME_IID = 1,
	NOTE_UINT = 3,
	NOTE_STRING = 6,
	NOTE_POINTER = 7,
	NOTE_NAME = 10,
	NOTE_STRING_IID = 17
};

#define STACK    64
#define SEQUENCE 1

struct perfetto {
	struct proto p;
	bool *fn_sent;     /* by function id */
	bool *kernel_sent; /* by index into meta->names */
	bool started;
	int depth;
	uint64_t ends[STACK]; /* of the calls that contain the next, within the chunk */
	uint64_t track;
};

static uint64_t process_track(uint32_t process)
{
	return ((uint64_t)process + 1) << 32;
}

static uint64_t thread_track(const struct chunk_ref *c)
{
	return process_track(c->process) | (c->head.tid ? c->head.tid : UINT32_MAX);
}

static size_t open_packet(struct perfetto *s)
{
	const size_t packet = proto_open(&s->p, TRACE_PACKET);
	proto_uint(&s->p, PACKET_SEQUENCE, SEQUENCE);
	if (!s->started)
		proto_uint(&s->p, PACKET_FLAGS, FLAG_CLEARED);
	else
		proto_uint(&s->p, PACKET_FLAGS, FLAG_NEEDS_STATE);
	s->started = true;
	return packet;
}

static int write_out(struct export *x)
{
	struct perfetto *s = x->state;
	if (s->p.failed)
		return -ENOMEM;
	if (s->p.bytes.n && fwrite(s->p.bytes.v, 1, s->p.bytes.n, x->out) != s->p.bytes.n)
		return errno ? -errno : -EIO;
	s->p.bytes.n = 0;
	return 0;
}

/* ---- tracks ---- */

static void put_process(struct export *x, uint32_t i)
{
	struct perfetto *s = x->state;
	const struct meta_process *m = &x->meta->processes.v[i];
	const size_t packet = open_packet(s);
	const size_t track = proto_open(&s->p, PACKET_TRACK);
	proto_uint(&s->p, TRACK_UUID, process_track(i));
	const size_t process = proto_open(&s->p, TRACK_PROCESS);
	proto_uint(&s->p, PROCESS_PID, x->trace->processes.v[i].pid);
	if (*m->arguments)
		proto_str(&s->p, PROCESS_CMDLINE, m->arguments);
	proto_str(&s->p, PROCESS_NAME, *m->executable ? m->executable : "process");
	proto_close(&s->p, process);
	proto_close(&s->p, track);
	proto_close(&s->p, packet);
}

static int begin(struct export *x)
{
	struct perfetto *s = x->state = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fn_sent = calloc(0x10000, sizeof(bool));
	s->kernel_sent = calloc(x->meta->names.n + 1, sizeof(bool));
	if (!s->fn_sent || !s->kernel_sent)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->meta->processes.n; i++)
		put_process(x, i);
	return write_out(x);
}

static int thread(struct export *x, const struct chunk_ref *c)
{
	struct perfetto *s = x->state;
	const size_t packet = open_packet(s);
	const size_t track = proto_open(&s->p, PACKET_TRACK);
	proto_uint(&s->p, TRACK_UUID, thread_track(c));
	proto_uint(&s->p, TRACK_PARENT, process_track(c->process));
	const size_t t = proto_open(&s->p, TRACK_THREAD);
	proto_uint(&s->p, THREAD_PID, c->head.pid);
	proto_uint(&s->p, THREAD_TID, c->head.tid);
	if (*c->head.thread)
		proto_str(&s->p, THREAD_NAME, c->head.thread);
	proto_close(&s->p, t);
	proto_close(&s->p, track);
	proto_close(&s->p, packet);
	return write_out(x);
}

/* ---- names ---- */

static void put_interned(struct perfetto *s, uint32_t field, uint64_t iid, const char *text)
{
	const size_t entry = proto_open(&s->p, field);
	proto_uint(&s->p, IID, iid);
	proto_str(&s->p, IID_TEXT, text);
	proto_close(&s->p, entry);
}

static uint64_t arg_iid(const struct schema_fn *fn, unsigned i)
{
	return (uint64_t)fn->id * 64 + i + 1;
}

static void intern(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	const uint16_t id = c->record->fn;
	const bool new_kernel = c->kernel != META_NONE && !s->kernel_sent[c->kernel];
	if (s->fn_sent[id] && !new_kernel)
		return;
	const size_t data = proto_open(&s->p, PACKET_INTERNED);
	if (!s->fn_sent[id]) {
		put_interned(s, INTERNED_EVENT, id, c->name);
		put_interned(s, INTERNED_CATEGORY, id, c->fn ? c->fn->class : "unknown");
		for (unsigned i = 0; c->fn && i < c->fn->arg_count; i++)
			put_interned(
				s, INTERNED_ANNOTATION, arg_iid(c->fn, i), c->fn->args[i].name);
	}
	if (new_kernel) {
		put_interned(s, INTERNED_STRING, c->kernel + 1u, export_kernel_name(x, c->kernel));
		s->kernel_sent[c->kernel] = true;
	}
	s->fn_sent[id] = true;
	proto_close(&s->p, data);
}

/* ---- slices ---- */

static void put_number(struct perfetto *s, const char *name, uint32_t kind, uint64_t value)
{
	const size_t note = proto_open(&s->p, EVENT_ANNOTATION);
	proto_str(&s->p, NOTE_NAME, name);
	proto_uint(&s->p, kind, value);
	proto_close(&s->p, note);
}

static void put_text(struct perfetto *s, const char *name, const char *text)
{
	const size_t note = proto_open(&s->p, EVENT_ANNOTATION);
	proto_str(&s->p, NOTE_NAME, name);
	proto_str(&s->p, NOTE_STRING, text);
	proto_close(&s->p, note);
}

static void put_triple(struct perfetto *s, const char *name, const uint32_t *v)
{
	char text[48];
	snprintf(text, sizeof(text), "(%u,%u,%u)", v[0], v[1], v[2]);
	put_text(s, name, text);
}

static void put_launch(struct perfetto *s, const struct export_call *c)
{
	if (c->kernel != META_NONE)
		put_number(s, "kernel", NOTE_STRING_IID, c->kernel + 1u);
	else
		put_number(s, "kernel", NOTE_POINTER, c->record->arg[LAUNCH_FUNCTION]);
	put_triple(s, "grid", c->shape.grid);
	put_triple(s, "block", c->shape.block);
	put_number(s, "shared", NOTE_UINT, c->record->aux);
	put_number(s, "stream", NOTE_POINTER, c->record->arg[LAUNCH_STREAM]);
}

static void put_arg(struct export *x, const struct export_call *c, unsigned i)
{
	struct perfetto *s = x->state;
	char text[600];
	const size_t n = decode_arg(x->decoder, c->fn, i, c->record, text, sizeof(text));
	const size_t note = proto_open(&s->p, EVENT_ANNOTATION);
	proto_uint(&s->p, NOTE_NAME_IID, arg_iid(c->fn, i));
	proto_bytes(&s->p, NOTE_STRING, text, n);
	proto_close(&s->p, note);
}

static void put_notes(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	const char *error = decode_result(x->decoder, c->fn, c->record->result);
	if (c->launch)
		put_launch(s, c);
	else
		for (unsigned i = 0; c->fn && i < c->fn->arg_count; i++)
			put_arg(x, c, i);
	if (c->record->result && error)
		put_text(s, "result", error);
	else if (c->record->result)
		put_number(s, "result", NOTE_UINT, c->record->result);
	if (c->record->flags & RECORD_CAPTURED)
		put_text(s, "captured", "into a graph");
}

static void put_end(struct perfetto *s, uint64_t ns)
{
	const size_t packet = open_packet(s);
	proto_uint(&s->p, PACKET_TIMESTAMP, ns);
	const size_t event = proto_open(&s->p, PACKET_EVENT);
	proto_uint(&s->p, EVENT_TYPE, TYPE_END);
	proto_uint(&s->p, EVENT_TRACK, s->track);
	proto_close(&s->p, event);
	proto_close(&s->p, packet);
}

/* Ends what is over before `ns`. */
static void pop(struct perfetto *s, uint64_t ns)
{
	while (s->depth && s->ends[s->depth - 1] <= ns)
		put_end(s, s->ends[--s->depth]);
}

static void put_begin(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	const size_t packet = open_packet(s);
	proto_uint(&s->p, PACKET_TIMESTAMP, c->begin_ns);
	intern(x, c);
	const size_t event = proto_open(&s->p, PACKET_EVENT);
	proto_uint(&s->p, EVENT_TYPE, TYPE_BEGIN);
	proto_uint(&s->p, EVENT_TRACK, s->track);
	proto_uint(&s->p, EVENT_NAME_IID, c->record->fn);
	proto_uint(&s->p, EVENT_CATEGORY_IIDS, c->record->fn);
	put_notes(x, c);
	proto_close(&s->p, event);
	proto_close(&s->p, packet);
}

/* A callee ends no later than its caller, whatever a rounded clock says. */
static int call(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	uint64_t end = c->end_ns;
	s->track = thread_track(c->chunk);
	pop(s, c->begin_ns);
	if (s->depth && end > s->ends[s->depth - 1])
		end = s->ends[s->depth - 1];
	put_begin(x, c);
	if (s->depth < STACK)
		s->ends[s->depth++] = end;
	else
		put_end(s, end);
	return write_out(x);
}

static int chunk_end(struct export *x, const struct chunk_ref *c)
{
	struct perfetto *s = x->state;
	pop(s, UINT64_MAX);
	return write_out(x);
}

static void cleanup(struct export *x)
{
	struct perfetto *s = x->state;
	if (!s)
		return;
	array_free(&s->p.bytes);
	free(s->fn_sent);
	free(s->kernel_sent);
	free(s);
}

const struct exporter export_perfetto = {
	.name = "perfetto",
	.help = "for ui.perfetto.dev: one track a thread, one slice a call",
	.begin = begin,
	.thread = thread,
	.call = call,
	.chunk_end = chunk_end,
	.cleanup = cleanup,
};
