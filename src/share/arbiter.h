/*
 * The arbiter reads what programs publish, asks the policy and writes grants. It is the process
 * that holds the directory's lock, and when that ends, the next one that tries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/policy.h"
#include "share/segment.h"

struct arbiter;

/* NULL without memory. */
struct arbiter *arbiter_new(struct share_file *f, const char *directory);

/*
 * Decides for every device when it is time to, if this process is the arbiter or can become it.
 * Returns when it wants to be called again: milliseconds from now, at least 1.
 */
int arbiter_step(struct arbiter *a);

/* Removes the file of another version of Weir, if nobody decides there: whoever still has it mapped
 * goes on by itself. */
bool arbiter_renew(const char *directory);

/* Another may take over. */
void arbiter_free(struct arbiter *a);
