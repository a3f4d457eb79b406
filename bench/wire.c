/*
 * The cost of a request's bytes: the head is parsed, the inference request read, the answer and its
 * head printed.  User time, the median of five rounds.  JSON holds 16 FP32 each way, as a client in
 * Python prints them; the binary request has the same 64 bytes behind its JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/base64.h"
#include "wire/http1.h"
#include "wire/infer.h"
#include "wire/message.h"

enum { ROUNDS = 5, REQUESTS = 200000, VALUES = 16 };

static const char head_lines[] = "Host: localhost:8000\r\nUser-Agent: python-urllib3/2.2\r\n"
				 "Accept: */*\r\nAccept-Encoding: identity\r\n";

static struct infer_request request;
static struct infer_answer answer;

static double user_s(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6;
}

/* Single values as doubles, short ones, or none but bytes. */
static void make_request(struct buf *b, bool binary, const char *format)
{
	struct buf json = { 0 }, data = { 0 };
	size_t json_bytes;
	buf_put_text(&json, "{\"id\":\"42\",\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,16],"
			    "\"datatype\":\"FP32\",");
	buf_put_text(&json, binary ? "\"parameters\":{\"binary_data_size\":64}" : "\"data\":[");
	for (int i = 0; i < VALUES; i++) {
		const float value = (float)(i + 1) * (i % 2 ? -0.37f : 0.0123f);
		if (!binary)
			buf_put_text(&json, i ? "," : "");
		if (!binary)
			buf_printf(&json, format, (double)value);
		buf_put(&data, &value, sizeof value);
	}
	buf_put_text(&json, binary ? "}],\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":"
				     "{\"binary_data\":true}}]}"
				   : "]}],\"outputs\":[{\"name\":\"OUTPUT0\"}]}");
	json_bytes = json.n;
	if (binary)
		buf_put_slice(&json, buf_slice(&data));
	buf_printf(b, "POST /v2/models/identity/infer HTTP/1.1\r\n%s", head_lines);
	if (binary)
		buf_printf(b, "Inference-Header-Content-Length: %zu\r\n", json_bytes);
	buf_printf(b, "Content-Length: %zu\r\n\r\n", json.n);
	buf_put_slice(b, buf_slice(&json));
	buf_free(&json);
	buf_free(&data);
}

/* The answer to `request`: its input. */
static void make_answer(void)
{
	answer.id = request.id;
	answer.model = SLICE("identity");
	answer.version = SLICE("1");
	answer.outputs = 1;
	answer.output[0] = request.input[0].tensor;
	answer.output[0].name = request.output[0].name;
	answer.binary[0] = request.output[0].binary;
}

static void serve(struct buf *bytes, struct buf *json, struct buf *out)
{
	struct http_head head;
	struct error err = { "" };
	size_t scanned = 0, json_bytes;
	uint64_t infer_length;
	out->n = json->n = 0;
	infer_request_reset(&request);
	if (http_head_parse(bytes->v, bytes->n, &scanned, &head, &err) != 1)
		goto failed;
	infer_length = head.content_length;
	if (head.header[HEADER_INFER_LENGTH].at)
		slice_u64(head.header[HEADER_INFER_LENGTH], &infer_length);
	if (infer_json_read(
		    &request, bytes->v + head.bytes, head.content_length, infer_length, &err))
		goto failed;
	make_answer();
	if (infer_json_put(json, &answer, &json_bytes, &err))
		goto failed;
	http_head_put(out, 200, json_bytes ? "application/octet-stream" : "application/json",
		json->n, NULL, json_bytes ? "Inference-Header-Content-Length: 158\r\n" : "");
	buf_put_slice(out, buf_slice(json));
	return;
failed:
	fprintf(stderr, "bench-wire: %s\n", err.text);
	exit(1);
}

/* HTTP/2 carries a message: there is no head to parse. */
static void serve_grpc(struct buf *bytes, struct buf *unused, struct buf *out)
{
	struct error err = { "" };
	(void)unused;
	out->n = 0;
	infer_request_reset(&request);
	if (infer_pb_read(&request, bytes->v, bytes->n, &err)) {
		fprintf(stderr, "bench-wire: %s\n", err.text);
		exit(1);
	}
	make_answer();
	infer_pb_put(out, &answer);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void measure(
	const char *name, struct buf *bytes, void (*one)(struct buf *, struct buf *, struct buf *))
{
	struct buf json = { 0 }, out = { 0 };
	double us[ROUNDS];
	for (int round = 0; round < ROUNDS; round++) {
		const double start = user_s();
		for (int i = 0; i < REQUESTS; i++)
			one(bytes, &json, &out);
		us[round] = (user_s() - start) * 1e6 / REQUESTS;
	}
	qsort(us, ROUNDS, sizeof *us, by_size);
	printf("%-34s %4zu bytes in %4zu out  %6.3f us\n", name, bytes->n, out.n, us[ROUNDS / 2]);
	buf_free(bytes);
	buf_free(&json);
	buf_free(&out);
}

static void measure_rest(const char *name, bool binary, const char *format)
{
	struct buf bytes = { 0 };
	make_request(&bytes, binary, format);
	measure(name, &bytes, serve);
}

static void measure_grpc(void)
{
	static const float values[VALUES];
	struct buf bytes = { 0 }, raw = { 0 };
	struct error err = { "" };
	json_t *message;
	base64_put(&raw, values, sizeof values);
	message = json_pack("{s:s, s:[{s:s, s:s, s:[i,i]}], s:[{s:s}], s:[s#]}", "id", "42",
		"inputs", "name", "INPUT0", "datatype", "FP32", "shape", 1, VALUES, "outputs",
		"name", "OUTPUT0", "raw_input_contents", raw.v, (int)raw.n);
	if (message_put("ModelInferRequest", message, &bytes, &err)) {
		fprintf(stderr, "bench-wire: %s\n", err.text);
		exit(1);
	}
	json_decref(message);
	buf_free(&raw);
	measure("gRPC, raw, 64 bytes", &bytes, serve_grpc);
}

int main(void)
{
	printf("reading a request and printing its answer\n");
	measure_rest("JSON, 16 FP32 of 17 digits", false, "%.17g");
	measure_rest("JSON, 16 FP32 of 6 digits", false, "%.6g");
	measure_rest("binary, 64 bytes", true, "");
	measure_grpc();
	infer_request_free(&request);
	return 0;
}
