/* Pinned memory costs milliseconds a megabyte, so blocks are kept, in sizes of powers of two. */
#include <stdlib.h>

#include "base/xmalloc.h"
#include "gpu/cuda_device.h"

#include "base/banned.h"

#define LEAST ((size_t)1 << 16)

static unsigned log_of(size_t bytes)
{
	return bytes <= LEAST ? 16 : 64 - (unsigned)__builtin_clzl(bytes - 1);
}

int gpu_pinned_take(struct gpu *g, size_t bytes, struct gpu_pinned **ret, struct error *err)
{
	const unsigned log = log_of(bytes);
	pthread_mutex_lock(&g->lock);
	struct gpu_pinned *p = g->spare[log];
	if (p)
		g->spare[log] = p->next;
	pthread_mutex_unlock(&g->lock);
	*ret = p;
	if (p)
		return 0;
	void *data;
	const int e = GPU_CALL(g, err, cuMemHostAlloc, &data, (size_t)1 << log, 0);
	if (e)
		return e;
	*ret = p = xcalloc(1, sizeof *p);
	p->data = data;
	p->bytes = (size_t)1 << log;
	return 0;
}

void gpu_pinned_give(struct gpu *g, struct gpu_pinned *p)
{
	if (!p)
		return;
	const unsigned log = log_of(p->bytes);
	pthread_mutex_lock(&g->lock);
	p->next = g->spare[log];
	g->spare[log] = p;
	pthread_mutex_unlock(&g->lock);
}
