/*
 * A test double of CUPTI: the activity API alone, fed by the simulated driver (observe.h).  It
 * answers what NVIDIA's documentation of CUDA 13.0 says, as far as collectors of device times
 * go; the layouts are those of the published cupti_activity.h.
 *
 *	WEIR_SIM_CUPTI=key,key…
 *		refuse		callbacks can't be registered: another tool is there
 *		refuse-kernels	kernels can't be recorded
 *		lose=N		every Nth record is lost, and counted as dropped
 *		buffer=N	a buffer is handed back after N records
 *		unfinished	a forced flush hands out one record of each kind without an end
 *
 * If the documentation leaves it open, this does what is worst for the client.  Without a flush
 * period full buffers wait for a flush, or until there are too many of them; with one they come
 * back as soon as they are full, and the one that is not, just before a kind is disabled.  Records
 * that are not handed back when the program ends go with the library's own exit handler, registered
 * when it is loaded.  A client that was refused and flushes nevertheless is told so on standard
 * error.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti_records.h"
#include "driver/observe.h"

#define API __attribute__((visibility("default")))

#define ATTRIBUTE_PER_THREAD 9
#define KINDS                64 /* of records, whether simulated or not */

enum answer { /* CUptiResult */
	OK = 0,
	INVALID_PARAMETER = 1,
	INVALID_OPERATION = 7,
	MAX_LIMIT_REACHED = 12,
	NOT_INITIALIZED = 15,
	INVALID_KIND = 21,
	NOT_SUPPORTED = 27,
};

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void complete_fn(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static request_fn *request;
static complete_fn *complete;
static bool enabled[KINDS];
static uint32_t flush_period_ms;
static int64_t clock_offset; /* from CLOCK_MONOTONIC to the client's clock */
static uint64_t (*client_clock)(void);
static size_t dropped;
static uint64_t seen;
static bool ended; /* by the exit handler */
static struct buffer {
	uint8_t *data;
	size_t bytes, used, records;
} open_buffer;

#define FULL_MOST 8
static struct buffer full_buffers[FULL_MOST]; /* that wait */
static size_t full_count;

struct name {
	struct name *next;
	char text[];
};
static struct name *names; /* shared by all records, for ever */

static uint64_t read_clock(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* From CLOCK_MONOTONIC to another: of several pairs of readings, the closest together. */
static int64_t offset_of(uint64_t (*now)(void), clockid_t which)
{
	uint64_t best = UINT64_MAX;
	int64_t offset = 0;

	for (int i = 0; i < 64; i++) {
		const uint64_t before = read_clock(CLOCK_MONOTONIC);
		const uint64_t then = now ? now() : read_clock(which);
		const uint64_t gap = read_clock(CLOCK_MONOTONIC) - before;
		if (gap >= best)
			continue;
		best = gap;
		offset = (int64_t)(then - before - gap / 2);
	}
	return offset;
}

static bool script_has(const char *key, unsigned *ret_value)
{
	const char *script = getenv("WEIR_SIM_CUPTI");
	const size_t n = strlen(key);

	for (const char *at = script; at && *at; at += *at == ',') {
		const char end = at[n < strlen(at) ? n : 0];
		if (!strncmp(at, key, n) && (end == ',' || end == '=' || at[n] == '\0')) {
			if (ret_value)
				*ret_value =
					end == '=' ? (unsigned)strtoul(at + n + 1, NULL, 10) : 0;
			return true;
		}
		at += strcspn(at, ",");
	}
	return false;
}

static const char *keep_name(const char *text)
{
	for (struct name *n = names; n; n = n->next)
		if (!strcmp(n->text, text))
			return n->text;
	struct name *n = malloc(sizeof *n + strlen(text) + 1);
	if (!n)
		return NULL;
	memcpy(n->text, text, strlen(text) + 1);
	n->next = names;
	names = n;
	return n->text;
}

/* Hands a buffer back to whoever is registered now.  Gives the lock away meanwhile. */
static void hand_back(struct buffer full)
{
	complete_fn *to = complete;

	if (!full.data || !to)
		return;
	pthread_mutex_unlock(&lock);
	to(NULL, 0, full.data, full.bytes, full.used);
	pthread_mutex_lock(&lock);
}

static void hand_back_full(void)
{
	while (full_count) {
		const struct buffer first = full_buffers[0];
		memmove(full_buffers, full_buffers + 1, --full_count * sizeof first);
		hand_back(first);
	}
}

static void hand_back_all(void)
{
	hand_back_full();
	const struct buffer last = open_buffer;
	open_buffer = (struct buffer){ 0 };
	hand_back(last);
}

static void put_aside(void)
{
	full_buffers[full_count++] = open_buffer;
	open_buffer = (struct buffer){ 0 };
	if (flush_period_ms || full_count == FULL_MOST)
		hand_back_full();
}

static bool have_room(size_t bytes)
{
	unsigned most = 0;

	script_has("buffer", &most);
	if (open_buffer.data && (open_buffer.bytes - open_buffer.used < bytes ||
					(most && open_buffer.records >= most)))
		put_aside();
	if (open_buffer.data || !request)
		return open_buffer.data != NULL;
	struct buffer new = { 0 };
	request_fn *from = request;
	pthread_mutex_unlock(&lock);
	from(&new.data, &new.bytes, &new.records);
	pthread_mutex_lock(&lock);
	new.records = 0;
	open_buffer = new;
	return new.data &&new.bytes >= bytes;
}

static void append(const void *record, size_t bytes)
{
	unsigned every = 0;

	if (ended || (script_has("lose", &every) && every && ++seen % every == 0) ||
		!have_room(bytes)) {
		dropped++;
		return;
	}
	memcpy(open_buffer.data + open_buffer.used, record, bytes);
	open_buffer.used += bytes;
	open_buffer.records++;
}

static uint64_t date(uint64_t mono_ns)
{
	return mono_ns + (uint64_t)clock_offset;
}

static void put_kernel(const struct observed *o)
{
	struct cupti_kernel k = { .kind = CUPTI_KERNEL,
		.registers = (uint16_t)o->registers,
		.start = date(o->start_ns),
		.end = date(o->end_ns),
		.device = o->device,
		.context = o->context,
		.stream = o->stream,
		.shared_static = o->shared_static,
		.shared_dynamic = o->shared_dynamic,
		.correlation = o->number,
		.name = keep_name(o->name),
		.graph_node = o->graph_node,
		.graph = o->graph };
	memcpy(k.grid, o->grid, sizeof k.grid);
	memcpy(k.block, o->block, sizeof k.block);
	append(&k, sizeof k);
}

static void put_memcpy(const struct observed *o)
{
	append(&(struct cupti_memcpy){ .kind = CUPTI_MEMCPY,
		       .direction = (uint8_t)o->what,
		       .from = (uint8_t)o->from,
		       .to = (uint8_t)o->to,
		       .bytes = o->bytes,
		       .start = date(o->start_ns),
		       .end = date(o->end_ns),
		       .device = o->device,
		       .context = o->context,
		       .stream = o->stream,
		       .correlation = o->number,
		       .graph_node = o->graph_node,
		       .graph = o->graph },
		sizeof(struct cupti_memcpy));
}

static void put_memset(const struct observed *o)
{
	append(&(struct cupti_memset){ .kind = CUPTI_MEMSET,
		       .bytes = o->bytes,
		       .start = date(o->start_ns),
		       .end = date(o->end_ns),
		       .device = o->device,
		       .context = o->context,
		       .stream = o->stream,
		       .correlation = o->number,
		       .memory_kind = (uint16_t)o->from,
		       .graph_node = o->graph_node,
		       .graph = o->graph },
		sizeof(struct cupti_memset));
}

static void put_sync(const struct observed *o)
{
	append(&(struct cupti_sync){ .kind = CUPTI_SYNC,
		       .type = o->what,
		       .start = date(o->start_ns),
		       .end = date(o->end_ns),
		       .correlation = o->number,
		       .context = o->context,
		       .stream = o->stream },
		sizeof(struct cupti_sync));
}

static void observe(const struct observed *o)
{
	pthread_mutex_lock(&lock);
	if (o->kind == OBSERVED_KERNEL && (enabled[CUPTI_KERNEL] || enabled[CUPTI_SERIAL_KERNEL]))
		put_kernel(o);
	else if (o->kind == OBSERVED_MEMCPY && enabled[CUPTI_MEMCPY])
		put_memcpy(o);
	else if (o->kind == OBSERVED_MEMSET && enabled[CUPTI_MEMSET])
		put_memset(o);
	else if (o->kind == OBSERVED_SYNC && enabled[CUPTI_SYNC])
		put_sync(o);
	pthread_mutex_unlock(&lock);
}

static bool attach(void)
{
	static void (*tell)(void (*observer)(const struct observed *what));
	void *driver = tell ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (driver)
		tell = (void (*)(void (*)(const struct observed *)))dlsym(
			driver, "weir_sim_observe");
	if (tell)
		tell(observe);
	return tell != NULL;
}

/* As a library in C++ ends its static objects: before handlers that are older than itself. */
static void end(void)
{
	pthread_mutex_lock(&lock);
	ended = true;
	open_buffer = (struct buffer){ 0 };
	full_count = 0;
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
	atexit(end);
}

API int cuptiActivityRegisterCallbacks(request_fn *new_request, complete_fn *new_complete)
{
	if (!new_request || !new_complete)
		return INVALID_PARAMETER;
	if (script_has("refuse", NULL))
		return NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	request = new_request;
	complete = new_complete;
	pthread_mutex_unlock(&lock);
	return OK;
}

API int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void))
{
	if (!now)
		return INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	client_clock = now;
	clock_offset = offset_of(now, 0);
	pthread_mutex_unlock(&lock);
	return OK;
}

