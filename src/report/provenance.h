/*
 * Prints the conditions of a recording, as far as the trace has them: devices and clocks, driver,
 * CUDA, PyTorch, Weir, level, and failing calls. Internal to src/report.
 */
#pragma once

#include "base/table.h"
#include "model/report.h"

/* Lines below the title. */
void provenance_put_text(const struct report *r, const struct text_page *p);

/* Why a failing call is none of the program's faults (api/probe.tbl), or NULL; how many are so. */
const char *failure_probe(const struct report *r, const struct failure_row *f);
uint64_t failures_probed(const struct report *r);

/* Whether the i-th of meta.devices is one that another process has said; ticks of the clock a
 * second, 0: not known. */
bool provenance_is_said(const struct report *r, size_t i);
double provenance_tick_rate(const struct trace *t);

/* Which part of the run was asked for when it was recorded.  False: nothing says. */
bool provenance_part(const struct report *r, char *text, size_t size);

/* The values of "level", "weir" and the like: of processes that disagree all values, with commas
 * between. False: nobody knows. */
bool provenance_asked_gpu(const struct report *r); /* for GPU activities, or none can tell */
bool provenance_fact(const struct report *r, const char *key, char *text, size_t size);

/* Fills r->warnings.  Returns 0. */
int warnings_make(struct report *r);
void warnings_free(struct report *r);
