/*
 * Reads a trace file, raw or packed, finished, abandoned or still being written.
 *
 *	struct trace *t;
 *	if (trace_open(path, &t, &err)) …
 *	for (size_t i = 0; i < t->chunk_count; i++) {
 *		trace_load(t, i, &buf, &err);
 *		for (struct records it = records_of(&buf); (r = records_next(&it)); ) …
 *	}
 *
 * trace_open() walks the file once and notes its chunks, without their payload. A struct trace does
 * not change afterwards, so any number of threads may load chunks, each with its own struct
 * chunk_buf. The file's bytes are not trusted, and no reader leaves its buffers. `damage` lists the
 * parts that were left out.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "event/format.h"
#include "event/schema.h"
#include "trace/clock.h"

/* No chunk is larger, so that a damaged length can't ask for all memory. */
#define CHUNK_LIMIT (256u << 20)

struct chunk_ref {
	uint64_t offset;    /* in the file: of the payload */
	uint32_t room;      /* bytes of payload in the file, at most */
	uint32_t process;   /* index into trace.processes */
	bool packed;        /* a block: of a packed trace, or drained while it was recorded */
	uint32_t raw_bytes; /* packed: payload once decompressed */
	uint32_t encoding;  /* packed: enum block_encoding */
	uint32_t records;   /* packed columns: how many */
	uint32_t source;    /* 0: of this file; else of one that was taken in (merge.h) … */
	uint32_t number;    /* … and which of its chunks */
	struct chunk_header head;
};

/* A block whose payload is at that offset; of no process yet. */
static inline struct chunk_ref chunk_ref_of_block(const struct block_header *b, uint64_t payload)
{
	return (struct chunk_ref){ .offset = payload,
		.room = b->bytes,
		.packed = true,
		.raw_bytes = b->raw_bytes,
		.encoding = b->encoding,
		.records = b->records,
		.head = b->chunk };
}

/* A process that wrote here: its pid and the start that tells it from a later one. */
struct trace_process {
	uint32_t pid;
	uint64_t start;
};

struct damage {
	uint64_t offset;
	uint64_t bytes;
	const char *what; /* a literal */
};

/* A part of the time, of recordings that are read in part (part.h). */
struct trace_part {
	uint64_t from, to; /* ticks as recorded: [from, to) */
	uint64_t from_ns, to_ns;
	uint64_t gaps, gaps_ns; /* between the parts before it: to be taken off */
};

struct trace_span {
	uint64_t from, to; /* ticks as recorded: [from, to) */
};

/* When the call began that asked for an activity. */
struct launch_time {
	uint64_t correlation, ticks;
	uint32_t process;
};

/* The text about it. */
struct trace_cut_text {
	uint64_t from_ns, to_ns; /* of the first part, of the last, since the recording began */
	uint64_t part_ns;        /* all parts together */
	uint64_t whole_ns;       /* the recording */
	uint64_t steps_before;   /* that nobody numbered (steps.h) and that are left out */
	uint64_t steps_name;     /* struct steps' name, and how they were found … */
	uint8_t steps_found;     /* … of the whole; 0: nobody asked for steps */
	char how[160];           /* "steps 5 to 20 of 40" */
};

/* The number that a launch has got from CUPTI. */
struct launch_number {
	uint32_t process;
	uint64_t correlation;
};

struct taken_in;
struct trace {
	int fd;
	uint64_t size;
	struct trace_header header;
	struct clock_fit clock;
	uint64_t last_ticks; /* the latest reading of the clock: what is still open ends here */

	struct chunk_ref *chunks;
	size_t chunk_count;

	struct block_index *block_index; /* of a live file: where chunks have gone since; or NULL */

	ARRAY(struct taken_in *) taken_in; /* other recordings that are read with this one */
	uint32_t next_device;              /* the number of the next new one of those */

	ARRAY(struct trace_process) processes;
	struct map process_map;

	struct off_times off;
	ARRAY(struct launch_number) excluded; /* ascending: see activity_filter_add() */
	uint64_t excluded_activities;         /* that have such a number */
	bool leaves_out;                      /* the list is whole */

	ARRAY(struct trace_part) parts; /* ascending and apart; none: all is read */
	ARRAY(struct trace_span) asked; /* calls and ranges in the parts begin in these, likewise */
	struct launch_time *launched;   /* and activities are of calls that do (part.h); or NULL */
	size_t launched_count;
	size_t captures; /* parts of the run that were recorded, where not all was */
	bool cut;        /* what is outside of them is there, and left out */
	struct trace_cut_text part;

	struct schema schema; /* empty when the file has none */
	void *schema_memory;

	ARRAY(struct damage) damage; /* the first DAMAGE_KEPT */
	uint64_t damage_count;
	uint64_t damage_bytes;
	uint64_t unused_granules; /* reserved by processes that died at that moment */
	uint64_t unpacked;        /* what its blocks come to; unpack_most() is the limit */
};

#define DAMAGE_KEPT 16u

/* 0 or -errno, then with a sentence in err that names the file. */
int trace_open(const char *path, struct trace **ret_t, struct error *err);
void trace_close(struct trace *t);

/* Nanoseconds of CLOCK_MONOTONIC at `ticks`. */
uint64_t trace_ns(const struct trace *t, uint64_t ticks);

