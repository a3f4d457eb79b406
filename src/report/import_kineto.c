/*
 * Kineto's traces (torch.profiler) and others in Chrome's JSON: an object with traceEvents, or
 * the bare array.  One event is in memory at a time.  Events are told by their category; the
 * names that older versions of PyTorch used are known too.  Times are microseconds with a
 * decimal fraction, taken digit by digit: a double would lose nanoseconds.
 */
#include "report/import_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/progress.h"
#include "report/import_json.h"
#include "report/import_memory.h"

#include "base/banned.h"

#define ARGS_MOST 4096u /* bytes of what is kept of an operator's arguments */
#define TEXT_ID   (1ull << 63)
#define KEYS_MOST 4096u /* spellings of keys that are remembered */

/* A number, or a text where a number was to be expected. */
struct field {
	bool there;
	bool text; /* value is the id of a string */
	bool bad;  /* something stands there, but no number that fits */
	int64_t value;
};

enum known {
	NOTHING,
	K_PH,
	K_CAT,
	K_NAME,
	K_PID,
	K_TID,
	K_TS,
	K_DUR,
	K_ARGS,
	A_EXTERNAL,
	A_CORRELATION,
	A_DEVICE,
	A_CONTEXT,
	A_STREAM,
	A_BYTES,
	A_REGISTERS,
	A_SHARED,
	A_GRAPH,
	A_GRAPH_NODE,
	A_SEQUENCE,
	A_GRID,
	A_BLOCK,
	A_NAME,
	A_ADDRESS, /* of allocations, and the next three */
	A_TOTAL,
	A_DEVICE_TYPE,
	A_DEVICE_ID,
	A_DROPPED, /* differs from event to event and says nothing */
	KNOWN_COUNT,
};

struct event {
	char phase;
	uint32_t category, name; /* strings, 0 when missing */
	struct field pid, tid;
	struct field ts, dur; /* nanoseconds */
	struct field arg[KNOWN_COUNT];
	uint32_t grid[3], block[3];
	bool has_grid, has_block;
	uint32_t label; /* args.name */
	struct json_text args;
	bool args_cut;
};

enum category {
	C_UNKNOWN = 1,
	C_NONE, /* says nothing about the program */
	C_OPERATOR,
	C_ANNOTATION,
	C_PYTHON,
	C_OVERHEAD,
	C_RUNTIME,
	C_DRIVER,
	C_KERNEL,
	C_COPY,
	C_SET,
	C_WAIT,
	C_SPAN,
};

/* A begin event that waits for its end. */
struct open_range {
	uint32_t thread;
	uint32_t below; /* of the same thread: index, or STORE_NONE */
	struct range range;
};

struct named {
	uint64_t pid, tid; /* keys */
	uint32_t name;
	bool thread;
};

struct kineto {
	struct store *s;
	struct import_stats *st;
	struct json_reader r;
	struct event event;
	uint64_t events;
	struct map keys;      /* hash of a key: enum known */
	ARRAY(uint8_t) kinds; /* by string: enum category, or 0 */
	ARRAY(uint16_t) fns;  /* by string: function, or 0 */
	ARRAY(struct named) names;
	ARRAY(struct open_range) open;
	struct memory_import memory;
	struct map top; /* thread: index into open */
	uint64_t no_time;
	uint64_t base_ns;
	struct progress progress;
	uint64_t file_bytes;
	bool saw_events;
};

/* ---- words ---- */

struct word {
	const char *word;
	uint8_t meaning;
};

static const struct word event_words[] = {
	{ "ph", K_PH },
	{ "cat", K_CAT },
	{ "name", K_NAME },
	{ "pid", K_PID },
	{ "tid", K_TID },
	{ "ts", K_TS },
	{ "dur", K_DUR },
	{ "args", K_ARGS },
};

