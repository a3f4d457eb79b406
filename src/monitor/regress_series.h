/* Internal to regress.c: one series, and the form in which series are kept.  Pure. */
#pragma once

#include "monitor/regress.h"

/* The median of the window that has ended, as a logarithm; `level`: what the test must be below.
 * Whether there was a test. */
bool series_push(struct regress_series *s, float median, double level);

/* The current values are as they should be. */
void series_accept(struct regress_series *s);

/* saved_check() first: what it passes, saved_get() makes a sound series of. */
int saved_put(const struct regress_series *v, size_t n, void **ret_data, size_t *ret_bytes);
int saved_check(const void *data, size_t bytes, uint32_t *ret_count, struct error *err);
void saved_get(const void *data, uint32_t i, struct regress_series *ret);
