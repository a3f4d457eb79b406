/*
 * slack: of all models and classes, the batch that gets most done in its time goes first, as long
 * as each other one can still be in time after it; if none can, the one that must begin first. An
 * efficient batch never waits for a small urgent one that has time left, which is where it gains
 * over the order of deadlines. Work without a deadline runs in the order of arrival: of all models,
 * only the oldest head of such a lane may run.
 */
#include "batch/batch_core.h"

/* Work without a deadline fills gaps: against work of its class with one it weighs that much. */
#define NO_DEADLINE_WEIGHT (1.0 / 16)

static double weight(const struct batcher *b, uint32_t lane)
{
	return b->weight[lane / 2] * (lane % 2 ? NO_DEADLINE_WEIGHT : 1);
}

/* Counts all classes, since those below may fill a batch up. */
static uint32_t rows_like_head(const struct batch_queue *q)
{
	const struct batch_model *m = q->model;
	const uint32_t rows = m->group_rows[queue_head(q)->group % BATCH_GROUPS];
	return rows < m->config.max_rows ? rows : m->config.max_rows;
}

static bool is_hopeless(const struct batch_queue *q, uint64_t start)
{
	const struct batch_latency *l = &q->model->latency;
	const struct batch_slot *head = queue_head(q);
	return head->start_by_ns < start ||
	       start + latency_predict(l, head->rows) > queue_deadline(q);
}

/* Sheds heads that can't be answered in time; false: the queue is empty, or run->gone full. */
static bool shed_hopeless(struct batch_queue *q, uint64_t start, struct batch_run *run)
{
	while (q->n && is_hopeless(q, start))
		if (!batch_shed_head(q, run))
			return false;
	return q->n;
}

/* So many rows, of which the length and the gain against single requests are mostly known. */
static void plan_rows(struct batch_queue *q, uint32_t rows)
{
	const struct batch_latency *l = &q->model->latency;
	if (q->plan_rows == rows && q->plan_version == l->version)
		return;
	const double one = latency_typical(l, 1), all = latency_typical(l, rows);
	q->plan_rows = rows;
	q->plan_version = l->version;
	q->length_ns = latency_predict(l, rows);
	q->gain = (double)q->model->config.weight * (all > 0 ? rows * one / all : rows);
}

/* The most rows with which the head is in time, and the latest beginning of such a batch. */
static void plan(struct batch_queue *q, uint64_t start)
{
	const struct batch_latency *l = &q->model->latency;
	const uint64_t deadline = queue_deadline(q);
	const uint32_t least = queue_head(q)->rows;
	uint32_t rows = rows_like_head(q);
	if (deadline - start < l->longest_ns)
		rows = latency_fit(l, deadline - start, rows);
	plan_rows(q, MAX(rows, least));
	q->lane = 2 * q->class + (deadline == BATCH_NEVER);
	q->latest_ns = deadline == BATCH_NEVER ? BATCH_NEVER : deadline - q->length_ns;
}

/* Plans for all queues with work.  Shedding takes queues off the list, and puts the last there. */
static void plan_all(struct batcher *b, uint64_t start, struct batch_run *run)
{
	for (size_t i = 0; i < b->active.n;) {
		struct batch_queue *q = b->active.v[i];
		if (shed_hopeless(q, start, run))
			plan(q, start);
		else if (q->n)
			return;
		i += i < b->active.n && b->active.v[i] == q;
	}
}

/* The earliest latest beginnings of a class and those above: whose it is, and of the others. */
struct earliest {
	const struct batch_queue *first;
	uint64_t ns[2];
};

static void note_latest(struct earliest *e, uint64_t ns, const struct batch_queue *q)
{
	if (ns < e->ns[0]) {
		e->ns[1] = e->ns[0];
		e->ns[0] = ns;
		e->first = q;
	} else if (ns < e->ns[1]) {
		e->ns[1] = ns;
	}
}

static void find_earliest(const struct batcher *b, struct earliest *e)
{
	for (uint32_t c = 0; c < BATCH_CLASSES; c++)
		e[c] = (struct earliest){ NULL, { BATCH_NEVER, BATCH_NEVER } };
	for (size_t i = 0; i < b->active.n; i++) {
		const struct batch_queue *q = b->active.v[i];
		note_latest(&e[q->class], q->latest_ns, q);
	}
	for (uint32_t c = 1; c < BATCH_CLASSES; c++) {
		note_latest(&e[c], e[c - 1].ns[0], e[c - 1].first);
		note_latest(&e[c], e[c - 1].ns[1], NULL);
	}
}

/* Finds for each lane without a deadline the queue with the oldest head. */
static void find_oldest(const struct batcher *b, struct batch_queue *ret[BATCH_LANES])
{
	for (int i = 0; i < BATCH_LANES; i++)
		ret[i] = NULL;
	for (size_t i = 0; i < b->active.n; i++) {
		struct batch_queue *q = b->active.v[i], **best = &ret[q->lane];
		if (q->lane % 2 && (!*best || queue_is_older(q, *best)))
			*best = q;
	}
}

