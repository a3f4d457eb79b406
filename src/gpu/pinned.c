/* Pinned memory costs milliseconds a megabyte, so blocks are kept, in eight sizes for each power of
 * two. A block may serve what needs an eighth of it. */

#include "base/atomic.h"
#include "base/xmalloc.h"
#include "gpu/cuda_device.h"

#define LEAST    ((size_t)1 << 16)
#define SIZES    (sizeof((struct gpu *)0)->spare / sizeof(struct gpu_pinned *))
#define SIZES_UP 24 /* three powers of two */

/* Rounds up to a size, and says its number. */
static unsigned size_of(size_t *bytes)
{
	const size_t least = MAX(LEAST, *bytes);
	const unsigned log = 63 - (unsigned)__builtin_clzl(least - 1);
	const size_t power = (size_t)1 << log, step = power / 8;
	const size_t steps = (least - power + step - 1) / step;
	*bytes = power + steps * step;
	return log * 8 + (unsigned)steps - 1;
}

struct gpu_pinned *gpu_pinned_spare(struct gpu *g, size_t bytes)
{
	struct gpu_pinned *p = NULL;
	const unsigned size = size_of(&bytes);
	pthread_mutex_lock(&g->lock);
	for (unsigned i = size; i <= size + SIZES_UP && i < SIZES && !p; i++) {
		p = g->spare[i];
		if (p)
			g->spare[i] = p->next;
	}
	pthread_mutex_unlock(&g->lock);
	return p;
}

/* NULL on failure. */
static int pin(struct gpu *g, size_t bytes, struct gpu_pinned **ret, struct error *err)
{
	void *data;
	*ret = NULL;
	size_of(&bytes);
	const int e = GPU_CALL(g, err, cuMemHostAlloc, &data, bytes, 0);
	if (e)
		return e;
	struct gpu_pinned *p = *ret = xcalloc(1, sizeof *p);
	p->data = data;
	p->bytes = bytes;
	return 0;
}

int gpu_pinned_take(struct gpu *g, size_t bytes, struct gpu_pinned **ret, struct error *err)
{
	*ret = gpu_pinned_spare(g, bytes);
	return *ret ? 0 : pin(g, bytes, ret, err);
}

int gpu_pinned_fill(struct gpu *g, size_t bytes, unsigned n, struct error *err)
{
	const unsigned size = size_of(&bytes);
	unsigned have = 0;
	int e = 0;
	pthread_mutex_lock(&g->lock);
	g->keeps[size] = n > g->keeps[size] ? n : g->keeps[size];
	for (const struct gpu_pinned *p = g->spare[size]; p; p = p->next)
		have++;
	pthread_mutex_unlock(&g->lock);
	for (struct gpu_pinned *p; have < n && !e; have++) {
		e = pin(g, bytes, &p, err);
		gpu_pinned_give(g, p);
	}
	return e;
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

/* Under the lock: those behind the ones that were given lately, or that models were promised. */
static struct gpu_pinned *cut_old(struct gpu *g, size_t size)
{
	struct gpu_pinned **at = &g->spare[size];
	for (unsigned n = 0; *at && (n < g->keeps[size] || g->trims - (*at)->given < 2); n++)
		at = &(*at)->next;
	struct gpu_pinned *old = *at;
	*at = NULL;
	return old;
}

void gpu_pinned_trim(struct gpu *g)
{
	if (load_relaxed(&g->lost) || gpu_enter(g, NULL))
		return;
	pthread_mutex_lock(&g->lock);
	g->trims++;
	pthread_mutex_unlock(&g->lock);
	for (size_t i = 0; i < SIZES; i++) {
		pthread_mutex_lock(&g->lock);
		struct gpu_pinned *old = cut_old(g, i);
		pthread_mutex_unlock(&g->lock);
		for (struct gpu_pinned *next; old; old = next) {
			next = old->next;
			g->cu.cuMemFreeHost(old->data);
			free(old);
		}
	}
}
