/*
 * HTTP/2 on a connection, by libnghttp2: gRPC, and REST for clients that prefer it.  A stream is a
 * request, or for ModelStreamInfer a sequence of them that are answered in their order.
 */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>

#include "serve/internal.h"

#define STREAMS_MOST  256
#define STREAM_WINDOW (1u << 20)
#define CONN_WINDOW   (16 << 20)
#define BACKLOG       (256u << 10) /* written ahead of the socket */
#define HEAD_MOST     (16u << 10)
#define REQUEST_NS    10000000000u
#define END_NS        2000000000u
#define SEND_NS       60000000000u
#define BODY_NS_A_KIB 16000000u
#define ROOM_KEPT     (4u << 10)
#define PREFIX        5  /* of a message: a flag and four bytes of length */
#define IN_ORDER_MOST 64 /* requests of one stream at once; further ones wait as bytes */

struct stream {
	struct conn *conn;
	struct stream *prev, *next;
	int32_t id;
	uint64_t until_ns;
	uint64_t part_until_ns; /* of a streamed one: when a message has to be complete */
	/* Its head. */
	struct buf path;
	char method[8];
	size_t head_bytes;
	bool grpc, refused;
	char encoding; /* grpc-encoding */
	int status;    /* what a header got wrong, and why */
	char *why;     /* rare, so it is allocated */
	bool authorized;
	struct token *token;
	/* The received part: one request, or bytes of several. */
	struct exchange *x;
	struct buf in;
	size_t in_at; /* where the first message of `in` begins */
	bool streamed, half_closed, starting;
	bool ends_on_error; /* a streamed one: asked for by the client */
	/* The sent part. */
	struct exchange *first, **last; /* of a streamed one, in order */
	unsigned waiting;
	struct buf out;
	size_t out_at;
	uint64_t held; /* bytes of both, which count against the server's memory */
	bool submitted, done;
};

/* A drained buffer keeps no more than a little room, because room is not counted. */
static void empty_buf(struct buf *b, size_t *at)
{
	if (b->room > ROOM_KEPT)
		buf_free(b);
	b->n = *at = 0;
}

/* True while all requests and answers have no more bytes than they may. */
static bool count_bytes(struct stream *s)
{
	struct server *server = s->conn->loop->server;
	const uint64_t bytes = s->in.n - s->in_at + s->out.n - s->out_at;
	const uint64_t all = add_relaxed(&server->held_bytes, bytes - s->held) + bytes - s->held;
	s->held = bytes;
	return all <= server->o.memory_bytes;
}

/* A client has to take the answer in some time, which grows with its size. */
static void begin_to_send(struct stream *s)
{
	count_bytes(s);
	s->until_ns = s->conn->loop->now + SEND_NS + (s->out.n >> 10) * BODY_NS_A_KIB;
}

static nghttp2_nv pair(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)name,
		.value = (uint8_t *)value,
		.namelen = strlen(name),
		.valuelen = strlen(value) };
}

/* The first failure counts. */
static void set_status(struct stream *s, int code, const char *text)
{
	if (s->status)
		return;
	s->status = code;
	s->why = xstrdup(text);
}

/* Percent-encodes what may not stand in a header. */
static void put_message(struct buf *b, const char *text)
{
	for (; *text; text++)
		if (*text >= ' ' && *text <= '~' && *text != '%')
			buf_put(b, text, 1);
		else
			buf_printf(b, "%%%02X", (unsigned char)*text);
}

