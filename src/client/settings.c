/* weir_sched_configure() and its counterpart: what a program asks of the scheduler, as words of the
 * shared file that exist. */
#include <string.h>

#include "base/atomic.h"
#include "client/client.h"

#define MOST_US (INT64_MAX / 1000)
#define OF_SELF                                                                                    \
	(WEIR_SET_CLASS | WEIR_SET_LATENCY_THRESHOLD | WEIR_SET_DEADLINE | WEIR_SET_THROUGHPUT)
#define OF_ALL (WEIR_SET_PREEMPTION | WEIR_SET_BUDGET)

static bool is_set(const struct weir_sched_config *c, uint32_t what)
{
	return c->set & what;
}

/* Work for throughput has no latency to keep. */
static bool contradicts(const struct weir_sched_config *c)
{
	if (!is_set(c, WEIR_SET_THROUGHPUT))
		return false;
	if (is_set(c, WEIR_SET_CLASS) &&
		(c->sched_class == WEIR_CLASS_BEST_EFFORT) != (c->throughput == 1))
		return true;
	return c->throughput &&
	       ((is_set(c, WEIR_SET_LATENCY_THRESHOLD) && c->latency_threshold_us) ||
		       (is_set(c, WEIR_SET_DEADLINE) && c->deadline_us));
}

static int check(const struct weir_sched_config *c)
{
	if (c->set & ~(uint32_t)(OF_SELF | OF_ALL))
		return WEIR_ERROR_ARGUMENT;
	if (is_set(c, WEIR_SET_CLASS) && c->sched_class != WEIR_CLASS_LATENCY &&
		c->sched_class != WEIR_CLASS_BEST_EFFORT)
		return WEIR_ERROR_ARGUMENT;
	if (is_set(c, WEIR_SET_PREEMPTION) && c->preemption > WEIR_PREEMPTION_KERNELS)
		return WEIR_ERROR_ARGUMENT;
	if ((is_set(c, WEIR_SET_LATENCY_THRESHOLD) && c->latency_threshold_us > MOST_US) ||
		(is_set(c, WEIR_SET_DEADLINE) && c->deadline_us > MOST_US) ||
		(is_set(c, WEIR_SET_BUDGET) && c->budget_us > MOST_US) ||
		(is_set(c, WEIR_SET_THROUGHPUT) && c->throughput > 1) || contradicts(c))
		return WEIR_ERROR_ARGUMENT;
	if (is_set(c, WEIR_SET_PREEMPTION) && c->preemption == WEIR_PREEMPTION_KERNELS)
		return WEIR_ERROR_UNSUPPORTED;
	return WEIR_OK;
}

static void set_class(const struct own_slots *own, enum share_class class)
{
	for (uint32_t i = 0; i < own->count; i++)
		if (load_relaxed(&own->file->slots[own->slot[i]].grant.class) != class)
			share_set_class(own->file, own->slot[i], class);
}

static void set_threshold(const struct own_slots *own, uint64_t us)
{
	for (uint32_t i = 0; i < own->count; i++)
		store_relaxed(&own->file->slots[own->slot[i]].who.target_p99_ns, us * 1000);
}

static void apply_to_self(const struct own_slots *own, const struct weir_sched_config *c)
{
	if (is_set(c, WEIR_SET_CLASS))
		set_class(own,
			c->sched_class == WEIR_CLASS_LATENCY ? CLASS_LATENCY : CLASS_BEST_EFFORT);
	if (is_set(c, WEIR_SET_LATENCY_THRESHOLD))
		set_threshold(own, c->latency_threshold_us);
	if (is_set(c, WEIR_SET_DEADLINE))
		own->injected->deadline(c->deadline_us * 1000);
	if (!is_set(c, WEIR_SET_THROUGHPUT))
		return;
	set_class(own, c->throughput ? CLASS_BEST_EFFORT : CLASS_LATENCY);
	if (c->throughput) {
		set_threshold(own, 0);
		own->injected->deadline(0);
	}
}

static void apply_to_all(struct share_file *f, const struct weir_sched_config *c)
{
	if (is_set(c, WEIR_SET_PREEMPTION))
		store_relaxed(&f->arbiter.open, c->preemption == WEIR_PREEMPTION_OFF);
	if (is_set(c, WEIR_SET_BUDGET))
		store_relaxed(shared(&f->tuning.budget_ns), c->budget_us * 1000);
}

static int configure(struct handle *h, const struct weir_sched_config *from)
{
	struct weir_sched_config c;
	struct own_slots own = { .count = 0 };
	struct share_file *f = NULL;
	if (!from)
		return WEIR_ERROR_ARGUMENT;
	if (!sized_read(&c, sizeof c, from))
		return WEIR_ERROR_SIZE;
	int status = check(&c);
	if (!status && c.set & OF_SELF)
		status = own_slots_find(h, &own);
	if (!status && c.set & OF_ALL)
		status = handle_reach_file(h, &f);
	if (status)
		return status;
	apply_to_self(&own, &c);
	if (f)
		apply_to_all(f, &c);
	return WEIR_OK;
}

int weir_sched_configure(weir_sched handle, const struct weir_sched_config *config)
{
	struct handle *h = handle_enter(handle);
	if (!h)
		return WEIR_ERROR_HANDLE;
	const int status = configure(h, config);
	handle_log(h, __func__, status, status ? NULL : "configured");
	handle_leave(h);
	return status;
}

static void read_self(const struct own_slots *own, struct weir_sched_config *c)
{
	const struct share_slot *s = &own->file->slots[own->slot[0]];
	c->set |= OF_SELF;
	c->sched_class =
		s->grant.class == CLASS_LATENCY ? WEIR_CLASS_LATENCY : WEIR_CLASS_BEST_EFFORT;
	c->throughput = c->sched_class == WEIR_CLASS_BEST_EFFORT;
	c->latency_threshold_us = load_relaxed(&s->who.target_p99_ns) / 1000;
	c->deadline_us = own->injected->deadline_now() / 1000;
}

static int get_config(struct handle *h, struct weir_sched_config *ret_config)
{
	struct weir_sched_config c = { .set = OF_ALL };
	struct own_slots own;
	struct share_file *f;
	if (!ret_config)
		return WEIR_ERROR_ARGUMENT;
	if (!sized_is_known(ret_config, sizeof c))
		return WEIR_ERROR_SIZE;
	const int status = handle_reach_file(h, &f);
	if (status)
		return status;
	c.preemption =
		load_relaxed(&f->arbiter.open) ? WEIR_PREEMPTION_OFF : WEIR_PREEMPTION_LAUNCHES;
	c.budget_us = load_relaxed(shared(&f->tuning.budget_ns)) / 1000;
	if (!own_slots_find(h, &own))
		read_self(&own, &c);
	sized_write(ret_config, &c, sizeof c);
	return WEIR_OK;
}

int weir_sched_get_config(weir_sched handle, struct weir_sched_config *ret_config)
{
	return WITH_LOG(handle, h, get_config(h, ret_config), NULL);
}
