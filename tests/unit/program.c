/* Plays programs of several threads on a simulated device: see program.h. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "event/format.h"
#include "maker.h"
#include "trace/activity.h"

#define ORIGIN  1000000ull /* of the maker's clock */
#define PID     7u
#define NOTHING UINT32_MAX

enum {
	FN_WAIT_EVENT = 40,
	FN_SYNC_EVENT = 41,
	FN_SYNC_ALL = 42,
	FN_HOST_FUNCTION = 43,
	FN_COPY_WAITS = 44
};

static const char more_schema[] =
	"40 driver sync call cuStreamWaitEvent(CUstream hStream, CUevent hEvent, uint Flags)\n"
	"41 driver sync call cuEventSynchronize(CUevent hEvent)\n"
	"42 driver sync call cuCtxSynchronize()\n"
	"43 driver other call cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData)\n"
	"44 driver copy copy:n=2:d=DtoH cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, "
	"size_t ByteCount)\n"
	"type CUhostFn ptr 8\n";

/* A moment, and what it waits for. */
struct before {
	uint32_t moment;
	uint32_t ns; /* that come between */
	uint8_t part;
};

struct instant {
	uint64_t ns, least_ns; /* least: with a host that takes no time */
	struct before before[3], last;
	uint32_t n;
};

struct stream {
	uint32_t last;   /* moment: all that it was given is done */
	uint32_t awaits; /* moment that the next must wait for, or NOTHING */
	bool function;   /* last is a host function's end */
};

struct player {
	const struct program *p;
	struct maker *m;
	ARRAY(struct instant) moments;
	ARRAY(struct gpu_activity) activities;
	ARRAY(uint32_t) ends;             /* moments, beside activities */
	ARRAY(struct gpu_activity) waits; /* of bare calls: the profiler's record beside each */
	ARRAY(struct link) links;
	struct stream streams[PROGRAM_STREAMS];
	uint32_t events[PROGRAM_SIGNALS];
	struct {
		ARRAY(uint32_t) given; /* moments */
		size_t taken;
	} signals[PROGRAM_SIGNALS];
	struct {
		uint32_t now; /* moment */
		size_t next;  /* op */
		int chunk;
	} threads[PROGRAM_THREADS];
	uint64_t seed;
};

static uint32_t below(struct player *y, uint32_t n)
{
	y->seed = hash_mix(y->seed + 1);
	return (uint32_t)(y->seed % n);
}

static void need(bool ok)
{
	if (!ok)
		abort();
}

static bool is_host(uint8_t part)
{
	return part == PATH_HOST || part == PATH_LAUNCH || part == PATH_WAITING;
}

static uint64_t at(const struct player *y, uint32_t moment)
{
	return y->moments.v[moment].ns;
}

/* The moment at which all of these are over. */
static uint32_t moment(struct player *y, const struct before *before, uint32_t n)
{
	struct instant new = { .n = n };
	for (uint32_t i = 0; i < n; i++) {
		const struct before *b = &before[i];
		const struct instant *m = &y->moments.v[b->moment];
		const uint64_t least = m->least_ns + (is_host(b->part) ? 0 : b->ns);
		if (!i || m->ns + b->ns > new.ns) {
			new.ns = m->ns + b->ns;
			new.last = *b;
		}
		new.least_ns = least > new.least_ns ? least : new.least_ns;
	}
	struct instant *to = array_push(&y->moments);
	need(to);
	*to = new;
	return (uint32_t)(y->moments.n - 1);
}

static uint32_t after(struct player *y, uint32_t from, uint32_t ns, enum path_part part)
{
	return moment(y, &(struct before){ from, ns, (uint8_t)part }, 1);
}

