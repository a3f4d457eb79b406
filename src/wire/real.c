/*
 * Numbers of JSON, exactly: see real.h.
 *
 * Printing follows Schubfach (R. Giulietti, 2020): of the numbers that round to v, one has its last
 * digit at 10^k or at 10^(k+1), where 10^k is the largest power of ten not above the gap between v
 * and its neighbour. As -k is within 27 here, the interval's ends times 10^-k are exact integers
 * with a binary point, and no table of approximations is needed.
 */
#include "wire/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digit.h"

__extension__ typedef unsigned __int128 u128;

#define POWERS 28
static const uint64_t five_to[POWERS] = { 1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u,
	1953125u, 9765625u, 48828125u, 244140625u, 1220703125u, 6103515625u, 30517578125u,
	152587890625u, 762939453125u, 3814697265625u, 19073486328125u, 95367431640625u,
	476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u,
	298023223876953125u, 1490116119384765625u, 7450580596923828125u };

/* Digits from at on, in front of or behind the point. */
static const char *digits_read(const char *at, const char *end, struct decimal *d, int *count)
{
	uint64_t value = d->digits;
	for (; at < end && is_digit(*at); at++) {
		if (value >= 1000000000000000000u) {
			d->cut = true;
			continue;
		}
		value = value * 10 + (unsigned)(*at - '0');
		++*count;
	}
	d->digits = value;
	return at;
}

const char *decimal_read(const char *at, const char *end, struct decimal *ret)
{
	struct decimal d = { .from = at, .integer = true };
	int taken = 0;
	if (at < end && *at == '-') {
		d.negative = true;
		at++;
	}
	const char *from = at;
	at = digits_read(at, end, &d, &taken);
	if (at == from || (*from == '0' && at - from > 1))
		return NULL;
	long long exponent = at - from - taken;
	if (at < end && *at == '.') {
		d.integer = false;
		taken = 0;
		from = ++at;
		at = digits_read(at, end, &d, &taken);
		if (at == from)
			return NULL;
		exponent -= taken;
	}
	if (at < end && (*at | 32) == 'e') {
		d.integer = false;
		at++;
		const bool minus = at < end && *at == '-';
		at += at < end && (*at == '-' || *at == '+');
		long long e = 0;
		for (from = at; at < end && is_digit(*at); at++)
			e = e < 1000000 ? e * 10 + (*at - '0') : e;
		if (at == from)
			return NULL;
		exponent += minus ? -e : e;
	}
	d.exponent = exponent < -1000000 ? -1000000 : exponent > 1000000 ? 1000000 : (int)exponent;
	*ret = d;
	return at < end ? at : NULL;
}

/* q * 2^e rounded to the nearest with 64 - drop bits, ties to even; more: there was a remainder. */
static double assemble(uint64_t q, bool more, int e, int drop)
{
	const int zeros = __builtin_clzll(q);
	q <<= zeros;
	e -= zeros;
	const uint64_t rest = q << (64 - drop), half = 1ull << 63;
	uint64_t m = q >> drop;
	m += rest > half || (rest == half && (more || m & 1));
	const uint64_t bits = ((uint64_t)(e + 63 + 1022) << 52) + (m << (drop - 11));
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

double decimal_value(const struct decimal *d, bool single)
{
	const uint64_t w = d->digits;
	const int e = d->exponent, drop = single ? 40 : 11;
	double value;
	if (d->cut || e <= -POWERS || e >= POWERS) {
		/* Zero has no 0x, so nothing but the number is read. */
		value = !w && !d->cut ? 0
			: single      ? fabs((double)strtof(d->from, NULL))
				      : fabs(strtod(d->from, NULL));
	} else if (!w) {
		value = 0;
	} else if (e >= 0) {
		const u128 product = (u128)w * five_to[e];
		const uint64_t high = (uint64_t)(product >> 64);
		const int shift = high ? 64 - __builtin_clzll(high) : 0;
		const uint64_t q = (uint64_t)(product >> shift);
		value = assemble(q, (u128)q << shift != product, e + shift, drop);
	} else {
		const uint64_t five = five_to[-e];
		const int a = __builtin_clzll(w), b = __builtin_clzll(five);
		const u128 dividend = (u128)(w << a) << 63;
		const uint64_t divisor = five << b, q = (uint64_t)(dividend / divisor);
		value = assemble(q, (u128)q * divisor != dividend, b - a - 63 + e, drop);
	}
	if (single && value > (double)3.402823466e+38f)
		value = (double)INFINITY;
	return d->negative ? -value : value;
}

/* The C library's shortest: more digits until it reads back equal. */
static size_t put_by_trial(char *out, double v, bool single)
{
	int n = 0;
	for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
		n = snprintf(out, REAL_MOST, "%.*g", digits, v);
		if (single ? strtof(out, NULL) == (float)v : strtod(out, NULL) == v)
			break;
	}
	if (strcspn(out, ".e") == (size_t)n) {
		memcpy(out + n, ".0", 3);
		n += 2;
	}
	return (size_t)n;
}

