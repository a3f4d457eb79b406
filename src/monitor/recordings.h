/*
 * The recordings that this user's programs write now, with the calls and launches of each program
 * since it was watched. Traces mapped by processes show them.
 *
 * Looking at a process's mappings is expensive. So a result counts for a quarter of the time that
 * the process has been watched, at most RECORDINGS_BELIEVED_NS. Listing many processes is limited
 * to one part in RECORDINGS_LISTING of a processor's time. A new program among a thousand is then
 * seen some seconds later.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/array.h"
#include "monitor/follow.h"

#define RECORDINGS_BELIEVED_NS 30000000000ull
#define RECORDINGS_LISTING     400u
#define RECORDINGS_NAME        40u

struct recording {
	char path[PATH_MAX];
	dev_t device;
	ino_t inode;
	bool seen; /* by the look at hand */
	struct follow *follow;
};

/* A process, whether it writes to one or not. */
struct watched {
	uint32_t pid;
	char name[RECORDINGS_NAME];
	uint64_t since_ns, until_ns; /* first seen; what is here is believed until then */
	uint64_t born_ns;            /* of its entry in /proc: tells another of the same number */
	struct recording *recording; /* or NULL */
};

/* A process that writes to one. */
struct recorded {
	uint32_t pid;
	const char *name;
	const struct recording *recording;
	uint64_t calls, launches;
	/* As of struct follow_process. */
	uint64_t gpu_from_ns, gpu_until_ns, gpu_busy_ns, gpu_look_from_ns;
};

struct recordings {
	ARRAY(struct recording *) all;
	ARRAY(struct watched) watched, before; /* by pid */
	ARRAY(struct recorded) processes;
	uint64_t list_ns; /* processes are not listed before */
};

/* The present recordings, in r; kernels that have run go to `to`, if it is not NULL.  A trace that
 * can't be read is left out. */
void recordings_look(struct recordings *r, const struct follow_sink *to);
void recordings_fini(struct recordings *r);

/* The name of a process that is recorded; "?" of another. */
const char *recordings_name(const struct recordings *r, uint32_t pid);

const struct trace_header *recording_header(const struct recording *r);

/* The path of the trace that the process of this number writes: 0, -ESRCH: no such process; -EPERM:
 * it is another user's; -ENOENT: it is not recorded. */
int recordings_find(uint32_t pid, char ret_path[PATH_MAX]);
