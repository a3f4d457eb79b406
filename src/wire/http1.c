/*
 * HTTP/1.1 as bytes: see http1.h for what is refused and why.
 *
 * A head is parsed in two passes. The first looks for the empty line and remembers how far it came.
 * The second runs once, over a head that is complete, and cuts it into lines. Rules are those of
 * RFC 9110 and 9112; where they let a server be lenient, this one refuses.
 */
#include "wire/http1.h"

#include <errno.h>
#include <string.h>

#include "base/digit.h"

/* The parts of a head that a byte may belong to. */
enum { TOKEN = 1, VALUE = 2, TARGET = 4, HOST = 8 };

static const uint8_t classes[256] = {
	['\t'] = VALUE,
	[' '] = VALUE,
	['!'] = TOKEN | VALUE | TARGET | HOST,
	['"'] = VALUE | TARGET,
	['#'] = TOKEN | VALUE,
	['$' ... '\''] = TOKEN | VALUE | TARGET | HOST,
	['(' ... ')'] = VALUE | TARGET | HOST,
	['*' ... '+'] = TOKEN | VALUE | TARGET | HOST,
	[','] = VALUE | TARGET,
	['-' ... '.'] = TOKEN | VALUE | TARGET | HOST,
	['/'] = VALUE | TARGET,
	['0' ... '9'] = TOKEN | VALUE | TARGET | HOST,
	[':' ... ';'] = VALUE | TARGET | HOST,
	['<'] = VALUE | TARGET,
	['='] = VALUE | TARGET | HOST,
	['>' ... '@'] = VALUE | TARGET,
	['A' ... 'Z'] = TOKEN | VALUE | TARGET | HOST,
	['['] = VALUE | TARGET | HOST,
	['\\'] = VALUE | TARGET,
	[']'] = VALUE | TARGET | HOST,
	['^'] = TOKEN | VALUE | TARGET,
	['_'] = TOKEN | VALUE | TARGET | HOST,
	['`'] = TOKEN | VALUE | TARGET,
	['a' ... 'z'] = TOKEN | VALUE | TARGET | HOST,
	['{'] = VALUE | TARGET,
	['|'] = TOKEN | VALUE | TARGET,
	['}'] = VALUE | TARGET,
	['~'] = TOKEN | VALUE | TARGET | HOST,
	[0x80 ... 0xff] = VALUE,
};

/* The first byte from at on that is not of the class, or end. */
static const char *skip(const char *at, const char *end, uint8_t class)
{
	while (at < end && classes[(unsigned char)*at] & class)
		at++;
	return at;
}

/* For messages: the start of a text from outside, for "%.*s". */
#define SHOWN(s) (int)((s).n < 64 ? (s).n : 64), (s).at

static const struct {
	const char *name;
	bool list; /* may stand on several lines */
} headers[HTTP_HEADERS] = {
	[HEADER_CONTENT_LENGTH] = { .name = "content-length" },
	[HEADER_CONTENT_TYPE] = { .name = "content-type" },
	[HEADER_INFER_LENGTH] = { .name = "inference-header-content-length" },
	[HEADER_EXPECT] = { .name = "expect" },
	[HEADER_CONNECTION] = { .name = "connection", .list = true },
	[HEADER_TRANSFER_ENCODING] = { .name = "transfer-encoding" },
	[HEADER_AUTHORIZATION] = { .name = "authorization" },
	[HEADER_TRACEPARENT] = { .name = "traceparent" },
	[HEADER_DEADLINE] = { .name = "weir-deadline-us" },
	[HEADER_TIME] = { .name = "weir-time" },
	[HEADER_ACCEPT_ENCODING] = { .name = "accept-encoding", .list = true },
	[HEADER_CONTENT_ENCODING] = { .name = "content-encoding" },
	[HEADER_HOST] = { .name = "host" },
};

/* The header with a name of so many bytes, plus 1; the other one of 16 is Content-Encoding. */
static const uint8_t of_length[32] = {
	[4] = HEADER_HOST + 1,
	[6] = HEADER_EXPECT + 1,
	[9] = HEADER_TIME + 1,
	[10] = HEADER_CONNECTION + 1,
	[11] = HEADER_TRACEPARENT + 1,
	[12] = HEADER_CONTENT_TYPE + 1,
	[13] = HEADER_AUTHORIZATION + 1,
	[14] = HEADER_CONTENT_LENGTH + 1,
	[15] = HEADER_ACCEPT_ENCODING + 1,
	[16] = HEADER_DEADLINE + 1,
	[17] = HEADER_TRANSFER_ENCODING + 1,
	[31] = HEADER_INFER_LENGTH + 1,
};

