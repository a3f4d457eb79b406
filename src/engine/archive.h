/*
 * A zip archive in memory: how PyTorch packs a model.  The list of its files, and the bytes of one
 * file, stored or deflated and checked against its sum.  Archives of any size, without encryption
 * and in one part.  Failures are -EINVAL and a sentence.
 */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"

struct archive_file {
	struct slice name; /* in the archive's memory */
	uint64_t packed, bytes, at;
	uint32_t sum;
	unsigned method;
};

struct archive {
	struct slice all;
	ARRAY(struct archive_file) file;
};

/* The bytes are borrowed.  The caller frees the archive, also after a failure. */
int archive_read(struct archive *a, struct slice bytes, struct error *err);
void archive_free(struct archive *a);
/* Adds the file's bytes to ret. */
int archive_unpack(
	const struct archive *a, const struct archive_file *f, struct buf *ret, struct error *err);
