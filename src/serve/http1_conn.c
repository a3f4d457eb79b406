/* HTTP/1.1 on a connection: one request after the other, each answered before the next is read. */
#include <errno.h>
#include <stdio.h>

#include "serve/internal.h"

#define HEAD_NS       10000000000u
#define BODY_NS_A_KIB 16000000u /* 64 KiB a second at least */

static void put_answer(struct conn *c, struct exchange *x)
{
	struct buf lines = { 0 };
	exchange_put_lines(x, &lines);
	if (load_relaxed(&c->loop->server->stopping))
		c->keep_alive = false;
	const char *connection = !c->keep_alive ? "close" : c->old ? "keep-alive" : NULL;
	http_head_put(&c->out, x->status ? status_of(x->status)->http : 200, x->content_type,
		x->answer.n, connection, lines.n ? buf_text(&lines) : "");
	if (!x->only_head)
		buf_put(&c->out, x->answer.v, x->answer.n);
	buf_free(&lines);
}

static void read_next(struct conn *c)
{
	c->exchange = NULL;
	c->state = READ_HEAD;
	c->scanned = 0;
	c->began_ns = 0;
	c->closing |= !c->keep_alive;
	c->until_ns = c->loop->now + c->loop->server->o.idle_ns +
		      ((c->out.n - c->out_at) >> 10) * BODY_NS_A_KIB;
}

void http1_answered(struct exchange *x)
{
	struct conn *c = x->conn;
	const bool waited = c->state == AWAIT_ANSWER;
	put_answer(c, x);
	exchange_free(x);
	read_next(c);
	/* Not from inside http1_read(), which goes on by itself. */
	if (waited && !c->closing && c->in_at < c->in.n)
		http1_read(c);
	conn_later(c);
}

/* The rest of the connection can't be understood. */
static void refuse(struct conn *c, int code, const char *text)
{
	struct exchange *x = c->exchange ? c->exchange : exchange_new(c->loop, c);
	c->exchange = x;
	c->keep_alive = false;
	c->in_at = c->in.n;
	exchange_fail(x, code, "%s", text);
}

static uint64_t aligned_start(const struct exchange *x)
{
	return x->has_infer_length ? -x->infer_length & 63 : 0;
}

static bool number_of(struct slice s, uint64_t *ret)
{
	return s.at && slice_u64(s, ret);
}

/* Takes the headers of this request.  0, or it has failed. */
static int take_headers(struct exchange *x, const struct http_head *h, struct error *err)
{
	const struct slice length = h->header[HEADER_INFER_LENGTH];
	const struct slice deadline = h->header[HEADER_DEADLINE];
	const struct slice trace = h->header[HEADER_TRACEPARENT];
	const struct slice encoding = h->header[HEADER_CONTENT_ENCODING];
	uint64_t us = 0;
	x->has_infer_length = length.at != NULL;
	if (length.at && !number_of(length, &x->infer_length))
		return error_set(err, -EINVAL,
			"Inference-Header-Content-Length: '%.*s' is no number", SLICE_ARG(length));
	if (deadline.at && (!number_of(deadline, &us) || us > UINT64_MAX / 2000))
		return error_set(err, -EINVAL,
			"Weir-Deadline-Us: '%.*s' is no number of microseconds",
			SLICE_ARG(deadline));
	x->timeout_ns = us * 1000;
	x->wants_time = h->header[HEADER_TIME].at != NULL;
	if (trace.at)
		exchange_set_trace(x, trace);
	return exchange_encoding(encoding, &x->encoding, err);
}

/* A request whose body comes.  Failures that leave the body unread end the connection. */
static int begin_request(struct conn *c, const struct http_head *h, struct error *err)
{
	struct exchange *x = c->exchange;
	struct server *s = c->loop->server;
	x->only_head = slice_is(h->method, "HEAD");
	int e = find_token(c, h->header[HEADER_AUTHORIZATION], &x->token, err);
	if (!e)
		e = route_find_rest(h->method, h->path, x->names, &x->match, err);
	if (!e)
		e = take_headers(x, h, err);
	if (!e && !h->chunked && h->content_length > s->o.body_bytes)
		e = error_set(err, -EMSGSIZE, "the body has %llu bytes, and %llu MiB is the most",
			(unsigned long long)h->content_length,
			(unsigned long long)(s->o.body_bytes >> 20));
	if (e)
		return e;
	c->body_left = h->content_length;
	x->body_at = aligned_start(x);
	buf_fill(&x->body, x->body_at);
	return 0;
}

