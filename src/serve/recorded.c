/*
 * This tells the injected library of this server, if it is in the process: each batch and each
 * request for the recording, and when the batch of requests with deadlines begins and ends, so that
 * best-effort programs on the GPU wait meanwhile.  Without the library nothing happens here.
 */
#include <errno.h>
#include <string.h>

#include "client/client.h"
#include "event/format.h"
#include "serve/internal.h"

bool serve_is_injected(void)
{
	return injected_find();
}

void recorded_begin(struct server *s)
{
	s->injected = injected_find();
}

/* The most urgent deadline of a batch; BATCH_NEVER: none has one. */
static uint64_t deadline_of(const struct batch_run *r)
{
	uint64_t first = BATCH_NEVER;
	for (uint32_t i = 0; i < r->n; i++)
		first = MIN(r->item[i]->deadline_ns, first);
	return first;
}

void recorded_batch(struct batch *b, const struct batch_run *r, uint64_t now)
{
	struct server *s = b->version->device->server;
	const struct injected *in = s->injected;
	b->number = b->urgent = 0;
	if (!in)
		return;
	b->number = add_relaxed(&s->batches, 1) + 1;
	const uint64_t deadline = deadline_of(r);
	if (deadline != BATCH_NEVER)
		b->urgent = in->request_begin(deadline > now ? deadline - now : 1);
	in->served_batch(b->version->model->name, b->number);
}

void recorded_batch_end(struct batch *b)
{
	const struct injected *in = b->version->device->server->injected;
	if (!in)
		return;
	in->served_batch_end();
	if (b->urgent)
		in->request_end(b->urgent);
}

void recorded_number(struct exchange *x)
{
	struct server *s = x->loop->server;
	if (s->injected)
		x->number = add_relaxed(&s->requests, 1) + 1;
}

static uint16_t outcome_of(const struct exchange *x, uint64_t now)
{
	if (!x->conn)
		return REQUEST_CANCELLED;
	if (x->status == -ETIME)
		return REQUEST_SHED;
	if (x->status == -ENOBUFS)
		return REQUEST_REFUSED;
	if (x->status)
		return REQUEST_FAILED;
	if (x->item.deadline_ns == BATCH_NEVER)
		return REQUEST_ANSWERED;
	return now <= x->item.deadline_ns ? REQUEST_MET : REQUEST_LATE;
}

static unsigned nibble(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

static void put_bytes(uint8_t *to, const char *hex, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
}

/* "00-", the trace, "-", the span, "-", flags: exchange_set_trace() has looked at the length and
 * the digits. */
static void put_trace(struct served_request *r, const char *parent)
{
	if (!*parent || parent[2] != '-' || parent[35] != '-' || memchr(parent + 3, '-', 32) ||
		memchr(parent + 36, '-', 16))
		return;
	put_bytes(r->trace_id, parent + 3, sizeof r->trace_id);
	put_bytes(r->span_id, parent + 36, sizeof r->span_id);
}

void recorded_request(struct exchange *x)
{
	const struct server *s = x->loop->server;
	if (!x->number || x->recorded)
		return;
	x->recorded = true;
	const uint64_t now = x->sent_ns ? x->sent_ns : monotonic_ns();
	const bool timed = x->item.arrived_ns && x->item.deadline_ns != BATCH_NEVER;
	struct served_request r = {
		.id = x->number,
		.ns = { x->began_ns, x->read_ns, x->queued_ns, x->taken_ns, x->ran_ns, x->ended_ns,
			now },
		.deadline_ns = timed ? x->item.deadline_ns : 0,
		.batch = x->batch ? x->batch->number : 0,
		.version = x->version ? x->version->number : 0,
		.rows = x->item.rows,
		.batch_rows = x->batch_rows,
		.class = (uint16_t)x->item.class,
		.outcome = outcome_of(x, now),
	};
	put_trace(&r, x->traceparent);
	s->injected->served_request(&r, x->version ? x->version->model->name : NULL);
}
