/*
 * Reads Kineto's traces (torch.profiler) and other JSON of Chrome: an object with traceEvents or
 * the bare array, one event in memory at a time. Times are microseconds with a fraction, read digit
 * by digit, because a double would lose nanoseconds. kineto_event.c turns events into records.
 *
 * A file that is damaged ends in the middle of an event, for which k->r.problem has a reason.
 */
#include "import/import_kineto.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/expect.h"
#include "base/hash.h"

#define KEYS_MOST 4096u /* spellings of keys that are remembered */

static const struct word event_words[] = {
	{ "ph", K_PH },
	{ "cat", K_CAT },
	{ "name", K_NAME },
	{ "pid", K_PID },
	{ "tid", K_TID },
	{ "ts", K_TS },
	{ "dur", K_DUR },
	{ "args", K_ARGS },
	{ "id", K_ID },
};

/* Lower case; the file may have capitals. */
static const struct word arg_words[] = {
	{ "external id", A_EXTERNAL },
	{ "correlation", A_CORRELATION },
	{ "correlation_id", A_CORRELATION },
	{ "kernel_details", A_DETAILS },
	{ "memcpy_details", A_DETAILS },
	{ "memset_details", A_DETAILS },
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
	{ "total reserved", A_RESERVED },
	{ "device type", A_DEVICE_TYPE },
	{ "device id", A_DEVICE_ID },
	{ "ev idx", A_DROPPED },
	{ "record function id", A_DROPPED },
	{ "fwd thread id", A_FORWARD },
	{ "python id", A_DROPPED },
	{ "python parent id", A_DROPPED },
	{ "python module id", A_DROPPED },
	{ "cbid", A_DROPPED },
	{ "queued", A_DROPPED },
};

static uint32_t take_text(struct kineto *k)
{
	return store_string(k->s, k->r.text.v, k->r.text.n);
}

/* A value where a number belongs: `5`, `"5"`, or a text that stands for itself. */
static void take_field(struct kineto *k, enum json_token t, unsigned times, struct field *f)
{
	*f = (struct field){ 0 };
	if (t != JSON_NUMBER && t != JSON_STRING)
		return json_skip(&k->r, t);
	f->there = json_number(k->r.text.v, times, &f->value);
	f->bad = !f->there;
	if (f->there || t == JSON_NUMBER || times > 1)
		return;
	const uint32_t id = take_text(k);
	*f = (struct field){ .there = true, .text = true, .value = id };
}

static void take_string_value(struct kineto *k, enum json_token t, uint32_t *ret_id)
{
	if (t == JSON_STRING || t == JSON_NUMBER)
		*ret_id = take_text(k);
	else
		json_skip(&k->r, t);
}

/* [x, y, z] */
static void take_triple(struct kineto *k, enum json_token t, uint32_t *v, bool *ret_there)
{
	int n = 0;
	int64_t value;
	if (t != JSON_ARRAY)
		return json_skip(&k->r, t);
	while (json_element(&k->r, &t)) {
		json_skip(&k->r, t);
		if (t == JSON_NUMBER && n < 3 && json_number(k->r.text.v, 1, &value) &&
			value >= 0 && value <= UINT32_MAX)
			v[n++] = (uint32_t)value;
	}
	expect(n <= 3, "of a triple three numbers are taken");
	*ret_there = n == 3;
}

/* An argument that nothing else takes is kept as text: `"key":value`, commas between. */
static void keep_arg(struct kineto *k, const char *key, size_t key_bytes, enum json_token t)
{
	struct bounded *args = &k->event.args;
	const size_t before = args->used;
	bool cut = args->cut = false;
	/* Keys come from the profiler and are plain words; others are left out. */
	for (size_t i = 0; i < key_bytes; i++)
		cut |= key[i] == '"' || key[i] == '\\' || (uint8_t)key[i] < ' ';
	if (cut)
		return json_skip(&k->r, t);
	bounded_put(args, before ? ",\"" : "{\"");
	bounded_bytes(args, key, key_bytes);
	bounded_put(args, "\":");
	json_copy_out(&k->r, t, args);
	if (args->cut)
		args->used = before;
}

