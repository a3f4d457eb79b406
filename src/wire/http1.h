/*
 * HTTP/1.1 as bytes: the head of a request, a chunked body, the head of an answer.
 *
 * Nothing here knows sockets, and nothing allocates except into bufs of the caller. The parser
 * refuses each form of which two programs could think differently where a request ends. After a
 * failure the caller answers and closes the connection. Any thread; one owner per struct.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define HTTP_HEAD_MOST  16384 /* bytes, the empty line included */
#define HTTP_LINES_MOST 100   /* headers of a head */

enum http_header {
	HEADER_CONTENT_LENGTH,
	HEADER_CONTENT_TYPE,
	HEADER_INFER_LENGTH, /* Inference-Header-Content-Length */
	HEADER_EXPECT,
	HEADER_CONNECTION,
	HEADER_TRANSFER_ENCODING,
	HEADER_AUTHORIZATION,
	HEADER_TRACEPARENT,
	HEADER_DEADLINE, /* Weir-Deadline-Us */
	HEADER_TIME,     /* Weir-Time asks for the header of that name in the answer */
	HEADER_ACCEPT_ENCODING,
	HEADER_CONTENT_ENCODING,
	HEADER_HOST,
	HTTP_HEADERS
};

struct http_head {
	struct slice method, path,
		query; /* into the bytes that were fed; the path is not decoded */
	struct slice
		header[HTTP_HEADERS]; /* at NULL: absent; of a list on several lines, the first */
	uint64_t content_length;      /* 0 if there is none, and if the body is chunked */
	bool chunked, keep_alive, expect_continue;
	bool old; /* HTTP/1.0: no chunks in the answer, and "Connection: keep-alive" if it stays */
	size_t bytes; /* of the head, the empty line included */
};

/*
 * Reads n bytes, from the first of a request on. 1: the head is complete and ret is filled. 0: more
 * bytes are needed. -EINVAL or -EMSGSIZE: a sentence. *scanned, 0 at first, remembers what was
 * looked at, so that feeding byte by byte takes linear time. More bytes may follow the head.
 */
int http_head_parse(
	const char *bytes, size_t n, size_t *scanned, struct http_head *ret, struct error *err);

/* A chunked body. All zero at first. */
struct http_chunks {
	int state;
	unsigned digits;
	uint64_t left; /* of this chunk */
	size_t total;  /* of the body so far */
	size_t extra;  /* bytes of extensions and trailers, which are ignored but not without end */
};

/* Appends to body what the n bytes hold, and says how many of them it used. 1: the last chunk and
 * its trailers have ended. 0: more are needed. -EMSGSIZE: the body has more than `most` bytes. */
int http_chunks_feed(struct http_chunks *c, const char *bytes, size_t n, size_t most,
	struct buf *body, size_t *ret_used, struct error *err);

/* A client that sent `Expect: 100-continue` waits for this. */
#define HTTP_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

/* Appends an answer's head. A content type or connection of NULL: none. extra: whole lines, or "".
 */
void http_head_put(struct buf *b, int code, const char *content_type, uint64_t content_length,
	const char *connection, const char *extra);
