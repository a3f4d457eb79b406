/*
 * Reads several recordings as one, such as the ranks of a parallel program.
 *
 * The first takes in the others: it has all chunks, and trace_load() gives each in the first one's
 * time. Recordings of one host and boot share their clocks. The time of day orders recordings of
 * several hosts. Devices with equal UUIDs keep their number, and others get new ones. Other tools'
 * traces have no UUIDs. There a number that both used is two devices, since each rank may see its
 * own device first, and a number that one used stays.
 */
#pragma once

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