/* Lower case; the file may have capitals. */
static const struct word arg_words[] = {
	{ "external id", A_EXTERNAL },
	{ "correlation", A_CORRELATION },
	{ "device", A_DEVICE },
	{ "context", A_CONTEXT },
	{ "stream", A_STREAM },
	{ "bytes", A_BYTES },
	{ "registers per thread", A_REGISTERS },
	{ "shared memory", A_SHARED },
	{ "graph id", A_GRAPH },
	{ "graph node id", A_GRAPH_NODE },
	{ "sequence number", A_SEQUENCE },
	{ "grid", A_GRID },
	{ "block", A_BLOCK },
	{ "name", A_NAME },
	{ "addr", A_ADDRESS },
	{ "total allocated", A_TOTAL },
	{ "device type", A_DEVICE_TYPE },
	{ "device id", A_DEVICE_ID },
	{ "ev idx", A_DROPPED },
	{ "record function id", A_DROPPED },
	{ "fwd thread id", A_DROPPED },
	{ "python id", A_DROPPED },
	{ "python parent id", A_DROPPED },
	{ "python module id", A_DROPPED },
	{ "cbid", A_DROPPED },
	{ "queued", A_DROPPED },
};

static const struct word categories[] = {
	{ "cpu_op", C_OPERATOR },
	{ "operator", C_OPERATOR },
	{ "user_annotation", C_ANNOTATION },
	{ "python_function", C_PYTHON },
	{ "overhead", C_OVERHEAD },
	{ "cuda_runtime", C_RUNTIME },
	{ "runtime", C_RUNTIME },
	{ "cuda_driver", C_DRIVER },
	{ "kernel", C_KERNEL },
	{ "gpu_memcpy", C_COPY },
	{ "memcpy", C_COPY },
	{ "gpu_memset", C_SET },
	{ "memset", C_SET },
	{ "cuda_sync", C_WAIT },
	{ "gpu_user_annotation", C_SPAN },
	{ "trace", C_NONE },
	{ "cpu_instant_event", C_NONE },
	{ "cuda_profiler_range", C_NONE },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool same_word(const char *word, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!word[i] || word[i] != lower(text[i]))
			return false;
	return !word[bytes];
}

static uint8_t meaning_of(const struct word *words, size_t count, const char *text, size_t bytes)
{
	for (size_t i = 0; i < count; i++)
		if (same_word(words[i].word, text, bytes))
			return words[i].meaning;
	return NOTHING;
}

/* ---- fields ---- */

static int take_text(struct kineto *k, uint32_t *ret_id)
{
	return store_string(k->s, k->r.text.v, k->r.text.n, ret_id);
}

/* A value where a number belongs: `5`, `"5"`, or a text that stands for itself. */
static int take_field(struct kineto *k, enum json_token t, int power, struct field *f)
{
	uint32_t id;
	*f = (struct field){ 0 };
	if (t != JSON_NUMBER && t != JSON_STRING)
		return json_skip(&k->r, t) ? 0 : -EBADMSG;
	f->there = json_number(k->r.text.v, k->r.text.n, power, &f->value);
	f->bad = !f->there;
	if (f->there || t == JSON_NUMBER || power)
		return 0;
	const int e = take_text(k, &id);
	*f = (struct field){ .there = !e, .text = true, .value = id };
	return e;
}

static int take_string_value(struct kineto *k, enum json_token t, uint32_t *ret_id)
{
	if (t == JSON_STRING || t == JSON_NUMBER)
		return take_text(k, ret_id);
	return json_skip(&k->r, t) ? 0 : -EBADMSG;
}

/* [x, y, z] */
static int take_triple(struct kineto *k, enum json_token t, uint32_t *v, bool *ret_there)
{
	int n = 0;
	int64_t value;
	if (t != JSON_ARRAY)
		return json_skip(&k->r, t) ? 0 : -EBADMSG;
	while ((t = json_next(&k->r)) != JSON_ARRAY_END) {
		if (t == JSON_ERROR || !json_skip(&k->r, t))
			return -EBADMSG;
		if (t == JSON_NUMBER && n < 3 && json_number(k->r.text.v, k->r.text.n, 0, &value) &&
			value >= 0 && value <= UINT32_MAX)
			v[n++] = (uint32_t)value;
	}
	*ret_there = n == 3;
	return 0;
}