/* Nanoseconds since the trace began; 0 before that. */
uint64_t trace_since_ns(const struct trace *t, uint64_t ticks);

/* How long so many ticks are. */
uint64_t trace_span_ns(const struct trace *t, uint64_t ticks);

/* One thread's buffers for loading chunks.  Zeroed memory is empty. */
struct chunk_buf {
	const struct chunk_ref *ref;
	bool whole;          /* load what is outside of the parts, with its own times, as well */
	bool history;        /* of what is before them, calls about memory, marked RECORD_OUTSIDE */
	uint64_t last_ticks; /* the trace's */
	uint8_t *payload;    /* aligned to 8 */
	size_t bytes;        /* of payload that may be read */
	size_t payload_room;
	uint8_t *packed;
	size_t packed_room;
	uint8_t *columns;
	size_t columns_room;
	void *zstd;
	struct last_args *last;
	size_t last_room;
};

/*
 * Loads the payload of chunk i.  Records come out as in a raw trace.  -EBADMSG: the payload
 * is damaged and lost; other errors concern the machine.  buf stays usable either way.
 */
int trace_load(const struct trace *t, size_t i, struct chunk_buf *buf, struct error *err);

bool trace_has(const struct trace *t, enum chunk_kind kind); /* a chunk */

/*
 * Loads the next chunk of a kind, from chunk *at on: 1, 0 when there is none, or -errno of the
 * machine, which leave buf empty.  Damaged ones are passed over, and counted in *damaged if that is
 * not NULL.
 */
int trace_next(const struct trace *t, enum chunk_kind kind, size_t *at, struct chunk_buf *buf,
	uint64_t *damaged);

/* The same of several kinds, of which bit 1 << kind is set. */
int trace_next_of(const struct trace *t, uint32_t kinds, size_t *at, struct chunk_buf *buf,
	uint64_t *damaged);
void chunk_buf_fini(struct chunk_buf *buf);

/* The committed records of a loaded chunk, in file order. */
struct records {
	const uint8_t *at;
	const uint8_t *end;
	bool until_zero;     /* stop at the all-zero word */
	uint64_t torn;       /* begun and not finished: passed over */
	const char *damaged; /* why the rest could not be read, or NULL */
};

struct records records_of(const struct chunk_buf *buf);
const struct record *records_next(struct records *it);

/* In memory only: the call is outside of what is read (chunk_buf.history). */
#define RECORD_OUTSIDE 0x8000u

/* How long the call took, in ticks, and when it ended. */
static inline uint64_t record_dur(const struct record *r)
{
	return r->flags & RECORD_LONG ? (uint64_t)r->dur << 10 : r->dur;
}

static inline uint64_t record_end(const struct record *r)
{
	return r->ticks + record_dur(r);
}

/* The text of a meta record after `args` words; at most what the record holds. */
const char *record_text(const struct record *r, unsigned args, size_t *ret_bytes);

/* Whether what trace_load() says is that the chunk is lost, for which the rest of the trace is not
 * to blame. */
static inline bool trace_lost(int e)
{
	return e == -EBADMSG || e == -ENODATA;
}

/* Internal to src/trace: room for `bytes`, whose content may go. */
void buffer_want(uint8_t **p, size_t *room, size_t bytes);

/* Whether this can be the header of a chunk of a file that goes on for `left` bytes, or of a block.
 */
bool chunk_sane(const struct chunk_header *c, uint64_t left);
bool block_sane(const struct block_header *b);

/* Others belong to the file: their `process` means nothing. */
static inline bool chunk_has_process(uint16_t kind)
{
	return kind != CHUNK_SCHEMA && kind != CHUNK_SAMPLES;
}

/* Reads exactly `bytes`; -ENODATA when the file ends before. */
int read_at(int fd, void *to, size_t bytes, uint64_t offset);

/* Parses the text of a schema into memory that the caller frees, also after a failure: 0 or
 * -errno. */
int schema_load(struct schema *s, const char *text, size_t bytes, void **ret_memory);

/* How the root process ended, of a recording that is finished: its exit status, and the signal that
 * killed it, 0 for none.  The header has what wait() gave. */
static inline unsigned trace_exit_status(const struct trace_header *h)
{
	return h->exit_status & 0x7f ? 0 : h->exit_status >> 8 & 0xff;
}

static inline unsigned trace_exit_signal(const struct trace_header *h)
{
	return h->exit_status & 0x7f;
}

/* GPU activities that do not belong to a recording, such as those that CUPTI reports although
 * recording was off, are left out by trace_load(). cmd/cli/part_options.c finds them. */
/* One more activity with that number; before anything is loaded by several threads, and to be
 * followed by activity_filter_finish(). */
void activity_filter_add(struct trace *t, uint32_t process, uint64_t correlation);
void activity_filter_finish(struct trace *t);

/* Internal to src/trace: takes them out of what was loaded. */
void activity_filter_apply(const struct trace *t, struct chunk_buf *buf);

/* Internal to src/trace: the chunks of a live file that have moved (block_index.c). */
/* Internal to src/trace. */
struct block_index *block_index_new(void);
void block_index_free(struct block_index *m);

/* The block that this chunk became: true, and *ret_block, or false. */
bool block_index_find(
	const struct trace *t, const struct chunk_ref *ref, struct chunk_ref *ret_block);
