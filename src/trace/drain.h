/*
 * Packs full chunks into the same file while a program records, and returns them to their threads.
 * A steady thread then reuses a few mapped chunks, without page faults, and the file stays small.
 *
 * The file is whole at every moment, because a chunk is marked free after its block is committed.
 * Weir record drains, from one thread.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct drain;

/* path: a raw trace being written.  0 or -errno. */
int drain_open(const char *path, struct drain **ret_d);
void drain_close(struct drain *d);

/* Packs every chunk that is full now.  True when there was one.  A failure (a full disk)
 * leaves chunks where they are, which costs room and nothing else.  A file that was cut off is
 * left as it is: new room would make it whole again, with nothing in it. */
bool drain_step(struct drain *d);

/* Whether somebody has cut the file off: it is smaller than it was, or has lost a chunk. */
bool drain_is_cut(struct drain *d);
