/* fifo and delay: no predictions, requests in the order in which they came. */
#include "batch/batch_core.h"

/* Sheds heads whose timeout has passed. */
static void shed_expired(struct batcher *b, uint64_t start, struct batch_run *run)
{
	for (size_t i = 0; i < b->active.n;) {
		struct batch_queue *q = b->active.v[i];
		while (q->n && queue_head(q)->start_by_ns < start)
			if (!batch_shed_head(q, run))
				return;
		i += i < b->active.n && b->active.v[i] == q;
	}
}

void fifo_next(struct batcher *b, uint64_t now, uint64_t start, struct batch_run *run)
{
	struct batch_queue *oldest = NULL;
	shed_expired(b, start, run);
	for (size_t i = 0; i < b->active.n; i++)
		if (!oldest || queue_is_older(b->active.v[i], oldest))
			oldest = b->active.v[i];
	if (!oldest)
		return;
	run->model = oldest->model;
	batch_fill(oldest, run, run->model->config.max_rows, 0);
	for (uint32_t c = 0; c < BATCH_CLASSES; c++)
		batch_fill(&run->model->queue[2 * c], run, run->model->config.max_rows, 0);
}

/* How far the batch of a model can grow, and where it would end. */
struct pending {
	uint32_t n, rows; /* of all that fit */
	uint32_t best_n;  /* requests up to the last preferred size; 0: none was met */
	bool full;        /* it can't grow */
	uint64_t oldest_ns, expires_ns;
};

static uint32_t most_preferred(const struct batch_model_config *c)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < c->preferreds; i++)
		most = MAX(c->preferred[i], most);
	return most ? most : c->max_rows;
}

static bool is_preferred(const struct batch_model_config *c, uint32_t rows)
{
	for (uint32_t i = 0; i < c->preferreds; i++)
		if (c->preferred[i] == rows)
			return true;
	return false;
}

/* The cursor goes on to the item, unless the batch ends before it. */
static bool grow(
	struct pending *p, const struct batch_model_config *c, const struct batch_item *item)
{
	if (p->n && p->rows + item->rows > most_preferred(c) && !p->best_n)
		p->best_n = p->n;
	if (p->n && p->rows + item->rows > c->max_rows)
		return false;
	p->n++;
	p->rows += item->rows;
	if (is_preferred(c, p->rows))
		p->best_n = p->n;
	p->oldest_ns = MIN(item->arrived_ns, p->oldest_ns);
	p->expires_ns = MIN(item->start_by_ns, p->expires_ns);
	return true;
}

/* Looks at a model's requests class by class; they stay queued, but for those that expired. */
static struct pending look(struct batch_model *m, uint64_t start, struct batch_run *run)
{
	struct pending p = { .oldest_ns = BATCH_NEVER, .expires_ns = BATCH_NEVER };
	struct queue_entry seen[BATCH_MOST];
	uint32_t group = 0, most = m->config.max_rows;
	for (uint32_t c = 0; c < BATCH_CLASSES && !p.full; c++) {
		struct batch_queue *q = &m->queue[2 * c];
		uint32_t n = 0;
		while (q->n && p.n < most && !p.full) {
			const struct batch_slot *head = queue_head(q);
			group = p.n ? group : head->group;
			if (head->start_by_ns < start && batch_shed_head(q, run))
				continue;
			p.full = head->group != group || !grow(&p, &m->config, head->item);
			if (!p.full)
				seen[n++] = queue_remove(q, queue_first(q)->slot);
		}
		while (n)
			queue_push(q, seen[--n]);
		batch_note_work(q);
	}
	p.full |= p.rows >= most_preferred(&m->config);
	return p;
}

/* How many requests the model's next batch has; 0: it waits for more, until *wake. */
static uint32_t batch_now(
	const struct batch_model *m, const struct pending *p, uint64_t start, uint64_t *wake)
{
	const uint64_t delay = m->config.max_delay_ns;
	const bool waited = delay && p->n && start - p->oldest_ns >= delay;
	if (p->best_n && !waited)
		return p->best_n;
	if (p->full || waited || !delay || !p->n)
		return p->n;
	const uint64_t until = p->oldest_ns + delay;
	*wake = MIN(until, *wake);
	if (p->expires_ns < *wake)
		*wake = p->expires_ns + 1;
	return 0;
}

/* The next model that was not asked in this round: its highest class has the oldest head.
 */
static struct batch_queue *next_model(const struct batcher *b)
{
	struct batch_queue *oldest = NULL;
	for (size_t i = 0; i < b->active.n; i++) {
		struct batch_queue *q = b->active.v[i];
		bool leads = q->model->round != b->round;
		for (uint32_t c = 0; c < q->class; c++)
			leads &= !q->model->queue[2 * c].n;
		if (leads && (!oldest || queue_is_older(q, oldest)))
			oldest = q;
	}
	return oldest;
}

void delay_next(struct batcher *b, uint64_t now, uint64_t start, struct batch_run *run)
{
	struct batch_queue *q;
	b->round++;
	while (!run->n && (q = next_model(b))) {
		struct batch_model *m = q->model;
		const struct pending p = look(m, start, run);
		uint32_t left = batch_now(m, &p, start, &run->wake_ns);
		m->round = b->round;
		run->model = left ? m : NULL;
		for (uint32_t c = 0; c < BATCH_CLASSES; c++)
			for (; left && m->queue[2 * c].n; left--)
				batch_take_head(&m->queue[2 * c], run);
	}
}
