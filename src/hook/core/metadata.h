/*
 * Metadata records stand beside those of calls: names of kernels, contents of graphs, devices, and
 * sentences for the reader. Any thread may write them inside a call of the program. A record that
 * does not fit is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

/* A record of so many words and bytes to be filled and committed, or NULL. */
struct record *meta_begin(enum meta_id id, uint32_t args, uint32_t bytes);

/* A record of `count` words and a text. */
void meta_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes);

/* Whether a text may be written that will not be asked for again; false is counted. */
bool meta_has_room(void);

/* A sentence for whoever reads the trace. */
void meta_message(const char *text);

/* Writes which program this process is. */
void meta_process(void);

/*
 * Ranges that the injected library leaves of itself: while recording is on, while CUPTI calibrates.
 * Any thread begins one, and any thread ends it.
 */
/* kind: enum range_kind.  0: there is no room, which is counted. */
uint64_t own_range_begin(uint16_t kind, const char *name);

/* Nothing for 0. */
void own_range_end(uint64_t id);
