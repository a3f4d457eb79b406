/* HTTP/1.1: heads, chunked bodies and answers, whole and byte by byte. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "wire/http1.h"

static int parse(const char *bytes, size_t n, struct http_head *head, struct error *err)
{
	size_t scanned = 0;
	return http_head_parse(bytes, n, &scanned, head, err);
}

/* Feeds one byte more each time: the result must be that of the whole, at the last byte or before.
 */
static int parse_split(const char *bytes, size_t n, struct http_head *head, struct error *err)
{
	size_t scanned = 0;
	int rc = 0;
	for (size_t i = 0; i <= n && !rc; i++)
		rc = http_head_parse(bytes, i, &scanned, head, err);
	return rc;
}

static void accept_head(const char *text, struct http_head *head)
{
	struct http_head split;
	struct error err = { "" };
	const int rc = parse(text, strlen(text), head, &err);
	if (rc != 1)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(parse_split(text, strlen(text), &split, &err), 1);
	assert_memory_equal(&split, head, sizeof split);
}

#define HOST "Host: a\r\n"

static void a_head_is_read(void **state)
{
	static const char text[] =
		"POST /v2/models/m/infer?x=1 HTTP/1.1\r\nHost: localhost:8000\r\n"
		"Content-Length: 12\r\nInference-Header-Content-Length:  7 \r\n"
		"EXPECT: 100-Continue\r\nX-Other:\t\r\n\r\nbody and the next";
	struct http_head head;
	accept_head(text, &head);
	assert_true(slice_is(head.method, "POST"));
	assert_true(slice_is(head.path, "/v2/models/m/infer"));
	assert_true(slice_is(head.query, "x=1"));
	assert_int_equal(head.content_length, 12);
	assert_true(slice_is(head.header[HEADER_INFER_LENGTH], "7"));
	assert_true(head.keep_alive && head.expect_continue && !head.chunked && !head.old);
	assert_null(head.header[HEADER_AUTHORIZATION].at);
	assert_memory_equal(text + head.bytes, "body", 4);
}

static void targets_are_paths_or_absolute(void **state)
{
	struct http_head head;
	accept_head("GET http://a:80/p?q HTTP/1.1\r\n" HOST "\r\n", &head);
	assert_true(slice_is(head.path, "/p") && slice_is(head.query, "q"));
	accept_head("GET HTTPS://a?q HTTP/1.1\r\n" HOST "\r\n", &head);
	assert_true(slice_is(head.path, "/") && slice_is(head.query, "q"));
}

static void connections_stay_as_their_version_says(void **state)
{
	static const struct {
		const char *text;
		bool keep;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: x, close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: x\r\nConnection: Close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", true },
		{ "GET / HTTP/1.0\r\n\r\n", false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct http_head head;
		accept_head(rows[i].text, &head);
		assert_int_equal(head.keep_alive, rows[i].keep);
	}
}

/* Each differs in one thing from a head that is read. */
static void what_two_could_read_differently_is_refused(void **state)
{
	static const char *const rows[] = {
		"\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
		" GET / HTTP/1.1\r\n" HOST "\r\n",
		"\x16\x03\x01\x02",
		"GET  / HTTP/1.1\r\n" HOST "\r\n",
		"GET /  HTTP/1.1\r\n" HOST "\r\n",
		"GET / HTTP/1.1 \r\n" HOST "\r\n",
		"GET /\tHTTP/1.1\r\n" HOST "\r\n",
		"GET / \r\n" HOST "\r\n",
		"GET /\r\n" HOST "\r\n",
		"GET / HTTP/0.9\r\n" HOST "\r\n",
		"GET / HTTP/1.2\r\n" HOST "\r\n",
		"GET / HTTP/2.0\r\n" HOST "\r\n",
		"GET / http/1.1\r\n" HOST "\r\n",
		"GET / HTTP/1.1x\r\n" HOST "\r\n",
		"GET a HTTP/1.1\r\n" HOST "\r\n",
		"GET * HTTP/1.1\r\n" HOST "\r\n",
		"GET http:///p HTTP/1.1\r\n" HOST "\r\n",
		"GET ftp://a/p HTTP/1.1\r\n" HOST "\r\n",
		"GET http://a@b/p HTTP/1.1\r\n" HOST "\r\n",
		"CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n",
		"GET /# HTTP/1.1\r\n" HOST "\r\n",
		"GET /\x80 HTTP/1.1\r\n" HOST "\r\n",
		"GET / HTTP/1.1\n" HOST "\r\n",
		"GET / HTTP/1.1\r\nHost: a\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\n",
		"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
		"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST HOST "\r\n",
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST " Folded: b\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X Y: a\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X\x01: a\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "\x80: a\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X: a\x0b\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 5 5\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 5;\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\ncontent-length: 5\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Expect: 200-ok\r\n\r\n",
		"POST / HTTP/1.1\r\n" HOST "Authorization: a\r\nAuthorization: b\r\n\r\n",
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct http_head head;
		struct error err = { "" }, split = { "" };
		if (parse(rows[i], strlen(rows[i]), &head, &err) != -EINVAL)
			fail_msg("not refused: %s", rows[i]);
		assert_int_equal(parse_split(rows[i], strlen(rows[i]), &head, &split), -EINVAL);
		assert_string_equal(err.text, split.text);
		assert_true(strlen(err.text) > 20);
	}
	/* A NUL, which no string above can have. */
	static const char nul[] = "GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
	struct http_head head;
	assert_int_equal(parse(nul, sizeof nul - 1, &head, NULL), -EINVAL);
}

static void heads_have_a_limit(void **state)
{
	static char text[HTTP_HEAD_MOST + 1];
	struct http_head head;
	int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "X: ");
	memset(text + n, 'x', sizeof text - (size_t)n);
	assert_int_equal(parse(text, HTTP_HEAD_MOST - 1, &head, NULL), 0);
	assert_int_equal(parse_split(text, HTTP_HEAD_MOST, &head, NULL), -EMSGSIZE);
	memcpy(text + HTTP_HEAD_MOST - 4, "\r\n\r\n", 4);
	assert_int_equal(parse_split(text, HTTP_HEAD_MOST, &head, NULL), 1);
	for (int lines = HTTP_LINES_MOST; lines <= HTTP_LINES_MOST + 1; lines++) {
		n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST);
		for (int i = 1; i < lines; i++)
			n += snprintf(text + n, sizeof text - (size_t)n, "a: b\r\n");
		n += snprintf(text + n, sizeof text - (size_t)n, "\r\n");
		const int rc = lines > HTTP_LINES_MOST ? -EMSGSIZE : 1;
		assert_int_equal(parse(text, (size_t)n, &head, NULL), rc);
		assert_int_equal(parse_split(text, (size_t)n, &head, NULL), rc);
	}
}

