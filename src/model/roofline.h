/*
 * Finds what bounds each kernel and operator, and how near it is to the device's limit. Internal to
 * src/model.
 *
 * With FLOPs and bytes (cost.h) the larger share of the two ceilings means compute or memory, and
 * two small shares mean latency. Otherwise times and shapes show launch and latency, and the name
 * shows what is usual for the family. Each result states its basis.
 */
#pragma once

#include "base/json.h"
#include "base/table.h"
#include "model/report.h"

/* Finds the device whose ceilings count, r->gpu, once devices are known and how busy they were. */
void roofline_gpu(struct report *r);

/* Adds what took ns on a device.  gpu NULL: without shares of its ceilings. */
struct cost;
void roofline_add(const struct gpu *gpu, struct roofline *to, const struct cost *c, uint64_t ns);

/* After the rows are made. */
void roofline_fill(struct report *r);

/* "memory 82 %": the class, and its share of the ceiling where that is known.  False: no class is.
 */
bool roofline_text(const struct roofline *l, char *to, size_t size);
bool roofline_is_over(const struct roofline *l);
void roofline_put_over(FILE *out);

/* A line: the FLOPs of all kernels, and what that is a second of their time. */
void roofline_put_sum(FILE *out, const struct report *r);

/* A line, if there are such: calls of operators whose FLOPs are known of other calls alone. */
void roofline_put_unknown(FILE *out, const struct report *r);

/* The share of the maker's peak, while flops_share is of what was measured; 0: not known. */
double roofline_peak_share(const struct gpu *g, const struct roofline *l);