/* An argument that nothing else takes is kept as text: `"key":value`, commas between. */
static int keep_arg(struct kineto *k, const char *key, size_t key_bytes, enum json_token t)
{
	struct event *ev = &k->event;
	const size_t before = ev->args.bytes.n;
	bool cut = before + key_bytes + 4 > ARGS_MOST || !array_reserve(&ev->args.bytes, 4);
	if (!cut)
		ev->args.bytes.v[ev->args.bytes.n++] = before ? ',' : '{';
	/* Keys come from the profiler and are plain words; others are left out. */
	for (size_t i = 0; i < key_bytes; i++)
		cut |= key[i] == '"' || key[i] == '\\' || (uint8_t)key[i] < ' ';
	if (!cut && array_reserve(&ev->args.bytes, key_bytes + 3)) {
		char *to = ev->args.bytes.v + ev->args.bytes.n;
		*to++ = '"';
		memcpy(to, key, key_bytes);
		to[key_bytes] = '"';
		to[key_bytes + 1] = ':';
		ev->args.bytes.n += key_bytes + 3;
	} else {
		cut = true;
	}
	if (!(cut ? json_skip(&k->r, t) : json_copy(&k->r, t, &ev->args, ARGS_MOST, &cut)))
		return -EBADMSG;
	if (cut)
		ev->args.bytes.n = before;
	return 0;
}

/* Spellings of keys that were met are looked up by their hash. */
static uint8_t key_meaning(struct kineto *k)
{
	const struct map_key key = MAP_KEY(hash_bytes(k->r.text.v, k->r.text.n), k->r.text.n);
	const uint32_t known = map_find(&k->keys, key);
	if (known != MAP_NONE)
		return (uint8_t)known;
	const uint8_t what = meaning_of(arg_words, COUNT(arg_words), k->r.text.v, k->r.text.n);
	uint32_t *slot = k->keys.taken < KEYS_MOST ? map_get(&k->keys, key) : NULL;
	if (slot)
		*slot = what;
	return what;
}

static int take_arg(struct kineto *k)
{
	char key[64];
	struct event *ev = &k->event;
	const size_t bytes = k->r.text.n, kept = bytes < sizeof(key) ? bytes : 0;
	const uint8_t what = key_meaning(k);
	memcpy(key, k->r.text.v, kept);
	const enum json_token t = json_next(&k->r);
	if (t == JSON_ERROR)
		return -EBADMSG;
	switch (what) {
	case A_GRID:
		return take_triple(k, t, ev->grid, &ev->has_grid);
	case A_BLOCK:
		return take_triple(k, t, ev->block, &ev->has_block);
	case A_NAME:
		return take_string_value(k, t, &ev->label);
	case A_DROPPED:
		return json_skip(&k->r, t) ? 0 : -EBADMSG;
	case NOTHING:
		break;
	default:
		return take_field(k, t, 0, &ev->arg[what]);
	}
	if (!kept || ev->phase == 'M')
		return json_skip(&k->r, t) ? 0 : -EBADMSG;
	return keep_arg(k, key, kept, t);
}

static int take_args(struct kineto *k, enum json_token t)
{
	int e = 0;
	if (t != JSON_OBJECT)
		return json_skip(&k->r, t) ? 0 : -EBADMSG;
	while (!e && (t = json_next(&k->r)) != JSON_OBJECT_END) {
		if (t != JSON_KEY)
			return -EBADMSG;
		e = take_arg(k);
	}
	return e;
}

static int take_member(struct kineto *k, uint8_t what, enum json_token t)
{
	struct event *ev = &k->event;
	switch (what) {
	case K_PH:
		ev->phase = t == JSON_STRING && k->r.text.n == 1 ? *k->r.text.v : 0;
		break;
	case K_CAT:
		return take_string_value(k, t, &ev->category);
	case K_NAME:
		return take_string_value(k, t, &ev->name);
	case K_PID:
		return take_field(k, t, 0, &ev->pid);
	case K_TID:
		return take_field(k, t, 0, &ev->tid);
	case K_TS:
		return take_field(k, t, 3, &ev->ts);
	case K_DUR:
		return take_field(k, t, 3, &ev->dur);
	case K_ARGS:
		return take_args(k, t);
	default:
		break;
	}
	return json_skip(&k->r, t) ? 0 : -EBADMSG;
}

static int take_event(struct kineto *k)
{
	struct event *ev = &k->event;
	struct json_text args = ev->args;
	args.bytes.n = 0;
	*ev = (struct event){ .args = args };
	for (;;) {
		enum json_token t = json_next(&k->r);
		if (t == JSON_OBJECT_END)
			return 0;
		if (t != JSON_KEY)
			return -EBADMSG;
		const uint8_t what =
			meaning_of(event_words, COUNT(event_words), k->r.text.v, k->r.text.n);
		t = json_next(&k->r);
		const int e = t == JSON_ERROR ? -EBADMSG : take_member(k, what, t);
		if (e)
			return e;
	}
}

