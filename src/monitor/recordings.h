/*
 * The recordings that programs of this user write now, and how many calls and launches each of the
 * programs has made since it was watched.  Found by the traces that processes have mapped.
 *
 * A look reads the headers of a trace's chunks, and of their content what is new.  What had been
 * closed before the first look counts for nothing: rates need none of it, and it may be much.
 */
#ifndef WEIR_MONITOR_RECORDINGS_H
#define WEIR_MONITOR_RECORDINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/array.h"
#include "base/map.h"

/* A chunk, and what was counted in it. */
struct counted {
	uint32_t pid;
	uint64_t calls, launches;
	bool over; /* nobody writes to it any more */
};

struct recording {
	char path[PATH_MAX];
	dev_t device;
	ino_t inode;
	bool first; /* not looked at yet */
	bool seen;  /* by the look at hand */
	uint64_t lost, bytes;
	struct map chunks;
	ARRAY(struct counted) counts;
};

/* A process that writes to one. */
struct recorded {
	uint32_t pid;
	uint32_t recording; /* index */
	uint64_t calls, launches;
};

struct recordings {
	ARRAY(struct recording *) all;
	ARRAY(struct recorded) processes;
};

/* What is recorded now, in r.  What can't be read is left out.  0 or -ENOMEM. */
int recordings_look(struct recordings *r);
void recordings_fini(struct recordings *r);

#endif