static void put_call(struct player *y, uint32_t thread, uint16_t fn, uint64_t from, uint64_t to,
	uint32_t words, const uint64_t *args)
{
	const uint32_t n = y->p->bare ? 0 : words;
	maker_put(y->m, y->threads[thread].chunk,
		(struct record){ .ticks = ORIGIN + from,
			.dur = (uint32_t)(to - from),
			.fn = fn,
			.words = (uint16_t)(RECORD_WORDS + n) },
		args);
}

/* A call that takes some microseconds. */
static uint64_t call(
	struct player *y, uint32_t thread, uint16_t fn, uint32_t words, const uint64_t *args)
{
	const uint64_t from = at(y, y->threads[thread].now);
	y->threads[thread].now = after(y, y->threads[thread].now, 2500 + below(y, 4000), PATH_HOST);
	put_call(y, thread, fn, from, at(y, y->threads[thread].now), words, args);
	return from;
}

static uint64_t handle(uint32_t stream)
{
	return 0x5000 + stream * 16;
}

static void put_link(struct player *y, uint32_t thread, uint16_t fn, uint64_t from)
{
	struct link *l = array_push(&y->links);
	need(l);
	*l = (struct link){ .correlation = y->links.n,
		.ticks = ORIGIN + from,
		.dur = at(y, y->threads[thread].now) - from,
		.tid = y->p->first_tid + y->p->thread_of[thread],
		.fn = fn };
}

/* The stream's next moment: after its last, after an event, and after `asked`. */
static uint32_t begin(
	struct player *y, uint32_t stream, uint32_t asked, uint32_t latency, enum path_part part)
{
	struct stream *s = &y->streams[stream];
	struct before b[3] = { { asked, latency, (uint8_t)part } };
	uint32_t n = 1;
	if (s->last)
		b[n++] = (struct before){ s->last, 1000 + below(y, 300),
			s->function ? PATH_HOST : PATH_QUEUE };
	if (s->awaits != NOTHING)
		b[n++] = (struct before){ s->awaits, 1500 + below(y, 500), PATH_QUEUE };
	s->awaits = NOTHING;
	s->function = false;
	return moment(y, b, n);
}

static void run(struct player *y, uint32_t stream, uint32_t start, uint32_t ns, bool copies)
{
	struct stream *s = &y->streams[stream];
	s->last = after(y, start, ns, copies ? PATH_COPYING : PATH_COMPUTING);
	struct gpu_activity *a = array_push(&y->activities);
	uint32_t *end = array_push(&y->ends);
	need(a && end);
	*a = (struct gpu_activity){ .start_ns = ORIGIN + at(y, start),
		.end_ns = ORIGIN + at(y, s->last),
		.correlation = y->links.n,
		.name = copies ? 0 : 1,
		.device = stream >= PROGRAM_STREAMS / 2,
		.stream = stream + 1,
		.kind = copies ? GPU_MEMCPY : GPU_KERNEL,
		.valid = GPU_HAS_STREAM | GPU_HAS_DEVICE | GPU_HAS_CORRELATION };
	*end = s->last;
}

static void launch(struct player *y, uint32_t thread, const struct op *o)
{
	const bool copies = o->kind == OP_COPY, graph = o->kind == OP_GRAPH;
	const uint16_t fn = copies ? FN_HTOD : graph ? FN_GRAPH_LAUNCH : FN_LAUNCH;
	const uint64_t args[][5] = { { 1, handle(o->stream), 1, 1, 1 },
		{ 0, 0, 64, handle(o->stream) } };
	const uint64_t from = call(y, thread, fn, copies ? 4 : graph ? 2 : 5, args[copies]);
	put_link(y, thread, fn, from);
	for (uint32_t i = 0; i < (graph ? o->count : 1); i++)
		run(y, o->stream,
			begin(y, o->stream, y->threads[thread].now, 1500 + below(y, 2000),
				PATH_LAUNCH),
			o->ns, copies);
}

