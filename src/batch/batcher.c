/* The batcher: models and their queues, admission, and what a batch that ran teaches. */
#include "batch/batch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "batch/batch_core.h"

#define NOWHERE UINT32_MAX

/*
 * Admission multiplies the demand that it expects by this.  It rises while more than that share of
 * what was admitted is shed later, and sinks otherwise.
 */
#define CAUTION_LEAST 1.0
#define CAUTION_MOST  3.0
#define CAUTION_STEP  0.01
#define SHED_SHARE    0.003
#define TRIAL_LEAST   100000000u /* what looks too late is tried so often at most, */
#define TRIAL_SHARE   10         /* and for one in so many parts of the time */

static const char *const policy_names[BATCH_POLICIES] = { "slack", "delay", "fifo", "edf" };

const char *batch_policy_name(enum batch_policy policy)
{
	return policy_names[policy];
}

int batch_policy_find(const char *name, enum batch_policy *ret)
{
	for (int p = 0; p < BATCH_POLICIES; p++)
		if (!strcmp(name, policy_names[p])) {
			*ret = (enum batch_policy)p;
			return 0;
		}
	return -EINVAL;
}

static bool is_predictive(const struct batcher *b)
{
	return b->policy == BATCH_SLACK || b->policy == BATCH_EDF;
}

struct batcher *batcher_new(enum batch_policy policy)
{
	struct batcher *b = xcalloc(1, sizeof *b);
	b->policy = policy;
	b->caution = CAUTION_LEAST;
	for (uint32_t c = 0; c < BATCH_CLASSES; c++)
		b->weight[c] = 1 << (BATCH_CLASSES - 1 - c);
	return b;
}

void batcher_free(struct batcher *b)
{
	if (!b)
		return;
	while (b->models.n)
		batch_model_remove(b->models.v[b->models.n - 1]);
	array_free(&b->models, &b->active, &b->traffic);
	free(b);
}

void batcher_set_class_weight(struct batcher *b, uint32_t class, float weight)
{
	if (class < BATCH_CLASSES && weight > 0)
		b->weight[class] = (double)weight;
}

static uint64_t key_of(const struct batch_queue *q, const struct batch_item *item)
{
	return q->by_arrival || q->endless ? item->arrived_ns : item_deadline(item);
}

/* A queue by arrival takes all items of its class: the order of both kinds counts. */
static struct batch_queue *queue_of(struct batch_model *m, const struct batch_item *item)
{
	struct batch_queue *q = &m->queue[2 * item->class];
	return q + (!q->by_arrival && item_deadline(item) == BATCH_NEVER);
}

/* The entries of a class's two queues, each to where it belongs. */
static void order_class(struct batch_queue *q)
{
	struct batch_model *m = q->model;
	queue_gather(&q[0]);
	queue_gather(&q[1]);
	for (uint32_t i = 0; i < q[1].n; i++)
		q->heap[q->n++] = q[1].heap[i];
	const uint32_t n = q->n;
	q[0].n = q[1].n = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct queue_entry e = q->heap[i];
		const struct batch_item *item = m->slots[e.slot].item;
		struct batch_queue *to = queue_of(m, item);
		e.key = key_of(to, item);
		to->heap[to->n++] = e;
	}
	for (int i = 0; i < 2; i++) {
		queue_order(&q[i]);
		batch_note_work(&q[i]);
	}
}

static void order_queues(struct batch_model *m)
{
	const bool by_arrival = m->config.preserve_ordering || !is_predictive(m->batcher);
	for (uint32_t i = 0; i < BATCH_LANES; i++)
		m->queue[i].by_arrival = by_arrival;
	for (uint32_t i = 0; i < BATCH_LANES; i += 2)
		order_class(&m->queue[i]);
}

void batcher_set_policy(struct batcher *b, enum batch_policy policy)
{
	b->policy = policy;
	for (size_t i = 0; i < b->models.n; i++)
		order_queues(b->models.v[i]);
}