/* ---- what an event is ---- */

static int category_of(struct kineto *k, uint32_t string, uint8_t *ret_kind)
{
	while (k->kinds.n <= string) {
		uint8_t *new = array_push(&k->kinds);
		if (!new)
			return -ENOMEM;
		*new = 0;
	}
	uint8_t *kind = &k->kinds.v[string];
	if (!*kind && string) {
		const struct store_string *text = &k->s->strings.v[string - 1];
		*kind = meaning_of(categories, COUNT(categories), text->text, text->bytes);
	}
	*ret_kind = *kind ? *kind : C_UNKNOWN;
	return 0;
}

static uint64_t key_of(const struct field *f)
{
	return f->there ? (uint64_t)f->value | (f->text ? TEXT_ID : 0) : 0;
}

/* Numbers that are no pid or tid of Linux get one that cannot be. */
static uint32_t number_of(const struct field *f)
{
	if (f->there && !f->text && f->value >= 0 && f->value < 0x80000000)
		return (uint32_t)f->value;
	return f->there ? 0x80000000u | (uint32_t)(f->value & 0x7fffffff) : 0;
}

static int thread_of(struct kineto *k, uint32_t *ret_thread)
{
	const struct event *ev = &k->event;
	uint32_t process;
	*ret_thread = STORE_NONE;
	if (ev->pid.there && !ev->pid.text && ev->pid.value < 0)
		return 0;
	const int e = store_process(k->s, key_of(&ev->pid), number_of(&ev->pid), &process);
	return e ? e
		 : store_thread(k->s, process, key_of(&ev->tid), number_of(&ev->tid), ret_thread);
}

static bool number_arg(const struct event *ev, enum known what, int64_t most, uint64_t *ret)
{
	const struct field *f = &ev->arg[what];
	if (!f->there || f->text || f->value < 0 || f->value > most)
		return false;
	*ret = (uint64_t)f->value;
	return true;
}

/* ---- ranges ---- */

static int args_string(struct kineto *k, uint32_t *ret_id)
{
	struct event *ev = &k->event;
	if (!ev->args.bytes.n)
		return 0;
	if (!array_reserve(&ev->args.bytes, 1))
		return -ENOMEM;
	ev->args.bytes.v[ev->args.bytes.n++] = '}';
	return store_string(k->s, ev->args.bytes.v, ev->args.bytes.n, ret_id);
}

static int make_range(struct kineto *k, uint16_t kind, struct range *r)
{
	const struct event *ev = &k->event;
	*r = (struct range){ .ticks = (uint64_t)ev->ts.value,
		.dur = ev->dur.there ? (uint64_t)ev->dur.value : 0,
		.name = ev->name,
		.kind = kind };
	if (kind == RANGE_OTHER)
		r->scope = ev->category;
	if (number_arg(ev, A_EXTERNAL, INT64_MAX, &r->external))
		r->valid |= RANGE_HAS_EXTERNAL;
	if (number_arg(ev, A_SEQUENCE, INT64_MAX, &r->sequence))
		r->valid |= RANGE_HAS_SEQUENCE;
	int e = thread_of(k, &r->tid);
	return e ? e : args_string(k, &r->args);
}

static int add_range(struct kineto *k, const struct range *r)
{
	struct range *to = array_push(&k->s->ranges);
	if (!to)
		return -ENOMEM;
	*to = *r;
	k->st->ranges++;
	return 0;
}

static int take_range(struct kineto *k, uint16_t kind)
{
	struct range r;
	const int e = make_range(k, kind, &r);
	return e ? e : add_range(k, &r);
}

static uint16_t range_kind(uint8_t category)
{
	switch (category) {
	case C_OPERATOR:
		return RANGE_OPERATOR;
	case C_ANNOTATION:
		return RANGE_ANNOTATION;
	case C_PYTHON:
		return RANGE_PYTHON;
	case C_OVERHEAD:
		return RANGE_OVERHEAD;
	default:
		return RANGE_OTHER;
	}
}

/* A begin event: kept until its thread ends it. */
static int begin_range(struct kineto *k, uint8_t category)
{
	struct open_range o = { 0 };
	const int e = make_range(k, range_kind(category), &o.range);
	if (e || o.range.tid == STORE_NONE)
		return e;
	o.thread = o.range.tid;
	uint32_t *top = map_get(&k->top, MAP_KEY(o.thread));
	struct open_range *to = top ? array_push(&k->open) : NULL;
	if (!to)
		return -ENOMEM;
	o.below = *top;
	*to = o;
	*top = (uint32_t)(k->open.n - 1);
	return 0;
}

