/*
 * Conditions on the fields of a row, such as `device_total_ns > 10us` or `name ~ gemm`. A condition
 * has a column, one of = != < <= > >= ~ !~, and a value.
 *
 * A value is a text, or a number that may have a unit of time (ns us ms s) or size (K M G, powers
 * of 1024). ~ means contains, or matches a pattern with a *. An unknown value (null) matches only
 * `= null`. A text in quotation marks is taken as it is. Without them a text that is empty or has
 * an operator at an end is an incomplete condition.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "section/section.h"

struct select_filter {
	char key[48];
	int op;       /* enum of select_filter.c */
	double value; /* NAN: a text */
	char *text;
};

struct select_filters {
	struct select_filter *v;
	size_t count;
};

/* 0, or -EINVAL with a sentence; select_filters_free() either way. */
int select_filters_parse(
	struct select_filters *f, const char *const *expressions, size_t count, struct error *err);

/* Whether a condition fits the column at all: a word is no value for numbers.  0, or -EINVAL with a
 * sentence.  Then whether a value of that column passes. */
int select_filter_check(const struct select_filter *f, const struct column *c, struct error *err);
bool select_filter_passes(const struct select_filter *f, const struct value *v);
void select_filters_free(struct select_filters *f);
