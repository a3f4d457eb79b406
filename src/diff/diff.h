/*
 * Compares two sets of recordings. Reports are added to side A or B, and only sums and histograms
 * stay, so memory grows with the number of different things alone. Rows are matched by name, in one
 * thread.
 *
 * A row compares the time of one launch, call or range. The change and the verdict are about its
 * median. Counts are no speed, and totals order the rows.
 *
 * A phase is a range that the program or its framework names. Its time is that on the device, from
 * the start of the first activity launched inside to the end of the last.
 *
 *	diff_new(&d, 3.0);
 *	diff_add(d, DIFF_A, "old.weir", report, &err); … diff_add(d, DIFF_B, …);
 *	diff_finish(d);
 *	condition_judge(&condition, d, &judgement);
 *	diff_print_text(d, …);
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hist.h"
#include "base/map.h"
#include "model/report.h"
#include "model/statistic.h"
#include "section/section.h"

enum diff_side_id { DIFF_A, DIFF_B, DIFF_SIDES };

enum diff_total {
	TOTAL_WALL,
	TOTAL_DEVICE,
	TOTAL_BUSY,
	TOTAL_HOST,
	TOTAL_UNTIMED,
	TOTAL_CALLS,
	TOTAL_LAUNCHES,
	TOTAL_GRAPH_LAUNCHES,
	TOTAL_STEPS,
	TOTAL_REQUESTS,
	TOTAL_ERRORS,
	TOTAL_LOST,
	TOTAL_PEAK,
	TOTAL_ALLOCATED,
	TOTAL_ALLOCS,
	TOTAL_COPIED,
	TOTAL_IDLE,
	TOTAL_SPAN,
	DIFF_TOTALS,
	/* The parts of the wall time and of the critical path: enum wall_part, path_part. */
	TOTAL_BREAKDOWN = DIFF_TOTALS,
	TOTAL_PATH = TOTAL_BREAKDOWN + WALL_PARTS,
	DIFF_SUMS = TOTAL_PATH + PATH_PARTS,
};

/* The names of the totals in JSON (with the unit) and in text; in fail conditions: api/metric.tbl.
 */
struct diff_total_name {
	const char *json, *text;
	enum unit unit;
	bool worst; /* of several runs the largest counts, not the median */
};
struct diff_total_name diff_total_name(unsigned total);

enum diff_table {
	TABLE_KERNELS,
	TABLE_CALLS,
	TABLE_OPERATORS,
	TABLE_COPIES,
	TABLE_PHASES,
	TABLE_STEPS,    /* a row for each way in which steps were found */
	TABLE_REQUESTS, /* ranges that the program names so */
	DIFF_TABLES
};
/* Kinds of the rows of steps that calls which wait end (from the first launch, or from the end of
 * the step before), or that begin as ranges of one name do. */
#define DIFF_BY_WAITS   "waits"
#define DIFF_BY_PERIODS "periods"
#define DIFF_BY_RANGES  "repeated"

enum diff_verdict {
	VERDICT_NONE, /* the numbers cannot tell */
	VERDICT_SAME, /* no difference that is more than noise, chance and the threshold */
	VERDICT_FASTER,
	VERDICT_SLOWER,
	VERDICT_NEW,
	VERDICT_GONE,
};
const char *diff_verdict_word(enum diff_verdict v); /* NULL for VERDICT_NONE */

/* One row in one run. */
struct diff_run {
	uint64_t count;
	uint64_t bytes;
	bool untimed;   /* calls: of some of them the time is not known */
	bool unsized;   /* copies: of some of them the size is not known */
	double threads; /* kernels: of all launches; NAN: the size of some is not known */
	uint64_t host_ns, device_ns; /* phases: device is their spans */
	uint64_t host_p50_ns, device_p50_ns;
	uint64_t busy_p50_ns; /* phases: what the devices did inside */
};

struct diff_value { /* one row on one side: of several runs the medians */
	bool there;
	double count, bytes, total_ns; /* total_ns NAN: not known */
	double threads;                /* kernels: of one launch; NAN: not known */
	double median_ns; /* what is compared: of one launch, call, range; NAN: not known */
	double mean_ns, p95_ns, p99_ns; /* percentiles are of all runs; NAN: not known */
	/* Phases: of the median one; NAN: not known. */
	double span_ns, busy_ns, host_ns;
};

