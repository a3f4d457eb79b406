/*
 * The thread that runs batches.  Its queues and policy are the batcher's (src/batch), under one
 * lock, which loops take to admit a request and this thread to choose a batch.  The engine runs
 * without the lock.  Outputs stay the engine's until the last request of the batch has its answer.
 *
 * While this thread sleeps, a loop may borrow the device and run short batches itself: waking a
 * thread, and being woken by it, takes longer than these.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/cond.h"
#include "serve/internal.h"

#define SPARE_PIECES 4096

static struct exchange *exchange_of(struct batch_item *item)
{
	return (struct exchange *)item; /* its first member */
}

static void count_refused(struct version *v, int status)
{
	struct version_stats *s = &v->stats;
	add_relaxed(status == -ETIME ? &s->shed : &s->refused, 1);
}

void device_add(struct device *d, struct version *v)
{
	pthread_mutex_lock(&d->lock);
	v->queue = batch_model_add(d->batcher, &v->limits.queue);
	*array_push(&d->versions) = v;
	pthread_mutex_unlock(&d->lock);
}

void device_drop(struct device *d, struct version *v)
{
	pthread_mutex_lock(&d->lock);
	batch_model_remove(v->queue);
	size_t at = 0;
	while (d->versions.v[at] != v)
		at++;
	d->versions.v[at] = d->versions.v[--d->versions.n];
	pthread_mutex_unlock(&d->lock);
}

/* Under the lock: whose memory has to come back before it runs. */
static void note_memory(struct device *d)
{
	const unsigned moves = engine_memory_moves();
	if (moves == d->moves)
		return;
	d->moves = moves;
	for (size_t i = 0; i < d->versions.n; i++)
		batch_model_before(
			d->versions.v[i]->queue, engine_memory(d->versions.v[i]->loaded).away_ns);
}

/* Under the lock. */
static int refuse(struct exchange *x, enum batch_refusal why)
{
	if (why == BATCH_TOO_LATE)
		return error_set(&x->err, -ENOBUFS,
			"model '%s' can't answer in time: the predicted answer comes after the deadline",
			x->version->model->name);
	return error_set(
		&x->err, -ENOBUFS, "the queue of model '%s' is full", x->version->model->name);
}

#define GROUPS_MOST 4096

/* Under the lock.  Numbers are not used again while older ones may be queued. */
static uint32_t group_of(struct version *v, struct map_key key)
{
	if (!v->shapes_vary)
		return 0;
	if (v->groups.taken >= GROUPS_MOST)
		map_fini(&v->groups);
	uint32_t *number = map_get(&v->groups, key);
	if (*number == MAP_NONE)
		*number = v->next_group++;
	return *number;
}

bool device_admit(struct device *d, struct exchange *x)
{
	struct version *v = x->version;
	/* Read when it is back, by whoever has it: written before. */
	x->queued_ns = x->item.arrived_ns;
	pthread_mutex_lock(&d->lock);
	x->item.group = group_of(v, x->group_key);
	note_memory(d);
	const enum batch_refusal why = batch_admit(v->queue, &x->item, x->queued_ns, &x->retry_ns);
	if (why == BATCH_ADMITTED) {
		x->state = EXCHANGE_QUEUED;
		x->may_stage = d->runs_batch;
	}
	pthread_mutex_unlock(&d->lock);
	if (why == BATCH_ADMITTED) {
		x->loop->admitted = true;
		return true;
	}
	x->status = refuse(x, why);
	count_refused(v, x->status);
	return false;
}

bool device_cancel(struct device *d, struct exchange *x)
{
	pthread_mutex_lock(&d->lock);
	const bool queued = x->state == EXCHANGE_QUEUED;
	if (queued) {
		batch_cancel(x->version->queue, &x->item);
		x->state = EXCHANGE_OWN;
	}
	pthread_mutex_unlock(&d->lock);
	return queued;
}

static struct batch *batch_take(struct device *d, struct version *v)
{
	struct batch *b = d->spare;
	if (b)
		d->spare = b->next;
	else
		b = xcalloc(1, sizeof *b);
	b->version = v;
	version_ref(v);
	return b;
}

void batch_unref(struct device *d, struct batch *b)
{
	/* The last one reads what all wrote. */
	if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (!b->failed)
		engine_run_end(b->version->loaded, &b->run);
	version_unref(b->version);
	if (b->pieces.room > SPARE_PIECES)
		array_free(&b->pieces);
	pthread_mutex_lock(&d->lock);
	b->next = d->spare;
	d->spare = b;
	pthread_mutex_unlock(&d->lock);
}

/* The request's tensor for an input of the model; NULL: it was left out. */
static const struct tensor *input_of(const struct exchange *x, unsigned input)
{
	return x->order[input] ? &x->infer.input[x->order[input] - 1].tensor : NULL;
}

