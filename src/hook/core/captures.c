/* Finds out whether a stream is capturing. */
#include "hook/core/captures.h"

#include "base/atomic.h"
#include "hook/core/hook_table.h"
#include "hook/core/process.h"

bool stream_is_capturing(void *stream, int per_thread)
{
	int status = 0;
	if (!stream && !per_thread)
		return false; /* the legacy stream can't be captured, and asking it may fail */
	real_cuStreamIsCapturing *const ask = REAL_OF(cuStreamIsCapturing, per_thread);
	return ask && !ask(stream, &status) && status == 1;
}

static void captures_add(int by)
{
	add_relaxed(&hook_hot.captures, by);
}

void after_cuStreamBeginCapture(int result, void *stream)
{
	if (!result)
		captures_add(1);
}

void after_cuStreamBeginCapture_v2(int result, void *stream, int mode)
{
	after_cuStreamBeginCapture(result, stream);
}

void after_cuStreamBeginCaptureToGraph(int result, void *stream, void *graph, void *dependencies,
	void *data, size_t count, int mode)
{
	after_cuStreamBeginCapture(result, stream);
}

/*
 * An invalidated capture, and one whose streams were not joined, end although the call fails;
 * one that is ended on the wrong stream goes on.  Better too many than too few: while there is
 * one, launches ask the driver.
 */
void after_cuStreamEndCapture(int result, void *stream, void *graph)
{
	enum { INVALIDATED = 901, UNJOINED = 904, ISOLATION = 905 };
	if (!result || result == INVALIDATED || result == UNJOINED || result == ISOLATION)
		captures_add(-1);
}
