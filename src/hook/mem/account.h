/* The process's share of its quota, and the bytes that one call requests from it. */
#pragma once

#include "hook/mem/owned.h"
#include "hook/sched/member.h"

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

/* A call on its way to the driver with what it will take. */
struct claim {
	struct member *member; /* NULL: it is not counted */
	uint64_t bytes;
	uint64_t context;  /* 0: what is allocated does not end with it */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
};

/* On the current context's device, or on that one.  False: the quota has no room, and nothing was
 * taken. */
bool claim_begin(struct claim *c, uint64_t bytes);
bool claim_begin_on(struct claim *c, int device, uint64_t bytes);

/* The driver has answered: on success it is remembered by what it will be freed by.  The answer. */
int claim_end(struct claim *c, int result, enum owned_kind kind, uint64_t key);

/* The same for what is remembered otherwise: whether it counts. */
void claim_settle(const struct claim *c, bool counts);

/* Before something is freed, and behind it: what the driver has refused to free is still there. */
bool give_begin(struct owned *ret, enum owned_kind kind, uint64_t key);
int give_end(const struct owned *o, bool known, int result);

/* The device of an index of this process. */
void account_give(uint16_t device, enum owned_kind kind, uint64_t bytes);

/* The current context; 0: none. */
uint64_t account_context(void);

/* The current context takes memory of its own, which is counted from its first call here on. */
void context_seen(struct member *m);

/* In a forked child. */
void account_forget(void);

/* Around a call that changes what this process has, on whatever device. */
void account_changes(bool begins);

/* Counts as freed what ended with a context: all but the memory of pools and graphs, and what is
 * mapped. */
void context_ended(uint64_t context);

/* A size as the driver has it. */
uint64_t whole_blocks(uint64_t bytes);
