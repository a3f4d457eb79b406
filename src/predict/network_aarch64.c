/* Asking the network with NEON, which each arm64 has. */
#ifdef __aarch64__

#include <arm_neon.h>

#include "predict/network.h"

/* One layer: `quarters` vectors of 4 units.  Even and odd inputs are summed apart, so that a
 * multiplication does not wait for the one before. */
static inline __attribute__((always_inline)) void layer(
	const float *weights, const float *bias, const float *in, int ins, float *out, int quarters)
{
	for (int q = 0; q < quarters; q++) {
		float32x4_t even = vld1q_f32(bias + 4 * q), odd = vdupq_n_f32(0);
		for (int i = 0; i < ins; i += 2) {
			const float *w = weights + 4 * (i * quarters + q);
			even = vfmaq_n_f32(even, vld1q_f32(w), in[i]);
			odd = vfmaq_n_f32(odd, vld1q_f32(w + 4 * quarters), in[i + 1]);
		}
		vst1q_f32(out + 4 * q, vaddq_f32(even, odd));
	}
}

static void rectify(float *units, int count)
{
	for (int i = 0; i < count; i += 4)
		vst1q_f32(units + i, vmaxnmq_f32(vld1q_f32(units + i), vdupq_n_f32(0)));
}

void network_ask(
	const struct network *n, const float *inputs, float ret_outputs[static NETWORK_OUTPUTS])
{
	float in[NETWORK_INPUTS], first[NETWORK_FIRST], second[NETWORK_SECOND];
	for (int i = 0; i < NETWORK_INPUTS; i++)
		in[i] = (inputs[i] - n->mean[i]) * n->scale[i];
	layer(n->weight1[0], n->bias1, in, NETWORK_INPUTS, first, NETWORK_FIRST / 4);
	rectify(first, NETWORK_FIRST);
	layer(n->weight2[0], n->bias2, first, NETWORK_FIRST, second, NETWORK_SECOND / 4);
	rectify(second, NETWORK_SECOND);
	layer(n->weight3[0], n->bias3, second, NETWORK_SECOND, ret_outputs, NETWORK_OUTPUTS / 4);
}

#endif