static int end_range(struct kineto *k)
{
	uint32_t thread;
	const int e = thread_of(k, &thread);
	uint32_t *top = e ? NULL : map_get(&k->top, MAP_KEY(thread));
	if (!top)
		return e ? e : -ENOMEM;
	if (*top == MAP_NONE) {
		k->st->left_out++;
		return 0;
	}
	const struct open_range *o = &k->open.v[*top];
	struct range r = o->range;
	const uint64_t end = (uint64_t)k->event.ts.value;
	k->open.v[*top].thread = STORE_NONE;
	*top = o->below;
	while (k->open.n && k->open.v[k->open.n - 1].thread == STORE_NONE)
		k->open.n--;
	r.dur = end > r.ticks ? end - r.ticks : 0;
	return add_range(k, &r);
}

/* ---- calls and work ---- */

static int function_of(struct kineto *k, uint16_t *ret_fn)
{
	const uint32_t name = k->event.name;
	while (k->fns.n <= name) {
		uint16_t *new = array_push(&k->fns);
		if (!new)
			return -ENOMEM;
		*new = 0;
	}
	if (!k->fns.v[name]) {
		const struct store_string *text = name ? &k->s->strings.v[name - 1] : NULL;
		const int e = store_function(
			k->s, text ? text->text : "?", text ? text->bytes : 1, &k->fns.v[name]);
		if (e)
			return e;
	}
	*ret_fn = k->fns.v[name];
	return 0;
}

static int take_call(struct kineto *k)
{
	struct event *ev = &k->event;
	struct store_call c = { .start_ns = (uint64_t)ev->ts.value,
		.dur_ns = ev->dur.there ? (uint64_t)ev->dur.value : 0 };
	int e = thread_of(k, &c.thread);
	if (!e && c.thread == STORE_NONE) {
		k->st->left_out++;
		return 0;
	}
	if (!e)
		e = function_of(k, &c.fn);
	if (e)
		return e;
	number_arg(ev, A_CORRELATION, INT64_MAX, &c.correlation);
	struct store_call *to = array_push(&k->s->calls);
	if (!to)
		return -ENOMEM;
	*to = c;
	k->st->calls++;
	return 0;
}

static void take_number(
	struct event *ev, enum known what, struct device_work *w, uint32_t *to, uint32_t bit)
{
	uint64_t value;
	if (number_arg(ev, what, UINT32_MAX, &value)) {
		*to = (uint32_t)value;
		w->valid |= bit;
	}
}

/* Where the arguments do not say it, a device's process is the device, its thread the stream. */
static void take_place(struct event *ev, struct device_work *w)
{
	take_number(ev, A_DEVICE, w, &w->device, WORK_HAS_DEVICE);
	take_number(ev, A_CONTEXT, w, &w->context, WORK_HAS_CONTEXT);
	take_number(ev, A_STREAM, w, &w->stream, WORK_HAS_STREAM);
	if (!(w->valid & WORK_HAS_DEVICE)) {
		ev->arg[A_DEVICE] = ev->pid;
		take_number(ev, A_DEVICE, w, &w->device, WORK_HAS_DEVICE);
	}
	if (!(w->valid & WORK_HAS_STREAM)) {
		ev->arg[A_STREAM] = ev->tid;
		take_number(ev, A_STREAM, w, &w->stream, WORK_HAS_STREAM);
	}
}

static void take_work_args(struct event *ev, struct device_work *w)
{
	uint64_t registers;
	if (number_arg(ev, A_CORRELATION, INT64_MAX, &w->correlation) && w->correlation)
		w->valid |= WORK_HAS_CORRELATION;
	if (number_arg(ev, A_EXTERNAL, INT64_MAX, &w->external) && w->external)
		w->valid |= WORK_HAS_EXTERNAL;
	if (number_arg(ev, A_BYTES, INT64_MAX, &w->bytes))
		w->valid |= WORK_HAS_BYTES;
	if (number_arg(ev, A_GRAPH_NODE, INT64_MAX, &w->graph_node) && w->graph_node)
		take_number(ev, A_GRAPH, w, &w->graph, WORK_HAS_GRAPH);
	take_number(ev, A_SHARED, w, &w->shared_dynamic, WORK_HAS_SHARED);
	if (number_arg(ev, A_REGISTERS, UINT16_MAX, &registers)) {
		w->registers = (uint16_t)registers;
		w->valid |= WORK_HAS_REGISTERS;
	}
	if (ev->has_grid && ev->has_block) {
		memcpy(w->grid, ev->grid, sizeof(w->grid));
		memcpy(w->block, ev->block, sizeof(w->block));
		w->valid |= WORK_HAS_SHAPE;
	}
}

