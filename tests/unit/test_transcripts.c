/* Whole requests of each form as they come over a connection, byte by byte, and their answers. */
#include "unit.h"

#include <stdio.h>

#include "wire/http1.h"
#include "wire/infer.h"

struct server {
	struct http_head head;
	struct http_chunks chunks;
	struct buf body, out;
	size_t scanned, taken; /* bytes of the connection */
	bool in_body;
};

static struct infer_request request;
static struct infer_answer answer;

/* The model gives what it gets. */
static void answer_request(struct server *s)
{
	struct error err = { "" };
	struct buf json = { 0 };
	const struct slice asked = s->head.header[HEADER_INFER_LENGTH];
	uint64_t infer_length = s->body.n;
	size_t json_bytes = 0;
	char extra[100] = "";
	assert_true(!asked.at || slice_u64(asked, &infer_length));
	infer_request_reset(&request);
	int rc = infer_json_read(&request, s->body.v, s->body.n, infer_length, &err);
	if (!rc) {
		answer = (struct infer_answer){
			.id = request.id, .model = SLICE("m"), .outputs = 1
		};
		answer.output[0] = request.input[0].tensor;
		if (request.raw) { /* the caller knows the model's only input */
			answer.output[0].name = SLICE("IN");
			answer.output[0].type = DTYPE_UINT8;
			answer.output[0].shape = (struct shape){ 1, { (int64_t)s->body.n } };
		}
		answer.binary[0] =
			request.outputs ? request.output[0].binary : request.binary_output;
		rc = infer_json_put(&json, &answer, &json_bytes, &err);
	}
	if (rc)
		buf_printf(&json, "{\"error\":\"%s\"}", err.text);
	if (json_bytes)
		snprintf(extra, sizeof extra, "Inference-Header-Content-Length: %zu\r\n",
			json_bytes);
	http_head_put(&s->out, rc ? 400 : 200, "application/json", json.n,
		s->head.keep_alive ? NULL : "close", extra);
	buf_put_slice(&s->out, buf_slice(&json));
	buf_free(&json);
}

/* All of the connection so far, of which `taken` bytes are done with. */
static void serve(struct server *s, const char *bytes, size_t n)
{
	for (;;) {
		struct error err = { "" };
		size_t used = 0;
		const char *at = bytes + s->taken;
		const size_t left = n - s->taken;
		if (!s->in_body) {
			const int rc = http_head_parse(at, left, &s->scanned, &s->head, &err);
			if (rc < 0)
				fail_msg("%s", err.text);
			if (!rc)
				return;
			s->taken += s->head.bytes;
			s->scanned = s->body.n = 0;
			s->chunks = (struct http_chunks){ 0 };
			s->in_body = true;
			if (s->head.expect_continue)
				buf_put_text(&s->out, HTTP_CONTINUE);
			continue;
		}
		if (s->head.chunked) {
			const int rc =
				http_chunks_feed(&s->chunks, at, left, 1000, &s->body, &used, &err);
			assert_true(rc >= 0);
			s->taken += used;
			if (!rc)
				return;
		} else {
			if (left < s->head.content_length)
				return;
			buf_put(&s->body, at, (size_t)s->head.content_length);
			s->taken += (size_t)s->head.content_length;
		}
		s->in_body = false;
		answer_request(s);
	}
}

/* In pieces of any size the answers are the same. */
static void converse(const char *asked, size_t n, const char *answered, size_t answered_bytes)
{
	for (size_t step = 1; step <= n; step++) {
		struct server s = { 0 };
		for (size_t at = 0; at < n; at += step)
			serve(&s, asked, step < n - at ? at + step : n);
		assert_int_equal(s.taken, n);
		if (s.out.n != answered_bytes || memcmp(s.out.v, answered, answered_bytes) != 0)
			fail_msg("step %zu: %s", step, buf_text(&s.out));
		buf_free(&s.body);
		buf_free(&s.out);
	}
}
#define CONVERSE(asked, answered) converse(asked, sizeof asked - 1, answered, sizeof answered - 1)

