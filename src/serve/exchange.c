/* A request and its answer, from the first byte to the last, whichever protocol they came by. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

#include "serve/internal.h"

#define SPARES_MOST 256
#define KEPT_BYTES  (64u << 10) /* memory that a spare one keeps */

struct exchange *exchange_new(struct loop *l, struct conn *c)
{
	struct exchange *x = l->spare;
	if (x) {
		l->spare = x->next;
		l->spares--;
	} else {
		x = xcalloc(1, sizeof *x);
	}
	x->loop = l;
	x->conn = c;
	x->began_ns = c->began_ns ? c->began_ns : l->now;
	x->content_type = "application/json";
	add_relaxed(&l->server->exchanges, 1);
	return x;
}

static void trim(struct buf *b)
{
	b->n = 0;
	if (b->room > KEPT_BYTES)
		buf_free(b);
}

/* All that a request set, but not the memory that the next one can use: struct infer_request has
 * 20 KB, of which most are never touched. */
static void clear(struct exchange *x)
{
	trim(&x->body);
	trim(&x->answer);
	trim(&x->scratch);
	infer_request_reset(&x->infer);
	memset(x, 0, offsetof(struct exchange, body));
	x->err.text[0] = 0;
}

int exchange_encoding(struct slice name, char *ret, struct error *err)
{
	if (slice_is_nocase(name, "gzip"))
		*ret = 'g';
	else if (slice_is_nocase(name, "deflate"))
		*ret = 'd';
	else if (name.n && !slice_is_nocase(name, "identity"))
		return error_set(err, -EOPNOTSUPP,
			"the encoding '%.*s' is not supported. gzip and deflate are",
			SLICE_ARG(name));
	else
		*ret = 0;
	return 0;
}

void exchange_release(struct exchange *x)
{
	buf_free(&x->body, &x->answer, &x->scratch);
	infer_request_free(&x->infer);
	free(x);
}

void exchange_free(struct exchange *x)
{
	struct loop *l = x->loop;
	struct server *s = l->server;
	recorded_request(x);
	if (x->batch)
		batch_unref(&s->device, x->batch);
	infer_unstage(x);
	if (x->version)
		version_unref(x->version);
	for (unsigned i = 0; i < x->infer.inputs; i++)
		if (x->shared[i]) {
			free(x->shared[i]);
			x->shared[i] = NULL;
		}
	sub_relaxed(&s->held_bytes, x->held);
	sub_relaxed(&s->exchanges, 1);
	clear(x);
	if (l->spares >= SPARES_MOST) {
		exchange_release(x);
		return;
	}
	x->next = l->spare;
	l->spare = x;
	l->spares++;
}

void exchange_abandon(struct exchange *x)
{
	x->conn = NULL;
	x->stream = NULL;
	if (!x->away) {
		exchange_free(x);
	} else if (x->version && device_cancel(x->version->device, x)) {
		add_relaxed(&x->version->stats.cancelled, 1);
		exchange_free(x);
	}
	/* Or else it comes back to the loop, which finds nobody to tell. */
}

static void quote(struct buf *b, const char *text)
{
	json_t *s = json_string_nocheck(text);
	char *quoted = s ? json_dumps(s, JSON_ENCODE_ANY) : NULL;
	buf_put_text(b, quoted ? quoted : "\"\"");
	free(quoted);
	json_decref(s);
}

void exchange_fail(struct exchange *x, int code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(x->err.text, sizeof x->err.text, format, args);
	va_end(args);
	x->status = code;
	x->answer.n = 0;
	x->answer_json = 0;
	x->content_type = "application/json";
	if (!x->grpc) {
		buf_put_text(&x->answer, "{\"error\":");
		quote(&x->answer, x->err.text);
		buf_put(&x->answer, "}", 1);
	}
	conn_answered(x);
}

static void put_time(const struct exchange *x, struct buf *b)
{
	const uint64_t end = x->ended_ns ? x->ended_ns : monotonic_ns();
	const uint64_t ran = x->ran_ns ? x->ran_ns : end;
	buf_printf(b, "queue=%" PRIu64 " batch=%u device=%" PRIu64 " total=%" PRIu64,
		x->queued_ns ? (ran - x->queued_ns) / 1000 : 0, x->batch_rows,
		x->ran_ns ? (end - ran) / 1000 : 0, (monotonic_ns() - x->began_ns) / 1000);
	if (x->number)
		buf_printf(b, " request=%" PRIu64, x->number);
}

