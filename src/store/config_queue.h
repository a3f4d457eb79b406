/*
 * A model's completed configuration in the batcher's terms: its queue, and how each of its requests
 * waits there. The server and the simulation of one both ask here. Pure.
 */
#pragma once

#include "batch/batch.h"
#include "store/model_config.h"

/* default_delay_ns: of a configuration that says no max_queue_delay_microseconds. */
struct batch_model_config config_queue(const struct model_config *c, uint64_t default_delay_ns);

/* How a request waits. */
struct config_wait {
	uint32_t class;
	uint64_t timeout_ns; /* how long at most; BATCH_NEVER: any time */
};
/* The priority that the request names; 0: it names none. */
struct config_wait config_wait(const struct model_config *c, uint64_t priority);
