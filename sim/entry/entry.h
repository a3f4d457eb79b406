/*
 * The door of the simulated driver.  Every exported function is a generated entry that
 * comes through entry_enter(), which counts the call, refuses it where the driver would
 * (not initialised, forked, inside a host function, a scripted fault) and takes the driver
 * lock; then the body sim_X() runs under that lock, and entry_leave() gives it back.
 * Bodies call each other by their sim_ names only, so that an interposer never sees the
 * driver talk to itself.  Any thread may enter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "sim_api.h"
#include "sim_enums.h"

#define SIM_EXPORT __attribute__((visibility("default")))
#define ENTRY_GO   (-1) /* no CUresult: the body may run */

struct entry_row {
	const char *name; /* the exported symbol */
	const char *base; /* what cuGetProcAddress is asked for */
	int since;
	int per_thread; /* a _ptsz or _ptds symbol */
	void *address;
};

extern const struct entry_row entry_table[SIM_FUNCTIONS];

const char *entry_error_name(int code); /* NULL: no such code */
const char *entry_error_text(int code);

int entry_enter(int id, bool per_thread);
int entry_leave(int id, int result);

/* True in a call through a _ptsz or _ptds symbol: stream 0 is the thread's own. */
bool entry_per_thread(void);

/* Between these two, this thread is a host function and may call nothing. */
void entry_callback_begin(void);
void entry_callback_end(void);

/* Finds an exported name; -1 where there is none. */
int entry_find(const char *name);

void log_open(const char *path);
void log_count(int id);