void exchange_put_lines(const struct exchange *x, struct buf *lines)
{
	if (x->answer_json)
		buf_printf(lines, "Inference-Header-Content-Length: %zu\r\n", x->answer_json);
	if (x->status == -ENOBUFS)
		buf_printf(lines, "Retry-After: %" PRIu64 "\r\n",
			(x->retry_ns + 999999999u) / 1000000000u + !x->retry_ns);
	if (x->status == -EACCES)
		buf_put_text(lines, "WWW-Authenticate: Bearer\r\n");
	if (x->wants_time) {
		buf_put_text(lines, "Weir-Time: ");
		put_time(x, lines);
		buf_put_text(lines, "\r\n");
	}
	if (x->traceparent[0])
		buf_printf(lines, "traceparent: %s\r\n", x->traceparent);
}

static void put_log(struct exchange *x)
{
	struct buf *b = &x->loop->log;
	buf_printf(b, "{\"ts\":%" PRIu64 ",\"route\":\"%s\",\"model\":", (uint64_t)time(NULL),
		x->match.row->path ? x->match.row->path : x->match.row->method);
	char name[sizeof x->names];
	snprintf(name, sizeof name, "%.*s", SLICE_ARG(x->match.model));
	quote(b, name);
	buf_printf(b, ",\"version\":%" PRIu64 ",\"status\":%d,",
		x->version ? x->version->number : 0, x->status ? status_of(x->status)->http : 200);
	if (x->status) {
		buf_put_text(b, "\"error\":");
		quote(b, x->err.text);
		buf_put_text(b, ",");
	}
	buf_printf(b, "\"trace\":\"%s\",\"rows\":%u,\"time_us\":\"", x->traceparent, x->item.rows);
	put_time(x, b);
	buf_put_text(b, "\"}\n");
}

void conn_answered(struct exchange *x)
{
	if (x->loop->server->log && x->match.row)
		put_log(x);
	recorded_request(x);
	if (!x->conn)
		exchange_free(x);
	else if (x->stream)
		http2_answered(x);
	else
		http1_answered(x);
}

/* One that is as W3C's Trace Context has it: it goes into the answer and into the log as it is. */
void exchange_set_trace(struct exchange *x, struct slice v)
{
	if (v.n != sizeof x->traceparent - 1)
		return;
	for (size_t i = 0; i < v.n; i++)
		if (!strchr("0123456789abcdef-", v.at[i]) || !v.at[i])
			return;
	memcpy(x->traceparent, v.at, v.n);
	x->traceparent[v.n] = 0;
}

int find_token(const struct conn *c, struct slice said, struct token **ret, struct error *err)
{
	const struct server *s = c->loop->server;
	*ret = NULL;
	if (!s->tokens || c->trusted)
		return 0;
	*ret = tokens_find(s->tokens, said);
	return *ret ? 0
		    : error_set(err, -EACCES,
			      "this server wants 'Authorization: Bearer WORD' with a word of its --token file");
}

#define INFLATE_STEP 65536

/* The body as it was before the client compressed it.  Few bytes can become very many, so they are
 * counted before there is room for them. */
static int inflate_body(struct exchange *x, struct error *err)
{
	const uint64_t most = x->loop->server->o.body_bytes;
	struct buf plain = { 0 };
	const size_t at = x->has_infer_length ? -x->infer_length & 63 : 0;
	buf_fill(&plain, at);
	z_stream z = { .next_in = (unsigned char *)x->body.v + x->body_at,
		.avail_in = (unsigned)(x->body.n - x->body_at) };
	int code = inflateInit2(&z, x->encoding == 'g' ? 31 : 15);
	int e = 0;
	while (code == Z_OK && plain.n - at <= most && !e) {
		e = exchange_count(x, INFLATE_STEP, err);
		z.next_out = (unsigned char *)buf_more(&plain, INFLATE_STEP);
		z.avail_out = INFLATE_STEP;
		code = inflate(&z, Z_NO_FLUSH);
		plain.n += INFLATE_STEP - z.avail_out;
	}
	inflateEnd(&z);
	buf_free(&x->body);
	x->body = plain;
	x->body_at = at;
	if (e)
		return e;
	if (plain.n - at > most)
		return error_set(err, -EMSGSIZE,
			"the body has more than %llu MiB when it is inflated",
			(unsigned long long)(most >> 20));
	return code == Z_STREAM_END
		       ? 0
		       : error_set(err, -EINVAL,
				 "the body can't be inflated: it is not what its encoding says");
}

void exchange_start(struct exchange *x)
{
	struct error err;
	x->read_ns = monotonic_ns();
	if (x->encoding && x->body.n > x->body_at) {
		const int e = inflate_body(x, &err);
		if (e) {
			exchange_fail(x, e, "%s", err.text);
			return;
		}
	}
	if (x->match.route == ROUTE_INFER || x->match.route == ROUTE_STREAM_INFER)
		infer_start(x);
	else
		control_start(x);
}
