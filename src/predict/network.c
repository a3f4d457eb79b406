/* Asking the network: see network.h. */
#include "predict/network.h"

#include <stdbool.h>

#include "predict/approx.h"

static void layer(const float *weights, const float *bias, const float *in, int ins, float *out,
	int outs, bool rectify)
{
	for (int o = 0; o < outs; o++) {
		float sum = bias[o];
		for (int i = 0; i < ins; i++)
			sum += in[i] * weights[i * outs + o];
		out[o] = rectify && !(sum > 0) ? 0 : sum;
	}
}

void network_ask_plain(
	const struct network *n, const float *inputs, float ret_outputs[static NETWORK_OUTPUTS])
{
	float in[NETWORK_INPUTS], first[NETWORK_FIRST], second[NETWORK_SECOND];
	for (int i = 0; i < NETWORK_INPUTS; i++)
		in[i] = (inputs[i] - n->mean[i]) * n->scale[i];
	layer(n->weight1[0], n->bias1, in, NETWORK_INPUTS, first, NETWORK_FIRST, true);
	layer(n->weight2[0], n->bias2, first, NETWORK_FIRST, second, NETWORK_SECOND, true);
	layer(n->weight3[0], n->bias3, second, NETWORK_SECOND, ret_outputs, NETWORK_OUTPUTS, false);
}

const char *network_check(const void *block, size_t bytes)
{
	if (bytes < sizeof(struct network))
		return "the network is cut short";
	const float *numbers = block;
	for (size_t i = 0; i < sizeof(struct network) / sizeof(float); i++)
		if (!is_finite(numbers[i]))
			return "a number in the network is not finite";
	return NULL;
}
