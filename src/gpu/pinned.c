/* Pinned memory costs milliseconds a megabyte, so blocks are kept, in eight sizes for each power of
 * two. */
#include <stdlib.h>

#include "base/xmalloc.h"
#include "gpu/cuda_device.h"

#include "base/banned.h"

#define LEAST ((size_t)1 << 16)

/* Rounds up to a size, and says its number. */
static unsigned size_of(size_t *bytes)
{
	const size_t least = *bytes < LEAST ? LEAST : *bytes;
	const unsigned log = 63 - (unsigned)__builtin_clzl(least - 1);
	const size_t power = (size_t)1 << log, step = power / 8;
	const size_t steps = (least - power + step - 1) / step;
	*bytes = power + steps * step;
	return log * 8 + (unsigned)steps - 1;
}

int gpu_pinned_take(struct gpu *g, size_t bytes, struct gpu_pinned **ret, struct error *err)
{
	const unsigned size = size_of(&bytes);
	pthread_mutex_lock(&g->lock);
	struct gpu_pinned *p = g->spare[size];
	if (p)
		g->spare[size] = p->next;
	pthread_mutex_unlock(&g->lock);
	*ret = p;
	if (p)
		return 0;
	void *data;
	const int e = GPU_CALL(g, err, cuMemHostAlloc, &data, bytes, 0);
	if (e)
		return e;
	*ret = p = xcalloc(1, sizeof *p);
	p->data = data;
	p->bytes = bytes;
	return 0;
}

void gpu_pinned_give(struct gpu *g, struct gpu_pinned *p)
{
	if (!p)
		return;
	const unsigned size = size_of(&p->bytes);
	pthread_mutex_lock(&g->lock);
	p->given = g->trims;
	p->next = g->spare[size];
	g->spare[size] = p;
	pthread_mutex_unlock(&g->lock);
}

/* Under the lock: those behind the ones that were given lately. */
static struct gpu_pinned *cut_old(struct gpu *g, struct gpu_pinned **at)
{
	while (*at && g->trims - (*at)->given < 2)
		at = &(*at)->next;
	struct gpu_pinned *old = *at;
	*at = NULL;
	return old;
}

void gpu_pinned_trim(struct gpu *g)
{
	if (atomic_load_explicit(&g->lost, memory_order_relaxed) || gpu_enter(g, NULL))
		return;
	pthread_mutex_lock(&g->lock);
	g->trims++;
	pthread_mutex_unlock(&g->lock);
	for (size_t i = 0; i < sizeof g->spare / sizeof g->spare[0]; i++) {
		pthread_mutex_lock(&g->lock);
		struct gpu_pinned *old = cut_old(g, &g->spare[i]);
		pthread_mutex_unlock(&g->lock);
		for (struct gpu_pinned *next; old; old = next) {
			next = old->next;
			g->cu.cuMemFreeHost(old->data);
			free(old);
		}
	}
}