#define POST "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define OUTPUT                                                                                     \
	"{\"id\":\"7\",\"model_name\":\"m\",\"outputs\":[{\"name\":\"IN\",\"datatype\":\"INT16\",\"shape\":[2]"

static const char json_asked[] = POST
	"Content-Length: 89\r\n\r\n"
	"{\"id\":\"7\",\"inputs\":[{\"name\":\"IN\",\"shape\":[2],\"datatype\":\"INT16\",\"data\":[-1,300],\"x\":[]}]}";
static const char json_answered[] = OK "Content-Length: 100\r\n\r\n" OUTPUT ",\"data\":[-1,300]}]}";

static void json_in_and_out(void **state)
{
	CONVERSE(json_asked, json_answered);
}

static void chunks_with_binary_data(void **state)
{
	static const char asked[] = POST
		"Inference-Header-Content-Length: 161\r\nTransfer-Encoding: chunked\r\n"
		"Expect: 100-continue\r\nConnection: close\r\n\r\n"
		"66\r\n{\"id\":\"7\",\"inputs\":[{\"name\":\"IN\",\"shape\":[2],\"datatype\":\"INT16\","
		"\"parameters\":{\"binary_data_size\":4}}],\r\n"
		"3d;a=b\r\n\"outputs\":[{\"name\":\"O\",\"parameters\":{\"binary_data\":true}}]}"
		"\1\2\r\n2\r\n\3\4\r\n0\r\nA: b\r\n\r\n";
	static const char answered[] = HTTP_CONTINUE OK
		"Content-Length: 124\r\nConnection: close\r\nInference-Header-Content-Length: 120\r\n\r\n" OUTPUT
		",\"parameters\":{\"binary_data_size\":4}}]}\1\2\3\4";
	CONVERSE(asked, answered);
}

static void raw_bytes(void **state)
{
	static const char asked[] =
		POST "Inference-Header-Content-Length: 0\r\nContent-Length: 3\r\n\r\nabc";
	static const char answered[] =
		OK "Content-Length: 114\r\nInference-Header-Content-Length: 111\r\n\r\n"
		   "{\"model_name\":\"m\",\"outputs\":[{\"name\":\"IN\",\"datatype\":\"UINT8\","
		   "\"shape\":[3],\"parameters\":{\"binary_data_size\":3}}]}abc";
	CONVERSE(asked, answered);
}

static void an_error_and_a_request_behind_it(void **state)
{
	static const char asked[] = POST "Content-Length: 2\r\n\r\n{}"
					 "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n[]";
	static const char answered[] =
		"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
		"Content-Length: 78\r\n\r\n"
		"{\"error\":\"the request's JSON is wrong at byte 2: the request has no `inputs`\"}"
		"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
		"Content-Length: 73\r\nConnection: close\r\n\r\n"
		"{\"error\":\"the request's JSON is wrong at byte 0: an object belongs here\"}";
	CONVERSE(asked, answered);
}

/* The comparison must be able to fail: one byte of the request is another. */
static void a_changed_byte_is_noticed(void **state)
{
	struct server s = { 0 };
	char asked[sizeof json_asked];
	memcpy(asked, json_asked, sizeof asked);
	*strstr(asked, "300") = '4';
	serve(&s, asked, sizeof asked - 1);
	assert_int_equal(s.out.n, sizeof json_answered - 1);
	assert_memory_not_equal(s.out.v, json_answered, s.out.n);
	buf_free(&s.body);
	buf_free(&s.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_in_and_out),
		cmocka_unit_test(chunks_with_binary_data),
		cmocka_unit_test(raw_bytes),
		cmocka_unit_test(an_error_and_a_request_behind_it),
		cmocka_unit_test(a_changed_byte_is_noticed),
	};
	const int rc = cmocka_run_group_tests(tests, NULL, NULL);
	infer_request_free(&request);
	return rc;
}