static void take_config(struct batch_model *m, const struct batch_model_config *c)
{
	m->config = *c;
	if (!m->config.max_rows)
		m->config.max_rows = 1;
	m->config.max_rows = MIN(BATCH_MOST, m->config.max_rows);
	if (!m->config.max_queue)
		m->config.max_queue = BATCH_QUEUE;
	m->config.max_queue = MIN(BATCH_QUEUE_MOST, m->config.max_queue);
	if (!(m->config.weight > 0))
		m->config.weight = 1;
	latency_configure(&m->latency, &m->config);
}

struct batch_model *batch_model_add(struct batcher *b, const struct batch_model_config *c)
{
	struct batch_model *m = xcalloc(1, sizeof *m);
	m->batcher = b;
	latency_init(&m->latency);
	take_config(m, c);
	m->room = m->config.max_queue;
	m->slots = xcalloc(m->room, sizeof *m->slots);
	m->at = xcalloc(m->room, sizeof *m->at);
	for (uint32_t i = 0; i < m->room; i++)
		m->at[i] = i + 1;
	for (uint32_t i = 0; i < BATCH_LANES; i++)
		m->queue[i] = (struct batch_queue){
			.model = m,
			.class = i / 2,
			.endless = i % 2,
			.active = NOWHERE,
			.heap = queue_new_heap(m->room),
			.slots = m->slots,
			.at = m->at,
		};
	m->index = (uint32_t)b->models.n;
	*(array_push(&b->models)) = m;
	for (uint32_t class = 0; class < BATCH_CLASSES; class ++)
		*(array_push(&b->traffic)) = (struct batch_traffic){ 0 };
	array_reserve(&b->active, BATCH_LANES * b->models.n - b->active.n);
	order_queues(m);
	return m;
}

void batch_note_work(struct batch_queue *q)
{
	struct batcher *b = q->model->batcher;
	if (q->n && q->active == NOWHERE) {
		q->active = (uint32_t)b->active.n;
		b->active.v[b->active.n++] = q;
	} else if (!q->n && q->active != NOWHERE) {
		struct batch_queue *last = b->active.v[--b->active.n];
		b->active.v[q->active] = last;
		last->active = q->active;
		q->active = NOWHERE;
	}
}

void batch_model_remove(struct batch_model *m)
{
	struct batcher *b = m->batcher;
	struct batch_model *last = b->models.v[--b->models.n];
	b->traffic.n -= BATCH_CLASSES;
	b->models.v[m->index] = last;
	for (uint32_t c = 0; c < BATCH_CLASSES; c++)
		b->traffic.v[m->index * BATCH_CLASSES + c] = b->traffic.v[b->traffic.n + c];
	last->index = m->index;
	for (uint32_t i = 0; i < BATCH_LANES; i++) {
		while (m->queue[i].n)
			batch_take(&m->queue[i], queue_first(&m->queue[i])->slot);
		queue_free_heap(m->queue[i].heap);
	}
	latency_fini(&m->latency);
	free_all(m->slots, m->at, m);
}

void batch_model_configure(struct batch_model *m, const struct batch_model_config *c)
{
	take_config(m, c);
	m->config.max_queue = MIN(m->room, m->config.max_queue);
	order_queues(m);
}

uint32_t batch_queued(const struct batch_model *m)
{
	return m->queued;
}

bool batch_has_work(const struct batcher *b)
{
	return b->active.n;
}

/* A model counts once for each of its queues that has work: too much, but never too little. */
bool batch_is_short(const struct batcher *b, uint64_t ns)
{
	for (size_t i = 0; i < b->active.n; i++) {
		const struct batch_model *m = b->active.v[i]->model;
		const uint32_t batches = (m->rows + m->config.max_rows - 1) / m->config.max_rows;
		const uint64_t all = batches * (uint64_t)latency_typical(&m->latency, m->rows);
		if (!m->latency.longest_ns || all > ns)
			return false;
		ns -= all;
	}
	return b->active.n;
}