static void submit_trailer(struct stream *s)
{
	struct buf message = { 0 };
	char number[12];
	put_message(&message, s->status ? s->why : "");
	snprintf(number, sizeof number, "%d", s->status ? status_of(s->status)->grpc : 0);
	const nghttp2_nv trailer[] = { pair("grpc-status", number),
		pair("grpc-message", buf_text(&message)) };
	nghttp2_submit_trailer(s->conn->session, s->id, trailer, s->status ? 2 : 1);
	buf_free(&message);
}

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *to, size_t most,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct stream *s = source->ptr;
	const size_t left = s->out.n - s->out_at;
	const size_t n = MIN(left, most);
	if (!n && !s->done)
		return NGHTTP2_ERR_DEFERRED;
	if (n)
		memcpy(to, s->out.v + s->out_at, n);
	s->out_at += n;
	if (s->out_at == s->out.n) {
		empty_buf(&s->out, &s->out_at);
		count_bytes(s);
		if (s->done) {
			*flags |= NGHTTP2_DATA_FLAG_EOF;
			if (s->grpc) {
				*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
				submit_trailer(s);
			}
		}
	}
	return (ssize_t)n;
}

static void submit(struct stream *s, const nghttp2_nv *head, size_t n, bool body)
{
	nghttp2_data_provider source = { .source.ptr = s, .read_callback = read_out };
	nghttp2_submit_response(s->conn->session, s->id, head, n, body ? &source : NULL);
	s->submitted = true;
	conn_later(s->conn);
}

/* Behind the answers of a stream that has some, else alone.  Later messages are not read. */
static void submit_grpc_error(struct stream *s, int code, const char *text)
{
	s->done = s->refused = true;
	if (s->submitted) {
		set_status(s, code, text);
		nghttp2_session_resume_data(s->conn->session, s->id);
		conn_later(s->conn);
		return;
	}
	struct buf message = { 0 };
	char number[12];
	put_message(&message, text);
	snprintf(number, sizeof number, "%d", status_of(code)->grpc);
	const nghttp2_nv fields[] = { pair(":status", "200"),
		pair("content-type", "application/grpc"), pair("grpc-status", number),
		pair("grpc-message", buf_text(&message)) };
	submit(s, fields, 4, false);
	buf_free(&message);
}

/* "Name: value" lines as fields, which point into them. */
static size_t add_lines(
	const struct exchange *x, struct buf *lines, nghttp2_nv *fields, size_t n, size_t most)
{
	exchange_put_lines(x, lines);
	if (!lines->n)
		return n;
	buf_text(lines);
	for (char *at = lines->v, *end; at < lines->v + lines->n && n < most; at = end + 2) {
		end = strstr(at, "\r\n");
		char *colon = strstr(at, ": ");
		*end = *colon = 0;
		for (char *p = at; *p; p++)
			*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
		fields[n++] = pair(at, colon + 2);
	}
	return n;
}

static void submit_grpc_head(struct stream *s, const struct exchange *x)
{
	struct buf lines = { 0 };
	nghttp2_nv head[8] = { pair(":status", "200"), pair("content-type", "application/grpc") };
	submit(s, head, x ? add_lines(x, &lines, head, 2, 8) : 2, true);
	buf_free(&lines);
}

static void submit_rest(struct stream *s, struct exchange *x)
{
	struct buf lines = { 0 };
	char code[12], length[24];
	snprintf(code, sizeof code, "%d", x->status ? status_of(x->status)->http : 200);
	snprintf(length, sizeof length, "%zu", x->answer.n);
	nghttp2_nv head[10] = { pair(":status", code), pair("content-type", x->content_type),
		pair("content-length", length) };
	if (!x->only_head)
		buf_put(&s->out, x->answer.v, x->answer.n);
	s->done = true;
	begin_to_send(s);
	submit(s, head, add_lines(x, &lines, head, 3, 10), !x->only_head);
	buf_free(&lines);
}

static void put_prefixed(struct stream *s, const struct exchange *x)
{
	const uint32_t n = __builtin_bswap32((uint32_t)x->answer.n);
	buf_put(&s->out, "", 1);
	buf_put(&s->out, &n, sizeof n);
	buf_put(&s->out, x->answer.v, x->answer.n);
	begin_to_send(s);
}

static void start_streamed(struct stream *s, size_t n);