/* Chooses from one lane, or from all. */
static struct batch_queue *choose(const struct batcher *b, uint64_t start, int lane)
{
	struct earliest e[BATCH_CLASSES];
	struct batch_queue *best = NULL, *urgent = NULL, *oldest[BATCH_LANES];
	double most = -1;
	find_earliest(b, e);
	find_oldest(b, oldest);
	for (size_t i = 0; i < b->active.n; i++) {
		struct batch_queue *q = b->active.v[i];
		if (lane >= 0 && q->lane != (uint32_t)lane)
			continue;
		if (q->lane % 2 && q != oldest[q->lane])
			continue;
		if (!urgent || q->latest_ns < urgent->latest_ns)
			urgent = q;
		const struct earliest *other = &e[q->class];
		if (start + q->length_ns > other->ns[other->first == q])
			continue;
		const double has = weight(b, q->lane) * q->gain;
		if (has > most) {
			most = has;
			best = q;
		}
	}
	return best ? best : urgent;
}

/*
 * Nobody starves: while a lane has work, each batch owes it its share of the batch's time, and what
 * it gets is taken off.  A lane that is owed more than four of its batches is next.  For edf that
 * holds for lanes without a deadline, since only these can wait for ever.
 */
static int lane_owed(const struct batcher *b)
{
	int lane = -1;
	for (size_t i = 0; i < b->active.n; i++) {
		const struct batch_queue *q = b->active.v[i];
		const int its = (int)q->lane;
		if (b->policy == BATCH_EDF && its % 2 == 0)
			continue;
		if (b->owed_ns[its] > 4 * (double)q->length_ns &&
			(lane < 0 || b->owed_ns[its] > b->owed_ns[lane]))
			lane = its;
	}
	return lane;
}

static void account(struct batcher *b, const struct batch_queue *q)
{
	double share[BATCH_LANES] = { 0 }, all = 0;
	const double ns = (double)q->length_ns;
	for (size_t i = 0; i < b->active.n; i++) {
		const uint32_t lane = b->active.v[i]->lane;
		share[lane] = weight(b, lane);
	}
	for (int i = 0; i < BATCH_LANES; i++)
		all += share[i];
	for (int i = 0; i < BATCH_LANES; i++)
		b->owed_ns[i] = share[i] > 0 ? b->owed_ns[i] + ns * share[i] / all : 0;
	b->owed_ns[q->lane] -= ns;
}

/* Fills up with the other classes of the model, whose deadlines the batch must meet as well. */
static void fill(struct batch_queue *q, uint64_t start, struct batch_run *run)
{
	struct batch_model *m = q->model;
	const uint32_t most = q->plan_rows;
	const uint64_t end = start + q->length_ns;
	batch_fill(q, run, most, end);
	for (uint32_t i = 0; i < BATCH_LANES && run->rows < most; i++)
		if (m->queue[i].n && &m->queue[i] != q)
			batch_fill(&m->queue[i], run, most, end);
	run->model = m;
}

static void trim(const struct batcher *b, struct batch_queue *q)
{
	const uint32_t rows = traffic_trim(b, q->model, q->class, q->plan_rows);
	plan_rows(q, rows > queue_head(q)->rows ? rows : queue_head(q)->rows);
}

/* Plans, and says whether there is one to be run. */
static bool is_choice(struct batcher *b, uint64_t now, uint64_t start, struct batch_run *run)
{
	plan_all(b, start, run);
	if (run->shed == BATCH_MOST)
		run->wake_ns = now;
	return run->shed < BATCH_MOST && b->active.n;
}

void slack_next(struct batcher *b, uint64_t now, uint64_t start, struct batch_run *run)
{
	if (!is_choice(b, now, start, run))
		return;
	struct batch_queue *q = choose(b, start, lane_owed(b));
	trim(b, q);
	account(b, q);
	fill(q, start, run);
}

/* The earliest deadline, and without one the oldest, which one lane or all have. */
static struct batch_queue *choose_by_deadline(const struct batcher *b, int lane)
{
	struct batch_queue *first = NULL;
	for (size_t i = 0; i < b->active.n; i++) {
		struct batch_queue *q = b->active.v[i];
		if (lane >= 0 && q->lane != (uint32_t)lane)
			continue;
		const uint64_t deadline = queue_deadline(q);
		if (!first || deadline < queue_deadline(first) ||
			(deadline == queue_deadline(first) && queue_is_older(q, first)))
			first = q;
	}
	return first;
}

void edf_next(struct batcher *b, uint64_t now, uint64_t start, struct batch_run *run)
{
	if (!is_choice(b, now, start, run))
		return;
	struct batch_queue *q = choose_by_deadline(b, lane_owed(b));
	account(b, q);
	fill(q, start, run);
}
