/*
 * How soon to look again what is mapped.  While there is something new, libraries are being loaded:
 * soon, though never so often that it takes more than a hundredth of the time.  When there was
 * nothing, after twice the time of before, up to some two seconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Ticks, of a clock of a few gigahertz. */
#define REST_SHORT (1ull << 25) /* some ten milliseconds */
#define REST_LONG  (3ull << 31) /* some two seconds */
#define COST_SHARE 100u

/* rest: what this said at the look before; cost: what the look took; found: it saw something new.
 */
static inline uint64_t pace_next(uint64_t rest, uint64_t cost, bool found)
{
	const uint64_t share = cost * COST_SHARE;
	const uint64_t least = share > REST_SHORT ? share : REST_SHORT;
	const uint64_t twice = found ? 0 : rest < REST_LONG / 2 ? 2 * rest : REST_LONG;
	return twice > least ? twice : least;
}
