/* Summarises the samples of NVML. */
#include "model/gpu_state.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/sort.h"
#include "trace/activity.h"

#define SLOW_BELOW 0.95 /* of the highest SM clock */

#define AT(member) offsetof(struct gpu_sample, member), sizeof((struct gpu_sample *)NULL)->member
const struct gpu_metric_row gpu_metrics[GPU_METRICS] = {
	[METRIC_BUSY] = { "utilization_pct", "utilisation", "%", AT(busy_pct), SAMPLE_BUSY },
	[METRIC_MEMORY_BUSY] = { "memory_utilization_pct", "memory utilisation", "%",
		AT(memory_busy_pct), SAMPLE_HAS_BUSY },
	[METRIC_MEMORY] = { "memory_used_bytes", "memory used", "B", AT(memory_used),
		SAMPLE_HAS_MEMORY },
	[METRIC_POWER] = { "power_w", "power", "W", AT(power_mw), SAMPLE_HAS_POWER },
	[METRIC_CELSIUS] = { "temperature_celsius", "temperature", "°C", AT(celsius),
		SAMPLE_HAS_CELSIUS },
	[METRIC_SM_CLOCK] = { "sm_clock_mhz", "SM clock", "MHz", AT(sm_mhz), SAMPLE_HAS_SM_CLOCK },
	[METRIC_MEMORY_CLOCK] = { "memory_clock_mhz", "memory clock", "MHz", AT(memory_mhz),
		SAMPLE_HAS_MEMORY_CLOCK },
	[METRIC_PCIE_TX] = { "pcie_tx_bytes_per_s", "PCIe sent", "B/s", AT(pcie_tx),
		SAMPLE_HAS_PCIE },
	[METRIC_PCIE_RX] = { "pcie_rx_bytes_per_s", "PCIe received", "B/s", AT(pcie_rx),
		SAMPLE_HAS_PCIE },
	[METRIC_NVLINK_TX] = { "nvlink_tx_bytes_per_s", "NVLink sent", "B/s", AT(nvlink_tx),
		SAMPLE_HAS_NVLINK, true },
	[METRIC_NVLINK_RX] = { "nvlink_rx_bytes_per_s", "NVLink received", "B/s", AT(nvlink_rx),
		SAMPLE_HAS_NVLINK, true },
	[METRIC_ECC_CORRECTED] = { "ecc_corrected", "ECC errors, corrected", "", AT(ecc_corrected),
		SAMPLE_HAS_ECC },
	[METRIC_ECC_UNCORRECTED] = { "ecc_uncorrected", "ECC errors, uncorrected", "",
		AT(ecc_uncorrected), SAMPLE_HAS_ECC },
};
#undef AT

const char *throttle_reason_name(unsigned i)
{
	static const char *const names[THROTTLE_REASONS] = { "idle", "application clocks",
		"power cap", "hardware slowdown", "sync boost", "thermal slowdown",
		"hardware thermal slowdown", "power brake", "display clocks" };
	return i < THROTTLE_REASONS ? names[i] : "unknown";
}

static bool has_rate(const struct gpu_sample *s, const struct gpu_sample *before)
{
	return before && s->valid & before->valid & SAMPLE_HAS_NVLINK && s->ns > before->ns &&
	       s->nvlink_tx >= before->nvlink_tx && s->nvlink_rx >= before->nvlink_rx;
}

static double value_of(const struct gpu_sample *s, const struct gpu_metric_row *m)
{
	uint64_t n = 0;
	memcpy(&n, (const char *)s + m->at, m->bytes);
	return (double)n;
}

bool gpu_metric_of(const struct gpu_sample *s, const struct gpu_sample *before,
	enum gpu_metric metric, double *ret)
{
	const struct gpu_metric_row *m = &gpu_metrics[metric];
	if (!(s->valid & m->valid) || (m->is_total && !has_rate(s, before)))
		return false;
	*ret = value_of(s, m);
	if (metric == METRIC_POWER)
		*ret /= 1e3;
	if (m->is_total)
		*ret = (*ret - value_of(before, m)) * 1e9 / (double)(s->ns - before->ns);
	return true;
}

static bool is_used(const struct meta *m, const struct gpu_sample *s)
{
	static const uint8_t unknown[16];
	bool named = false;
	for (size_t i = 0; m && i < m->devices.n; i++) {
		const uint8_t *uuid = m->devices.v[i].uuid;
		if (!memcmp(uuid, s->uuid, 16))
			return true;
		named = named || memcmp(uuid, unknown, 16) != 0;
	}
	return !named;
}

static int read_samples(const struct trace *t, struct gpu_states *to)
{
	struct cursor at = { .t = t };
	for (struct gpu_sample s; trace_next_sample(&at, &s);)
		*array_push(&to->samples) = s;
	return at.error;
}

static bool any_is_used(const struct gpu_states *s, const struct meta *m)
{
	for (size_t i = 0; i < s->samples.n; i++)
		if (is_used(m, &s->samples.v[i]))
			return true;
	return false;
}

/* Under another name space of devices, as in MIG, no UUID may be the same: then all are shown. */
static void drop_unused(struct gpu_states *s, const struct meta *m)
{
	size_t kept = 0;
	if (!any_is_used(s, m))
		return;
	for (size_t i = 0; i < s->samples.n; i++)
		if (is_used(m, &s->samples.v[i]))
			s->samples.v[kept++] = s->samples.v[i];
	s->samples.n = kept;
}

ORDERING(sample_order, struct gpu_sample, ORDER(a->device, b->device), ORDER(a->ns, b->ns))