/* One input of all requests: pieces that need not be adjacent. */
static void gather(struct batch *b, const struct batch_run *r, unsigned input, size_t piece)
{
	struct engine_input *in = &b->run.in[input];
	const struct tensor *first = input_of(exchange_of(r->item[0]), input);
	*in = (struct engine_input){ .given = first != NULL };
	if (!first)
		return;
	in->type = first->type;
	in->shape = first->shape;
	in->piece = &b->pieces.v[piece];
	in->pieces = r->n;
	if (b->version->batched)
		in->shape.dims[0] = r->rows;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct exchange *x = exchange_of(r->item[i]);
		const struct tensor *t = input_of(x, input);
		const void *staged = load_acquire(&x->staged[x->order[input] - 1].at);
		b->pieces.v[piece + i] = (struct engine_piece){ staged ? staged : t->data, t->bytes,
			x->item.rows, staged != NULL };
	}
}

static bool wants(const struct exchange *x, const char *output)
{
	for (unsigned i = 0; i < x->infer.outputs; i++)
		if (slice_is(x->infer.output[i].name, output))
			return true;
	return x->infer.outputs == 0;
}

static void prepare(struct batch *b, const struct batch_run *r)
{
	const struct engine_model *m = b->version->loaded;
	b->rows = r->rows;
	b->items = r->n;
	b->pieces.n = 0;
	array_reserve(&b->pieces, (size_t)m->ins * r->n);
	for (unsigned i = 0; i < m->ins; i++)
		gather(b, r, i, (size_t)i * r->n);
	for (unsigned i = 0; i < m->outs; i++) {
		b->run.out[i] = (struct engine_output){ 0 };
		for (uint32_t k = 0; k < r->n && !b->run.out[i].wanted; k++)
			b->run.out[i].wanted = wants(exchange_of(r->item[k]), m->out[i].name);
	}
}

/* Each output has a row for each row of the batch. */
static int check_rows(const struct batch *b, struct error *err)
{
	const struct engine_model *m = b->version->loaded;
	for (unsigned i = 0; b->version->batched && i < m->outs; i++) {
		const struct shape *s = &b->run.out[i].shape;
		if (b->run.out[i].wanted && (!s->n || s->dims[0] != b->rows))
			return error_set(err, -EIO,
				"model '%s' gave output '%s' another number of rows than its %u",
				b->version->model->name, m->out[i].name, b->rows);
	}
	return 0;
}

static void add(struct duration *d, uint64_t count, uint64_t ns)
{
	add_relaxed(&d->count, count);
	add_relaxed(&d->ns, ns);
}

static void count_batch(const struct batch_run *r, struct version_stats *s,
	const struct engine_run *run, uint64_t began, uint64_t ran, uint64_t ended)
{
	const uint64_t ns = ended - ran;
	add(&s->infer, r->n, ns * r->n);
	add(&s->input, r->n, (ran - began) * r->n);
	add(&s->sizes[r->rows <= BATCH_MOST ? r->rows : BATCH_MOST], 1, ns);
	add_relaxed(&s->executions, 1);
	add_relaxed(&s->replays, run->replayed);
	add_relaxed(&s->cold_loads, run->returned_ns > 0);
	struct timespec wall;
	clock_gettime(CLOCK_REALTIME, &wall);
	store_relaxed(&s->last_ms, (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000);
	if (r->predicted_ns) {
		const double ratio = (double)ns / (double)r->predicted_ns;
		unsigned k = 0;
		while (k < ERROR_RATIOS && ratio > error_ratios[k])
			k++;
		add_relaxed(&s->error_buckets[k], 1);
		add_relaxed(&s->error_sum_ppm, (uint64_t)(ratio * 1e6));
	}
}

/* Without the lock. */
static void run_batch(struct batch *b, const struct batch_run *r)
{
	struct version *v = b->version;
	struct error err;
	const uint64_t began = monotonic_ns();
	recorded_batch(b, r, began);
	prepare(b, r);
	const uint64_t ran = monotonic_ns();
	int e = engine_run(v->loaded, &b->run, &err);
	b->failed = e != 0;
	const uint64_t ended = monotonic_ns();
	recorded_batch_end(b);
	e = e ? e : check_rows(b, &err);
	count_batch(r, &v->stats, &b->run, began, ran, ended);
	store_relaxed(&b->refs, r->n + 1);
	uint32_t row = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		struct exchange *x = exchange_of(r->item[i]);
		x->batch = b;
		x->first_row = row;
		x->batch_rows = r->rows;
		x->taken_ns = began;
		x->ran_ns = ran;
		x->ended_ns = ended;
		x->status = e;
		if (e)
			x->err = err;
		row += x->item.rows;
		exchange_return(x);
	}
}

