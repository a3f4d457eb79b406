/*
 * Fuzzes the head of an HTTP request and the chunked body behind it.  Bytes that come one by one
 * must mean what they mean at once, and a head that is taken must have one reading: one empty line,
 * one length, no line end but CR LF.
 */
#include "wire/http1.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* The text in the bytes, whatever its letters' case; its place or n. */
static size_t find(const char *bytes, size_t n, const char *text)
{
	const size_t length = strlen(text);
	for (size_t i = 0; i + length <= n; i++)
		if (!strncasecmp(bytes + i, text, length))
			return i;
	return n;
}

static void check_head(const char *bytes, const struct http_head *h)
{
	const size_t n = h->bytes;
	must(find(bytes, n, "\r\n\r\n") == n - 4);
	for (size_t i = 0; i < n; i++) {
		must(bytes[i] != '\n' || (i && bytes[i - 1] == '\r'));
		must(bytes[i] != '\r' || bytes[i + 1] == '\n');
		must(bytes[i] != '\n' || i + 1 == n ||
			(bytes[i + 1] != ' ' && bytes[i + 1] != '\t'));
	}
	must(h->method.n && h->path.n && h->path.at[0] == '/');
	const bool length = find(bytes, n, "\r\ncontent-length:") < n;
	const bool encoding = find(bytes, n, "\r\ntransfer-encoding:") < n;
	must(!(length && encoding) && h->chunked == encoding && (length || !h->content_length));
	must(h->old || find(bytes, n, "\r\nhost:") < n);
	for (int i = 0; i < HTTP_HEADERS; i++)
		must(!h->header[i].at ||
			(h->header[i].at > bytes &&
				h->header[i].at + h->header[i].n <= bytes + n - 4));
}

static int feed(const char *bytes, size_t n, size_t step, struct buf *body, size_t *ret_used)
{
	struct http_chunks c = { 0 };
	int rc = 0;
	*ret_used = 0;
	for (size_t at = 0; at < n && !rc; at += step) {
		size_t used = 0;
		rc = http_chunks_feed(
			&c, bytes + at, step < n - at ? step : n - at, 1000, body, &used, NULL);
		*ret_used += used;
	}
	must(body->n == c.total && c.total <= 1000);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_head whole = { 0 }, split = { 0 };
	struct buf body = { 0 }, pieces = { 0 };
	size_t scanned = 0, n = size, used, used_pieces;
	/* A copy of their own, so that one byte too far is seen. */
	char *bytes = malloc(size ? size : 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	const int rc = http_head_parse(bytes, size, &scanned, &whole, NULL);
	int rc_split = 0;
	scanned = 0;
	for (n = 0; n <= size && !rc_split; n++)
		rc_split = http_head_parse(bytes, n, &scanned, &split, NULL);
	must(rc == rc_split);
	if (rc == 1) {
		must(!memcmp(&whole, &split, sizeof whole) && n - 1 == whole.bytes);
		check_head(bytes, &whole);
	}
	const size_t from = rc == 1 ? whole.bytes : 0;
	const int fed = feed(bytes + from, size - from, SIZE_MAX, &body, &used);
	must(feed(bytes + from, size - from, 1, &pieces, &used_pieces) == fed);
	must(fed < 0 || (used == used_pieces && used <= size - from));
	must(slice_equal(buf_slice(&body), buf_slice(&pieces)));
	buf_free(&body);
	buf_free(&pieces);
	free(bytes);
	return 0;
}