static void end_if_all_answered(struct stream *s)
{
	if (!s->half_closed || s->first || s->x || s->refused || s->starting)
		return;
	if (s->in_at < s->in.n) {
		submit_grpc_error(s, -EIO, "the stream ends within a message");
		return;
	}
	s->done = true;
	nghttp2_session_resume_data(s->conn->session, s->id);
	conn_later(s->conn);
}

/* Sends the answers at the front that are ready. */
static void send_in_order(struct stream *s)
{
	while (s->first && s->first->answered) {
		struct exchange *x = s->first;
		s->first = x->after;
		if (!s->first)
			s->last = &s->first;
		s->waiting--;
		if (x->status && s->ends_on_error && !s->done)
			submit_grpc_error(s, x->status, x->err.text);
		if (s->done) {
			exchange_free(x);
			continue;
		}
		if (x->status) {
			struct infer_answer a = { .id = x->infer.id };
			x->answer.n = 0;
			infer_pb_put_stream(&x->answer, &a, x->err.text);
		}
		put_prefixed(s, x);
		exchange_free(x);
	}
	nghttp2_session_resume_data(s->conn->session, s->id);
	conn_later(s->conn);
	if (!s->refused)
		start_streamed(s, 0);
	end_if_all_answered(s);
}

void http2_answered(struct exchange *x)
{
	struct stream *s = x->stream;
	if (x->streamed) {
		x->answered = true;
		send_in_order(s);
		return;
	}
	s->x = NULL;
	if (!s->grpc) {
		submit_rest(s, x);
	} else if (x->status) {
		submit_grpc_error(s, x->status, x->err.text);
	} else {
		put_prefixed(s, x);
		s->done = true;
		submit_grpc_head(s, x);
	}
	exchange_free(x);
}

/* Digits and a unit: "1500m". */
static bool read_timeout(struct slice v, uint64_t *ret_ns)
{
	static const struct {
		char unit;
		uint64_t ns;
	} units[] = { { 'H', 3600000000000u }, { 'M', 60000000000u }, { 'S', 1000000000u },
		{ 'm', 1000000u }, { 'u', 1000u }, { 'n', 1u } };
	uint64_t n;
	if (v.n < 2 || v.n > 9 || !slice_u64((struct slice){ v.at, v.n - 1 }, &n))
		return false;
	for (size_t i = 0; i < 6; i++)
		if (v.at[v.n - 1] == units[i].unit) {
			*ret_ns = sat_mul(n, units[i].ns);
			*ret_ns = *ret_ns ? *ret_ns : 1;
			return true;
		}
	return false;
}

static void take_number(struct stream *s, struct slice v, uint64_t *ret, const char *what)
{
	if (!slice_u64(v, ret))
		set_status(s, -EINVAL, what);
}

static void take_encoding(struct stream *s, struct slice v, char *ret)
{
	struct error err;
	const int e = exchange_encoding(v, ret, &err);
	if (e)
		set_status(s, e, err.text);
}

static void take_header(struct stream *s, struct slice name, struct slice v)
{
	struct exchange *x = s->x;
	uint64_t us = 0;
	if (slice_is(name, ":path")) {
		buf_put_slice(&s->path, v);
	} else if (slice_is(name, ":method")) {
		if (v.n < sizeof s->method)
			memcpy(s->method, v.at, v.n);
	} else if (slice_is(name, "content-type")) {
		s->grpc = v.n >= 16 && memcmp(v.at, "application/grpc", 16) == 0;
	} else if (slice_is(name, "grpc-timeout")) {
		if (!read_timeout(v, &x->timeout_ns))
			set_status(s, -EINVAL,
				"grpc-timeout has at most 8 digits and a unit of H, M, S, m, u, n");
	} else if (slice_is(name, "grpc-encoding")) {
		take_encoding(s, v, &s->encoding);
	} else if (slice_is(name, "content-encoding")) {
		take_encoding(s, v, &x->encoding);
	} else if (slice_is(name, "inference-header-content-length")) {
		x->has_infer_length = true;
		take_number(s, v, &x->infer_length, "inference-header-content-length is no number");
	} else if (slice_is(name, "weir-deadline-us")) {
		take_number(s, v, &us, "weir-deadline-us is no number of microseconds");
		x->timeout_ns = sat_mul(us, 1000);
	} else if (slice_is(name, "weir-time")) {
		x->wants_time = true;
	} else if (slice_is(name, "triton_grpc_error")) {
		s->ends_on_error = slice_is(v, "true");
	} else if (slice_is(name, "traceparent")) {
		exchange_set_trace(x, v);
	} else if (slice_is(name, "authorization")) {
		s->authorized = find_token(s->conn, v, &s->token, NULL) == 0;
	}
}

