/*
 * The importers that import.c calls, one a format. Each reads the file into the store and counts in
 * st what it left out. An error means that the file has another format, or that the machine failed.
 */
#pragma once

#include "import/import.h"
#include "import/import_store.h"

int import_kineto(const char *path, struct store *s, struct import_stats *st, struct error *err);
int import_alloc(const char *path, struct store *s, struct import_stats *st, struct error *err);
int import_nsys(const char *path, struct store *s, struct import_stats *st, struct error *err);

/* Whether the file, plain or gzip, begins with the header of a table of allocations. */
bool import_is_alloc(const char *path);

/* Reads the names of copies: "Memcpy DtoH (Device -> Pinned)", "Memset (Device)", "Stream Wait
 * Event". */
void import_memcpy_name(struct gpu_activity *w, const char *name);
void import_sync_name(struct gpu_activity *w, const char *name);

/* Times are kept below this, so that sums of two never overflow: 146 years. */
#define IMPORT_TIME_MOST (1ll << 62)