void batch_learn(struct batch_model *m, uint32_t rows, uint64_t ns)
{
	latency_learn(&m->latency, rows, ns);
}

void batch_model_before(struct batch_model *m, uint64_t ns)
{
	if (ns != m->latency.before_ns)
		latency_before(&m->latency, ns);
}

uint64_t batch_predict(const struct batch_model *m, uint32_t rows)
{
	return latency_predict(&m->latency, rows);
}

uint64_t batch_typical(const struct batch_model *m, uint32_t rows)
{
	return (uint64_t)latency_typical(&m->latency, rows);
}

double batch_deviation(const struct batch_model *m)
{
	const double normal_99 = 2.326;
	return log1p(m->latency.margin) / normal_99;
}

uint32_t batch_bucket(const struct batch_model *m, uint32_t rows)
{
	return latency_size_of(&m->latency, rows);
}

void batch_latency_put(const struct batch_model *m, FILE *out)
{
	latency_put(&m->latency, out);
}

int batch_latency_read(struct batch_model *m, FILE *in, struct error *err)
{
	return latency_read(&m->latency, in, err);
}

/*
 * The share of an item in a batch's time: of the batches that the model reached lately, or of one
 * of all that is queued now, if that is larger.
 */
static uint64_t cost(const struct batch_model *m, uint32_t rows)
{
	double size = (double)m->rows + rows;
	size = size > m->reached ? size : m->reached;
	size = size < m->config.max_rows ? size : m->config.max_rows;
	const uint32_t whole = size < 1 ? 1 : (uint32_t)size;
	return (uint64_t)(latency_typical(&m->latency, whole) / whole * rows);
}

static void note_arrival(struct batch_model *m, const struct batch_item *item, uint64_t now)
{
	const uint32_t most = m->config.max_rows;
	if (item->deadline_ns == BATCH_NEVER || item->deadline_ns <= now)
		return;
	traffic_note(&m->batcher->traffic.v[m->index * BATCH_CLASSES + item->class], now,
		(double)(item->deadline_ns - now),
		latency_typical(&m->latency, most) / most * item->rows);
}

static void push(struct batch_model *m, struct batch_item *item)
{
	struct batcher *b = m->batcher;
	struct batch_queue *q = queue_of(m, item);
	const uint32_t slot = m->free_slot;
	struct batch_slot *s = &m->slots[slot];
	m->free_slot = m->at[slot];
	*s = (struct batch_slot){ item, item->start_by_ns, item->rows, item->group, 0, 0 };
	item->place = slot;
	if (item_deadline(item) != BATCH_NEVER) {
		const uint64_t ns = cost(m, item->rows);
		s->cost_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
		m->cost_ns += s->cost_ns;
		s->bin = demand_add(&b->demand, q->class, item->deadline_ns, s->cost_ns);
	}
	m->queued++;
	m->rows += item->rows;
	m->group_rows[item->group % BATCH_GROUPS] += item->rows;
	queue_push(q, (struct queue_entry){ key_of(q, item), b->order++, slot });
	batch_note_work(q);
}

struct batch_item *batch_take(struct batch_queue *q, uint32_t slot)
{
	struct batch_model *m = q->model;
	queue_remove(q, slot);
	struct batch_slot *s = &m->slots[slot];
	struct batch_item *item = s->item;
	if (s->cost_ns)
		demand_drop(&m->batcher->demand, q->class, s->bin, s->cost_ns);
	m->cost_ns -= s->cost_ns;
	s->item = NULL;
	m->at[slot] = m->free_slot;
	m->free_slot = slot;
	m->queued--;
	m->rows -= s->rows;
	m->group_rows[s->group % BATCH_GROUPS] -= s->rows;
	batch_note_work(q);
	return item;
}

