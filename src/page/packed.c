/* Packs numbers into the page. */
#include "page/packed.h"

#include <string.h>
#include <zlib.h>

#include "base/base64.h"

void packed_varint(struct packed *to, uint64_t value)
{
	do {
		*array_push(&to->b) = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
	} while (value >>= 7);
}

void packed_difference(struct packed *to, uint64_t difference)
{
	packed_varint(to, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
}

void packed_append(struct packed *to, struct packed *from)
{
	array_reserve(&to->b, from->b.n);
	if (from->b.n) {
		memcpy(to->b.v + to->b.n, from->b.v, from->b.n);
		to->b.n += from->b.n;
	}
	from->b.n = 0;
}

static void put_base64(const uint8_t *v, size_t n, FILE *out)
{
	struct buf text = { 0 };
	base64_put(&text, v, n);
	fwrite(text.v, 1, text.n, out);
	buf_free(&text);
}

void packed_put(struct packed *from, FILE *out)
{
	put_base64(from->b.v, from->b.n, out);
	from->b.n = 0;
}

void packed_put_deflated(struct packed *from, FILE *out)
{
	uLongf bytes = compressBound(from->b.n);
	uint8_t *room = xmalloc(bytes);
	const bool done = compress2(room, &bytes, from->b.v, from->b.n, 6) == Z_OK;
	if (done)
		put_base64(room, bytes, out);
	free(room);
	from->b.n = 0;
}

void packed_fini(struct packed *p)
{
	array_free(&p->b);
}
