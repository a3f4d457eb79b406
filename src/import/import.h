/*
 * Turns other tools' files into traces: JSON of Kineto and Chrome, plain or gzipped, SQLite exports
 * of Nsight Systems, and tables of allocations. For any file, the result is a trace of the readable
 * part or an error sentence. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct import_stats {
	const char *format; /* a literal: "Kineto JSON", "Nsight Systems SQLite" */
	uint64_t calls, ranges, activities;
	uint64_t allocator_events;
	uint64_t unjoined; /* of activities: no call is known that asked for it */
	uint64_t left_out; /* events that made no sense */
	uint64_t bytes;    /* of the new trace */
	char partial[320]; /* why not all of the file was read; "" when it was */
};

/* Reads path and writes `to`, which appears whole or not at all.  0 or -errno. */
int import_file(
	const char *path, const char *to, struct import_stats *ret_stats, struct error *err);

/* The same to a stream that can be sought. */
int import_stream(const char *path, FILE *out, struct import_stats *ret_stats, struct error *err);
