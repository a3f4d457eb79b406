/* The header of a recording that is being written, mapped: for who switches it (record/control.h).
 */
#pragma once

#include <stdbool.h>

#include "event/format.h"

/*
 * TRACE_GRAIN bytes, to be unmapped by live_header_close().  0, or -EINVAL: it is no trace,
 * -ESTALE: it is finished, or what opening it failed with.  A symbolic link is followed only when
 * `links`.
 */
int live_header_open(const char *path, bool links, struct trace_header **ret_h);
void live_header_close(struct trace_header *h);
