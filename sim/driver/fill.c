/*
 * The memset functions.
 */
#include "driver/sim.h"
#include "driver/graph.h"

static int fill(uint64_t address, size_t pitch, unsigned value, unsigned element, size_t width,
	size_t height, void *handle)
{
	struct op op = {
		.kind = CU_GRAPH_NODE_TYPE_MEMSET,
		.fill = { address, pitch, width, height, value, element },
	};
	struct stream *s;
	int r = stream_get(handle, &s);

	if (r)
		return r;
	r = fill_check(&op.fill);
	return r ? r : op_perform(s, &op);
}

/* Four functions per element size: flat and pitched, with and without a stream. */
#define FILLS(name, type, bytes)                                                                   \
	int sim_cuMemset##name##_v2(unsigned long long to, type value, size_t count)               \
	{                                                                                          \
		return fill(to, 0, value, bytes, count, 1, NULL);                                  \
	}                                                                                          \
	int sim_cuMemset##name##Async(                                                             \
		unsigned long long to, type value, size_t count, void *stream)                     \
	{                                                                                          \
		return fill(to, 0, value, bytes, count, 1, stream);                                \
	}

#define FILLS_2D(name, type, bytes)                                                                \
	int sim_cuMemset##name##_v2(                                                               \
		unsigned long long to, size_t pitch, type value, size_t width, size_t height)      \
	{                                                                                          \
		return fill(to, pitch, value, bytes, width, height, NULL);                         \
	}                                                                                          \
	int sim_cuMemset##name##Async(unsigned long long to, size_t pitch, type value,             \
		size_t width, size_t height, void *stream)                                         \
	{                                                                                          \
		return fill(to, pitch, value, bytes, width, height, stream);                       \
	}

FILLS(D8, unsigned char, 1)
FILLS(D16, unsigned short, 2)
FILLS(D32, unsigned, 4)
FILLS_2D(D2D8, unsigned char, 1)
FILLS_2D(D2D16, unsigned short, 2)
FILLS_2D(D2D32, unsigned, 4)
