/*
 * Writes events from inside a recorded program.
 *
 * A struct recorder is one process's hold on a trace file: the mapped header, the file's place, and
 * the threads' chunks. A struct writer is one thread's open chunk of one kind: calls, ranges,
 * stacks or requests. Both belong to the hook (src/hook), which has one recorder and three writers
 * a thread. Data that must outlive a thread is in its lane (lane.h).
 *
 * Everything here may run inside an intercepted call: no allocation, stdio or locks. It leaves
 * errno alone and calls the kernel directly. A signal handler may interrupt any line and record
 * calls on the same thread. writer_reserve() is the fast path, and the rest is slow and rare.
 * Nothing waits for another thread. The header counts events that cannot be kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "event/format.h"
#include "record/clock_readings.h"
#include "record/control.h"

#define RECORDER_PATH 4096

struct recorder {
	struct trace_header *header; /* mapped, or NULL: nothing is kept */
	uint32_t pid;
	uint64_t process_start;
	uint64_t identity; /* drawn by lot: of this process and of no other in the file */
	_Atomic uint64_t early_lost,
		early_unaccounted; /* before there was a header that could say it */
	uint64_t device, inode;    /* of the file: another may come to have its name */
	bool join; /* only a recording that weir record has begun and not finished */
	char path[RECORDER_PATH];
};

/* A chunk as this process has it mapped. */
struct mapped {
	struct chunk_header *chunk;
	uint32_t bytes;
	uint32_t granule; /* of the file: where it begins */
};

#define WRITER_MARKS 8

struct writer {
	char *volatile pos; /* where the next record goes */
	char *volatile end; /* of the open chunk */
	/* The places that are being written: by the thread, by a handler that interrupted it there,
	 * by one that interrupted that; the newest few.  A handler that leaves by longjmp() leaves
	 * one too many, which keeps no more than its chunk. */
	char *volatile mark[WRITER_MARKS];
	volatile uint32_t marks;
	struct chunk_header *chunk;     /* the open chunk, or NULL; its thread alone unmaps it */
	struct thread_account *account; /* of the thread; NULL until its first call was kept */
	struct counter *counters;       /* of the thread, by function id, or NULL */
	uint64_t early;                 /* calls entered while there was no account */
	uint64_t before_fork;           /* calls that had not returned when this thread forked */
	/* For a forked child that has no account: memory in the place of its parent's, where a call
	 * may yet count itself that had looked for it. */
	struct thread_account *parted;
	uint64_t settled; /* of a parent's calls: declared by the process, and yet to return here */
	struct lane *lane; /* of the thread, or NULL */
	/* Ranges: the innermost that has not ended.  The one around it is where its dur says, until
	 * it ends; its reserved says how many were open around it. */
	char *volatile open;
	uint64_t lost; /* since the open chunk began */
	uint32_t kind; /* enum chunk_kind: one of chunk_is_drained() */
	uint32_t tid;
	uint32_t seq;
	uint32_t depth;         /* ranges: how many are open, those included that were not kept */
	uint32_t skip;          /* refusals to sit out before asking for a chunk again */
	uint32_t counters_skip; /* the same for counters */
};

/*
 * Opens (or makes, mode 0600) the raw trace file at r->path and maps its header.  A file left
 * by processes that are all gone is replaced, unless weir record made it.  A new file begins
 * with *blank (see header_blank).  Returns 0 or -errno; r->header stays NULL on failure.
 */
int recorder_open(struct recorder *r, const struct trace_header *blank);

/* Fills in what a new raw trace's header says, clocks and host included. */
void header_blank(struct trace_header *h, uint32_t control);

/* Field 22 of /proc/PID/stat: when the process started; of this one for 0.  0 when there is no such
 * process. */
uint64_t process_start_of(uint32_t pid);

/* Makes the empty file fd a raw trace: its header, and the schema behind it.  0 or -errno. */
int trace_file_begin(int fd, struct trace_header *h);

/* Whether a file that grows to `end` bytes would be SIGXFSZ. */
bool writer_beyond_limit(uint64_t end);

/*
 * For a forked child: the same file, another process.  Before, each writer of the thread that
 * forked begins anew: a signal handler may have forked in the middle of a record, which child and
 * parent both finish, the child where nobody sees it.
 */
void writer_forked(struct recorder *r, struct writer *w);
void recorder_forked(struct recorder *r);

/* How many records of a closed chunk of calls, mapped and of `bytes`, are being written, and
 * whether a range of one of ranges is open: then a signal handler has filled the chunk, and whoever
 * it interrupted will come back. */
uint32_t chunk_unfinished(const struct chunk_header *c, uint32_t bytes);

