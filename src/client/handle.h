/*
 * Handles of libweirapi: a number with a place and a generation. A closed handle stays invalid, and
 * its object goes when no call uses it any more. There are no locks, so a fork in another thread's
 * call leaves none locked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/stream_pool.h"
#include "share/segment.h"
#include "weir/sched.h"

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

/* No enter() finds it any more; false: another has closed it.  By who is inside. */
bool handle_close(struct handle *h);

/* Whether any is open. */
bool handle_any(void);

/* The shared file, mapped when it is there: WEIR_OK, or why not. */
int handle_reach_file(struct handle *h, struct share_file **ret_file);

/* Passes the status on, and writes a line when the level asks for it; NULL details: none. */
int handle_log(const struct handle *h, const char *function, int status, const char *details);
