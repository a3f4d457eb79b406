/* The half of a wrapper that need not be inline: see wrapper.h. */
#include "hook/core/wrapper.h"

#include <string.h>

#include "event/level.h"

__thread uint32_t timing_left = 1;
_Atomic uint32_t timing_adapts;

char *text_put(struct record *r, char *at, const char *s, uint32_t bytes)
{
	if (!s)
		return at;
	if (bytes > TEXT_KEPT) {
		bytes = TEXT_KEPT;
		r->flags |= RECORD_CUT;
	}
	memcpy(at, s, bytes);
	memset(at + bytes, 0, (8 - bytes % 8) % 8);
	return at + (bytes + 7) / 8 * 8;
}

void graph_put_prediction(struct record *r)
{
	r->flags |= RECORD_PREDICTED;
	r->arg[GRAPH_LAUNCH_WORDS] = hook_above.graph_time(r);
}

/* CUlaunchAttributeID */
enum { COOPERATIVE = 2, CLUSTER = 4, PROGRAMMATIC = 6 };

static uint64_t pack_attributes(const struct cu_launch_config *c)
{
	const struct cu_launch_attribute *const attrs = c->attrs;
	const uint32_t count = attrs ? c->attr_count : 0;
	uint64_t word = (uint64_t)(count > 255 ? 255 : count) << 56;
	for (uint32_t i = 0; i < count; i++) {
		const struct cu_launch_attribute *a = &attrs[i];
		if (a->id == CLUSTER)
			word |= (a->u.cluster.x & 0xffffull) | (a->u.cluster.y & 0xffffull) << 16 |
				(a->u.cluster.z & 0xffffull) << 32;
		else if (a->id == COOPERATIVE && a->u.value)
			word |= 1ull << 48;
		else if (a->id == PROGRAMMATIC && a->u.value)
			word |= 1ull << 49;
	}
	return word;
}

void launch_fill_attributes(struct record *r, const struct cu_launch_config *c, uint32_t extended)
{
	if (!extended)
		return;
	r->flags |= RECORD_CLUSTER;
	r->arg[LAUNCH_CLUSTER] = pack_attributes(c);
}

void call_begin_long(struct call *c)
{
	c->begun = call_enter_long(c->fn);
}

struct record *call_record_apart(const struct call *c, uint32_t words)
{
	return call_record(c, words);
}

void call_commit_apart(struct record *r, enum fn fn)
{
	call_commit(r, fn);
}

void *plain_enter(struct call *c, enum fn fn, uint32_t bits, bool blocks, const void *caller)
{
	void *real = real_at(fn);
	if (!real)
		real = resolve(fn, caller);
	if (!call_is_wanted(c, fn, bits) || query_is_counted(c))
		return real;
	if (blocks)
		call_begin_long(c);
	else
		call_begin(c);
	if (bits & CONTROL_RUNTIME)
		call_looks(c);
	return real;
}

bool plain_answered(struct call *c, bool blocks)
{
	if (!want_is_any(c->want))
		return false;
	if (blocks)
		call_returned();
	if (!(c->want & CONTROL_QUERY_COUNT))
		return true;
	if (query_count(c))
		return false;
	c->begun = clock_now();
	return true;
}

void plain_captured(struct record *r, void *stream, bool per_thread)
{
	mark_captured(r, stream, per_thread);
}

void plain_left(void)
{
	call_left();
}
