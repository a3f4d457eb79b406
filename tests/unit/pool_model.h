/*
 * A pool and beside it the simplest account of what it should do: what each grain of 512 bytes is,
 * and which handle is behind each slot.  Whatever the pool answers is held against it; what is
 * wrong is said, and the program aborts.  For the unit test, the fuzz target and the long run.
 */
#pragma once

#include "base/array.h"
#include "pool/pool.h"

struct model_block {
	uint64_t address, bytes;
	uint32_t tag;
};

struct pool_model {
	struct pool *pool;
	uint8_t *grains;   /* MODEL_LIVE, 0 free for all, or the tag under which it was freed */
	uint64_t *handles; /* of the slots; 0: none */
	uint32_t *live, *unsettled; /* grains, by slot */
	uint32_t slots, slot_grains;
	uint64_t made, handles_left; /* handles, so far and still to be had */
	ARRAY(struct model_block) blocks;
};
#define MODEL_LIVE 255

struct pool_model *model_new(const struct pool_shape *shape, uint64_t handles);
void model_free(struct pool_model *m);

/* A caller's steps for a block: false where there was no room or no memory.  `look` compares with a
 * search of all grains. */
bool model_place(struct pool_model *m, uint64_t bytes, uint32_t tag, bool look);
void model_release(struct pool_model *m, size_t block, uint32_t tag);
void model_settle(struct pool_model *m, uint32_t tag);
bool model_give_back(struct pool_model *m);

/* Questions with known answers about an offset into the range, and frees that must change nothing.
 */
void model_ask(struct pool_model *m, uint64_t offset);

/* Whether the pool's own state is as it should be, each part held against the others: what is
 * wrong, or NULL. */
const char *pool_check(const struct pool *p);
/* All state, and then that nothing is left once all is given back. */
void model_check(const struct pool_model *m);
void model_end(struct pool_model *m);