static void put_wait(struct player *y, uint32_t thread, uint32_t from, uint32_t stream)
{
	struct gpu_activity *w = array_push(&y->waits);
	need(w);
	put_link(y, thread, FN_SYNC, at(y, from));
	*w = (struct gpu_activity){ .start_ns = ORIGIN + at(y, from),
		.end_ns = ORIGIN + at(y, y->threads[thread].now),
		.correlation = y->links.n,
		.stream = stream + 1,
		.what = WAIT_STREAM,
		.kind = GPU_SYNC,
		.valid = GPU_HAS_STREAM | GPU_HAS_WHAT | GPU_HAS_CORRELATION };
}

/* A call that returns when all of these moments are over. */
static void wait_for(struct player *y, uint32_t thread, uint16_t fn, uint32_t words, uint64_t arg,
	const uint32_t *moments, uint32_t n)
{
	const uint32_t now = y->threads[thread].now;
	uint32_t last = n ? moments[0] : 0;
	for (uint32_t i = 1; i < n; i++)
		last = at(y, moments[i]) > at(y, last) ? moments[i] : last;
	struct before b[2] = { { now, 2000 + below(y, 1500), PATH_HOST },
		{ last, 4000 + below(y, 6000), PATH_WAITING } };
	/* An earlier end is known at once; a host that takes no time may have to wait. */
	if (n && at(y, last) <= at(y, now))
		b[1].ns = 0;
	y->threads[thread].now = moment(y, b, n ? 2 : 1);
	put_call(y, thread, fn, at(y, now), at(y, y->threads[thread].now), words, &arg);
}

static void copy_and_wait(struct player *y, uint32_t thread, const struct op *o)
{
	const uint32_t from = y->threads[thread].now;
	put_link(y, thread, FN_COPY_WAITS, at(y, from));
	run(y, o->stream, begin(y, o->stream, from, 4000 + below(y, 2000), PATH_HOST), o->ns, true);
	y->threads[thread].now =
		after(y, y->streams[o->stream].last, 3000 + below(y, 3000), PATH_WAITING);
	y->links.v[y->links.n - 1].dur = at(y, y->threads[thread].now) - at(y, from);
	put_call(y, thread, FN_COPY_WAITS, at(y, from), at(y, y->threads[thread].now), 3,
		(uint64_t[3]){ 0 });
}

static void sync_all(struct player *y, uint32_t thread)
{
	uint32_t moments[PROGRAM_STREAMS], n = 0;
	for (uint32_t i = 0; i < PROGRAM_STREAMS; i++)
		if (y->streams[i].last)
			moments[n++] = y->streams[i].last;
	wait_for(y, thread, FN_SYNC_ALL, 0, 0, moments, n);
}

static void give(struct player *y, uint32_t signal, uint32_t moment)
{
	uint32_t *to = array_push(&y->signals[signal].given);
	need(to);
	*to = moment;
}

static void host_function(struct player *y, uint32_t thread, const struct op *o)
{
	struct stream *s = &y->streams[o->stream];
	call(y, thread, FN_HOST_FUNCTION, 3, (uint64_t[3]){ handle(o->stream) });
	struct before b[2] = { { y->threads[thread].now, 3000, PATH_HOST },
		{ s->last, 3000, PATH_HOST } };
	const uint32_t begun = moment(y, b, s->last ? 2 : 1);
	s->last = after(y, begun, o->ns, PATH_HOST);
	s->function = true;
	give(y, o->what, s->last);
}

/* False: nobody has given it. */
static bool take(struct player *y, uint32_t thread, uint32_t signal, uint32_t wake_ns)
{
	if (y->signals[signal].taken == y->signals[signal].given.n)
		return false;
	const uint32_t given = y->signals[signal].given.v[y->signals[signal].taken++];
	const uint32_t usual_ns = 6000 + below(y, 40000);
	struct before b[2] = { { y->threads[thread].now, 300, PATH_HOST },
		{ given, wake_ns ? wake_ns : usual_ns, PATH_HOST } };
	if (at(y, given) <= at(y, y->threads[thread].now)) /* it need not sleep */
		b[1].ns = 0;
	y->threads[thread].now = moment(y, b, 2);
	return true;
}

