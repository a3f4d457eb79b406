/* The file that weir monitor keeps its baseline in: its owner's alone, and whole at any time. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "monitor/regress.h"

/* 0, also when there is no file yet, or -errno with a sentence. */
int baseline_load(struct regress *r, const char *path, uint64_t now_ns, struct error *err);
int baseline_save(const struct regress *r, const char *path, struct error *err);
