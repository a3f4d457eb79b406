/*
 * Detects lasting slowdowns in many series of durations: kernels by program, name and shape, and
 * requests by class. Pure: times come with the values, nothing is read or written, and
 * REGRESS_SERIES bounds the memory.
 *
 * A window of REGRESS_WINDOW_NS keeps the logarithm of the median of a random sample. The newest
 * CURRENT windows are compared with the BASE windows before them (one in REGRESS_STEP is kept,
 * about an hour's worth):
 *
 *	      base, one window in three           current, each window
 *	|  .  .  .  .  .  .  .  .  .  .  .  .  | . . . . . . . . . . . . |
 *	an hour ago                            four minutes ago        now
 *
 * The series changed if all of this holds:
 *
 * - The rank-sum test agrees, at a level that all series and looks of a day share (REGRESS_ALPHA).
 * Its unit is the window, because values of one burst are alike.
 *
 * - The medians differ by at least REGRESS_EFFECT, after the base's own trend.
 *
 * - The lower REGRESS_LOW quantiles differ too, since bursts leave windows between them unchanged.
 *
 * - The difference is three times the usual movement (`swing`, over six hours) and REGRESS_SCATTERS
 * times the scatter of windows.
 *
 * From then on nothing enters the base, until the series is back or somebody accepts the new
 * normal. Slower rises show against the anchor, the mean of the first day's windows, with which
 * each day's mean is compared. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define REGRESS_SERIES    10000u
#define REGRESS_WINDOW_NS 10000000000ull
#define REGRESS_SAMPLES   31u
#define REGRESS_CURRENT   24u
#define REGRESS_BASE      128u
#define REGRESS_LEAST     48u /* of the base, before anything is said */
#define REGRESS_STEP      3u
#define REGRESS_ALPHA     0.01
#define REGRESS_EFFECT    0.03 /* of the logarithm: 3 % */
#define REGRESS_LOW       0.1
#define REGRESS_CREEP     0.10 /* of a day's mean against the first day's */
#define REGRESS_DAY       (86400000000000ull / REGRESS_WINDOW_NS)
#define REGRESS_SWINGS    3.0
#define REGRESS_SCATTERS  2.5
#define REGRESS_SWING     0.012 /* until it is known: less than 3.6 % says nothing at first */
#define REGRESS_SILENT_NS 900000000000ull  /* without a value: nothing fires any more */
#define REGRESS_IDLE_NS   3600000000000ull /* its place may go to another series */

enum regress_kind { REGRESS_KERNEL = 1, REGRESS_REQUEST };
enum regress_state { REGRESS_LEARNS, REGRESS_STEADY, REGRESS_SLOWER };

/* The subject of a series.  Names that do not fit are cut; the hashes are of the whole. */
struct regress_what {
	uint64_t program_hash, name_hash;
	uint32_t kind; /* enum regress_kind */
	uint32_t grid[3], block[3], shared;
	uint8_t uuid[16]; /* of the GPU; zeros: not known */
	char program[40];
	char name[120]; /* of the kernel; of the class of requests */
};

struct regress_series {
	/* What a file keeps, without holes. */
	struct regress_what what;
	double day_sum;  /* of the windows of the day at hand */
	double p, level; /* of the test; what it had to be below */
	uint32_t day_n;  /* windows of that day */
	/* The base, were it to go on as it does: median and lower quantile; they change with it.
	 */
	float expected, expected_low;
	float anchor, swing;
	/* Evidence of an alarm, at the time when it was raised; effect: since. */
	float before, after;      /* logarithms of ns */
	float effect;             /* of what is current, against what was before */
	float base[REGRESS_BASE]; /* a ring, base_at is the oldest */
	uint16_t base_n, base_at;
	uint8_t state; /* enum regress_state */
	uint8_t crept; /* the last day's mean is far above the anchor */
	/* What it does not. */
	uint16_t current_n, skipped;
	uint16_t unbroken; /* windows since there was none for long */
	uint64_t key;
	uint64_t last_ns;   /* of the newest value */
	uint64_t window_ns; /* when the window at hand began */
	uint64_t raised_ns;
	uint32_t pid;                   /* of whoever had the newest value */
	uint32_t taken;                 /* values of the window at hand */
	bool told;                      /* regress_news() has said that there is an alarm */
	float current[REGRESS_CURRENT]; /* oldest first */
	float sample[REGRESS_SAMPLES];
};

struct regress_counts {
	uint64_t values, tests, raised, ended, left_out;
};

struct regress;

/* most: of series, at most REGRESS_SERIES; window_ns: REGRESS_WINDOW_NS, or
 * less where it is known to be quiet: what is said above of times goes with it. */
struct regress *regress_new(uint32_t most, uint64_t window_ns, uint64_t seed);
void regress_free(struct regress *r);

uint64_t regress_text_hash(const char *text, size_t bytes);
uint64_t regress_key(const struct regress_what *w); /* of hashes and numbers, not of the names */

/* A duration that ended at at_ns.  False: the series is not known; regress_begin() and again. */
bool regress_add(
	struct regress *r, uint64_t key, uint32_t pid, uint64_t at_ns, uint64_t duration_ns);

/* False: there is no place; counted in left_out. */
bool regress_begin(struct regress *r, const struct regress_what *w, uint64_t now_ns);

/* Takes the present values as they should be.  0, or -ESRCH: no such series, or it has no alarm. */
int regress_accept(struct regress *r, uint64_t key);

static inline bool regress_alarmed(const struct regress_series *s)
{
	return s->state == REGRESS_SLOWER || s->crept;
}

/* Whether there is an alarm of a series that still runs. */
bool regress_fires(const struct regress_series *s, uint64_t now_ns);

uint32_t regress_count(const struct regress *r);
const struct regress_series *regress_at(const struct regress *r, uint32_t i);
struct regress_counts regress_counts(const struct regress *r);

/* The slowest first, of those that fire; at most `most` into ret.  How many fire in all. */
uint32_t regress_firing(const struct regress *r, uint64_t now_ns, uint32_t most,
	const struct regress_series *ret[]);

/* An alarm that was raised since it was asked last; NULL: no more. */
const struct regress_series *regress_news(struct regress *r);

/*
 * The learnt state, as bytes to be kept in a file, and back.  *ret_bytes is to be freed.
 * regress_load() adds to what is there, up to its room, and believes nothing: -EINVAL with a
 * sentence, then nothing was added.
 */
int regress_save(const struct regress *r, void **ret_data, size_t *ret_bytes);
int regress_load(
	struct regress *r, const void *data, size_t bytes, uint64_t now_ns, struct error *err);
