/*
 * Rules that look at a report and say what a recorded program could gain. A hint has a place,
 * evidence, a gain, a confidence and advice.
 *
 * Each rule is a row of api/hint.tbl and a function in one of the hint_*.c. A gain is an estimate,
 * the share of the analysed time (struct hints) that would be saved. Rules first look for evidence
 * against themselves. They are silent if the trace lacks what they need.
 */
#pragma once

#include "base/json.h"
#include "model/report.h"

struct hint {
	const struct hint_rule *rule;
	char *where;       /* what it is about: a kernel, copies, a thread */
	char *evidence;    /* the numbers */
	double gain;       /* 0 to 1 of the analysed time; NAN: memory, not time */
	double confidence; /* 0 to 1 */
};

/* Why nothing ran. */
enum gap_cause {
	GAP_SYNC,    /* the host had waited for the device, and had to begin anew */
	GAP_COPY,    /* it was copying memory that is not pinned to where it can be read */
	GAP_ALLOC,   /* it was allocating or freeing */
	GAP_LOAD,    /* it was loading code */
	GAP_LAUNCH,  /* it was launching, and not fast enough */
	GAP_HOST,    /* it was in no call, for HOST_GAP_NS or longer */
	GAP_BETWEEN, /* the next kernel had been launched, by a launch of its own */
	GAP_DEVICE,  /* other activities had been asked for */
	GAP_UNKNOWN,
	GAP_CAUSES
};
extern const char *const gap_cause_name[GAP_CAUSES];

/* Its name in the report's breakdown, and a rule's further knowledge; "" for none. */
struct gap_cause_words {
	enum wall_part part;
	const char *besides;
	const char *own; /* in place of both, where it is of several parts */
};
extern const struct gap_cause_words gap_cause_words[GAP_CAUSES];

struct hint_gaps {
	uint64_t count;
	uint64_t ns;
};

/* The analysed window: until its last activity ended, from the end of the activity before its
 * first, as far as there is one; of whole steps (steps.h) where the recording has two or more. */
struct hint_window {
	uint64_t from_ns, ns;        /* CLOCK_MONOTONIC */
	uint64_t first, last, steps; /* numbers of steps, and how many; steps 0: they are none */
	bool alike;                  /* one of them may stand for all */
	const char *kernel;          /* without steps: from its first launch to its last; or NULL */
};

/* The activities outside the window, at one end. */
struct hint_outside {
	uint64_t ns;
	uint64_t kernels, kernels_ns;
};

struct hints {
	ARRAY(struct hint) v; /* by gain, those without one last */
	uint64_t wall_ns;
	struct hint_window window;
	uint64_t counted_ns; /* of the window, without loading code, and … */
	uint64_t once_ns;    /* … without these: idle gaps that are no part of a loop */
	double together;     /* what all gains are at most, one after another; as a gain */
	struct hint_outside before, after;
	uint64_t launches; /* of kernels and graphs */
	uint32_t sampled;  /* one launch in so many was timed, which tells most rules nothing */
	struct hint_gaps idle_gaps[GAP_CAUSES]; /* of those that count */
	bool compiled;                          /* torch.compile has made kernels of it */
	bool cut;  /* the trace is so long that only its beginning was looked at */
	bool part; /* of a recording: wall_ns is of that */
};

struct hint_facts;
struct hint_rule {
	const char *id;
	const char *title;
	const char *when; /* the rule, in words */
	const char *advice;
	const char *compiled; /* the same in a program that torch.compile has made; NULL: as well */
	void (*evaluate)(
		const struct hint_facts *f, const struct hint_rule *rule, struct hints *to);
};
extern const struct hint_rule hint_rules[];
extern const size_t hint_rule_count;

/* 0 or -errno.  Reads the trace's GPU activities and calls once more. */
int hints_make(const struct report *r, struct hints **ret_hints);
void hints_free(struct hints *h);

/* The advice for this program. */
const char *hint_advice(const struct hints *h, const struct hint_rule *rule);

/* A hint's saving in the whole window; and a step's length, 0: none stands for all. */
double hint_gain_ns(const struct hints *h, double gain);
double hint_step_ns(const struct hints *h);

/* rows: at most so many, 0 for all.  short_: as the end of a report, with a pointer to the rest. */
void hints_print_text(const struct hints *h, FILE *out, unsigned rows, bool short_, bool colour);

/* A hint in a line, the word for its confidence, and what part of the recording is analysed. */
void hint_put_sentence(const struct hints *all, const struct hint *h, FILE *out);
const char *hint_confidence_word(double confidence);
void hint_put_window(const struct hints *h, FILE *out);
