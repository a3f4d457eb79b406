/*
 * The log of requests: a thread that writes lines to a file. Loops hand lines over and never wait
 * for the file: if so many wait that LOG_ROOM is full, lines are dropped and counted. A disk that
 * is full, or a file that was removed, loses lines too.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define LOG_ROOM ((size_t)1 << 18)

struct request_log;
int log_open(const char *path, struct request_log **ret, struct error *err);
/* Any thread. Takes whole lines, and leaves `lines` empty. */
void log_put(struct request_log *log, struct buf *lines);
/* Lines that were dropped; of no log: 0. */
uint64_t log_lost(const struct request_log *log);
/*
 * Writes what waits, and closes the file. If that takes more than five seconds, the file hangs: the
 * thread keeps it, and ends with the process. NULL is no log.
 */
void log_close(struct request_log *log);