static bool play(struct player *y, uint32_t thread, const struct op *o)
{
	struct stream *s = &y->streams[o->stream];
	const uint32_t from = y->threads[thread].now;
	switch (o->kind) {
	case OP_COMPUTE:
		y->threads[thread].now = after(y, y->threads[thread].now, o->ns, PATH_HOST);
		break;
	case OP_KERNEL:
	case OP_GRAPH:
	case OP_COPY:
		launch(y, thread, o);
		break;
	case OP_COPY_WAITS:
		copy_and_wait(y, thread, o);
		break;
	case OP_SYNC:
		wait_for(y, thread, FN_SYNC, 1, handle(o->stream), &s->last, s->last != 0);
		if (y->p->bare)
			put_wait(y, thread, from, o->stream);
		break;
	case OP_SYNC_ALL:
		sync_all(y, thread);
		break;
	case OP_SYNC_EVENT:
		wait_for(y, thread, FN_SYNC_EVENT, 1, 0x9000 + o->what, &y->events[o->what],
			y->events[o->what] != 0);
		break;
	case OP_RECORD:
		call(y, thread, FN_EVENT_RECORD, 2,
			(uint64_t[2]){ 0x9000 + o->what, handle(o->stream) });
		y->events[o->what] = s->last;
		break;
	case OP_WAIT_EVENT:
		call(y, thread, FN_WAIT_EVENT, 3,
			(uint64_t[3]){ handle(o->stream), 0x9000 + o->what });
		s->awaits = y->events[o->what] ? y->events[o->what] : NOTHING;
		break;
	case OP_HOST_FUNCTION:
		host_function(y, thread, o);
		break;
	case OP_GIVE:
		give(y, o->what, y->threads[thread].now);
		break;
	case OP_TAKE:
		return take(y, thread, o->what, o->ns);
	}
	return true;
}

/* Whether the thread can go on. */
static bool is_ready(const struct player *y, uint32_t thread)
{
	const struct script *s = &y->p->threads[thread];
	const size_t next = y->threads[thread].next;
	if (next == s->ops.n)
		return false;
	const struct op *o = &s->ops.v[next];
	return o->kind != OP_TAKE || y->signals[o->what].taken < y->signals[o->what].given.n;
}

/* The thread that is furthest behind goes on: so calls come in the order of time. */
static void play_all(struct player *y)
{
	for (;;) {
		uint32_t first = NOTHING;
		for (uint32_t i = 0; i < PROGRAM_THREADS; i++)
			if (is_ready(y, i) &&
				(first == NOTHING ||
					at(y, y->threads[i].now) < at(y, y->threads[first].now)))
				first = i;
		if (first == NOTHING)
			break;
		need(play(y, first, &y->p->threads[first].ops.v[y->threads[first].next]));
		y->threads[first].next++;
	}
	for (uint32_t i = 0; i < PROGRAM_THREADS; i++)
		need(y->threads[i].next == y->p->threads[i].ops.n); /* else a signal is missing */
}

