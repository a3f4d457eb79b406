/*
 * Several recordings read as one: those of the ranks of a parallel program.
 *
 * The first takes the others in: its chunks are then those of all, and trace_load() gives each in
 * the first one's time.  Recordings of one host and one boot share their clocks.  Of different
 * hosts the time of day says what was when, as well as they were set alike.  Devices keep their
 * numbers where they are the same, by their UUIDs, and get new ones where not.  Traces of other
 * tools name no UUIDs: there a number that something ran on in both is two devices, since each rank
 * may see its own as the first, and one that only one of them used keeps its number.
 */
#ifndef WEIR_TRACE_MERGE_H
#define WEIR_TRACE_MERGE_H

#include "trace/trace.h"

/* Before trace_cut(), and before anything is loaded by several threads.  0, then `other` is t's; or
 * -errno with a sentence, and it remains the caller's.  name: of the other's file. */
int trace_take_in(struct trace *t, struct trace *other, const char *name, struct error *err);

/* Internal to src/trace: the recording that a chunk came with, and what was loaded of it in the
 * first one's time and numbers. */
struct taken_in;
const struct trace *merge_owner(const struct trace *t, const struct chunk_ref *ref);
void merge_apply(const struct trace *t, struct chunk_buf *buf);
void merge_free(struct trace *t);

#endif
