/*
 * The sentences above a report, at most three: what took the time or the memory, why, and what to
 * do first. They use the same facts as the details: a part of the wall time, a row of a table, the
 * first hint.
 *
 * Each sentence has at most 25 words, and a name counts as one. One owner thread.
 */
#pragma once

#include "base/json.h"
#include "model/report.h"

#define SUMMARY_SENTENCES 3u
#define SUMMARY_BYTES     400u

struct summary {
	unsigned n; /* 0: there is nothing to be said */
	char text[SUMMARY_SENTENCES][SUMMARY_BYTES];
};

/* r->hints are made; NULL leaves out what to do first. */
void summary_make(const struct report *r, struct summary *ret);
void summary_make_memory(const struct report *r, struct summary *ret);

/* A line each, and an empty one behind them. */
void summary_put_text(const struct summary *s, FILE *out);

/* The key summary: an array of sentences. */
void summary_put_json(const struct summary *s, struct json *j);