/* The head is complete: which route it is. */
static void begin_request(struct stream *s)
{
	struct exchange *x = s->x;
	struct error err;
	struct slice path = buf_slice(&s->path);
	int e = s->authorized ? 0 : find_token(s->conn, SLICE(""), &s->token, &err);
	x->grpc = s->grpc;
	x->only_head = !s->grpc && strcmp(s->method, "HEAD") == 0;
	x->token = s->token;
	const char *query = path.n ? memchr(path.at, '?', path.n) : NULL;
	if (query)
		path.n = (size_t)(query - path.at);
	if (!e && s->status)
		e = error_set(&err, s->status, "%s", s->why);
	if (!e)
		e = s->grpc ? route_find_grpc(path, &x->match, &err)
			    : route_find_rest(slice_of(s->method), path, x->names, &x->match, &err);
	if (e) {
		s->refused = true;
		exchange_fail(x, e, "%s", err.text);
		return;
	}
	if (x->match.route != ROUTE_STREAM_INFER)
		return;
	/* Its requests are exchanges of their own, and this one was only for the head. */
	s->streamed = true;
	s->x = NULL;
	exchange_free(x);
	submit_grpc_head(s, NULL);
}

static void take_unary(struct stream *s, const uint8_t *bytes, size_t n)
{
	struct exchange *x = s->x;
	if (!x)
		return;
	if (!x->body.n && x->has_infer_length) {
		x->body_at = -x->infer_length & 63;
		buf_fill(&x->body, x->body_at);
	}
	if (x->body.n + n > s->conn->loop->server->o.body_bytes + 64) {
		exchange_fail(x, -EMSGSIZE, "the body has more than %llu MiB",
			(unsigned long long)(s->conn->loop->server->o.body_bytes >> 20));
		return;
	}
	if (!exchange_hold(x, n))
		return;
	s->until_ns += n * BODY_NS_A_KIB / 1024;
	buf_put(&x->body, bytes, n);
}

/* A message's flag and length; 0: not all there. */
static size_t message_bytes(const char *at, size_t n)
{
	uint32_t length;
	if (n < PREFIX)
		return 0;
	memcpy(&length, at + 1, sizeof length);
	length = __builtin_bswap32(length);
	return n - PREFIX >= length ? PREFIX + (size_t)length : 0;
}

static void start_message(struct stream *s, const char *message, size_t n)
{
	struct exchange *x = exchange_new(s->conn->loop, s->conn);
	x->stream = s;
	x->token = s->token;
	x->grpc = x->streamed = true;
	x->match = (struct route_match){ .route = ROUTE_STREAM_INFER };
	*s->last = x;
	s->last = &x->after;
	s->waiting++;
	if (!exchange_hold(x, n))
		return;
	x->encoding = *message ? s->encoding : 0;
	if (*message && !x->encoding) {
		exchange_fail(
			x, -EIO, "the message is compressed, and grpc-encoding does not say how");
		return;
	}
	buf_put(&x->body, message + PREFIX, n - PREFIX);
	exchange_start(x);
}

/* The first message that has not begun; 0: it is not all there. */
static size_t next_message(const struct stream *s)
{
	return message_bytes(s->in.v + s->in_at, s->in.n - s->in_at);
}

