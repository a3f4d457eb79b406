/* Zip by its central directory, with the 64-bit fields of large archives. */
#include "engine/archive.h"

#include <errno.h>
#include <zlib.h>

#define END_BYTES     22 /* of the record that ends the archive */
#define END64_BYTES   56
#define LOCATOR_BYTES 20
#define ENTRY_BYTES   46 /* of the directory */
#define LOCAL_BYTES   30 /* before a file's bytes */
#define COMMENT_MOST  65535
#define UNPACKED_MOST ((uint64_t)64 << 30)
#define RATIO_MOST    1032 /* deflate can't do more */

enum { STORED = 0, DEFLATED = 8 };

static uint64_t number(const char *at, unsigned bytes)
{
	uint64_t n = 0;
	for (unsigned i = bytes; i--;)
		n = n << 8 | (unsigned char)at[i];
	return n;
}

static bool inside(struct slice s, uint64_t at, uint64_t bytes)
{
	return at <= s.n && bytes <= s.n - at;
}

static bool is_record(struct slice s, uint64_t at, const char sign[4], uint64_t bytes)
{
	return inside(s, at, bytes) && memcmp(s.at + at, sign, 4) == 0;
}

struct directory {
	uint64_t at, files;
};

/* The last record, behind which only a comment may stand. */
static int find_end(struct slice s, uint64_t *ret)
{
	for (uint64_t back = END_BYTES; back <= s.n && back <= END_BYTES + COMMENT_MOST; back++)
		if (is_record(s, s.n - back, "PK\5\6", END_BYTES)) {
			*ret = s.n - back;
			return 0;
		}
	return -EINVAL;
}

static int find_directory(struct slice s, struct directory *d)
{
	uint64_t end;
	if (find_end(s, &end))
		return -EINVAL;
	d->files = number(s.at + end + 10, 2);
	d->at = number(s.at + end + 16, 4);
	if (end < LOCATOR_BYTES || !is_record(s, end - LOCATOR_BYTES, "PK\6\7", LOCATOR_BYTES))
		return 0;
	const uint64_t end64 = number(s.at + end - LOCATOR_BYTES + 8, 8);
	if (!is_record(s, end64, "PK\6\6", END64_BYTES))
		return -EINVAL;
	d->files = number(s.at + end64 + 32, 8);
	d->at = number(s.at + end64 + 48, 8);
	return 0;
}

/* The numbers of 32 bits that were too small stand in a field of their own, in this order. */
static int read_long_numbers(struct archive_file *f, const char *extra, uint64_t n)
{
	uint64_t *const of[] = { &f->bytes, &f->packed, &f->at };
	for (uint64_t at = 0, len; n - at >= 4; at += 4 + len) {
		len = number(extra + at + 2, 2);
		if (len > n - at - 4)
			return -EINVAL;
		if (number(extra + at, 2) != 1)
			continue;
		uint64_t used = 0;
		for (size_t i = 0; i < 3; i++) {
			if (*of[i] != UINT32_MAX)
				continue;
			if (len - used < 8)
				return -EINVAL;
			*of[i] = number(extra + at + 4 + used, 8);
			used += 8;
		}
		return 0;
	}
	return 0;
}

/* ret_next: where the next entry of the directory begins. */
static int read_entry(struct slice s, uint64_t at, struct archive_file *f, uint64_t *ret_next)
{
	if (!is_record(s, at, "PK\1\2", ENTRY_BYTES))
		return -EINVAL;
	const char *e = s.at + at;
	const uint64_t name = number(e + 28, 2), extra = number(e + 30, 2),
		       comment = number(e + 32, 2);
	if (!inside(s, at + ENTRY_BYTES, name + extra + comment) || number(e + 8, 2) & 1)
		return -EINVAL;
	*f = (struct archive_file){ .name = { e + ENTRY_BYTES, name },
		.method = (unsigned)number(e + 10, 2),
		.sum = (uint32_t)number(e + 16, 4),
		.packed = number(e + 20, 4),
		.bytes = number(e + 24, 4),
		.at = number(e + 42, 4) };
	*ret_next = at + ENTRY_BYTES + name + extra + comment;
	return read_long_numbers(f, e + ENTRY_BYTES + name, extra);
}

int archive_read(struct archive *a, struct slice bytes, struct error *err)
{
	struct directory d;
	*a = (struct archive){ .all = bytes };
	if (find_directory(bytes, &d))
		return error_set(err, -EINVAL, "it is no zip archive");
	for (uint64_t i = 0; i < d.files; i++) {
		struct archive_file f;
		if (read_entry(bytes, d.at, &f, &d.at))
			return error_set(
				err, -EINVAL, "the list of files in the zip archive is damaged");
		*array_push(&a->file) = f;
	}
	return 0;
}

void archive_free(struct archive *a)
{
	array_free(&a->file);
}

static int inflate_into(const char *from, uint64_t packed, char *to, uint64_t bytes)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)from, .next_out = (Bytef *)to };
	if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
		return -EINVAL;
	int e = Z_OK;
	while (e == Z_OK) {
		if (!z.avail_in) {
			z.avail_in = packed < INT32_MAX ? (uInt)packed : INT32_MAX;
			packed -= z.avail_in;
		}
		if (!z.avail_out) {
			z.avail_out = bytes < INT32_MAX ? (uInt)bytes : INT32_MAX;
			bytes -= z.avail_out;
		}
		e = inflate(&z, Z_NO_FLUSH);
	}
	const bool whole = e == Z_STREAM_END && !bytes && !z.avail_out;
	inflateEnd(&z);
	return whole ? 0 : -EINVAL;
}

static int damaged(const struct archive_file *f, struct error *err)
{
	return error_set(err, -EINVAL, "the file %.*s in the zip archive is damaged",
		(int)(f->name.n < 200 ? f->name.n : 200), f->name.at);
}

int archive_unpack(
	const struct archive *a, const struct archive_file *f, struct buf *ret, struct error *err)
{
	const struct slice s = a->all;
	if (!is_record(s, f->at, "PK\3\4", LOCAL_BYTES))
		return damaged(f, err);
	const uint64_t at =
		f->at + LOCAL_BYTES + number(s.at + f->at + 26, 2) + number(s.at + f->at + 28, 2);
	if (!inside(s, at, f->packed) || f->bytes > UNPACKED_MOST ||
		f->bytes / RATIO_MOST > f->packed ||
		(f->method == STORED ? f->bytes != f->packed : f->method != DEFLATED))
		return damaged(f, err);
	char *to = buf_more(ret, f->bytes + 1);
	if (f->method == STORED)
		memcpy(to, s.at + at, f->bytes);
	else if (inflate_into(s.at + at, f->packed, to, f->bytes))
		return damaged(f, err);
	if (crc32_z(0, (const Bytef *)to, f->bytes) != f->sum)
		return damaged(f, err);
	ret->n += f->bytes;
	return 0;
}
