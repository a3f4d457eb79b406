/*
 * A network with 8 inputs, layers of 16 and 8 rectified units, and 4 outputs: quantiles of
 * log2(time / bound). It needs 288 multiplications and 1.4 KiB, little enough for a launch.
 *
 * Memory and model files both hold a struct network. AVX2 and FMA answer in a fifth of the time.
 * arm64 has NEON. Answers differ by rounding alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "predict/feature.h"

#define NETWORK_FIRST  16
#define NETWORK_SECOND 8

enum network_output { NETWORK_P10, NETWORK_P50, NETWORK_P90, NETWORK_P99, NETWORK_OUTPUTS };

/* Inputs are taken as (x - mean) * scale; weights are stored input by input, so that one input
 * meets all units at once. */
struct network {
	float mean[NETWORK_INPUTS], scale[NETWORK_INPUTS];
	float weight1[NETWORK_INPUTS][NETWORK_FIRST], bias1[NETWORK_FIRST];
	float weight2[NETWORK_FIRST][NETWORK_SECOND], bias2[NETWORK_SECOND];
	float weight3[NETWORK_SECOND][NETWORK_OUTPUTS], bias3[NETWORK_OUTPUTS];
};

void network_ask(
	const struct network *n, const float *inputs, float ret_outputs[static NETWORK_OUTPUTS]);

/* The same without vector instructions. */
void network_ask_plain(
	const struct network *n, const float *inputs, float ret_outputs[static NETWORK_OUTPUTS]);

/* The fault of a block, or NULL. */
const char *network_check(const void *block, size_t bytes);