static enum http_header header_find(struct slice name)
{
	unsigned h = name.n < 32 ? of_length[name.n] : 0;
	if (!h--)
		return HTTP_HEADERS;
	if (h == HEADER_DEADLINE && (*name.at | 32) == 'c')
		h = HEADER_CONTENT_ENCODING;
	/* The table's names have letters and hyphens, which no other byte of a token becomes. */
	for (size_t i = 0; i < name.n; i++)
		if ((name.at[i] | 32) != headers[h].name[i])
			return HTTP_HEADERS;
	return (enum http_header)h;
}

/* One of the words of a list: Connection: close, x. */
static bool has_word(struct slice list, const char *word)
{
	const char *at = list.at, *end = list.at + list.n;
	while (at < end) {
		const char *from = at;
		at = skip(at, end, TOKEN);
		if (slice_is_nocase((struct slice){ from, (size_t)(at - from) }, word))
			return true;
		at += at == from;
	}
	return false;
}

/* Path and query of a target: /path?query or http://host/path?query. */
static int split_target(struct slice target, struct http_head *head, struct error *err)
{
	const char *at = target.at, *end = target.at + target.n;
	if (target.n > 7 && !strncasecmp(at, "http", 4)) {
		const char *host = at + 4 + (at[4] == 's' || at[4] == 'S');
		if (end - host > 3 && !memcmp(host, "://", 3))
			at = skip(host + 3, end, HOST);
		if (at == host + 3)
			at = target.at;
	}
	if (at != target.at && (at == end || *at == '?')) {
		head->path = SLICE("/");
	} else {
		if (at == end || *at != '/')
			return error_set(err, -EINVAL,
				"the request's target `%.*s` is not a path: it has to begin with /",
				SHOWN(target));
		const char *query = memchr(at, '?', (size_t)(end - at));
		head->path = (struct slice){ at, (size_t)((query ? query : end) - at) };
		at = query ? query : end;
	}
	head->query = at < end ? (struct slice){ at + 1, (size_t)(end - at - 1) } : SLICE("");
	return 0;
}

/* METHOD SP TARGET SP HTTP/1.x */
static int request_line(struct slice line, struct http_head *head, struct error *err)
{
	const char *at = line.at, *end = line.at + line.n;
	const char *method_end = skip(at, end, TOKEN);
	head->method = (struct slice){ at, (size_t)(method_end - at) };
	if (!head->method.n || method_end == end || *method_end != ' ')
		return error_set(err, -EINVAL,
			"the request's first line `%.*s` does not begin with a method and a space",
			SHOWN(line));
	const char *target = method_end + 1, *target_end = skip(target, end, TARGET);
	const struct slice version = { target_end + 1, (size_t)(end - target_end) - 1 };
	if (target_end == end || *target_end != ' ' || target_end == target)
		return error_set(err, -EINVAL,
			"the request's first line `%.*s` is not a method, a path and HTTP/1.1 "
			"with one space between them",
			SHOWN(line));
	head->old = slice_is(version, "HTTP/1.0");
	if (!head->old && !slice_is(version, "HTTP/1.1"))
		return error_set(err, -EINVAL,
			"the request's version is `%.*s`: this port answers HTTP/1.1 and HTTP/1.0",
			SHOWN(version));
	return split_target((struct slice){ target, (size_t)(target_end - target) }, head, err);
}

struct connection {
	bool close, keep_alive;
};

static int header_line(
	struct slice line, struct http_head *head, struct connection *c, struct error *err)
{
	const char *end = line.at + line.n, *colon = skip(line.at, end, TOKEN);
	if (*line.at == ' ' || *line.at == '\t')
		return error_set(err, -EINVAL,
			"a header goes on in the line `%.*s`: a header has to be one line",
			SHOWN(line));
	if (colon == line.at || colon == end || *colon != ':')
		return error_set(err, -EINVAL,
			"the header line `%.*s` does not begin with a name and a colon",
			SHOWN(line));
	const struct slice name = { line.at, (size_t)(colon - line.at) };
	const char *from = colon + 1;
	if (skip(from, end, VALUE) != end)
		return error_set(err, -EINVAL,
			"the header %.*s has a control character in its value", SHOWN(name));
	while (from < end && (*from == ' ' || *from == '\t'))
		from++;
	while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	const struct slice value = { from, (size_t)(end - from) };
	const enum http_header h = header_find(name);
	if (h == HTTP_HEADERS)
		return 0;
	if (h == HEADER_CONNECTION) {
		c->close |= has_word(value, "close");
		c->keep_alive |= has_word(value, "keep-alive");
	}
	if (!head->header[h].at)
		head->header[h] = value;
	else if (!headers[h].list)
		return error_set(err, -EINVAL, "the request has two headers %s", headers[h].name);
	return 0;
}