/* Spellings of keys that were met are looked up by their hash. */
static uint8_t key_meaning(struct kineto *k)
{
	const struct map_key key = MAP_KEY(hash_bytes(k->r.text.v, k->r.text.n), k->r.text.n);
	const uint32_t known = map_find(&k->keys, key);
	if (known != MAP_NONE)
		return (uint8_t)known;
	const uint8_t what = kineto_meaning(arg_words, COUNT(arg_words), k->r.text.v, k->r.text.n);
	uint32_t *slot = k->keys.taken < KEYS_MOST ? map_get(&k->keys, key) : NULL;
	if (slot)
		*slot = what;
	return what;
}

static void take_arg(struct kineto *k)
{
	char key[64];
	struct event *ev = &k->event;
	const size_t bytes = k->r.text.n, kept = bytes < sizeof key ? bytes : 0;
	const uint8_t what = key_meaning(k);
	memcpy(key, k->r.text.v, kept);
	const enum json_token t = json_next(&k->r);
	switch (what) {
	case A_GRID:
		return take_triple(k, t, ev->grid, &ev->has_grid);
	case A_BLOCK:
		return take_triple(k, t, ev->block, &ev->has_block);
	case A_NAME:
		return take_string_value(k, t, &ev->label);
	case A_DETAILS:
		return take_string_value(k, t, &ev->details);
	case A_DROPPED:
		return json_skip(&k->r, t);
	case A_FORWARD:
		/* 0 says nothing, and would make texts of what has none. */
		if (k->r.text.n == 1 && *k->r.text.v == '0')
			return json_skip(&k->r, t);
		break;
	case NOTHING:
		break;
	default:
		return take_field(k, t, 1, &ev->arg[what]);
	}
	if (!kept || ev->phase == 'M')
		json_skip(&k->r, t);
	else
		keep_arg(k, key, kept, t);
}

static void take_args(struct kineto *k, enum json_token t)
{
	if (t != JSON_OBJECT)
		return json_skip(&k->r, t);
	while (json_next(&k->r) == JSON_KEY)
		take_arg(k);
}

static void take_member(struct kineto *k, uint8_t what, enum json_token t)
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
		return take_field(k, t, 1, &ev->pid);
	case K_TID:
		return take_field(k, t, 1, &ev->tid);
	case K_TS:
		return take_field(k, t, 1000, &ev->ts);
	case K_DUR:
		return take_field(k, t, 1000, &ev->dur);
	case K_ARGS:
		return take_args(k, t);
	case K_ID:
		ev->id.there = t == JSON_NUMBER && json_number(k->r.text.v, 1, &ev->id.value);
		break;
	default:
		break;
	}
	json_skip(&k->r, t);
}

static void take_event(struct kineto *k)
{
	struct event *ev = &k->event;
	*ev = (struct event){ .args = BOUNDED(k->args) };
	while (json_next(&k->r) == JSON_KEY) {
		const uint8_t what =
			kineto_meaning(event_words, COUNT(event_words), k->r.text.v, k->r.text.n);
		take_member(k, what, json_next(&k->r));
	}
}

static void take_events(struct kineto *k)
{
	enum json_token t;
	k->saw_events = true;
	while (json_element(&k->r, &t)) {
		if (t != JSON_OBJECT) {
			k->st->left_out++;
			json_skip(&k->r, t);
			continue;
		}
		take_event(k);
		if (*k->r.problem)
			return;
		kineto_event(k);
		if (++k->events % 16384 == 0)
			progress_show(&k->progress, json_file_offset(&k->r), k->file_bytes);
	}
}

static void take_device_member(struct kineto *k, struct store_device *d)
{
	static const struct word words[] = { { "id", 1 }, { "totalglobalmem", 2 }, { "numsms", 3 },
		{ "multiprocessorcount", 3 }, { "computemajor", 4 }, { "computeminor", 5 },
		{ "name", 6 } };
	const uint8_t what = kineto_meaning(words, COUNT(words), k->r.text.v, k->r.text.n);
	const enum json_token t = json_next(&k->r);
	struct field f;
	if (what == 6)
		return take_string_value(k, t, &d->name);
	take_field(k, t, 1, &f);
	if (!f.there || f.text || f.value < 0)
		return;
	if (what >= 1 && what <= 3)
		d->args[what - 1] = (uint64_t)f.value;
	else if (what == 4 || what == 5)
		d->args[3] |= (uint64_t)(f.value & 0xffff) << (what == 4 ? 16 : 0);
}