/* Above this noise is no measure of anything: the samples are too few, or too far apart. */
#define DIFF_NOISE_MOST_PCT 1000.0

/* How B's number differs from A's; NAN: not known. */
struct diff_change {
	double pct;                  /* of A's */
	double noise_pct;            /* of A's: half the width of the 99 % interval, towards 0 */
	double below_pct, above_pct; /* the same to either side */
	double p;                    /* see statistic.h */
	enum diff_verdict verdict;
};

struct diff_row {
	char *name;
	const char *kind; /* calls: api; operators: kind of range; else NULL */
	ARRAY(struct diff_run) runs[DIFF_SIDES];
	struct hist host[DIFF_SIDES], device[DIFF_SIDES];
	struct hist run_host, run_device; /* of the run that is being added */

	/* After diff_finish(). */
	bool by_device; /* times are the device's */
	struct diff_value value[DIFF_SIDES];
	double total_ns;           /* B's total less A's */
	double total_pct;          /* the same of A's; NAN when A has none */
	struct diff_change change; /* of the median */
	double longer;             /* share of pairs in which B's is longer; NAN: not known */
	double factor;             /* phases: the median of A by that of B; NAN: not known */
};

struct diff_sum {               /* a total */
	const char *key, *text; /* of some of the calls where it is not of all */
	enum unit unit;
	double side[DIFF_SIDES];
	struct diff_change change;
};

struct diff_input {
	char *file;
	char *program;
	bool lost;
	uint32_t sampled; /* one launch in so many was timed; 0: all */
};

/* The work of both sides: of different work no totals are judged. */
struct diff_work {
	bool same;
	/* By which of them both can be compared: */
	bool kernels;    /* those that both ran take most of the time */
	bool steps;      /* found in the same way, and as many or of as many launches each */
	bool requests;   /* both have some */
	bool input;      /* as many copies of as many bytes, which are not few */
	bool resized;    /* launches of the kernels that both ran have other sizes … */
	bool relaunched; /* … or come in other numbers for as much input */
	bool periods;    /* steps end in another pace than their lengths say, see settle_steps()
			  */
	struct diff_change period; /* from the end of a step to the next; p NAN: not known */
};

/* One of what is compared in the end. */
enum diff_one { ONE_NONE, ONE_CALL, ONE_LAUNCH, ONE_STEP, ONE_REQUEST, ONE_RUN };
const char *diff_one_word(enum diff_one one); /* "launch"; NULL for ONE_NONE */

/* Why nothing is judged. */
enum diff_doubt {
	DOUBT_FEW,     /* nothing that both did came often enough */
	DOUBT_SIZE,    /* launches have other sizes … */
	DOUBT_INPUT,   /* … or come in other numbers for as much input */
	DOUBT_OVERLAP, /* kernels run beside each other more, or less */
	DOUBT_STEPS,   /* one step takes longer, but steps end more often */
};

#define DIFF_SAME 0.01 /* of the larger: work that differs less is the same */

#define DIFF_SENTENCES 3

/* The first sentence: whether one launch, step, request … takes longer. */
struct diff_conclusion {
	enum diff_one one;
	const struct diff_row *row; /* if it is one; else the mean over `rows` of them */
	size_t rows;
	bool by_device;
	double side[DIFF_SIDES]; /* ns of one */
	double n[DIFF_SIDES];    /* so many are behind it; of several runs these */
	struct diff_change change;
	enum diff_doubt doubt;      /* if it is none */
	const struct diff_sum *all; /* of what both did: the GPU span, or … */
	bool spans;                 /* … the wall time */
	enum diff_verdict
		whole; /* the same work as a whole went this other way, to be said first */
	char *sentence[DIFF_SENTENCES];
};

/* An interval that reaches further tells nothing. */
#define DIFF_WIDE_PCT 100

static inline bool diff_is_wide(const struct diff_change *c)
{
	return c->verdict == VERDICT_SAME &&
	       (c->below_pct > DIFF_WIDE_PCT || c->above_pct > DIFF_WIDE_PCT);
}