/* digits * 10^-places, where places is at least 1 */
static size_t put_digits(char *out, uint64_t digits, int places)
{
	char text[24];
	int n = 0;
	while (places > 1 && digits % 10 == 0) {
		digits /= 10;
		places--;
	}
	do
		text[sizeof text - (size_t)++n] = (char)('0' + digits % 10);
	while (digits /= 10);
	const char *from = text + sizeof text - n;
	if (n > places) { /* 12.5 */
		const size_t whole = (size_t)(n - places);
		memcpy(out, from, whole);
		out[whole] = '.';
		memcpy(out + whole + 1, from + whole, (size_t)places);
		return (size_t)n + 1;
	}
	if (places - n < 5) { /* 0.00125 */
		memcpy(out, "0.0000", 6);
		memcpy(out + 2 + places - n, from, (size_t)n);
		return 2 + (size_t)places;
	}
	size_t at = 0; /* 1.25e-7 */
	out[at++] = *from;
	if (n > 1)
		out[at++] = '.';
	memcpy(out + at, from + 1, (size_t)n - 1);
	return at + (size_t)n - 1 + (size_t)snprintf(out + at + n - 1, 6, "e-%d", places - n + 1);
}

/* The shortest digits of m * 2^q, where the gap to the number below is half as wide if edge. */
static uint64_t shortest(uint64_t m, int q, int k, bool edge)
{
	const uint64_t five = five_to[-k];
	const int point = 2 - q + k; /* bits behind the binary point */
	const u128 value = (u128)(4 * m) * five;
	/* An end of the interval belongs to it if the last bit is even. */
	const u128 low = (u128)(4 * m - 2 + edge) * five + (m & 1);
	const u128 high = (u128)(4 * m + 2) * five - (m & 1);
	const uint64_t below = (uint64_t)(value >> point);
	const uint64_t tens = below / 10 * 10;
	const bool tens_in = (u128)tens << point >= low,
		   next_in = (u128)(tens + 10) << point <= high;
	if (tens_in != next_in)
		return tens_in ? tens : tens + 10;
	const bool below_in = (u128)below << point >= low;
	const bool above_in = (u128)(below + 1) << point <= high;
	if (below_in != above_in)
		return below + above_in;
	const u128 middle = (u128)(2 * below + 1) << (point - 1);
	return below + (value > middle || (value == middle && below & 1));
}

size_t real_put(char out[static REAL_MOST], double value, bool single)
{
	size_t sign = 0;
	if (signbit(value) && !isnan(value))
		out[sign++] = '-';
	const double v = fabs(value);
	const char *word = isnan(v) ? "NaN" : isinf(v) ? "Infinity" : v == 0 ? "0.0" : NULL;
	if (word) {
		memcpy(out + sign, word, strlen(word));
		return sign + strlen(word);
	}
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	const int drop = single ? 29 : 0; /* a float's mantissa within the double's */
	const int q = (int)(bits >> 52) - 1075 + drop;
	const uint64_t fraction = bits & ((1ull << 52) - 1);
	const bool edge = !fraction;
	/* floor(log10(2^q)), and of three quarters of that */
	const int k = (q * 1262611 - (edge ? 524031 : 0)) >> 22;
	if (q > 0 || k <= -POWERS)
		return sign + put_by_trial(out + sign, v, single);
	uint64_t digits = shortest((fraction | 1ull << 52) >> drop, q, k, edge);
	if (!k)
		digits *= 10;
	return sign + put_digits(out + sign, digits, k ? -k : 1);
}