/* A place in the file that is said to be a range of this thread: NULL when it is in none of its
 * chunks. */
struct range *writer_range(const struct writer *w, const char *at);

/* This thread's counters, by function id; NULL: there is no room for them.  Slow. */
struct counter *writer_counters(struct recorder *r, struct writer *w);

/* Declares a call of this thread that is neither recorded nor counted. */
void writer_lose(struct recorder *r, struct writer *w);

/* A chunk of `bytes` (rounded up to TRACE_GRAIN), or NULL when the file has no room for it. */
struct chunk_header *recorder_chunk(
	struct recorder *r, enum chunk_kind kind, uint32_t bytes, uint32_t tid);

/*
 * For whoever drains: the chunk of calls or ranges at `offset`, mapped at c, may be written over.
 * One that its thread has left behind goes into the list of the file, where any thread finds it;
 * the other its thread still has, and leaves (CHUNK_LEFT, used 0) when it does not take it up
 * again.  One thread.
 */
void recorder_free(struct trace_header *h, struct chunk_header *c, uint64_t offset);

/* Gives w room for a record of `bytes`.  False: there is none, and the loss is counted. */
bool writer_refill(struct recorder *r, struct writer *w, uint32_t bytes);

/*
 * Reads the clock into the chunk of the process's names: how fast ticks pass is known from readings
 * that lie apart, and a short program has no other.  Any thread, at any time.
 */
void recorder_read_clock(struct recorder *r);

/* Appends a meta record of the process, and reads the clock: may be called by any thread at any
 * time. */
struct record *meta_reserve(struct recorder *r, uint32_t words);

/* Whether the room that is left is for what comes once: a quarter of a limited trace is taken, or
 * most of what there is. */
bool meta_is_scarce(const struct recorder *r);

/*
 * Room for a range that any thread may end, and its number from 1; NULL when there is none, which
 * is counted.  span_find() is the same by its number, NULL when no such was given out here.
 */
struct range *span_reserve(struct recorder *r, uint64_t *ret_id);
struct range *span_find(uint64_t id);

/*
 * Room for a GPU activity, and for a link of one; NULL when there is none.  Any thread.
 * The caller stores kind, or correlation, last.
 */
struct gpu_activity *activity_reserve(struct recorder *r);
struct link *link_reserve(struct recorder *r);

/* This thread's writer of requests to a server, or NULL, which is counted as a lost range.  A
 * record is whole once its outcome is stored. */
struct writer *writer_of_requests(struct recorder *r);

/* Counts GPU activities that nobody will hear of. */
void activity_lose(struct recorder *r, uint64_t count);

void shared_forget(void); /* after a fork: all begin anew */

/*
 * From here on the chunk that `at` is in stays mapped, whatever handlers do and whatever the file
 * says of it, until writer_unmark().  The count first: a handler in between puts its own above.
 */
static inline void writer_mark(struct writer *w, char *at)
{
	const uint32_t n = w->marks;
	w->marks = n + 1;
	w->mark[n % WRITER_MARKS] = at;
	atomic_signal_fence(memory_order_seq_cst);
}

/* Moves the newest mark. */
static inline void writer_remark(struct writer *w, char *at)
{
	w->mark[(w->marks - 1) % WRITER_MARKS] = at;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void writer_unmark(struct writer *w)
{
	atomic_signal_fence(memory_order_seq_cst);
	w->marks = w->marks - 1;
}

/* Takes what is at pos unless a signal handler on this thread has moved it, and marks it. */
static inline bool writer_take(struct writer *w, char *pos, uint32_t words)
{
	writer_mark(w, pos);
	if (__builtin_expect(cpu_swap(&w->pos, pos, pos + words * 8), 1))
		return true;
	writer_unmark(w);
	return false;
}

/*
 * Takes `words` of the open chunk, or NULL; whoever has written them calls writer_unmark().  pos is
 * read before end: if a handler that runs between the two opens a new chunk, pos is stale and the
 * swap fails.
 */
static inline void *writer_reserve(struct recorder *r, struct writer *w, uint32_t words)
{
	for (;;) {
		char *const pos = w->pos;
		char *const end = w->end;
		if (__builtin_expect(end - pos < (long)words * 8, 0)) {
			if (!writer_refill(r, w, words * 8))
				return NULL;
			continue;
		}
		if (writer_take(w, pos, words))
			return pos;
	}
}

/* Publishes a filled record: stores the word that holds fn last.  Readers: trace_next_record. */
static inline void record_commit(struct record *rec, uint16_t fn)
{
	store_release(shared(&rec->fn), fn);
}
