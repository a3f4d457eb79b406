/*
 * Splits a line of CSV where it lies (RFC 4180, but no field holds a line break). Any thread.
 */
#pragma once

#define CSV_FIELDS 256 /* of a line at most */

struct csv_row {
	int n;
	char *field[CSV_FIELDS]; /* in the line: without the blanks and quotes around it */
};

/* Returns NULL, or what is wrong with the line.  A byte order mark before it and what ends it are
 * no part of a field. */
const char *csv_split(char *line, struct csv_row *ret_row);