static int take_work(struct kineto *k, uint16_t kind)
{
	struct event *ev = &k->event;
	const uint64_t start = (uint64_t)ev->ts.value;
	struct device_work w = { .start_ns = start,
		.end_ns = start + (ev->dur.there ? (uint64_t)ev->dur.value : 0),
		.name = ev->name,
		.kind = kind };
	const char *name = ev->name ? k->s->strings.v[ev->name - 1].text : "";
	take_place(ev, &w);
	take_work_args(ev, &w);
	if (kind == WORK_COPY || kind == WORK_SET)
		import_copy_name(&w, name);
	else if (kind == WORK_WAIT)
		import_wait_name(&w, name);
	struct device_work *to = array_push(&k->s->work);
	if (!to)
		return -ENOMEM;
	*to = w;
	k->st->work++;
	return 0;
}

/* Of categories that are not known, what has the name of a function is a call. */
static bool is_call(const struct kineto *k)
{
	const uint32_t name = k->event.name;
	if (!name || k->s->strings.v[name - 1].bytes < 3 ||
		memcmp(k->s->strings.v[name - 1].text, "cu", 2) != 0)
		return false;
	const struct store_string *text = &k->s->strings.v[name - 1];
	return store_knows_function(k->s, text->text, text->bytes);
}

static int take_complete(struct kineto *k, uint8_t category)
{
	switch (category) {
	case C_NONE:
		return 0;
	case C_RUNTIME:
	case C_DRIVER:
		return take_call(k);
	case C_KERNEL:
		return take_work(k, WORK_KERNEL);
	case C_COPY:
		return take_work(k, WORK_COPY);
	case C_SET:
		return take_work(k, WORK_SET);
	case C_WAIT:
		return take_work(k, WORK_WAIT);
	case C_SPAN:
		return take_work(k, WORK_SPAN);
	case C_UNKNOWN:
		return is_call(k) ? take_call(k) : take_range(k, RANGE_OTHER);
	default:
		return take_range(k, range_kind(category));
	}
}

/* ---- names of processes and threads ---- */

static int take_metadata(struct kineto *k)
{
	const struct event *ev = &k->event;
	const char *what = ev->name ? k->s->strings.v[ev->name - 1].text : "";
	const bool thread = !strcmp(what, "thread_name");
	if (!ev->label || (!thread && strcmp(what, "process_name") != 0))
		return 0;
	struct named *n = array_push(&k->names);
	if (!n)
		return -ENOMEM;
	*n = (struct named){ key_of(&ev->pid), key_of(&ev->tid), ev->label, thread };
	return 0;
}

/* "thread 1072 (python3)" is python3. */
static void name_thread(struct store_thread *t, const struct store_string *text)
{
	const char *name = text->text, *open = strchr(name, '(');
	if (!strncmp(name, "thread ", 7) && open && open[1])
		name = open + 1;
	size_t n = strlen(name);
	if (name != text->text && n && name[n - 1] == ')')
		n--;
	snprintf(t->name, sizeof(t->name), "%.*s", (int)(n < 64 ? n : 64), name);
}

static void apply_names(struct kineto *k)
{
	struct store *s = k->s;
	for (size_t i = 0; i < k->names.n; i++) {
		const struct named *n = &k->names.v[i];
		const uint32_t process = map_find(&s->process_map, MAP_KEY(n->pid));
		if (process == MAP_NONE)
			continue;
		if (!n->thread) {
			s->processes.v[process].name = n->name;
			continue;
		}
		const uint32_t thread = map_find(&s->thread_map, MAP_KEY(process, n->tid));
		if (thread != MAP_NONE)
			name_thread(&s->threads.v[thread], &s->strings.v[n->name - 1]);
	}
}