/* The body of chunks, fed in pieces of `step` bytes. */
static int unchunk(const char *text, size_t step, size_t most, struct buf *body, size_t *used,
	struct error *err)
{
	struct http_chunks c = { 0 };
	const size_t n = strlen(text);
	int rc = 0;
	size_t some;
	body->n = *used = 0;
	for (size_t at = 0; at < n && !rc; at += step) {
		rc = http_chunks_feed(
			&c, text + at, step < n - at ? step : n - at, most, body, &some, err);
		*used += rc < 0 ? 0 : some;
	}
	return rc;
}

static void chunks_become_a_body(void **state)
{
	static const char *const rows[] = {
		"5\r\nhello\r\n0\r\n\r\n",
		"2\r\nhe\r\n003;a=\"b c\"\r\nllo\r\n00\r\n\r\n",
		"1;\r\nh\r\n4\r\nello\r\n0;x\r\nA: b\r\nC:\r\n\r\n",
	};
	struct buf body = { 0 };
	char text[100];
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t step = 1; step < 60; step++) {
			size_t used;
			snprintf(text, sizeof text, "%snext", rows[i]);
			assert_int_equal(unchunk(text, step, 5, &body, &used, NULL), 1);
			assert_int_equal(used, strlen(rows[i]));
			assert_true(slice_is(buf_slice(&body), "hello"));
			text[strlen(rows[i]) - 1] = 0;
			assert_int_equal(unchunk(text, step, 5, &body, &used, NULL), 0);
		}
	buf_free(&body);
}

static void malformed_chunks_are_refused(void **state)
{
	static const char *const rows[] = { "\r\n", "g\r\n", "-1\r\n", "+1\r\n", " 1\r\n", "1 \r\n",
		"0x1\r\n", "1\nh", "1\rh", "1\r\r\n", ";a\r\n", "1;\n", "1;a\x01", "1\r\nhh\r\n",
		"1\r\nh\n", "1\r\nh\rx", "0\r\n\n", "0\r\n A: b\r\n", "0\r\nA\x01", "0\r\nA: b\n",
		"0\r\n\rx", "00000000000000001" };
	struct buf body = { 0 };
	size_t used;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t step = 1; step < 20; step += 18) {
			struct error err = { "" };
			if (unchunk(rows[i], step, 100, &body, &used, &err) != -EINVAL)
				fail_msg("not refused: %s", rows[i]);
			assert_true(strlen(err.text) > 20);
		}
	assert_int_equal(unchunk("ffffffffffffffff\r\n", 1, 100, &body, &used, NULL), -EMSGSIZE);
	assert_int_equal(unchunk("4\r\nhell\r\n2\r\n", 1, 5, &body, &used, NULL), -EMSGSIZE);
	buf_free(&body);
}

static void extensions_and_trailers_end(void **state)
{
	struct http_chunks c = { 0 };
	struct buf body = { 0 };
	size_t used, fed = 0;
	int rc = http_chunks_feed(&c, "1;", 2, 100, &body, &used, NULL);
	for (; !rc && fed < 100000; fed++)
		rc = http_chunks_feed(&c, "x", 1, 100, &body, &used, NULL);
	assert_int_equal(rc, -EMSGSIZE);
	assert_true(fed < 10000);
	buf_free(&body);
}

static void answers_have_a_head(void **state)
{
	struct buf b = { 0 };
	http_head_put(&b, 200, "application/json", 12, NULL, "A: b\r\n");
	assert_string_equal(buf_text(&b), "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
					  "Content-Length: 12\r\nA: b\r\n\r\n");
	b.n = 0;
	http_head_put(&b, 299, NULL, 0, "close", "");
	assert_string_equal(
		buf_text(&b), "HTTP/1.1 299 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_is_read),
		cmocka_unit_test(targets_are_paths_or_absolute),
		cmocka_unit_test(connections_stay_as_their_version_says),
		cmocka_unit_test(what_two_could_read_differently_is_refused),
		cmocka_unit_test(heads_have_a_limit),
		cmocka_unit_test(chunks_become_a_body),
		cmocka_unit_test(malformed_chunks_are_refused),
		cmocka_unit_test(extensions_and_trailers_end),
		cmocka_unit_test(answers_have_a_head),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
