/* See config_queue.h: what is not said there has the batcher's defaults. */
#include "store/config_queue.h"

#define DEFAULT_CLASS 1 /* of requests that name no priority: one class is above, two below */

static bool says_delay(const struct model_config *c)
{
	const json_t *batching = json_object_get(c->tree, "dynamic_batching");
	return json_object_get(batching, "max_queue_delay_microseconds");
}

/* The requests for which queues of these levels have room together; 0: one of them has no limit of
 * its own. */
static uint32_t room_of(const struct model_config *c, uint64_t first, uint64_t last)
{
	uint64_t sum = 0;
	for (uint64_t level = first; level <= last && sum < BATCH_QUEUE_MOST; level++) {
		const struct config_queue_policy *p = config_queue_policy(c, level);
		if (!p || !p->max_queue)
			return 0;
		sum += p->max_queue;
	}
	return sum < BATCH_QUEUE_MOST ? (uint32_t)sum : BATCH_QUEUE_MOST;
}

/* Each level of priority has a queue; the lowest class has those of all further levels. */
static void limit_queues(const struct model_config *c, struct batch_model_config *b)
{
	const uint32_t levels = c->dynamic_batching.priority_levels;
	b->max_queue = levels ? room_of(c, 1, levels) : room_of(c, 0, 0);
	for (uint32_t class = 0; class < BATCH_CLASSES && class < levels; class ++)
		b->max_class[class] =
			room_of(c, class + 1, class + 1 < BATCH_CLASSES ? class + 1 : levels);
	if (!b->max_queue)
		b->max_queue = BATCH_QUEUE;
}

struct batch_model_config config_queue(const struct model_config *c, uint64_t default_delay_ns)
{
	const struct config_batching *d = &c->dynamic_batching;
	const uint32_t rows = c->max_batch_size ? c->max_batch_size : 1;
	struct batch_model_config b = { .name = c->name,
		.max_rows = MIN(rows, BATCH_MOST),
		.max_delay_ns = says_delay(c) ? sat_mul(d->max_delay_us, 1000) : default_delay_ns,
		.preserve_ordering = d->preserve_ordering,
		.weight = c->weir_weight > 0 ? (float)c->weir_weight : 1 };
	limit_queues(c, &b);
	for (unsigned i = 0;
		i < d->preferreds && b.preferreds < sizeof b.preferred / sizeof *b.preferred; i++)
		b.preferred[b.preferreds++] = (uint32_t)d->preferred[i];
	for (unsigned i = 0;
		i < c->weir_buckets && b.nbuckets < sizeof b.buckets / sizeof *b.buckets; i++)
		b.buckets[b.nbuckets++] = c->weir_bucket[i];
	return b;
}

struct config_wait config_wait(const struct model_config *c, uint64_t priority)
{
	const struct config_batching *d = &c->dynamic_batching;
	uint64_t level = priority;
	if (d->priority_levels && (!level || level > d->priority_levels))
		level = d->default_priority ? d->default_priority : 1;
	const struct config_queue_policy *p = config_queue_policy(c, level);
	const bool rejects = p && p->timeout_action == CONFIG_TIMEOUT_REJECT && p->timeout_us;
	const uint64_t class = level ? level - 1 : DEFAULT_CLASS;
	return (struct config_wait){
		.class = (uint32_t)(class < BATCH_CLASSES ? class : BATCH_CLASSES - 1),
		.timeout_ns = rejects ? sat_mul(p->timeout_us, 1000) : BATCH_NEVER,
	};
}