/* The rest of a message has to come in some time, which grows with its size. */
static void note_part(struct stream *s, bool begins, size_t n)
{
	if (s->in_at == s->in.n || next_message(s))
		s->part_until_ns = UINT64_MAX;
	else if (begins)
		s->part_until_ns = s->conn->loop->now + REQUEST_NS;
	else
		s->part_until_ns += n * BODY_NS_A_KIB / 1024;
}

/* Begins as many requests as may be under way; n: bytes that came now. */
static void start_streamed(struct stream *s, size_t n)
{
	bool begins = s->in.n - s->in_at == n;
	size_t length;
	if (s->starting) /* one of them has its answer already */
		return;
	s->starting = true;
	while (!s->refused && s->waiting < IN_ORDER_MOST && (length = next_message(s)) != 0) {
		s->in_at += length;
		count_bytes(s); /* from here on they count with the exchange */
		start_message(s, s->in.v + s->in_at - length, length);
		begins = true;
	}
	s->starting = false;
	/* The bytes that move are no more than those that went. */
	if (s->in_at == s->in.n) {
		empty_buf(&s->in, &s->in_at);
	} else if (s->in_at && s->in_at >= s->in.n - s->in_at) {
		memmove(s->in.v, s->in.v + s->in_at, s->in.n - s->in_at);
		s->in.n -= s->in_at;
		s->in_at = 0;
	}
	note_part(s, begins, n);
}

static void take_streamed(struct stream *s, const uint8_t *bytes, size_t n)
{
	buf_put(&s->in, bytes, n);
	start_streamed(s, n);
	const size_t left = s->in.n - s->in_at;
	const bool fits = count_bytes(s);
	if (left > s->conn->loop->server->o.body_bytes && !next_message(s))
		submit_grpc_error(s, -EMSGSIZE, "the message is larger than the server takes");
	else if (left > s->conn->loop->server->o.body_bytes)
		submit_grpc_error(s, -ENOBUFS, "too many requests of this stream wait for answers");
	else if (!fits && left)
		submit_grpc_error(s, -ENOBUFS, "the server has no room for this request now");
}

/* The client has sent all. */
static void start_unary(struct stream *s)
{
	struct exchange *x = s->x;
	if (!x)
		return;
	s->until_ns = UINT64_MAX;
	if (s->grpc) {
		const size_t n = message_bytes(x->body.v, x->body.n);
		if (!n || n != x->body.n) {
			exchange_fail(x, -EIO, "the request is not one message of gRPC");
			return;
		}
		x->encoding = x->body.v[0] ? s->encoding : 0;
		if (x->body.v[0] && !x->encoding) {
			exchange_fail(x, -EIO,
				"the message is compressed, and grpc-encoding does not say how");
			return;
		}
		x->body_at = PREFIX;
	}
	exchange_start(x);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
	struct conn *c = user;
	if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct stream *s = xcalloc(1, sizeof *s);
	s->conn = c;
	s->id = f->hd.stream_id;
	s->until_ns = c->loop->now + REQUEST_NS;
	s->part_until_ns = UINT64_MAX;
	s->last = &s->first;
	s->next = c->streams;
	if (c->streams)
		c->streams->prev = s;
	c->streams = s;
	c->until_ns = UINT64_MAX;
	s->x = exchange_new(c->loop, c);
	s->x->stream = s;
	nghttp2_session_set_stream_user_data(session, s->id, s);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name,
	size_t nname, const uint8_t *value, size_t nvalue, uint8_t flags, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	if (!s || !s->x)
		return 0;
	s->head_bytes += nname + nvalue + 32;
	if (s->head_bytes > HEAD_MOST)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	/* Trailers change nothing: a proxy in front has not judged them as it does headers. */
	if (f->headers.cat == NGHTTP2_HCAT_REQUEST)
		take_header(s, (struct slice){ (const char *)name, nname },
			(struct slice){ (const char *)value, nvalue });
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
	size_t n, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);
	if (!s || s->refused)
		return 0;
	if (s->streamed)
		take_streamed(s, bytes, n);
	else
		take_unary(s, bytes, n);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	if (!s || (f->hd.type != NGHTTP2_DATA && f->hd.type != NGHTTP2_HEADERS))
		return 0;
	if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
		begin_request(s);
	if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM) || s->refused)
		return 0;
	s->half_closed = true;
	if (s->streamed)
		end_if_all_answered(s);
	else
		start_unary(s);
	return 0;
}