static void take_device(struct kineto *k)
{
	struct store_device d = { 0 };
	while (json_next(&k->r) == JSON_KEY)
		take_device_member(k, &d);
	if (d.name && !*k->r.problem)
		*array_push(&k->s->devices) = d;
}

static void take_devices(struct kineto *k, enum json_token t)
{
	if (t != JSON_ARRAY)
		return json_skip(&k->r, t);
	while (json_element(&k->r, &t)) {
		if (t == JSON_OBJECT)
			take_device(k);
		else
			json_skip(&k->r, t);
	}
}

static void take_top_member(struct kineto *k)
{
	static const struct word words[] = { { "traceevents", 1 }, { "basetimenanoseconds", 2 },
		{ "deviceproperties", 3 }, { "cuda_driver_version", 4 } };
	const uint8_t what = kineto_meaning(words, COUNT(words), k->r.text.v, k->r.text.n);
	const enum json_token t = json_next(&k->r);
	struct field f;
	if (what == 1 && t == JSON_ARRAY)
		return take_events(k);
	if (what == 3)
		return take_devices(k, t);
	if (what != 2 && what != 4)
		return json_skip(&k->r, t);
	take_field(k, t, 1, &f);
	if (!f.there || f.text || f.value <= 0)
		return;
	if (what == 2)
		k->base_ns = (uint64_t)f.value;
	else if (f.value < 1000000)
		k->s->cuda_version = (unsigned)f.value;
}

static void take_top(struct kineto *k)
{
	const enum json_token t = json_next(&k->r);
	if (t == JSON_ARRAY)
		take_events(k);
	while (t == JSON_OBJECT && json_next(&k->r) == JSON_KEY)
		take_top_member(k);
}

static void tell_partial(struct kineto *k)
{
	struct import_stats *st = k->st;
	if (*k->r.problem)
		snprintf(st->partial, sizeof st->partial,
			"%s. The %" PRIu64 " events before it are here", k->r.problem, k->events);
	st->left_out += k->no_time;
	for (size_t i = 0; i < k->open.n; i++)
		st->left_out += k->open.v[i].thread != STORE_NONE;
}

static int finish(struct kineto *k, const char *path, struct error *err)
{
	if (!k->saw_events && *k->r.problem)
		return error_set(err, -EINVAL,
			"%s is no trace in JSON: %s. Have the profiler write it again", path,
			k->r.problem);
	if (!k->saw_events)
		return error_set(err, -EINVAL,
			"%s is JSON, but has no traceEvents: torch.profiler writes such a trace with export_chrome_trace()",
			path);
	if (*k->r.problem && !k->events)
		return error_set(err, -EINVAL,
			"%s holds no whole event: %s. Have the profiler write it again", path,
			k->r.problem);
	import_memory_finish(&k->memory, k->s);
	tell_partial(k);
	kineto_names(k);
	k->s->real_ns = k->base_ns < IMPORT_TIME_MOST ? k->base_ns : 0;
	return 0;
}

static void kineto_fini(struct kineto *k)
{
	json_reader_close(&k->r);
	array_free(&k->kinds, &k->fns, &k->names, &k->open);
	import_memory_fini(&k->memory);
	map_fini(&k->keys, &k->top, &k->crossing, &k->xla_processes, &k->xla_streams);
}

int import_kineto(const char *path, struct store *s, struct import_stats *st, struct error *err)
{
	struct kineto *k = xcalloc(1, sizeof *k);
	k->s = s;
	k->st = st;
	k->file_bytes = st->bytes;
	int e = json_reader_open(&k->r, path, err);
	if (!e) {
		st->format = k->r.compressed ? "JSON, gzip" : "JSON";
		progress_init(&k->progress, "reading");
		take_top(k);
		progress_fini(&k->progress);
		e = finish(k, path, err);
	}
	kineto_fini(k);
	free(k);
	return e;
}
