/* Metrics of a process that shares, and its memory, from its slots: it has one a GPU. */
#include <string.h>

#include "base/atomic.h"
#include "base/check.h"
#include "client/client.h"
#include "share/quota.h"

/* Sums over the slots of a process. */
struct sums {
	uint32_t slots;
	uint32_t class;
	uint64_t waits, waited_ns, expired, capped;
	uint64_t measured_ns, off_ns;
	uint64_t retired_ns, all_retired_ns; /* of the process; of all on its GPUs */
	uint32_t request[SHARE_BUCKETS], wait[SHARE_BUCKETS];
};

static uint64_t load(const _Atomic uint64_t *word)
{
	return load_relaxed(word);
}

static void add(struct sums *sum, const struct share_file *f, const struct share_slot *s)
{
	const struct share_counts *c = &s->counts;
	sum->slots++;
	sum->class = load_relaxed(&s->grant.class);
	sum->waits += load(&c->waits);
	sum->waited_ns += load(&c->waited_ns);
	sum->expired += load(&c->expired);
	sum->capped += load(&c->capped);
	sum->measured_ns += load(&c->measured_ns);
	sum->off_ns += load(&c->off_ns);
	sum->retired_ns += load(&s->work.retired_ns);
	sum->all_retired_ns += share_retired(f, s->who.device);
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++) {
		sum->request[i] += load_relaxed(shared(&c->request[i]));
		sum->wait[i] += load_relaxed(shared(&c->wait[i]));
	}
}

static void add_process(struct sums *sum, const struct share_file *f, uint32_t pid)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (share_is_live(&f->slots[i]) && f->slots[i].who.pid == pid)
			add(sum, f, &f->slots[i]);
}

static uint64_t count_of(const uint32_t bucket[SHARE_BUCKETS])
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++)
		n += bucket[i];
	return n;
}

static void put_waits(struct weir_sched_metrics *m, const struct sums *sum)
{
	m->queue_wait_count = sum->waits;
	m->queue_wait_expired = sum->expired;
	m->capped_count = sum->capped;
	if (!sum->waits)
		return;
	m->valid |= WEIR_VALID_QUEUE_WAIT;
	m->queue_wait_mean_ns = sum->waited_ns / sum->waits;
	m->queue_wait_p95_ns = share_percentile(sum->wait, 0.95);
	m->queue_wait_p99_ns = share_percentile(sum->wait, 0.99);
}

static void put_work(struct weir_sched_metrics *m, const struct sums *sum)
{
	if (sum->all_retired_ns) {
		m->valid |= WEIR_VALID_RESIDENCY;
		m->predicted_residency_share =
			(double)sum->retired_ns / (double)sum->all_retired_ns;
	}
	if (sum->measured_ns) {
		m->valid |= WEIR_VALID_PREDICTION;
		m->prediction_error = (double)sum->off_ns / (double)sum->measured_ns;
		m->prediction_measured_ns = sum->measured_ns;
	}
}

static void put_requests(struct weir_sched_metrics *m, const struct sums *sum)
{
	m->request_count = count_of(sum->request);
	if (!m->request_count)
		return;
	m->valid |= WEIR_VALID_REQUESTS;
	m->request_p50_ns = share_percentile(sum->request, 0.5);
	m->request_p95_ns = share_percentile(sum->request, 0.95);
	m->request_p99_ns = share_percentile(sum->request, 0.99);
}

/* For an answer of `bytes` to *ret: the file, and for the caller's own process, 0, its slots. */
static int find_asked(
	struct handle *h, uint32_t pid, const void *ret, size_t bytes, struct own_slots *ret_own)
{
	if (!ret)
		return WEIR_ERROR_ARGUMENT;
	if (!sized_is_known(ret, bytes))
		return WEIR_ERROR_SIZE;
	return pid ? handle_reach_file(h, &ret_own->file) : own_slots_find(h, ret_own);
}

static int get_metrics(struct handle *h, uint32_t pid, struct weir_sched_metrics *ret)
{
	struct weir_sched_metrics m = { .valid = 0 };
	struct sums sum = { .slots = 0 };
	struct own_slots own = { .count = 0 };
	const int status = find_asked(h, pid, ret, sizeof m, &own);
	if (status)
		return status;
	for (uint32_t i = 0; i < own.count; i++)
		add(&sum, own.file, &own.file->slots[own.slot[i]]);
	if (pid)
		add_process(&sum, own.file, pid);
	if (!sum.slots)
		return WEIR_ERROR_NOT_FOUND;
	m.sched_class = sum.class == CLASS_LATENCY ? WEIR_CLASS_LATENCY : WEIR_CLASS_BEST_EFFORT;
	put_waits(&m, &sum);
	put_work(&m, &sum);
	put_requests(&m, &sum);
	sized_write(ret, &m, sizeof m);
	return WEIR_OK;
}

