/*
 * Handles of libweirapi: a number with a place and a generation. A closed handle stays invalid, and
 * its object goes when no call uses it any more. There are no locks, so a fork in another thread's
 * call leaves none locked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/segment.h"
#include "weir/sched.h"

/*
 * CUDA streams by class (stream_pool.c): given out, returned, given out again in the same context.
 * Through the driver that is found in the running process.  Any thread, no locks.
 */
#define POOL_STREAMS 64u

struct pool_stream {
	/* The state of stream_pool.c.  put() stores it with release behind what follows, which is
	 * of who has it in work; take() and stream_pool_return() acquire. */
	_Atomic uint32_t state;
	uint32_t class;
	_Atomic uint32_t pid; /* a forked child has none of its parent's; a hint without take() */
	_Atomic(void *) stream;
	void *context;
	uint64_t context_id; /* addresses of contexts come again */
};

struct stream_pool {
	struct pool_stream stream[POOL_STREAMS];
};

/* WEIR_OK, or why not. */
int stream_pool_return(struct stream_pool *p, void *stream);

/* The returned streams of the current context. */
void stream_pool_destroy(struct stream_pool *p);

/* Nobody uses it any more: it is empty. */
void stream_pool_forget(struct stream_pool *p);

struct handle {
	/* See handle.c.  handle_publish() releases all of the handle to handle_enter(); each
	 * handle_leave() to the last one, which forgets it; forget() to handle_new(). */
	_Atomic uint64_t state;
	_Atomic(struct share_file *) file; /* handle_reach_file() swaps it in, acq_rel, and loads it
					    * with acquire */
	char directory[SHARE_PATH];
	_Atomic int log_level; /* stands for itself */
	struct stream_pool streams;
};

/* NULL: too many are open.  The place is the caller's until handle_publish(). */
struct handle *handle_new(void);
weir_sched handle_publish(struct handle *h);

/* Between them the handle stays as it is; NULL: there is none of that number. */
struct handle *handle_enter(weir_sched number);
void handle_leave(struct handle *h);

/* The status of what is done with a handle: WEIR_ERROR_HANDLE if there is none of that number. */
#define WITH_HANDLE(number, h, status)                                                             \
	({                                                                                         \
		struct handle *const h = handle_enter(number);                                     \
		const int status_ = h ? (status) : WEIR_ERROR_HANDLE;                              \
		if (h)                                                                             \
			handle_leave(h);                                                           \
		status_;                                                                           \
	})

/* No enter() finds it any more; false: another has closed it.  By who is inside. */
bool handle_close(struct handle *h);

/* Whether any is open. */
bool handle_any(void);

/* The shared file, mapped when it is there: WEIR_OK, or why not. */
int handle_reach_file(struct handle *h, struct share_file **ret_file);

/* Passes the status on, and writes a line when the level asks for it; NULL details: none. */
int handle_log(const struct handle *h, const char *function, int status, const char *details);

/* WITH_HANDLE() of a call that is logged. */
#define WITH_LOG(number, h, status, details)                                                       \
	WITH_HANDLE(number, h, handle_log(h, __func__, status, details))
