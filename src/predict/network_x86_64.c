/* Asking the network with AVX2 and FMA, where the processor has them. */
#ifdef __x86_64__

#include <immintrin.h>

#include "predict/network.h"

/* Two sums a layer, so that a multiplication does not wait for the one before. */
__attribute__((target("avx2,fma"))) static void ask_avx2(
	const struct network *n, const float *inputs, float *ret_outputs)
{
	float in[NETWORK_INPUTS], first[NETWORK_FIRST], second[NETWORK_SECOND];
	const __m256 zero = _mm256_setzero_ps();
	_mm256_storeu_ps(
		in, _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(inputs), _mm256_loadu_ps(n->mean)),
			    _mm256_loadu_ps(n->scale)));
	__m256 low = _mm256_loadu_ps(n->bias1), high = _mm256_loadu_ps(n->bias1 + 8);
	for (int i = 0; i < NETWORK_INPUTS; i++) {
		const __m256 x = _mm256_broadcast_ss(&in[i]);
		low = _mm256_fmadd_ps(x, _mm256_loadu_ps(n->weight1[i]), low);
		high = _mm256_fmadd_ps(x, _mm256_loadu_ps(n->weight1[i] + 8), high);
	}
	_mm256_storeu_ps(first, _mm256_max_ps(low, zero));
	_mm256_storeu_ps(first + 8, _mm256_max_ps(high, zero));
	__m256 even = _mm256_loadu_ps(n->bias2), odd = zero;
	for (int i = 0; i < NETWORK_FIRST; i += 2) {
		even = _mm256_fmadd_ps(
			_mm256_broadcast_ss(&first[i]), _mm256_loadu_ps(n->weight2[i]), even);
		odd = _mm256_fmadd_ps(_mm256_broadcast_ss(&first[i + 1]),
			_mm256_loadu_ps(n->weight2[i + 1]), odd);
	}
	_mm256_storeu_ps(second, _mm256_max_ps(_mm256_add_ps(even, odd), zero));
	__m128 a = _mm_loadu_ps(n->bias3), b = _mm_setzero_ps();
	for (int i = 0; i < NETWORK_SECOND; i += 2) {
		a = _mm_fmadd_ps(_mm_broadcast_ss(&second[i]), _mm_loadu_ps(n->weight3[i]), a);
		b = _mm_fmadd_ps(
			_mm_broadcast_ss(&second[i + 1]), _mm_loadu_ps(n->weight3[i + 1]), b);
	}
	_mm_storeu_ps(ret_outputs, _mm_add_ps(a, b));
}

void network_ask(
	const struct network *n, const float *inputs, float ret_outputs[static NETWORK_OUTPUTS])
{
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		ask_avx2(n, inputs, ret_outputs);
		return;
	}
	network_ask_plain(n, inputs, ret_outputs);
}

#endif
