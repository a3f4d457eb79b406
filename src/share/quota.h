/*
 * Quotas of device memory in the shared file. A group is a program and its children, with a quota
 * on each device. A group's memory is the sum over its slots, so a killed program's part goes with
 * it, without a lock or common counter.
 *
 * A group may be within another (weir run inside weir run), and then both quotas hold. Contexts
 * take memory that nobody can ask for. Weir divides the missing memory of a device by the known
 * contexts, and the least value ever measured counts. If programs outside the file hide it, 512 MiB
 * count, about that of an H200. Host safe. Sizes are in bytes.
 */
#pragma once

#include <stdatomic.h>

#include "share/segment.h"

enum quota_answer {
	QUOTA_GRANTED,
	QUOTA_TIGHT, /* granted, and what pools keep idle is to be given back: with it, it is too
			much */
	QUOTA_REFUSED,
};

/* The memory of a group on the device of one of its slots; within another, the one with less left.
 */
struct quota_sum {
	uint64_t quota, used, asked, idle;
	uint64_t contexts; /* bytes */
};
struct quota_sum quota_sum(const struct share_file *f, uint32_t slot);

/* The quota's rest, without requests that are under way. */
uint64_t quota_left(const struct quota_sum *s);

/* Asks for so many bytes, which the slot then uses.  If the process dies meanwhile, the next look
 * buries it. */
enum quota_answer quota_take(struct share_file *f, uint32_t slot, uint64_t bytes);
void quota_give(struct share_slot *s, uint64_t bytes);

/* The same for who can do with less: a refusal is not counted, and nobody is buried. */
bool quota_try(struct share_file *f, uint32_t slot, uint64_t bytes);

/* The driver says that so many bytes of the device are free: what a context takes is learnt, if
 * quota_known() says the same as `before` it was asked. */
#define QUOTA_UNKNOWN UINT64_MAX
uint64_t quota_known(const struct share_file *f, uint32_t device);
void quota_measure(
	struct share_file *f, uint32_t device, uint64_t before, uint64_t free, uint64_t total);

/* Around a call that changes what is used. */
static inline void quota_changes(struct share_slot *s, bool begins)
{
	atomic_fetch_add_explicit(
		&s->memory.changing, begins ? 1 : UINT32_MAX, memory_order_seq_cst);
}

/* Says that this slot waits for so many bytes, until then; and what others on its device wait for.
 */
void quota_want(struct share_file *f, uint32_t slot, uint64_t bytes, uint64_t until_ns);
uint64_t quota_wanted(const struct share_file *f, uint32_t slot, uint64_t now_ns);
