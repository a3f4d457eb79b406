/*
 * Computes the occupancy of many launches: a CSV file in, the same rows with three more columns
 * out.
 *
 * The first line that is not blank names the columns. It needs cc, threads_per_block,
 * regs_per_thread, smem_static_bytes and smem_dynamic_bytes in any order, and others are copied. A
 * row is one line, so a quoted field holds no line break. Blank lines, CRLF and a byte order mark
 * stay.
 */
#pragma once

#include <stdio.h>

/* Returns an exit code: EXIT_USAGE when the columns are not there, or a row is bad; such a row is
 * written back with the three columns empty.  complain() prints the fault. */
int occupancy_csv(FILE *in, FILE *out);

/* "7.0, 7.2, ...": the compute capabilities that are known. */
const char *occupancy_device_list(void);
