/*
 * WEIR=trace:FILE: each call becomes a line at the end of FILE, as it returns.  The file is
 * opened for each line, so that the program may close what it likes.
 */
#pragma once

#include "event/format.h"

/* If lines are asked for: makes the file, mode 0600, when it is not there.  When it can't be
 * written the program runs without. */
void text_start(void);

/* Prints a committed record as a line. */
void text_print(const struct record *r);
