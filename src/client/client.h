/* The code that functions of include/weir/sched.h share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/handle.h"
#include "client/injected.h"

/* A program's structure of `size` bytes into `to`: what it lacks is 0.  False: it is older than the
 * first version, or says something in members that this library does not know. */
bool sized_read(void *to, size_t known, const void *from);

/* The other way; its size stays. */
bool sized_is_known(const void *structure, size_t known);
void sized_write(void *to, const void *from, size_t known);

/* The slots of this process in the handle's directory: WEIR_OK with at least one, or why not. */
struct own_slots {
	const struct injected *injected;
	struct share_file *file;
	uint32_t count;
	uint32_t slot[SHARE_DEVICES];
};
int own_slots_find(struct handle *h, struct own_slots *ret);

/* Whether a slot's process lives. */
bool slot_is_live(const struct share_file *f, uint32_t i);
