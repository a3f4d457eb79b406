/* Computes how busy a device was over time. */
#include "list/busy.h"

#include "base/expect.h"

uint64_t busy_begin(uint64_t wall_ns, unsigned point)
{
	return (uint64_t)((__uint128_t)wall_ns * point / BUSY_POINTS);
}

unsigned busy_point(uint64_t wall_ns, uint64_t ns)
{
	unsigned point = wall_ns ? (unsigned)((__uint128_t)ns * BUSY_POINTS / wall_ns) : 0;
	point = point < BUSY_POINTS ? point : BUSY_POINTS - 1;
	while (point + 1 < BUSY_POINTS && busy_begin(wall_ns, point + 1) <= ns)
		point++;
	return point;
}

void busy_spread(uint64_t ns[BUSY_POINTS], uint64_t wall_ns, uint64_t from, uint64_t to)
{
	for (unsigned i = busy_point(wall_ns, from); i < BUSY_POINTS && from < to; i++) {
		const uint64_t end = i + 1 < BUSY_POINTS ? busy_begin(wall_ns, i + 1) : to;
		const uint64_t until = MIN(to, end);
		ns[i] += until > from ? until - from : 0;
		from = MAX(until, from);
	}
}

void busy_fill(const struct report *r, uint64_t ns[BUSY_POINTS])
{
	const struct analysis *a = &r->analysis;
	const uint64_t start = a->start_ns, end = r->wall_ns - a->wall_ns[WALL_AFTER];
	uint64_t busy_from = a->wall_ns[WALL_BEFORE];
	memset(ns, 0, BUSY_POINTS * sizeof *ns);
	for (size_t i = 0; i < a->idle.n;) {
		const uint64_t until = a->idle.v[i].until_ns - start;
		uint64_t gap = 0;
		for (; i < a->idle.n && a->idle.v[i].until_ns - start == until; i++)
			gap += a->idle.v[i].ns;
		expect(gap <= until && until - gap >= busy_from, "idle gaps are apart");
		busy_spread(ns, r->wall_ns, busy_from, until - gap);
		busy_from = until;
	}
	busy_spread(ns, r->wall_ns, busy_from, end);
}