/* ---- events ---- */

/* False: the event has no time that can be. */
static bool mend_times(struct kineto *k)
{
	struct event *ev = &k->event;
	if (!ev->ts.there || ev->dur.bad || ev->ts.value < 0 || ev->ts.value >= IMPORT_TIME_MOST ||
		(ev->dur.there && ev->dur.value >= IMPORT_TIME_MOST)) {
		k->no_time++;
		return false;
	}
	if (ev->dur.there && ev->dur.value < 0)
		ev->dur.value = 0;
	return true;
}

#define CUDA       1           /* a device type of PyTorch */
#define BYTES_MOST (1ll << 56) /* no device has more */

static int take_instant(struct kineto *k)
{
	const struct event *ev = &k->event;
	const char *name = ev->name ? k->s->strings.v[ev->name - 1].text : "";
	struct memory_event m = { .bytes = ev->arg[A_BYTES].value };
	uint64_t type, device;
	if (strcmp(name, "[memory]") != 0 || !number_arg(ev, A_DEVICE_TYPE, CUDA, &type) ||
		type != CUDA || !number_arg(ev, A_DEVICE_ID, UINT16_MAX, &device) ||
		!number_arg(ev, A_ADDRESS, INT64_MAX, &m.address) || !ev->arg[A_BYTES].there ||
		ev->arg[A_BYTES].text || m.bytes > BYTES_MOST || m.bytes < -BYTES_MOST ||
		!mend_times(k))
		return 0;
	m.ns = (uint64_t)ev->ts.value;
	m.device = (uint32_t)device;
	m.has_total = number_arg(ev, A_TOTAL, BYTES_MOST, &m.total);
	const int e = thread_of(k, &m.thread);
	if (e || m.thread == STORE_NONE)
		return e;
	k->st->calls++;
	return import_memory_event(&k->memory, k->s, &m);
}

static int use_event(struct kineto *k)
{
	const struct event *ev = &k->event;
	uint8_t category;
	if (ev->phase == 'M')
		return take_metadata(k);
	if (ev->phase == 'i')
		return take_instant(k);
	if (ev->phase != 'X' && ev->phase != 'B' && ev->phase != 'E')
		return 0; /* flows, counters */
	int e = category_of(k, ev->category, &category);
	if (e || category == C_NONE || !mend_times(k))
		return e;
	if (ev->phase == 'B')
		return begin_range(k, category);
	return ev->phase == 'E' ? end_range(k) : take_complete(k, category);
}

static int take_events(struct kineto *k)
{
	enum json_token t;
	int e = 0;
	k->saw_events = true;
	while (!e && (t = json_next(&k->r)) != JSON_ARRAY_END) {
		if (t == JSON_ERROR)
			return -EBADMSG;
		if (t != JSON_OBJECT) {
			k->st->left_out++;
			e = json_skip(&k->r, t) ? 0 : -EBADMSG;
			continue;
		}
		e = take_event(k);
		if (!e)
			e = use_event(k);
		if (!e && ++k->events % 16384 == 0)
			progress_show(&k->progress, json_file_offset(&k->r), k->file_bytes);
	}
	return e;
}

/* ---- the object around them ---- */

static int take_device_member(struct kineto *k, struct store_device *d)
{
	static const struct word words[] = { { "id", 1 }, { "totalglobalmem", 2 }, { "numsms", 3 },
		{ "computemajor", 4 }, { "computeminor", 5 }, { "name", 6 } };
	const uint8_t what = meaning_of(words, COUNT(words), k->r.text.v, k->r.text.n);
	const enum json_token t = json_next(&k->r);
	struct field f;
	if (t == JSON_ERROR)
		return -EBADMSG;
	if (what == 6)
		return take_string_value(k, t, &d->name);
	const int e = take_field(k, t, 0, &f);
	if (e || !f.there || f.text || f.value < 0)
		return e;
	if (what >= 1 && what <= 3)
		d->args[what - 1] = (uint64_t)f.value;
	else if (what == 4 || what == 5)
		d->args[3] |= (uint64_t)(f.value & 0xffff) << (what == 4 ? 16 : 0);
	return 0;
}