/*
 * Device time that goes to others before the item's deadline. The item's own queue runs with it, if
 * there is room in a batch. Caution decides how far that is relied on.
 */
static uint64_t to_come(const struct batch_model *m, const struct batch_item *item, uint64_t now)
{
	const struct batcher *b = m->batcher;
	const uint64_t within = item->deadline_ns > now ? item->deadline_ns - now : 0;
	const double relied = (CAUTION_MOST - b->caution) / (CAUTION_MOST - CAUTION_LEAST);
	uint64_t demand = demand_ns(&b->demand, item->class, item->deadline_ns);
	if (m->rows + item->rows <= m->config.max_rows) {
		const uint64_t beside = (uint64_t)((double)m->cost_ns * relied);
		demand -= MIN(beside, demand);
	}
	return demand + traffic_expected(m, item->class, within, b->caution);
}

/*
 * Nothing delays a request that comes to a device without work: it runs at once.  If caution would
 * refuse even that, it is too great.
 */
static uint64_t wait(
	const struct batch_model *m, const struct batch_item *item, uint64_t now, uint64_t end)
{
	struct batcher *b = m->batcher;
	const uint64_t others = to_come(m, item, now);
	if (b->running || b->active.n)
		return others;
	if (end + others > item->deadline_ns)
		b->caution -= (b->caution - CAUTION_LEAST) / 16;
	return 0;
}

/*
 * Whether the model's own latency is what refuses, and nothing of the model ran for a while, though
 * it once was fast enough.  A device that was slow for a time would be taken for slow for ever,
 * since what is refused teaches nothing: so one request runs all the same.
 */
static bool is_trial(const struct batch_model *m, const struct batch_item *item, uint64_t now)
{
	const uint64_t left = item->deadline_ns > now ? item->deadline_ns - now : 0;
	const struct batch_latency *l = &m->latency;
	const double least = (double)l->size[latency_size_of(l, item->rows)].least;
	return m->queued == 0 && now >= m->trial_ns && least > 0 &&
	       (double)left >= least + (double)l->before_ns &&
	       left < latency_predict(l, item->rows);
}

static void wait_for_trial(struct batch_model *m, uint32_t rows, uint64_t now)
{
	const double ns = TRIAL_SHARE * latency_typical(&m->latency, rows);
	m->trial_ns = now + (uint64_t)fmax(ns, TRIAL_LEAST);
}

static bool is_full(const struct batch_model *m, uint32_t class)
{
	const struct batch_queue *q = &m->queue[2 * class];
	const uint32_t most = m->config.max_class[class];
	return m->queued >= m->config.max_queue || (most && q[0].n + q[1].n >= most);
}

enum batch_refusal batch_admit(
	struct batch_model *m, struct batch_item *item, uint64_t now, uint64_t *ret_retry_ns)
{
	struct batcher *b = m->batcher;
	const uint64_t start = MAX(b->busy_ns, now);
	item->place = NOWHERE;
	item->rows += !item->rows;
	item->class = item->class < BATCH_CLASSES ? item->class : BATCH_CLASSES - 1;
	uint64_t end = start + latency_predict(&m->latency, m->rows + item->rows);
	note_arrival(m, item, now);
	demand_advance(&b->demand, now);
	if (is_full(m, item->class)) {
		*ret_retry_ns = end - now;
		return BATCH_QUEUE_FULL;
	}
	if (item->deadline_ns != BATCH_NEVER)
		end += wait(m, item, now, end);
	item->predicted_end_ns = end;
	item->trial = is_predictive(b) && end > item->deadline_ns && is_trial(m, item, now);
	if (item->trial) {
		wait_for_trial(m, item->rows, now);
	} else if (is_predictive(b) && end > item->deadline_ns) {
		*ret_retry_ns = end - item->deadline_ns;
		return BATCH_TOO_LATE;
	}
	push(m, item);
	*ret_retry_ns = 0;
	return BATCH_ADMITTED;
}

