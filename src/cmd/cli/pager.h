/*
 * What goes to a terminal goes through a pager, as git does it: $WEIR_PAGER, else $PAGER, else
 * less, which then leaves when all fits on the screen.  "" or cat is none.  Nothing happens where
 * standard output is no terminal.
 */
#ifndef WEIR_CMD_CLI_PAGER_H
#define WEIR_CMD_CLI_PAGER_H

#include <stddef.h>

/* Columns of the terminal that standard output is; 0: it is none. */
size_t terminal_width(void);

/* Before the first output, and after the last.  Without a pager the output goes where it went. */
void pager_begin(void);
void pager_end(void);

#endif
