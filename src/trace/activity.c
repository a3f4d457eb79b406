/* Reads and writes records of GPU activities, ranges and links. */
#include "trace/activity.h"

#include "base/expect.h"

size_t array_record_bytes(uint16_t chunk_kind)
{
	static const size_t bytes[] = {
		[CHUNK_DEVICE] = sizeof(struct gpu_activity),
		[CHUNK_MEASURED] = sizeof(struct gpu_activity),
		[CHUNK_RANGES] = sizeof(struct range),
		[CHUNK_LINKS] = sizeof(struct link),
		[CHUNK_SAMPLES] = sizeof(struct gpu_sample),
		[CHUNK_REQUESTS] = sizeof(struct served_request),
	};
	return chunk_kind < sizeof bytes / sizeof *bytes ? bytes[chunk_kind] : 0;
}

/* A record that the payload cuts off goes on as zeros. */
static bool next(const struct chunk_buf *buf, size_t *at, void *ret, size_t each)
{
	if (*at >= buf->bytes)
		return false;
	const size_t left = buf->bytes - *at;
	if (left < each)
		memset(ret, 0, each);
	memcpy(ret, buf->payload + *at, MIN(left, each));
	expect_slow(buf->bytes <= buf->payload_room, "content is inside its buffer");
	*at += each;
	return true;
}

bool activity_next(const struct chunk_buf *buf, size_t *at, struct gpu_activity *ret_activity)
{
	while (next(buf, at, ret_activity, sizeof *ret_activity)) {
		if (!ret_activity->kind)
			continue;
		ret_activity->end_ns = MAX(ret_activity->start_ns, ret_activity->end_ns);
		return true;
	}
	return false;
}

bool range_next(const struct chunk_buf *buf, size_t *at, struct range *ret_range)
{
	while (next(buf, at, ret_range, sizeof *ret_range)) {
		if (!ret_range->kind)
			continue;
		if (ret_range->valid & RANGE_OPEN) {
			const uint64_t last = buf->last_ticks;
			ret_range->dur = last > ret_range->ticks ? last - ret_range->ticks : 0;
			ret_range->reserved = 0;
		}
		return true;
	}
	return false;
}

#define NEXT(linkage, name, type, is_there)                                                        \
	linkage bool name##_next(const struct chunk_buf *buf, size_t *at, struct type *ret)        \
	{                                                                                          \
		while (next(buf, at, ret, sizeof *ret))                                            \
			if (ret->is_there)                                                         \
				return true;                                                       \
		return false;                                                                      \
	}
NEXT(static, link, link, correlation)
NEXT(static, sample, gpu_sample, valid)
NEXT(static, account, thread_account, entered)
NEXT(, request, served_request, outcome)

static struct chunk_buf *buffer(struct cursor *c)
{
	return c->buf ? c->buf : &c->own;
}

static bool next_chunk(struct cursor *c, enum chunk_kind kind)
{
	expect(c->chunk <= c->t->chunk_count, "a walk stays among the chunks");
	c->at = 0;
	c->inside = true;
	const int e = trace_next(c->t, kind, &c->chunk, buffer(c), c->damaged);
	c->ref = buffer(c)->ref;
	c->error = MIN(e, 0);
	return e > 0;
}

/* Whether the events around it only say that it took no longer. */
static bool is_bound(const struct gpu_activity *w)
{
	return w->valid & GPU_STREAM_IDLE &&
	       (activity_waited_ns(w) > SLOW_HOST_NS || w->host_ns >> 32 > SLOW_HOST_NS);
}

/* False: it is to be left out. */
static bool take_wait_off(const struct cursor *c, struct gpu_activity *w)
{
	const uint64_t took = w->end_ns - w->start_ns, waited = activity_waited_ns(w);
	if (c->as_measured)
		return true;
	if (is_bound(w)) {
		if (c->left_out)
			++*c->left_out;
		return false;
	}
	w->end_ns -= MIN(waited, took);
	return true;
}

bool trace_next_activity(struct cursor *c, struct gpu_activity *ret_activity)
{
	do {
		while (!c->inside || !activity_next(buffer(c), &c->at, ret_activity))
			if (!next_chunk(c, CHUNK_DEVICE))
				return false;
	} while (!take_wait_off(c, ret_activity));
	return true;
}

const struct record *trace_next_call(struct cursor *c)
{
	const struct record *r = NULL;
	while (!c->inside || !(r = records_next(&c->records))) {
		if (!next_chunk(c, CHUNK_EVENTS))
			return NULL;
		c->records = records_of(buffer(c));
	}
	return r;
}

#define TRACE_NEXT(name, type, kind)                                                               \
	bool trace_next_##name(struct cursor *c, struct type *ret)                                 \
	{                                                                                          \
		while (!c->inside || !name##_next(buffer(c), &c->at, ret))                         \
			if (!next_chunk(c, kind))                                                  \
				return false;                                                      \
		return true;                                                                       \
	}
TRACE_NEXT(range, range, CHUNK_RANGES)
TRACE_NEXT(link, link, CHUNK_LINKS)
TRACE_NEXT(sample, gpu_sample, CHUNK_SAMPLES)
TRACE_NEXT(request, served_request, CHUNK_REQUESTS)
TRACE_NEXT(account, thread_account, CHUNK_ACCOUNTS)

static const char *name_of(const char *const *names, size_t count, unsigned i)
{
	return i < count ? names[i] : NULL;
}

#define NAME_OF(names, i) name_of(names, sizeof names / sizeof((names)[0]), i)

const char *copy_direction_name(unsigned direction)
{
	static const char *const names[] = { NULL, "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
		"DtoA", "DtoD", "HtoH", "PtoP" };
	return NAME_OF(names, direction);
}

const char *activity_direction(const struct gpu_activity *w)
{
	return w->kind == GPU_MEMCPY && w->valid & GPU_HAS_WHAT ? copy_direction_name(w->what)
								: NULL;
}

const char *activity_memory_kind_name(unsigned kind)
{
	static const char *const names[] = { NULL, "pageable", "pinned", "device", "array",
		"managed", "static device", "static managed" };
	return NAME_OF(names, kind);
}

const char *activity_kind_name(unsigned kind)
{
	static const char *const names[] = { NULL, "kernel", "memcpy", "memset", "sync", "span",
		"graph", "other" };
	return NAME_OF(names, kind);
}

const char *request_outcome_name(unsigned outcome)
{
	static const char *const names[] = { NULL, "answered", "met", "late", "shed", "refused",
		"cancelled", "failed" };
	return NAME_OF(names, outcome);
}

const char *range_kind_name(unsigned kind)
{
	static const char *const names[] = { NULL, "operator", "annotation", "python", "nvtx",
		"nvtx span", "overhead", "other", "capture" };
	return NAME_OF(names, kind);
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t w;
	memcpy(&w, p, sizeof w);
	return w;
}

void words_split(const uint8_t *in, size_t count, size_t each, uint8_t *out)
{
	for (size_t word = 0; word < each; word += 4) {
		uint32_t last = 0;
		for (size_t i = 0; i < count; i++) {
			const uint32_t now = word_at(in + i * each + word), step = now - last;
			memcpy(out, &step, sizeof step);
			out += sizeof step;
			last = now;
		}
	}
}

void words_join(const uint8_t *in, size_t count, size_t each, uint8_t *out)
{
	for (size_t word = 0; word < each; word += 4) {
		uint32_t now = 0;
		for (size_t i = 0; i < count; i++) {
			now += word_at(in);
			memcpy(out + i * each + word, &now, sizeof now);
			in += sizeof now;
		}
	}
}
