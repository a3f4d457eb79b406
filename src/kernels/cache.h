/*
 * Compiled kernels on the disk.  A file is written under another name and renamed, so that readers
 * see a whole one; it belongs to its user alone, and a checksum finds damage.  A file that is
 * foreign, damaged or of another key counts as absent.  Any thread, any number of processes.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* The folder where the options say nothing: NULL where the environment names no home. */
char *cache_folder(void);

/* The content that was stored under a key, a text that says all that it depends on. */
bool cache_get(const char *folder, const char *key, struct buf *ret);

/* A full disk or a folder that nobody may write to is no failure: the next one compiles again. */
void cache_put(const char *folder, const char *key, const struct buf *content);