static int set_enabled(int kind, bool on)
{
	if (kind <= 0 || kind >= KINDS)
		return INVALID_KIND;
	if (on && kind == CUPTI_KERNEL && script_has("refuse-kernels", NULL))
		return NOT_SUPPORTED;
	if (on && !attach())
		return NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	if (!on && flush_period_ms)
		hand_back_all();
	enabled[kind] = on;
	if (!client_clock)
		clock_offset = offset_of(NULL, CLOCK_REALTIME);
	pthread_mutex_unlock(&lock);
	return OK;
}

API int cuptiActivityEnable(int kind)
{
	return set_enabled(kind, true);
}

API int cuptiActivityDisable(int kind)
{
	return set_enabled(kind, false);
}

/* Puts records of work that is still running. */
static void put_unfinished(void)
{
	const uint64_t now = date(read_clock(CLOCK_MONOTONIC));

	append(
		&(struct cupti_kernel){
			.kind = CUPTI_KERNEL, .start = now, .name = keep_name("unfinished") },
		sizeof(struct cupti_kernel));
	append(&(struct cupti_memcpy){ .kind = CUPTI_MEMCPY, .start = now },
		sizeof(struct cupti_memcpy));
	append(&(struct cupti_memset){ .kind = CUPTI_MEMSET, .start = now },
		sizeof(struct cupti_memset));
	append(&(struct cupti_sync){ .kind = CUPTI_SYNC, .start = now }, sizeof(struct cupti_sync));
}

