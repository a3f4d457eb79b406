/* Fuzzes zip archives: each file is unpacked, or refused in a sentence. */
#include "engine/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct archive a;
	struct error err = { .text = "" };
	const int e = archive_read(&a, (struct slice){ (const char *)data, size }, &err);
	must(!e == !*err.text);
	for (size_t i = 0; !e && i < a.file.n; i++) {
		struct buf b = { 0 };
		err.text[0] = 0;
		const struct archive_file *f = &a.file.v[i];
		must(f->name.at >= a.all.at && f->name.n <= size);
		if (f->bytes < 1 << 20) {
			const int bad = archive_unpack(&a, f, &b, &err);
			must(bad ? *err.text && !b.n : !*err.text && b.n == f->bytes);
		}
		buf_free(&b);
	}
	archive_free(&a);
	return 0;
}
