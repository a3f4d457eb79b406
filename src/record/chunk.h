/*
 * Chunks of a trace file as the recorded processes take and return them.
 *
 * In a file that weir record drains, a chunk goes through these states (enum chunk_state):
 *
 *	OPEN -> CLOSED -> FREE -> OPEN      its thread has kept it mapped and takes it up again
 *	          \-> LEFT -> FREE -> OPEN  nobody has it; whoever needs one takes it from the list
 *
 * In a flight recording nobody drains, and the oldest chunks are overwritten (flight.h):
 *
 *	OPEN -> CLOSED -> OPEN              by whichever thread takes it from the queue
 *
 * The thread that moves a chunk to OPEN owns it until it is CLOSED. While it is FREE nobody reads
 * it, so its content may go, but its magic and size stay.
 *
 * The chunk's fields in the file are for readers. Its mapping, size and number in its thread are in
 * private memory (struct mapped), because anybody may write to the file. A chunk that moved to
 * another thread has changed.
 */
#pragma once

#include <stdint.h>

#include "record/writer.h"

#define CHUNK_FIRST (1u * TRACE_GRAIN)
#define CHUNK_LATER (4u * TRACE_GRAIN)

/* The file at r->path, open, or -ESTALE when its name has come to mean another than was opened. */
long recorder_reopen(const struct recorder *r);

/* Blocks for [offset, offset + bytes), now; 0 or -errno. */
long file_allocate(long fd, uint64_t offset, uint64_t bytes);

/* Adds to the header what was lost before there was one. */
void recorder_declare(struct recorder *r);

/* Gives the process another identity to count under: another identity. */
void recorder_identify(struct recorder *r);

/* The head of a chunk that its thread knows. */
struct chunk_birth {
	uint32_t tid, seq;
	uint64_t lost; /* of this thread since its last chunk */
};

/* A chunk of `bytes` at least; .chunk NULL when the file has no room for it.  For calls and ranges
 * (birth given) it may be one that was drained or, flying, the oldest. */
struct mapped chunk_new(struct recorder *r, enum chunk_kind kind, uint32_t bytes, uint32_t tid,
	const struct chunk_birth *birth);

/* Begins a kept chunk anew, once it has been drained.  False when it has not. */
bool chunk_recycle(const struct recorder *r, const struct mapped *m, enum chunk_kind kind,
	const struct chunk_birth *birth);

/* Closes an open chunk of this process where its content ends. */
void chunk_close(const struct recorder *r, const struct mapped *m, uint32_t used);

/* Unmaps a full chunk for good, so that others may have it. */
void chunk_leave(const struct recorder *r, const struct mapped *m);