struct judgement;
struct number;
struct diff {
	double threshold_pct;
	ARRAY(struct diff_input) inputs[DIFF_SIDES];
	ARRAY(double) totals[DIFF_SIDES]; /* DIFF_SUMS a run */
	ARRAY(struct diff_row) rows[DIFF_TABLES];
	struct map names[DIFF_TABLES];
	bool has_device[DIFF_SIDES]; /* each run of the side says what ran on devices */
	bool sampled[DIFF_SIDES];    /* of a run of the side only samples were timed */
	bool analysed[DIFF_SIDES];   /* each run of the side says why devices were idle */
	bool has_memory[DIFF_SIDES]; /* … how many bytes were allocated */
	bool window[DIFF_SIDES];     /* a run of the side is a flight recording */
	bool lost[DIFF_SIDES];       /* part of the calls of a run: totals say nothing */
	bool part;                   /* of a run was read */
	bool off[DIFF_SIDES];        /* no run of the side recorded anything: the level was off */
	bool by_device; /* kernels: times are the device's; operators: unless sampled */
	bool apart;     /* kernels of some runs are samples, of others not: no verdict on them */
	ARRAY(char *) notes; /* sentences that the reader needs before any number */
	struct diff_sum sums[DIFF_SUMS];
	struct diff_work work;
	struct diff_conclusion conclusion;
	ARRAY(struct judgement) judged; /* fail_condition.h; the caller adds them */
};

/* Whether totals are of all that the programs did. */
static inline bool diff_has_totals(const struct diff *d)
{
	return !d->window[DIFF_A] && !d->window[DIFF_B] && !d->lost[DIFF_A] && !d->lost[DIFF_B];
}

/* threshold_pct: changes that are smaller are none. */
void diff_new(struct diff **ret_d, double threshold_pct);
void diff_free(struct diff *d);

/* 0 or -errno. */
int diff_add(struct diff *d, enum diff_side_id side, const char *file, const struct report *r);

/* Makes verdicts and sorts rows by how much their total changed. */
void diff_finish(struct diff *d);

/* How many of these a side has; NAN: not known. */
double diff_count(const struct diff *d, enum diff_one one, enum diff_side_id side);

/* The outermost of request, step and launch by which totals of different work can be compared. */
enum diff_one diff_common(const struct diff *d);

/* Whether the program or its framework marks the steps of the row. */
static inline bool diff_has_marked_steps(const struct diff_row *row)
{
	return strcmp(row->kind, DIFF_BY_WAITS) != 0 && strcmp(row->kind, DIFF_BY_PERIODS) != 0 &&
	       strcmp(row->kind, DIFF_BY_RANGES) != 0;
}

/* Whether launches of the kernel have other sizes in B: one of them is other work. */
static inline bool diff_is_resized(const struct diff_row *row)
{
	const double a = row->value[DIFF_A].threads, b = row->value[DIFF_B].threads;
	return a > 0 && b > 0 && fabs(a - b) > DIFF_SAME * fmax(a, b);
}

/* Whether nothing of a side is known to have run. */
bool diff_is_empty(const struct diff *d, enum diff_side_id side);

bool diff_copied_same(const struct diff *d);

/* For diff_finish(): what the runs lack and what that means; whether both did the same work; what
 * is said first. */
void diff_make_notes(struct diff *d);
void diff_compare_work(struct diff *d);
void diff_conclude(struct diff *d);
void diff_say(struct diff *d);

/* B's number against A's, by the threshold. */
struct diff_change diff_change_of(const struct diff *d, const struct stat_medians *m);

/* rows: at most so many a table, 0 for all. */
void diff_print_text(const struct diff *d, FILE *out, unsigned rows, bool colour);

/* Text, JSON and their reference come from these sections: rows are a struct diff, struct diff_sum
 * and struct diff_row. */
extern const struct section section_diff, section_diff_totals, section_diff_parts;
extern const struct section *const section_diff_rows[DIFF_TABLES];
const char *diff_number(struct number *n, enum unit unit, double value); /* NAN: "-" */
void diff_print_json(const struct diff *d, FILE *out);
