/*
 * Finding the real functions, and answering the program when it looks for them: through the
 * loader, dlsym, dlvsym, cuGetProcAddress, or the audit library.  One rule for all: the
 * program gets the address that it would have got, or the wrapper that stands for exactly
 * that address.
 */
#pragma once

#include <stdbool.h>

#include "hook/core/elf.h"
#include "hook/core/hook_table.h"

/* The wrapper for what cuGetProcAddress answered; a counting thunk when it is a function of
 * the driver that the tables do not know; else the address itself. */
void *resolve_answer(void *real, const char *symbol);

/* Writes the names of unknown functions into a trace that has just been opened. */
void resolve_declare(void);

void resolve_forked(void);

/* Whether programs that look for the driver come to this library first: it was preloaded. */
bool resolve_is_first(void);

/* Finds the driver's functions; false while it is not loaded. */
bool resolve_driver(void);

/* CUPTI's own function of that name, or NULL. */
void *resolve_tool(const char *name);

/* The definition behind this library in the order of loading, or NULL. */
void *resolve_next(const char *name);

/* Whether an object is this library; whether it was loaded after it. */
bool resolve_is_us(const struct elf *e);
bool resolve_is_behind(const struct elf *e);

/* The audit library asks: the loader is binding `name` to `real` for somebody. */
void *weir_bound_by_audit(const char *name, void *real, const void *link_map);