void batch_cancel(struct batch_model *m, struct batch_item *item)
{
	if (item->place < m->room && m->slots[item->place].item == item)
		batch_take(queue_of(m, item), item->place);
}

bool batch_shed_head(struct batch_queue *q, struct batch_run *run)
{
	if (run->shed == BATCH_MOST)
		return false;
	run->gone[run->shed++] = batch_take(q, queue_first(q)->slot);
	return true;
}

void batch_take_head(struct batch_queue *q, struct batch_run *run)
{
	run->rows += queue_head(q)->rows;
	run->item[run->n++] = batch_take(q, queue_first(q)->slot);
}

void batch_fill(struct batch_queue *q, struct batch_run *run, uint32_t most, uint64_t end_ns)
{
	struct queue_entry aside[64];
	uint32_t others = 0;
	queue_expect(q);
	while (q->n && run->n < BATCH_MOST && others < sizeof aside / sizeof *aside) {
		const struct batch_slot *head = queue_head(q);
		if (head->start_by_ns < run->began_ns) {
			if (!batch_shed_head(q, run))
				break;
		} else if (run->n && head->group != run->group) {
			aside[others++] = queue_remove(q, queue_first(q)->slot);
		} else if (run->n && (run->rows + head->rows > most ||
					     (end_ns && queue_deadline(q) < end_ns))) {
			break;
		} else {
			run->group = head->group;
			batch_take_head(q, run);
		}
	}
	while (others)
		queue_push(q, aside[--others]);
	batch_note_work(q);
}

static void learn_caution(struct batcher *b, const struct batch_run *run)
{
	b->caution += CAUTION_STEP * (run->shed - SHED_SHARE * (run->shed + run->n));
	b->caution = fmax(CAUTION_LEAST, fmin(b->caution, CAUTION_MOST));
}

void batch_next(struct batcher *b, uint64_t now, uint64_t free_ns, struct batch_run *ret)
{
	static void (*const policies[])(
		struct batcher *, uint64_t, uint64_t, struct batch_run *) = {
		[BATCH_SLACK] = slack_next,
		[BATCH_DELAY] = delay_next,
		[BATCH_FIFO] = fifo_next,
		[BATCH_EDF] = edf_next,
	};
	const uint64_t start = MAX(free_ns, now);
	ret->model = NULL;
	ret->failed = false;
	ret->wake_ns = BATCH_NEVER;
	ret->n = ret->rows = ret->bucket = ret->shed = 0;
	ret->began_ns = start;
	ret->predicted_ns = ret->before_ns = ret->spent_ns = 0;
	if (b->models.n)
		traffic_age(b, now);
	if (b->active.n)
		policies[b->policy](b, now, start, ret);
	learn_caution(b, ret);
	if (!ret->n)
		return;
	struct batch_model *m = ret->model;
	ret->bucket = batch_bucket(m, ret->rows);
	ret->predicted_ns = latency_predict(&m->latency, ret->rows);
	ret->before_ns = ret->predicted_ns ? m->latency.before_ns : 0;
	m->reached += (ret->rows - m->reached) / 8;
	wait_for_trial(m, ret->rows, start);
	b->running++;
	b->busy_ns = start + ret->predicted_ns;
}

void batch_done(struct batcher *b, struct batch_run *run, uint64_t now)
{
	const uint64_t ns = now > run->began_ns ? now - run->began_ns : 0;
	if (!run->failed)
		latency_judge(&run->model->latency, run->rows,
			ns > run->spent_ns ? ns - run->spent_ns : 0,
			run->predicted_ns - run->before_ns);
	if (ns < run->predicted_ns / 2) /* it is as fast as it was: the next trial need not wait */
		run->model->trial_ns = now;
	if (expect(b->running > 0, "a batch that is done has begun") && !--b->running)
		b->busy_ns = now;
}