int weir_sched_get_metrics(weir_sched handle, uint32_t pid, struct weir_sched_metrics *ret_metrics)
{
	return WITH_LOG(handle, h, get_metrics(h, pid, ret_metrics), NULL);
}

static void put_group(struct weir_sched_memory *to, const struct share_file *f, uint32_t slot)
{
	const struct quota_sum sum = quota_sum(f, slot);
	to->quota = sum.quota;
	to->quota_left = quota_left(&sum);
	to->group_used = sat_add(sum.used, sum.contexts);
}

static void put_memory(struct weir_sched_memory *to, const struct share_file *f, uint32_t slot)
{
	const struct share_slot *s = &f->slots[slot];
	const struct share_memory *m = &s->memory;
	const struct share_device *d = &f->devices[s->who.device % SHARE_DEVICES];
	memcpy(to->gpu_uuid, d->who.uuid, sizeof to->gpu_uuid);
	to->used = load(&m->used);
	to->contexts = load_relaxed(&m->contexts) * load(&d->who.context_bytes);
	to->idle = load(&m->idle);
	to->pool_spare = load(&m->spare);
	to->given_away = load(&m->given);
	to->wanted = load(&m->wanted);
	to->group_peak = load(&m->peak);
	to->refused_count = load_relaxed(&m->refused);
	to->pool_hit_count = load(&m->hits);
	to->driver_alloc_count = count_of(m->took);
	to->driver_alloc_p50_ns = share_percentile(m->took, 0.5);
	to->driver_alloc_p99_ns = share_percentile(m->took, 0.99);
	put_group(to, f, slot);
}

/* The slot of a process on its `gpu`th GPU; SHARE_SLOTS: it has none. */
static uint32_t slot_of(const struct share_file *f, uint32_t pid, uint32_t gpu)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (share_is_live(&f->slots[i]) && f->slots[i].who.pid == pid && !gpu--)
			return i;
	return SHARE_SLOTS;
}

static int get_memory(struct handle *h, uint32_t pid, uint32_t gpu, struct weir_sched_memory *ret)
{
	struct weir_sched_memory m = { .quota = 0 };
	struct own_slots own = { .count = 0 };
	const int status = find_asked(h, pid, ret, sizeof m, &own);
	if (status)
		return status;
	const uint32_t slot = pid               ? slot_of(own.file, pid, gpu)
			      : gpu < own.count ? own.slot[gpu]
						: SHARE_SLOTS;
	if (slot == SHARE_SLOTS)
		return WEIR_ERROR_NOT_FOUND;
	put_memory(&m, own.file, slot);
	sized_write(ret, &m, sizeof m);
	return WEIR_OK;
}

int weir_sched_get_memory(
	weir_sched handle, uint32_t pid, uint32_t gpu, struct weir_sched_memory *ret_memory)
{
	return WITH_LOG(handle, h, get_memory(h, pid, gpu, ret_memory), NULL);
}

/* Whether a slot before it is of the same process: on another GPU. */
static bool is_again(const struct share_file *f, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (f->slots[k].who.pid == f->slots[i].who.pid && share_is_live(&f->slots[k]))
			return true;
	return false;
}

static int get_processes(struct handle *h, uint32_t *ret_pids, size_t room, size_t *ret_count)
{
	struct share_file *f;
	size_t n = 0;
	if (!ret_count || (room && !ret_pids))
		return WEIR_ERROR_ARGUMENT;
	const int status = handle_reach_file(h, &f);
	if (status)
		return status;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		if (!share_is_live(&f->slots[i]) || is_again(f, i))
			continue;
		if (n < room)
			ret_pids[n] = f->slots[i].who.pid;
		n++;
	}
	*ret_count = n;
	return WEIR_OK;
}

int weir_sched_get_processes(weir_sched handle, uint32_t *ret_pids, size_t room, size_t *ret_count)
{
	return WITH_LOG(handle, h, get_processes(h, ret_pids, room, ret_count), NULL);
}
