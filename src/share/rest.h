/*
 * Tells whether a latency program rests: nothing has been asked of it for much longer than its
 * requests are apart, so that hardly any of them comes to find it so. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define REST_GAPS                                                                                  \
	6u /* of requests by chance, fewer than one in 100 come after so many mean ones            \
	    */
#define REST_LEAST_NS 200000000u
#define REST_MEMORY   8u /* requests that the mean gap is of */

struct rest {
	uint64_t who; /* of whom this is remembered */
	uint64_t requests, since_ns;
	double gap_ns; /* mean pause before a request; 0: none yet */
};

/* requests: ever begun. */
static inline bool rest_look(
	struct rest *r, uint64_t who, uint64_t requests, bool inside, uint64_t now_ns)
{
	if (r->who != who || requests < r->requests || now_ns < r->since_ns)
		*r = (struct rest){ .who = who, .requests = requests, .since_ns = now_ns };
	const double passed = (double)(now_ns - r->since_ns);
	const uint64_t fresh = requests - r->requests;
	if (fresh) {
		const double weight = fresh < REST_MEMORY ? (double)fresh / REST_MEMORY : 1;
		r->gap_ns += weight * (passed / (double)fresh - r->gap_ns);
		r->requests = requests;
	}
	if (fresh || inside)
		r->since_ns = now_ns;
	return !fresh && !inside && passed >= REST_LEAST_NS && passed >= REST_GAPS * r->gap_ns;
}