static void shed(const struct batch_run *r)
{
	for (uint32_t i = 0; i < r->shed; i++) {
		struct exchange *x = exchange_of(r->gone[i]);
		x->state = EXCHANGE_OWN;
		x->status = error_set(&x->err, -ETIME,
			"model '%s' can't answer this request in time any more, so it did not run",
			x->version->model->name);
		count_refused(x->version, x->status);
		exchange_return(x);
	}
}

/*
 * The next batch, from the decision to what it teaches; false: there is none now, and run.wake_ns
 * says when to look again.  With the lock, which is free while the batch runs, and by the one
 * thread that has the device.
 */
static bool run_next(struct device *d)
{
	struct batch_run *r = &d->run;
	const uint64_t now = monotonic_ns();
	note_memory(d);
	batch_next(d->batcher, now, now, r);
	shed(r);
	if (!r->model)
		return false;
	struct batch *b = batch_take(d, exchange_of(r->item[0])->version);
	for (uint32_t i = 0; i < r->n; i++)
		exchange_of(r->item[i])->state = EXCHANGE_RUNNING;
	d->runs_batch = true;
	pthread_mutex_unlock(&d->lock);
	run_batch(b, r);
	r->failed = b->failed;
	r->spent_ns = b->run.returned_ns;
	const uint64_t done = monotonic_ns();
	pthread_mutex_lock(&d->lock);
	d->runs_batch = false;
	batch_done(d->batcher, r, done);
	pthread_mutex_unlock(&d->lock);
	/* Only now: it keeps the model. */
	batch_unref(d, b);
	pthread_mutex_lock(&d->lock);
	return true;
}

/* It fell asleep with empty queues, and what came since is typically answered soon. */
static bool can_be_borrowed(const struct device *d, uint64_t ns)
{
	return d->state == DEVICE_ASLEEP && d->run.wake_ns == BATCH_NEVER &&
	       batch_is_short(d->batcher, ns);
}

bool device_wake(struct device *d, uint64_t most_ns)
{
	bool ran = false, more = true;
	pthread_mutex_lock(&d->lock);
	while (more && can_be_borrowed(d, most_ns)) {
		d->state = DEVICE_BORROWED;
		more = run_next(d);
		ran |= more;
		d->state = DEVICE_ASLEEP;
		most_ns -= MIN(d->run.predicted_ns, most_ns);
	}
	/* The batches that are left, or that other loops admitted meanwhile, which they left to
	 * this one. */
	const bool wake = d->state == DEVICE_ASLEEP && batch_has_work(d->batcher);
	if (wake)
		d->state = DEVICE_AWAKE;
	pthread_mutex_unlock(&d->lock);
	if (wake)
		pthread_cond_signal(&d->work);
	return ran;
}

static void sleep_until(struct device *d, uint64_t ns)
{
	const struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	d->state = DEVICE_ASLEEP;
	do
		if (ns == BATCH_NEVER)
			pthread_cond_wait(&d->work, &d->lock);
		else
			pthread_cond_timedwait(&d->work, &d->lock, &t);
	while (d->state == DEVICE_BORROWED);
	d->state = DEVICE_AWAKE;
}

static void *device_run(void *data)
{
	struct device *d = data;
	pthread_mutex_lock(&d->lock);
	for (;;) {
		if (run_next(d))
			continue;
		if (d->stopping && d->run.wake_ns == BATCH_NEVER)
			break;
		sleep_until(d, d->run.wake_ns);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int device_start(struct device *d, struct server *s, struct error *err)
{
	cond_init_monotonic(&d->work);
	/* Held for a microsecond: spinning is cheaper than to sleep. */
	pthread_mutexattr_t spins;
	pthread_mutexattr_init(&spins);
	pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&d->lock, &spins);
	d->server = s;
	d->batcher = batcher_new(s->o.policy);
	d->policy = s->o.policy;
	for (unsigned i = 0; i < BATCH_CLASSES; i++) {
		d->class_weights[i] = (float)(1u << (BATCH_CLASSES - 1 - i));
		batcher_set_class_weight(d->batcher, i, d->class_weights[i]);
	}
	const int code = pthread_create(&d->thread, NULL, device_run, d);
	d->runs = code == 0;
	return code ? error_set(err, -code, "the device's thread does not start") : 0;
}

void device_stop(struct device *d)
{
	if (!d->runs)
		return;
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	pthread_cond_signal(&d->work);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
}

void device_close(struct device *d)
{
	for (struct batch *b = d->spare, *next; b; b = next) {
		next = b->next;
		array_free(&b->pieces);
		free(b);
	}
	batcher_free(d->batcher);
	array_free(&d->versions);
}
