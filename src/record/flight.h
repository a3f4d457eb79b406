/*
 * The closed chunks of a flight recording in the order in which they were closed: a queue in the
 * file, from which whoever needs a chunk takes the oldest. So of each thread the newest chunks in a
 * row are kept, and a slowly filled chunk stays as long as others that were closed with it.
 *
 * It is the queue of Michael and Scott (1996). The header has its ends, each chunk the link to the
 * next one behind its struct. Each word's upper half counts its changes, so a late exchange by a
 * thread that lost its processor fails. All processes share it without locks, and each step is
 * bounded. A process that is killed between two steps leaves at most one closed chunk as it was,
 * for good.
 *
 * Anybody may write to the file: what a link names is checked before it is mapped, and again before
 * it is overwritten.
 */
#pragma once

#include <stdint.h>

#include "event/format.h"

/* A chunk of calls, ranges or stacks that its owner has closed, whole, and where it begins. */
void flight_push(struct trace_header *h, long fd, struct chunk_header *c, uint32_t granule);

/* Takes the oldest out: its granule, or 0 if none is closed.  The contents are not checked. */
uint32_t flight_pop(struct trace_header *h, long fd);