static struct gpu_range range_of(
	const struct gpu_sample *s, size_t count, enum gpu_metric metric, double *room)
{
	struct gpu_range r = { 0 };
	for (size_t i = 0; i < count; i++)
		r.count += gpu_metric_of(s + i, i ? s + i - 1 : NULL, metric, &room[r.count]);
	if (!r.count)
		return r;
	qsort(room, r.count, sizeof *room, order_real);
	r.low = room[0];
	r.median = room[(r.count - 1) / 2];
	r.high = room[r.count - 1];
	return r;
}

static bool is_slow(const struct gpu_sample *s, double highest)
{
	if (!(s->valid & SAMPLE_HAS_SM_CLOCK) || s->sm_mhz >= SLOW_BELOW * highest)
		return false;
	return s->valid & SAMPLE_HAS_REASONS ? !(s->reasons & THROTTLE_IDLE) : s->busy_pct;
}

/* From each slow sample to the next sample, and on while those are slow. */
static void find_slow(struct gpu_state *g, const struct gpu_sample *s)
{
	bool open = false;
	for (size_t i = 0; i + 1 < g->count; i++) {
		if (!is_slow(&s[i], g->range[METRIC_SM_CLOCK].high)) {
			open = false;
			continue;
		}
		struct gpu_slow *at = open ? &g->slow.v[g->slow.n - 1] : array_push(&g->slow);
		if (!open)
			*at = (struct gpu_slow){
				.device = g->device, .start_ns = s[i].ns, .mhz = s[i].sm_mhz
			};
		open = true;
		at->ns = s[i + 1].ns - at->start_ns;
		at->mhz = s[i].sm_mhz < at->mhz ? s[i].sm_mhz : at->mhz;
		at->of_highest = at->mhz / g->range[METRIC_SM_CLOCK].high;
		at->reasons |= s[i].valid & SAMPLE_HAS_REASONS ? s[i].reasons : 0;
		g->slow_ns += s[i + 1].ns - s[i].ns;
	}
}

static void add_gpu(struct gpu_states *to, size_t first, size_t count, double *room)
{
	const struct gpu_sample *s = to->samples.v + first;
	struct gpu_state *g = array_push(&to->gpus);
	*g = (struct gpu_state){ .device = s->device, .first = first, .count = count };
	memcpy(g->uuid, s->uuid, sizeof g->uuid);
	for (enum gpu_metric m = 0; m < GPU_METRICS; m++)
		g->range[m] = range_of(s, count, m, room);
	for (size_t i = 0; i + 1 < count; i++)
		room[i] = (double)(s[i + 1].ns - s[i].ns);
	if (count > 1) {
		qsort(room, count - 1, sizeof *room, order_real);
		const double distance = room[(count - 2) / 2];
		to->interval_ns = distance < 0x1p63 ? (uint64_t)distance : UINT64_MAX;
	}
	find_slow(g, s);
}

static void add_gpus(struct gpu_states *to)
{
	double *room = xcalloc(to->samples.n + 1, sizeof *room);
	for (size_t at = 0, end; at < to->samples.n; at = end) {
		for (end = at + 1; end < to->samples.n &&
				   to->samples.v[end].device == to->samples.v[at].device;)
			end++;
		add_gpu(to, at, end - at, room);
	}
	free(room);
}

/* The GPU that a process calls `device`, or NULL. */
static struct gpu_state *find_gpu(
	struct gpu_states *s, const struct meta *m, uint32_t process, uint32_t device)
{
	array_each(const struct meta_device, d, m->devices) {
		if (d->process != process || d->device != device)
			continue;
		for (size_t k = 0; k < s->gpus.n; k++)
			if (!memcmp(s->gpus.v[k].uuid, d->uuid, 16))
				return &s->gpus.v[k];
	}
	return NULL;
}

static void add_kernel(struct gpu_state *g, const struct gpu_activity *w)
{
	const struct gpu_slow *slow = g->slow.v;
	size_t i = SEARCH(k, 0, g->slow.n, slow[k].start_ns + slow[k].ns <= w->start_ns);
	for (; i < g->slow.n && slow[i].start_ns < w->end_ns; i++) {
		const uint64_t end = slow[i].start_ns + slow[i].ns;
		const uint64_t from = MAX(w->start_ns, slow[i].start_ns);
		g->slow.v[i].kernel_ns += (w->end_ns < end ? w->end_ns : end) - from;
	}
}

static int add_kernels(const struct trace *t, const struct meta *m, struct gpu_states *to)
{
	struct cursor at = { .t = t };
	bool any = false;
	for (size_t i = 0; i < to->gpus.n; i++)
		any = any || to->gpus.v[i].slow.n;
	for (struct gpu_activity w; any && trace_next_activity(&at, &w);) {
		struct gpu_state *g =
			w.kind == GPU_KERNEL ? find_gpu(to, m, at.ref->process, w.device) : NULL;
		if (g)
			add_kernel(g, &w);
	}
	return at.error;
}

int gpu_states_load(const struct trace *t, const struct meta *m, struct gpu_states *ret)
{
	*ret = (struct gpu_states){ 0 };
	int e = read_samples(t, ret);
	if (!e) {
		drop_unused(ret, m);
		SORT(ret->samples, sample_order);
		add_gpus(ret);
	}
	if (!e && m)
		e = add_kernels(t, m, ret);
	if (e)
		gpu_states_fini(ret);
	return e;
}

void gpu_states_fini(struct gpu_states *s)
{
	for (size_t i = 0; i < s->gpus.n; i++)
		array_free(&s->gpus.v[i].slow);
	array_free(&s->gpus, &s->samples);
}