static void read_head(struct conn *c)
{
	struct http_head h;
	struct error err;
	if (!c->began_ns)
		c->began_ns = c->loop->now;
	const int n =
		http_head_parse(c->in.v + c->in_at, c->in.n - c->in_at, &c->scanned, &h, &err);
	if (n == 0) {
		c->until_ns = c->began_ns + HEAD_NS;
		return;
	}
	if (n < 0) {
		refuse(c, n, err.text);
		return;
	}
	c->keep_alive = h.keep_alive;
	c->old = h.old;
	struct exchange *x = c->exchange = exchange_new(c->loop, c);
	const int e = begin_request(c, &h, &err);
	if (e) {
		/* A body that is small enough is read away, so that the connection can go on. */
		if (h.chunked || h.content_length > c->in.n - c->in_at - h.bytes)
			c->keep_alive = false;
		c->in_at = c->keep_alive ? c->in_at + h.bytes + h.content_length : c->in.n;
		exchange_fail(x, e, "%s", err.text);
		return;
	}
	c->in_at += h.bytes;
	c->state = h.chunked ? READ_CHUNKS : READ_BODY;
	c->chunks = (struct http_chunks){ 0 };
	c->until_ns = c->began_ns + HEAD_NS + (h.content_length >> 10) * BODY_NS_A_KIB;
	/* A body that is not read ends the connection. */
	c->keep_alive = false;
	if (!h.chunked && !exchange_hold(x, h.content_length))
		return;
	c->keep_alive = h.keep_alive;
	if (h.expect_continue && c->in_at == c->in.n)
		buf_put_text(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

static void start(struct conn *c)
{
	c->until_ns = UINT64_MAX;
	struct exchange *x = c->exchange;
	exchange_start(x);
	/* exchange_start() may have answered, and begun to read the next. */
	if (!c->dead && c->exchange == x && x)
		c->state = AWAIT_ANSWER;
}

static void read_body(struct conn *c)
{
	const size_t there = c->in.n - c->in_at;
	const size_t n = there < c->body_left ? there : c->body_left;
	buf_put(&c->exchange->body, c->in.v + c->in_at, n);
	c->in_at += n;
	c->body_left -= n;
	if (!c->body_left)
		start(c);
}

static void read_chunks(struct conn *c)
{
	struct exchange *x = c->exchange;
	struct error err;
	size_t used;
	const size_t before = x->body.n;
	const int e = http_chunks_feed(&c->chunks, c->in.v + c->in_at, c->in.n - c->in_at,
		c->loop->server->o.body_bytes, &x->body, &used, &err);
	c->in_at += used;
	if (e < 0) {
		refuse(c, e, err.text);
		return;
	}
	const uint64_t more = x->body.n - before;
	c->until_ns += more * BODY_NS_A_KIB / 1024;
	const bool keep = c->keep_alive;
	c->keep_alive = false;
	if (more && !exchange_hold(x, more))
		return;
	c->keep_alive = keep;
	if (e == 1)
		start(c);
}

void http1_read(struct conn *c)
{
	while (!c->dead && !c->closing && c->state != AWAIT_ANSWER) {
		const size_t before = c->in_at;
		const int state = c->state;
		if (state == READ_HEAD && c->in_at == c->in.n)
			return;
		c->paused = state == READ_HEAD && conn_is_full(c);
		if (c->paused)
			return;
		if (state == READ_HEAD)
			read_head(c);
		else if (state == READ_BODY)
			read_body(c);
		else
			read_chunks(c);
		if (c->in_at == before && (int)c->state == state &&
			(state != READ_BODY || c->body_left))
			return;
	}
}

void http1_closed(struct conn *c)
{
	if (c->exchange)
		exchange_abandon(c->exchange);
	c->exchange = NULL;
}
