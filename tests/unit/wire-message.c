/*
 * A control message of gRPC from protobuf to JSON or back, for protoc.py:
 *
 *	wire-message read|put MESSAGE <IN >OUT
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "wire/message.h"

static void read_all(struct buf *b)
{
	size_t n;
	do {
		n = fread(buf_more(b, 4096), 1, 4096, stdin);
		b->n += n;
	} while (n);
}

int main(int argc, char **argv)
{
	struct buf in = { 0 }, out = { 0 };
	struct error err = { .text = "" };
	json_t *value = NULL;
	int rc;
	if (argc != 3)
		return 2;
	read_all(&in);
	if (!strcmp(argv[1], "read")) {
		rc = message_read(argv[2], in.v, in.n, &value, &err);
		if (!rc)
			rc = json_dumpf(value, stdout, JSON_ENCODE_ANY);
	} else {
		value = json_loadb(in.v, in.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		rc = message_put(argv[2], value, &out, &err);
		if (out.n)
			fwrite(out.v, 1, out.n, stdout);
	}
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	json_decref(value);
	buf_free(&in);
	buf_free(&out);
	return rc != 0;
}
