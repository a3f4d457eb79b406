/*
 * The driver lock, and the table of live objects.  The table is a fixed hash of chains
 * keyed by address; only addresses are compared until one matches.
 */
#include "driver/sim.h"

#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 4096, QUARANTINE = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct obj *buckets[BUCKETS];
static void *quarantine[QUARANTINE];
static unsigned quarantine_next;

void sim_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

pthread_mutex_t *sim_mutex(void)
{
	return &lock;
}

static struct obj **bucket_of(const void *handle)
{
	uintptr_t x = (uintptr_t)handle >> 4;

	return &buckets[(x ^ (x >> 12)) % BUCKETS];
}

void *obj_new(enum obj_type type, size_t size, struct context *ctx)
{
	struct obj *o = calloc(1, size);

	if (!o)
		return NULL;
	struct obj **bucket = bucket_of(o);
	o->type = type;
	o->ctx = ctx;
	o->next = *bucket;
	*bucket = o;
	return o;
}

void *obj_find(const void *handle, enum obj_type type)
{
	if (!handle)
		return NULL;
	for (struct obj *o = *bucket_of(handle); o; o = o->next)
		if (o == handle)
			return o->type == type ? o : NULL;
	return NULL;
}

void *obj_any(enum obj_type type, const struct context *ctx)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct obj *o = buckets[i]; o; o = o->next)
			if (o->type == type && o->ctx == ctx)
				return o;
	return NULL;
}

void obj_free(void *object)
{
	struct obj *o = object;

	if (!o)
		return;
	struct obj **link = bucket_of(o);
	while (*link != o)
		link = &(*link)->next;
	*link = o->next;
	unsigned slot = quarantine_next++ % QUARANTINE;
	free(quarantine[slot]);
	quarantine[slot] = o;
}
