/*
 * Starting a program under the hook, for the commands that do: the environment that it
 * needs, its signals and its exit code.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "event/format.h"

struct child {
	char **argv;       /* the program and its arguments; argv[0] is looked up in PATH */
	const char *trace; /* the raw trace that is written to; NULL: nothing is recorded */
	const char *sched; /* how the program shares the GPU: "sched,class=latency,"; NULL: alone */
	bool sim;          /* on the simulated driver */
	bool audit;        /* load the auditor as well */
	bool gpu;          /* device times as well */
	uint32_t sample_rate; /* of one launch in so many, with events; 0: of all work, by CUPTI */
	bool reconstruct;     /* the others are to be reconstructed of these */
	const char *predict;  /* the configuration of predictions, "" for none; NULL: the same */
	const char *part;     /* what of the run is recorded: "capture=profiler,"; NULL: all */
	const char
		*stacks; /* whose stacks are kept, as WEIR has it: "" or "=WHAT"; NULL: nobody's */
	const char *python; /* what python/weir is asked for: words with commas; NULL: nothing */

	/* Filled by child_trace() and child_start(). */
	pid_t pid;
	struct trace_header *header; /* of the trace, mapped */
	dev_t device;                /* and its file */
	ino_t inode;
};

/* The path of libweir.so, which is preloaded into a program: 0, or an exit code after complaining.
 */
int child_hook(char ret_path[PATH_MAX]);

/* Whether the program can be found and run: 0, or an exit code after complaining. */
int child_check(const struct child *c);

/* Removes an older trace of this name.  0, also where there is none, or -errno: what is no trace
 * stays. */
int child_clear(const char *path, struct error *err);

/* Makes a raw trace of this program, where no file is; `control` as in format.h. */
int child_trace(struct child *c, const char *path, uint32_t control, uint64_t flight_bytes,
	struct error *err);

/* Starts the program.  0, or an exit code after complaining (126 not executable, 127 not
 * found, as a shell has it). */
int child_start(struct child *c);

/*
 * Waits up to wait_ms (-1: without end) for the program to end; signals that this process gets
 * meanwhile are passed on to it, except SIGUSR1 when *keep_usr1 is not NULL: that counts there.
 * True when it has ended, with its status as wait() gives it.
 */
bool child_wait(struct child *c, int wait_ms, int *keep_usr1, int *ret_status);

/* Whether its name still leads to the trace; complains when it does not. */
bool child_trace_is_there(const struct child *c);

/* Whether the injected library can't work in the program; says why. */
bool child_say_closed(const struct child *c);

/* How many processes besides this one still have the trace open for writing. */
int child_others(const struct child *c);

/* Dies as the program died: returns its exit code, or kills this process with its signal. */
int child_exit(int status);

/* Reads the clocks once more and marks the trace finished. */
void child_finish(struct child *c, int status);
void child_close(struct child *c);
