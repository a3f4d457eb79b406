/*
 * Sends terminal output through a pager, like git: $WEIR_PAGER, $PAGER, or less, which leaves if
 * all fits on the screen. An empty name or cat means none. Off a terminal nothing happens.
 */
#pragma once

#include <stddef.h>

/* Columns of the terminal that standard output is; 0: it is none. */
size_t terminal_width(void);

/* Before the first output, and after the last.  Without a pager the output goes where it went. */
void pager_begin(void);
void pager_end(void);
