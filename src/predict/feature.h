/*
 * The features of a launch for learned models: numbers of similar size, mostly logarithms. The list
 * is the schema of a model file, and a model with another list is refused.
 */
#pragma once

#include "predict/predictor.h"

/* name, what it is. */
#define FEATURE_LIST(X)                                                                            \
	X(waves, "log2 of the waves")                                                              \
	X(tail, "waves / whole waves")                                                             \
	X(threads, "log2 of the threads of a block")                                               \
	X(occupancy, "share of the SM's warps")                                                    \
	X(bound, "log2 of the bound in ns")                                                        \
	X(known, "0: neither bytes nor FLOPs, 1: bytes, 2: FLOPs, 3: both")                        \
	X(scalar, "log2 of the largest scalar argument")                                           \
	X(effect, "log2 of the family's usual time / bound, in training")                          \
	X(blocks, "log2 of the blocks")                                                            \
	X(grid_x, "log2")                                                                          \
	X(grid_y, "log2")                                                                          \
	X(grid_z, "log2")                                                                          \
	X(block_x, "log2")                                                                         \
	X(regs, "registers of a thread / 256, -1: not known")                                      \
	X(smem, "log2 of the shared memory of a block")                                            \
	X(local, "log2 of the local memory of a thread: registers that were spilled")              \
	X(bytes, "log2, 0: not known")                                                             \
	X(flops, "log2, 0: not known")                                                             \
	X(scalar2, "log2 of the second largest scalar argument")                                   \
	X(scalar3, "log2 of the third largest scalar argument")                                    \
	X(scalars, "log2 of the product of all scalar arguments")                                  \
	X(family, "number of the family")                                                          \
	X(per_sm, "blocks of an SM")                                                               \
	X(grain, "log2 of the bytes of a thread, 0: not known")                                    \
	X(effort, "log2 of the FLOPs of a thread, 0: not known")                                   \
	X(piece, "log2 of the FLOPs of a block, 0: not known")                                     \
	X(portion, "log2 of the bytes of a block, 0: not known")                                   \
	X(intensity, "log2 of the FLOPs' bound / that of the bytes, 0: not known")                 \
	X(unit, "number of the unit that does the FLOPs")                                          \
	X(crowd, "log2 of the blocks of the fullest SM / the mean")                                \
	X(warps, "log2 of the warps that an SM has at a time")                                     \
	X(stage, "log2 of the shared memory of a thread")                                          \
	X(step, "effort - scalar: FLOPs of a thread for each of what it goes over")                \
	X(step2, "effort - scalar2")                                                               \
	X(step3, "effort - scalar3")                                                               \
	X(arg0, "log2 of the first scalar argument")                                               \
	X(arg1, "log2 of the second")                                                              \
	X(arg2, "log2 of the third")                                                               \
	X(arg3, "log2 of the fourth")                                                              \
	X(tile_m, "log2 of the first side of the tile in the name, 0: none")                       \
	X(tile_n, "log2 of the second")                                                            \
	X(tile, "log2 of its elements for a thread, 0: none")                                      \
	X(element, "bytes of an element by the words in the name, 0: they say nothing")

#define FEATURE_ENUM(name, what) FEATURE_##name,
enum feature { FEATURE_LIST(FEATURE_ENUM) FEATURES };
#undef FEATURE_ENUM

/* All of them, each finite; effect is the caller's to know. */
void feature_fill(
	const struct predict_question *q, float log_ratio, float ret_features[static FEATURES]);

const char *feature_name(enum feature f);
const char *feature_what(enum feature f);

/* A hash of names and meanings, for model files. */
uint64_t feature_schema(void);
