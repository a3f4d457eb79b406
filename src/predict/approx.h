/*
 * log2 and exp2 to seven digits without libm: the hook links none, and launches should not wait
 * for it.  The same on every machine, so that a model sees in use what it saw in training.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool is_finite(float x)
{
	return x - x == 0;
}

/* x > 0 and normal.  The mantissa is brought to [1/sqrt(2), sqrt(2)], where the series of
 * log((1+z)/(1-z)) is short. */
static inline float approx_log2(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	const int32_t exponent = (int32_t)(bits - 0x3f3504f3u) >> 23;
	bits -= (uint32_t)exponent << 23;
	float m;
	memcpy(&m, &bits, sizeof m);
	const float z = (m - 1) / (m + 1), zz = z * z;
	const float series = 0.41219858f * zz + 0.57707802f;
	return (float)exponent + z * (2.8853901f + zz * (0.96179669f + zz * series));
}

/* -126 < x < 128; beyond, the nearest that a float can say; 0 of what is no number. */
static inline float approx_exp2(float x)
{
	x = x > -126 ? x : -126;
	x = x > 127.9f ? 127.9f : x;
	const int32_t whole = (int32_t)(x + (x < 0 ? -0.5f : 0.5f));
	const float f = x - (float)whole;
	float p = 1.5403530e-4f;
	p = p * f + 1.3333558e-3f;
	p = p * f + 9.6181291e-3f;
	p = p * f + 5.5504109e-2f;
	p = p * f + 2.4022651e-1f;
	p = p * f + 6.9314718e-1f;
	p = p * f + 1;
	const uint32_t bits = (uint32_t)(whole > 127 ? 254 : whole + 127) << 23;
	float scale;
	memcpy(&scale, &bits, sizeof scale);
	return whole > 127 ? p * scale * 2 : p * scale;
}
