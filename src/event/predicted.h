/*
 * Packs a predicted time into one word of a record: t50, the predictor, and t90. t50 is a float.
 * t90 has the upper 24 bits of a float without its sign.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "event/format.h"

/* Room of the tables, the same in the hook and in files. */
#define PREDICTED_LAUNCHES (1u << 15)
#define PREDICTED_KERNELS  (1u << 10)

struct predicted_time {
	float t50_ns, t90_ns;
	uint8_t tier; /* enum predict_tier; 0: no answer */
	bool class_only;
};

static inline uint64_t predicted_word(const struct predicted_time *f)
{
	uint32_t t50, t90;
	memcpy(&t50, &f->t50_ns, sizeof t50);
	memcpy(&t90, &f->t90_ns, sizeof t90);
	return t50 | (uint64_t)(t90 >> 7 & 0xffffff) << 32 | (uint64_t)(f->tier & 0x7f) << 56 |
	       (uint64_t)f->class_only << 63;
}

static inline struct predicted_time predicted_of_word(uint64_t word)
{
	struct predicted_time f = { .tier = word >> 56 & 0x7f, .class_only = word >> 63 };
	const uint32_t t50 = (uint32_t)word, t90 = (uint32_t)(word >> 32 & 0xffffff) << 7;
	memcpy(&f.t50_ns, &t50, sizeof t50);
	memcpy(&f.t90_ns, &t90, sizeof t90);
	return f;
}

/* The last word of a record that has it behind `words` others; false when it has none, or no
 * answer. */
static inline bool predicted_get_behind(
	const struct record *r, uint32_t words, struct predicted_time *ret_f)
{
	if (!(r->flags & RECORD_PREDICTED) || r->words <= RECORD_WORDS + words)
		return false;
	*ret_f = predicted_of_word(r->arg[r->words - RECORD_WORDS - 1]);
	return ret_f->tier != 0;
}

static inline bool predicted_get(const struct record *r, struct predicted_time *ret_f)
{
	return predicted_get_behind(r, LAUNCH_WORDS, ret_f);
}