/* The length of the body: the two headers that say it must leave no doubt. */
static int body_length(struct http_head *head, struct error *err)
{
	const struct slice length = head->header[HEADER_CONTENT_LENGTH];
	const struct slice encoding = head->header[HEADER_TRANSFER_ENCODING];
	if (length.at && !slice_u64(length, &head->content_length))
		return error_set(err, -EINVAL,
			"the request's Content-Length is `%.*s`, not a number of bytes",
			SHOWN(length));
	if (!encoding.at)
		return 0;
	if (length.at)
		return error_set(err, -EINVAL,
			"the request has both Content-Length and Transfer-Encoding: send one");
	if (head->old || !slice_is_nocase(encoding, "chunked"))
		return error_set(err, -EINVAL,
			"the request's Transfer-Encoding is `%.*s`: only HTTP/1.1 has one here, "
			"and only `chunked`",
			SHOWN(encoding));
	head->chunked = true;
	return 0;
}

static int settle(struct http_head *head, const struct connection *c, struct error *err)
{
	const struct slice host = head->header[HEADER_HOST], expect = head->header[HEADER_EXPECT];
	if (!host.at && !head->old)
		return error_set(err, -EINVAL, "the request has no Host, which HTTP/1.1 requires");
	if (skip(host.at, host.at + host.n, HOST) != host.at + host.n)
		return error_set(err, -EINVAL,
			"the request's Host is `%.*s`, not a host name and a port", SHOWN(host));
	if (expect.at && !slice_is_nocase(expect, "100-continue"))
		return error_set(err, -EINVAL,
			"the request's Expect is `%.*s`: only `100-continue` is understood",
			SHOWN(expect));
	head->expect_continue = expect.at && !head->old; /* RFC 9110 10.1.1: 1.0 does not wait */
	head->keep_alive = !c->close && (c->keep_alive || !head->old);
	return body_length(head, err);
}

/* The ends of the head's lines, behind their LF. */
struct lines {
	unsigned n;
	uint16_t end[HTTP_LINES_MOST + 1];
};

/* Looks for the empty line from *scanned on. 1: it is there. */
static int find_lines(
	const char *bytes, size_t n, size_t *scanned, struct lines *lines, struct error *err)
{
	const size_t limit = MIN(n, HTTP_HEAD_MOST);
	lines->n = 0;
	while (*scanned < limit) {
		const char *lf = memchr(bytes + *scanned, '\n', limit - *scanned);
		const size_t at = *scanned = lf ? (size_t)(lf - bytes) + 1 : limit;
		if (!lf)
			break;
		if (at < 2 || bytes[at - 2] != '\r')
			return error_set(err, -EINVAL,
				"a line of the request's head ends with LF alone: it has to be CR "
				"LF");
		if (at > 2 && bytes[at - 3] == '\n')
			return 1;
		if (lines->n < HTTP_LINES_MOST + 1)
			lines->end[lines->n] = (uint16_t)at;
		lines->n++;
	}
	return n < HTTP_HEAD_MOST
		       ? 0
		       : error_set(err, -EMSGSIZE, "the request's head has more than %d bytes",
				 HTTP_HEAD_MOST);
}

int http_head_parse(
	const char *bytes, size_t n, size_t *scanned, struct http_head *ret, struct error *err)
{
	struct http_head head = { 0 };
	struct connection c = { 0 };
	struct lines lines;
	const bool resumed = *scanned;
	if (n && !(classes[(unsigned char)*bytes] & TOKEN))
		return error_set(err, -EINVAL, "the request does not begin with a method%s",
			*bytes == 0x16 ? " but with TLS, which this port does not speak" : "");
	int rc = find_lines(bytes, n, scanned, &lines, err);
	if (rc > 0 && resumed) { /* now the lines in front, too */
		*scanned = 0;
		rc = find_lines(bytes, n, scanned, &lines, err);
	}
	if (rc <= 0)
		return rc;
	if (lines.n > HTTP_LINES_MOST + 1)
		return error_set(err, -EMSGSIZE, "the request's head has more than %d headers",
			HTTP_LINES_MOST);
	head.bytes = *scanned;
	for (unsigned i = 0; i < lines.n; i++) {
		const size_t from = i ? lines.end[i - 1] : 0;
		const struct slice line = { bytes + from, lines.end[i] - from - 2 };
		rc = i ? header_line(line, &head, &c, err) : request_line(line, &head, err);
		if (rc)
			return rc;
	}
	rc = settle(&head, &c, err);
	if (rc)
		return rc;
	*ret = head;
	return 1;
}

