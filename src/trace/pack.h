/*
 * Packs a raw trace at the end of `weir record`. The packed file is made beside its name and
 * renamed when it is whole. So a full disk or a kill leaves the raw file, and src and dst may be
 * the same path.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "trace/trace.h"

struct pack_stats {
	uint64_t raw_bytes;
	uint64_t packed_bytes;
	uint64_t chunks;
	uint64_t records;     /* of calls */
	uint64_t torn;        /* unfinished records left out, counted as lost */
	uint64_t damaged;     /* chunks that could not be read, in part or at all */
	struct damage damage; /* the first place where none could be found, and all such bytes */

	/*
	 * Handles pieces of stacks (stack/stacks.h), which are then left out; set before
	 * trace_pack().  NULL, or an answer of -ENOSYS: they stay.
	 */
	int (*stacks)(const struct trace *t,
		int (*put)(void *context, const struct chunk_header *head, const void *payload,
			size_t bytes),
		void *context);

	/* Called now and then when not NULL; set before trace_pack(). */
	void (*progress)(void *context, uint64_t done, uint64_t all);
	void *context;
};

/* 0 or -errno.  A file that is packed already is copied as it is. */
int trace_pack(const char *src, const char *dst, struct pack_stats *stats, struct error *err);

/* A chunk that a trace is to have besides: a header, and `bytes` of payload. */
struct pack_extra {
	struct chunk_header head;
	const void *payload;
	size_t bytes;
};

/*
 * Writes a trace that is open anew, packed, to `path`, which may be where it came from.  The GPU
 * activities of it are set aside (CHUNK_MEASURED), and those of `extra` stand in their place: the
 * header says FEATURE_REBUILT, and that nothing is sampled.  0 or -errno; then the file is as it
 * was.
 */
int trace_rebuild(const struct trace *t, const char *path, const struct pack_extra *extra,
	size_t count, struct error *err);