static void free_stream(struct stream *s)
{
	struct conn *c = s->conn;
	*(s->prev ? &s->prev->next : &c->streams) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	if (!c->streams)
		c->until_ns = c->loop->now + c->loop->server->o.idle_ns;
	if (s->x)
		exchange_abandon(s->x);
	for (struct exchange *x = s->first, *after; x; x = after) {
		after = x->after;
		exchange_abandon(x);
	}
	free(s->why);
	buf_free(&s->path, &s->in, &s->out);
	s->in_at = s->out_at = 0;
	count_bytes(s);
	free(s);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);
	if (s)
		free_stream(s);
	return 0;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
	nghttp2_session_callbacks *all;
	if (nghttp2_session_callbacks_new(&all))
		return NULL;
	nghttp2_session_callbacks_set_on_begin_headers_callback(all, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(all, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(all, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(all, on_close);
	return all;
}

bool http2_begin(struct conn *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MOST },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_MOST },
	};
	nghttp2_session_callbacks *callbacks = make_callbacks();
	nghttp2_session *session = NULL;
	if (!callbacks || nghttp2_session_server_new(&session, callbacks, c)) {
		nghttp2_session_callbacks_del(callbacks);
		return false;
	}
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 3);
	nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW);
	c->session = session;
	c->until_ns = c->loop->now + c->loop->server->o.idle_ns;
	return true;
}

void http2_read(struct conn *c)
{
	const ssize_t n = nghttp2_session_mem_recv(
		c->session, (const uint8_t *)c->in.v + c->in_at, c->in.n - c->in_at);
	c->in_at = c->in.n;
	if (n < 0) {
		conn_close(c);
		return;
	}
	conn_later(c);
}

/* Frames that are ready, as long as the socket takes them. */
bool http2_pump(struct conn *c)
{
	const uint8_t *bytes;
	ssize_t n;
	bool any = false;
	while (c->out.n - c->out_at < BACKLOG &&
		(n = nghttp2_session_mem_send(c->session, &bytes)) > 0) {
		buf_put(&c->out, bytes, (size_t)n);
		any = true;
	}
	if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))
		c->closing = true;
	return any;
}

static bool is_slow(const struct stream *s, uint64_t now)
{
	if (s->streamed && s->out.n == s->out_at)
		return s->part_until_ns < now;
	return s->until_ns < now;
}

/* Streams whose request does not come to its end. */
void http2_sweep(struct conn *c)
{
	for (struct stream *s = c->streams; s; s = s->next)
		if (is_slow(s, c->loop->now)) {
			nghttp2_submit_rst_stream(c->session, 0, s->id, NGHTTP2_ENHANCE_YOUR_CALM);
			conn_later(c);
		}
}

void http2_end(struct conn *c)
{
	nghttp2_session_terminate_session(c->session, NGHTTP2_NO_ERROR);
	c->closing = true;
	c->until_ns = c->loop->now + END_NS;
	conn_later(c);
}

void http2_drain(struct conn *c, bool last)
{
	nghttp2_session *session = c->session;
	if (c->drained == 0)
		nghttp2_submit_shutdown_notice(session);
	else if (c->drained == 1 && last)
		nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
			nghttp2_session_get_last_proc_stream_id(session), NGHTTP2_NO_ERROR, NULL,
			0);
	if (c->drained < 1u + last) {
		c->drained++;
		conn_later(c);
	} else if (last && !c->streams && c->out.n == c->out_at &&
		   !nghttp2_session_want_write(session)) {
		conn_close(c);
	}
}

void http2_closed(struct conn *c)
{
	while (c->streams)
		free_stream(c->streams);
	nghttp2_session_del(c->session);
	c->session = NULL;
}
