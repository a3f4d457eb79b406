/*
 * Makes raw trace files for tests and benchmarks, record by record, as the hook would: one
 * open chunk a thread, written out when it is full.  Aborts when the machine fails.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

#define MAKER_THREADS 256

struct maker_thread {
	struct chunk_header head;
	uint8_t *payload;
	uint32_t room;
};

struct maker {
	int fd;
	struct trace_header header;
	uint32_t chunk_bytes;
	int thread_count;
	struct maker_thread threads[MAKER_THREADS];
};

/* An empty trace with these functions; ticks begin at 1 000 000, and are nanoseconds. */
struct maker *maker_new(const char *path, const char *schema, uint32_t chunk_bytes);

/* A chunk of calls (or names) of one thread: the number that the calls below take. */
int maker_thread(
	struct maker *m, enum chunk_kind kind, uint32_t pid, uint32_t tid, const char *name);

/* Appends a record; args: words - RECORD_WORDS of them.  Returns it as it lies in the chunk. */
struct record *maker_put(struct maker *m, int thread, struct record head, const uint64_t *args);

/* Appends a meta record: args, then text or nodes. */
void maker_meta(struct maker *m, int thread, uint16_t id, uint64_t ticks, int arg_count,
	const uint64_t *args, const void *data, uint32_t bytes, uint32_t aux);
void maker_name(struct maker *m, int thread, uint64_t ticks, uint64_t handle, const char *name);

/* A chunk with this payload. */
void maker_chunk(struct maker *m, enum chunk_kind kind, uint32_t pid, uint32_t tid,
	const void *payload, uint32_t bytes);

/* Writes what is left; chunks stay open when `open`, so that the file looks abandoned. */
void maker_finish(struct maker *m, uint64_t end_ticks, bool open);

/* A schema of some thirty functions, with fixed ids, for tests. */
extern const char maker_schema[];

enum maker_fn {
	FN_INIT = 1,
	FN_ALLOC = 2,
	FN_FREE = 3,
	FN_LAUNCH = 4,
	FN_GRAPH_LAUNCH = 5,
	FN_HTOD = 6,
	FN_DTOH = 7,
	FN_SET = 8,
	FN_SYNC = 9,
	FN_EVENT_QUERY = 10,
	FN_EVENT_RECORD = 11,
	FN_MODULE_LOAD = 12,
	FN_GET_FUNCTION = 13,
	FN_ALLOC_HOST = 14,
	FN_FREE_HOST = 15,
	FN_CREATE = 16,
	FN_RELEASE = 17,
	FN_MANAGED = 18,
	FN_LAUNCH_EX = 19,
	FN_LIMIT = 20,
	FN_COPY_2D = 21,
	FN_CTX_CREATE = 22,
	FN_TWO_STRINGS = 23,
	FN_RT_MALLOC = 100,
	FN_RT_LAUNCH = 101,
	FN_RT_COPY = 102,
	FN_RT_SYNC = 103,
	FN_RT_LAST_ERROR = 104,
	FN_RT_MALLOC_3D = 105,
};
