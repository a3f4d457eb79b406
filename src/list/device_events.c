/* Reads the GPU activities of a trace with their owners, in the order of their start. */
#include "list/device_events.h"

#include "base/sort.h"

void events_fini(struct events *events)
{
	array_free(&events->v);
	owners_fini(&events->owners);
}

static int event_order(const void *one, const void *two)
{
	const struct gpu_activity *a = &((const struct event *)one)->w,
				  *b = &((const struct event *)two)->w;
	const int order = ORDER(a->start_ns, b->start_ns) ?: ORDER(a->stream, b->stream);
	return order ?: ORDER(a->correlation, b->correlation);
}

int events_read(const struct report *r, struct events *ret_events)
{
	struct cursor at = { .t = r->trace };
	size_t hint = 0;
	const int e = owners_load(r->trace, &r->meta, &ret_events->owners);
	if (e)
		return e;
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const struct call_link *link = links_of(&r->links, at.ref->process, &w, &hint);
		const uint32_t owner = owners_of(&ret_events->owners, at.ref->process, &w, link);
		*array_push(&ret_events->v) = (struct event){ .w = w,
			.process = at.ref->process,
			.link = link ? (uint32_t)(link - r->links.v.v) : UINT32_MAX,
			.owner = owner,
			.named = owners_named(&ret_events->owners, owner),
			.waiting = owners_waiting(&ret_events->owners, owner, link) };
	}
	SORT(ret_events->v, event_order);
	return at.error;
}