static int take_device(struct kineto *k)
{
	struct store_device d = { 0 };
	enum json_token t;
	int e = 0;
	while (!e && (t = json_next(&k->r)) != JSON_OBJECT_END)
		e = t == JSON_KEY ? take_device_member(k, &d) : -EBADMSG;
	if (e || !d.name)
		return e;
	struct store_device *to = array_push(&k->s->devices);
	if (!to)
		return -ENOMEM;
	*to = d;
	return 0;
}

static int take_devices(struct kineto *k, enum json_token t)
{
	int e = 0;
	if (t != JSON_ARRAY)
		return json_skip(&k->r, t) ? 0 : -EBADMSG;
	while (!e && (t = json_next(&k->r)) != JSON_ARRAY_END) {
		if (t == JSON_OBJECT)
			e = take_device(k);
		else if (!json_skip(&k->r, t))
			e = -EBADMSG;
	}
	return e;
}

static int take_top_member(struct kineto *k)
{
	static const struct word words[] = { { "traceevents", 1 }, { "basetimenanoseconds", 2 },
		{ "deviceproperties", 3 } };
	const uint8_t what = meaning_of(words, COUNT(words), k->r.text.v, k->r.text.n);
	const enum json_token t = json_next(&k->r);
	struct field f;
	if (t == JSON_ERROR)
		return -EBADMSG;
	if (what == 1 && t == JSON_ARRAY)
		return take_events(k);
	if (what == 3)
		return take_devices(k, t);
	if (what != 2)
		return json_skip(&k->r, t) ? 0 : -EBADMSG;
	const int e = take_field(k, t, 0, &f);
	if (!e && f.there && !f.text && f.value > 0)
		k->base_ns = (uint64_t)f.value;
	return e;
}

static int take_top(struct kineto *k)
{
	enum json_token t = json_next(&k->r);
	int e = 0;
	if (t == JSON_ARRAY)
		return take_events(k);
	if (t != JSON_OBJECT)
		return -EBADMSG;
	while (!e && (t = json_next(&k->r)) != JSON_OBJECT_END)
		e = t == JSON_KEY ? take_top_member(k) : -EBADMSG;
	return e;
}

/* ---- the whole ---- */

static void tell_partial(struct kineto *k)
{
	struct import_stats *st = k->st;
	if (*k->r.problem)
		snprintf(st->partial, sizeof(st->partial),
			"%s; the %" PRIu64 " events before it are here", k->r.problem, k->events);
	st->left_out += k->no_time;
	for (size_t i = 0; i < k->open.n; i++)
		st->left_out += k->open.v[i].thread != STORE_NONE;
}

static int finish(struct kineto *k, const char *path, int e, struct error *err)
{
	if (e == -ENOMEM)
		return error_set(
			err, e, "no memory for the %" PRIu64 " events of %s", k->events, path);
	if (!k->saw_events && *k->r.problem)
		return error_set(err, -EINVAL, "%s is no trace in JSON: %s", path, k->r.problem);
	if (!k->saw_events)
		return error_set(err, -EINVAL, "%s is JSON, but has no traceEvents", path);
	if (*k->r.problem && !k->events)
		return error_set(err, -EINVAL, "%s holds no whole event: %s", path, k->r.problem);
	if (import_memory_finish(&k->memory, k->s))
		return error_set(err, -ENOMEM, "no memory for the allocations of %s", path);
	tell_partial(k);
	apply_names(k);
	k->s->real_ns = k->base_ns < IMPORT_TIME_MOST ? k->base_ns : 0;
	return 0;
}

static void kineto_fini(struct kineto *k)
{
	json_reader_close(&k->r);
	array_free(&k->event.args.bytes);
	array_free(&k->kinds);
	array_free(&k->fns);
	array_free(&k->names);
	array_free(&k->open);
	import_memory_fini(&k->memory);
	map_fini(&k->keys);
	map_fini(&k->top);
}

int import_kineto(const char *path, struct store *s, struct import_stats *st, struct error *err)
{
	struct kineto *k = calloc(1, sizeof(*k));
	if (!k)
		return error_set(err, -ENOMEM, "no memory to read %s", path);
	k->s = s;
	k->st = st;
	k->file_bytes = st->bytes;
	int e = json_reader_open(&k->r, path, err);
	if (!e) {
		st->format = k->r.compressed ? "JSON, gzip" : "JSON";
		progress_init(&k->progress, "reading");
		e = take_top(k);
		progress_fini(&k->progress);
		e = finish(k, path, e, err);
	}
	kineto_fini(k);
	free(k);
	return e;
}
