/* The half of a wrapper that need not be inline: see wrapper.h. */
#include "hook/core/wrapper.h"

#include <string.h>

#include "event/level.h"
#include "hook/online/online.h"

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

uint32_t launch_given_read(uint32_t control, uint64_t function, void *const *params,
	void *const *extra, struct launch_given *ret_given)
{
	struct launch_given *g = ret_given;
	g->function = params_function(function);
	if (!g->function)
		return 0;
	g->has_args = params_read(g->function, params, extra, &g->args);
	g->keep = g->has_args && control & CONTROL_ARGS;
	g->predict = control & CONTROL_PREDICT;
	return (g->keep ? args_words(&g->args) : 0) + g->predict;
}

void launch_given_put(struct record *r, const struct launch_given *g, uint32_t at)
{
	if (g->keep) {
		r->flags |= RECORD_ARGS;
		args_put(&g->args, r->arg + at);
	}
	if (!g->predict)
		return;
	r->flags |= RECORD_PREDICTED;
	r->arg[at + (g->keep ? args_words(&g->args) : 0)] =
		online_launch(&g->function->kernel, g->has_args ? &g->args : NULL, r);
}

void graph_put_prediction(struct record *r)
{
	r->flags |= RECORD_PREDICTED;
	r->arg[GRAPH_LAUNCH_WORDS] = online_graph(r);
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

void launch_fill_config(
	struct record *r, uint64_t function, const struct cu_launch_config *c, uint32_t extended)
{
	static const struct cu_launch_config none;
	c = c ? c : &none;
	launch_fill(r, function, (uintptr_t)c->stream, c->grid_x, c->grid_y, c->grid_z, c->block_x,
		c->block_y, c->block_z, c->shared_bytes);
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