/* A chunked body: SIZE [EXTENSION] CRLF DATA CRLF ... 0 CRLF [TRAILER CRLF]... CRLF */
enum {
	SIZE,
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER,
	IN_TRAILER,
	TRAILER_LF,
	END_LF,
	DONE
};

#define EXTRA_MOST 4096

/* The state after one byte that is no data, or -1: it must not stand there. */
static int chunk_byte(struct http_chunks *c, char byte)
{
	const bool text = classes[(unsigned char)byte] & VALUE;
	const int digit = hex_digit(byte);
	switch (c->state) {
	case SIZE:
		if (digit >= 0) {
			c->left = c->left << 4 | (unsigned)digit;
			return ++c->digits > 16 ? -1 : SIZE;
		}
		if (!c->digits)
			return -1;
		return byte == '\r' ? SIZE_LF : byte == ';' ? EXTENSION : -1;
	case EXTENSION:
		return byte == '\r' ? SIZE_LF : text ? EXTENSION : -1;
	case SIZE_LF:
		return byte != '\n' ? -1 : c->left ? DATA : TRAILER;
	case DATA_CR:
		return byte == '\r' ? DATA_LF : -1;
	case DATA_LF:
		c->digits = 0;
		return byte == '\n' ? SIZE : -1;
	case TRAILER:
		return byte == '\r'                           ? END_LF
		       : classes[(unsigned char)byte] & TOKEN ? IN_TRAILER
							      : -1;
	case IN_TRAILER:
		return byte == '\r' ? TRAILER_LF : text ? IN_TRAILER : -1;
	case TRAILER_LF:
		return byte == '\n' ? TRAILER : -1;
	default:
		return byte == '\n' ? DONE : -1;
	}
}

int http_chunks_feed(struct http_chunks *c, const char *bytes, size_t n, size_t most,
	struct buf *body, size_t *ret_used, struct error *err)
{
	size_t at = 0;
	while (at < n && c->state != DONE) {
		if (c->state == DATA) {
			const size_t take = c->left < n - at ? (size_t)c->left : n - at;
			buf_put(body, bytes + at, take);
			at += take;
			c->total += take;
			c->left -= take;
			c->state = c->left ? DATA : DATA_CR;
			continue;
		}
		const int next = chunk_byte(c, bytes[at]);
		if (next < 0)
			return error_set(err, -EINVAL,
				"the chunked body is malformed where %s belongs (byte 0x%02x)",
				c->state <= SIZE_LF  ? "the size of a chunk"
				: c->state < TRAILER ? "the end of a chunk"
						     : "a trailer",
				(unsigned char)bytes[at]);
		if (next == EXTENSION || next == IN_TRAILER)
			c->extra++;
		if (c->extra > EXTRA_MOST)
			return error_set(err, -EMSGSIZE,
				"the chunked body has more than %d bytes of extensions and trailers",
				EXTRA_MOST);
		if (c->left > most - c->total)
			return error_set(
				err, -EMSGSIZE, "the request's body has more than %zu bytes", most);
		c->state = next;
		at++;
	}
	*ret_used = at;
	return c->state == DONE;
}

/* The phrase is for people, and may be empty. */
static const char *reason(int code)
{
	static const struct {
		int code;
		const char *phrase;
	} rows[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 413, "Content Too Large" },
		{ 429, "Too Many Requests" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].code == code)
			return rows[i].phrase;
	return "";
}

void http_head_put(struct buf *b, int code, const char *content_type, uint64_t content_length,
	const char *connection, const char *extra)
{
	buf_put_text(b, "HTTP/1.1 ");
	buf_u64(b, (uint64_t)code);
	buf_put_text(b, " ");
	buf_put_text(b, reason(code));
	if (content_type) {
		buf_put_text(b, "\r\nContent-Type: ");
		buf_put_text(b, content_type);
	}
	buf_put_text(b, "\r\nContent-Length: ");
	buf_u64(b, content_length);
	buf_put_text(b, connection ? "\r\nConnection: " : "");
	buf_put_text(b, connection ? connection : "");
	buf_put_text(b, "\r\n");
	buf_put_text(b, extra);
	buf_put_text(b, "\r\n");
}