API int cuptiActivityFlushAll(uint32_t forced)
{
	static const char refused[] = "CUPTI: flushed by who was refused\n";

	if (script_has("refuse", NULL) || script_has("refuse-kernels", NULL)) {
		write(2, refused, sizeof refused - 1);
		return INVALID_OPERATION;
	}
	pthread_mutex_lock(&lock);
	if (forced && script_has("unfinished", NULL))
		put_unfinished();
	hand_back_all();
	pthread_mutex_unlock(&lock);
	return OK;
}

/* There is no thread: see the beginning. */
API int cuptiActivityFlushPeriod(uint32_t ms)
{
	flush_period_ms = ms;
	return OK;
}

/* None has an effect; one that is too late for it is refused. */
API int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
	bool any = false;

	if (!bytes || !value)
		return INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < KINDS; i++)
		any |= enabled[i];
	pthread_mutex_unlock(&lock);
	return any && attribute == ATTRIBUTE_PER_THREAD ? INVALID_OPERATION : OK;
}

static size_t record_bytes(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KERNEL:
		return sizeof(struct cupti_kernel);
	case CUPTI_MEMCPY:
		return sizeof(struct cupti_memcpy);
	case CUPTI_MEMSET:
		return sizeof(struct cupti_memset);
	case CUPTI_SYNC:
		return sizeof(struct cupti_sync);
	default:
		return 0;
	}
}

API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	if (!buffer || !record)
		return INVALID_PARAMETER;
	uint8_t *at = *record ? (uint8_t *)*record + record_bytes(*(uint32_t *)*record) : buffer;
	if (at >= buffer + valid || !record_bytes(*(uint32_t *)at))
		return MAX_LIMIT_REACHED;
	*record = at;
	return OK;
}

API int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret_dropped)
{
	if (!ret_dropped)
		return INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	*ret_dropped = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return OK;
}

API int cuptiGetTimestamp(uint64_t *ret_ns)
{
	if (!ret_ns)
		return INVALID_PARAMETER;
	*ret_ns = client_clock ? client_clock() : read_clock(CLOCK_REALTIME);
	return OK;
}

API int cuptiGetVersion(uint32_t *ret_version)
{
	if (!ret_version)
		return INVALID_PARAMETER;
	*ret_version = 130000;
	return OK;
}

API int cuptiFinalize(void)
{
	pthread_mutex_lock(&lock);
	hand_back_all();
	memset(enabled, 0, sizeof enabled);
	request = NULL;
	complete = NULL;
	client_clock = NULL;
	pthread_mutex_unlock(&lock);
	return OK;
}