static void truth(const struct player *y, uint64_t wall_ns, uint64_t ns[PATH_PARTS])
{
	static const enum path_part host[] = { PATH_HOST, PATH_WAITING, PATH_LAUNCH };
	uint64_t first = UINT64_MAX, least = 0, early = 0, sum = 0;
	uint32_t last = y->ends.v[0];
	for (size_t i = 0; i < y->ends.n; i++) {
		const struct instant *m = &y->moments.v[y->ends.v[i]];
		const uint64_t start = y->activities.v[i].start_ns - ORIGIN;
		first = start < first ? start : first;
		last = m->ns > at(y, last) ? y->ends.v[i] : last;
		least = m->least_ns > least ? m->least_ns : least;
	}
	const uint64_t end = at(y, last);
	ns[PATH_AFTER] = wall_ns - end;
	while (at(y, last) > first) {
		const struct instant *m = &y->moments.v[last];
		const uint64_t from = at(y, m->last.moment);
		ns[m->last.part] += m->ns - (from > first ? from : first);
		last = m->last.moment;
	}
	const struct instant *m = &y->moments.v[last];
	if (at(y, last) == first && m->n && m->last.part == PATH_LAUNCH)
		early = first - at(y, m->last.moment);
	ns[PATH_LAUNCH] += early;
	ns[PATH_BEFORE] = first - early;
	for (int i = 0; i < 3; i++)
		sum += ns[host[i]];
	const uint64_t saved = end - first - least + early;
	uint64_t more = sum > saved ? sum - saved : 0;
	ns[PATH_OVERLAPPED] = more;
	for (int i = 0; i < 3; i++) {
		const uint64_t taken = more < ns[host[i]] ? more : ns[host[i]];
		ns[host[i]] -= taken;
		more -= taken;
	}
}

static void start(struct player *y, const char *path)
{
	char *schema = malloc(strlen(maker_schema) + sizeof more_schema);
	need(schema != NULL);
	array_reserve(&y->moments, 1);
	y->moments.n = 1;
	y->moments.v[0] = (struct instant){ 0 };
	sprintf(schema, "%s%s", maker_schema, more_schema);
	y->m = maker_new(path, schema, 1 << 16);
	free(schema);
	for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
		const uint32_t as = y->p->thread_of[i];
		y->threads[i].chunk = as < i ? y->threads[as].chunk
					     : maker_thread(y->m, CHUNK_EVENTS, PID,
						       y->p->first_tid + as, "thread");
	}
	const int names = maker_thread(y->m, CHUNK_META, PID, 0, "");
	maker_meta(y->m, names, META_STRING, ORIGIN, 1, (uint64_t[]){ 1 }, "axpy", 4, 4);
	for (uint32_t i = 0; i < PROGRAM_STREAMS; i++)
		y->streams[i].awaits = NOTHING;
}

void program_play(const struct program *p, const char *path, uint64_t ret_ns[PATH_PARTS])
{
	struct player y = { .p = p, .seed = p->seed };
	uint64_t wall = 0;
	start(&y, path);
	play_all(&y);
	for (size_t i = 0; i < y.moments.n; i++)
		wall = y.moments.v[i].ns > wall ? y.moments.v[i].ns : wall;
	wall += 5000;
	maker_chunk(y.m, CHUNK_LINKS, PID, 0, y.links.v, (uint32_t)(y.links.n * sizeof *y.links.v));
	maker_chunk(y.m, CHUNK_DEVICE, PID, 0, y.activities.v,
		(uint32_t)(y.activities.n * sizeof *y.activities.v));
	if (y.waits.n)
		maker_chunk(y.m, CHUNK_DEVICE, PID, 0, y.waits.v,
			(uint32_t)(y.waits.n * sizeof *y.waits.v));
	maker_finish(y.m, ORIGIN + wall, false);
	memset(ret_ns, 0, PATH_PARTS * sizeof *ret_ns);
	truth(&y, wall, ret_ns);
	array_free(&y.moments);
	array_free(&y.activities);
	array_free(&y.ends);
	array_free(&y.waits);
	array_free(&y.links);
	for (uint32_t i = 0; i < PROGRAM_SIGNALS; i++)
		array_free(&y.signals[i].given);
}

void program_op(struct program *p, uint32_t thread, struct op op)
{
	struct op *to = array_push(&p->threads[thread].ops);
	need(to);
	*to = op;
}

void program_fini(struct program *p)
{
	for (uint32_t i = 0; i < PROGRAM_THREADS; i++)
		array_free(&p->threads[i].ops);
}
