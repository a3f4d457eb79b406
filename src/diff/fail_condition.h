/*
 * Fail conditions of `weir diff` on two sets of recordings (weir-diff(1)):
 *
 *	[kernel|call|operator|phase] METRIC [of PATTERN] OP VALUE
 *	launch|step|request [METRIC] [of PATTERN] OP VALUE
 *	METRIC per launch|step|request OP VALUE
 *
 * If A and B did different work, a change of a total of time is judged per launch, step or request.
 * Pure. Any thread.
 */
#pragma once

#include "base/error.h"
#include "diff/diff.h"

enum condition_metric {
	METRIC_TOTAL_OF_RUN, /* `total` says which */
	METRIC_COUNT,
	METRIC_TOTAL,
	METRIC_MEAN,
	METRIC_P50,
	METRIC_P95,
	METRIC_P99,
	METRIC_SLOWER, /* number of rows with that verdict */
	METRIC_FASTER,
	METRIC_NEW,
	METRIC_GONE,
};

enum condition_op { OP_MORE, OP_LEAST, OP_LESS, OP_MOST, OP_EQUAL, OP_OTHER };
enum condition_against {
	AGAINST_NUMBER, /* B's value is compared with `value` */
	AGAINST_CHANGE, /* B's less A's */
	AGAINST_PCT,    /* the same in percent of A's */
};

#define CONDITION_PATTERN 512

struct fail_condition {
	const char *text; /* the caller's */
	enum condition_metric metric;
	enum diff_total total;
	enum diff_table table;
	enum diff_one per; /* totals: of one of these; ONE_NONE: of the run */
	enum condition_op op;
	enum condition_against against;
	double value; /* nanoseconds, bytes, a count, percent */
	enum unit unit;
	char pattern[CONDITION_PATTERN]; /* "" for all; as of fnmatch() */
};

struct judgement {
	const struct fail_condition *of; /* the caller's */
	bool failed;
	bool known;        /* value is there */
	double value;      /* what was compared: of the row that is farthest on the wrong side */
	const char *where; /* that row's name, the diff's; NULL for totals and numbers of rows */
	uint64_t rows;     /* for how many rows it is true */
	bool unmatched;    /* no row has a name that the pattern fits */
	bool undecided;    /* the work of A and B has nothing in common by which to judge */
	enum diff_one per; /* it was judged of one of these */
};

/* 0 or -EINVAL with a sentence.  text must outlive the condition. */
int condition_parse(const char *text, struct fail_condition *ret_condition, struct error *err);

/* The metrics, with a line on each. */
void condition_print_help(FILE *out);

/* After diff_finish(). */
void condition_judge(
	const struct fail_condition *g, const struct diff *d, struct judgement *ret_judgement);
