/* Makes the view of running programs and GPUs. */
#include "monitor/watch.h"

#include <string.h>

#include "base/monotonic.h"
#include "share/policy.h"

#define LATE_NS 1000000000u /* by which activities come to a recording, as a rule */

static const char *name_at(const char *const *names, size_t n, uint32_t i)
{
	return i < n ? names[i] : "?";
}

const char *watch_class_name(const struct watch_program *p)
{
	static const char *const names[] = { "none", "latency", "best-effort" };
	return name_at(names, 3, p->class);
}

bool watch_counts_calls(const struct watch_program *p)
{
	return p->recorded && (p->calls || !p->switched_off);
}

bool watch_counts_launches(const struct watch_program *p)
{
	return p->shares || watch_counts_calls(p);
}

bool watch_has_calls(const struct watch_program *p)
{
	return p->recorded && !p->switched_off && p->has_rates;
}

bool watch_has_launches(const struct watch_program *p)
{
	return ((p->recorded && !p->switched_off) || p->shares) && p->has_rates;
}

bool watch_has_requests(const struct watch_program *p)
{
	return p->shares && p->has_rates;
}

const char *watch_mode_name(const struct watch_program *p)
{
	static const char *const names[] = { "open", "gated", "gated or capped", "budget", "held" };
	return name_at(names, 5, p->mode);
}

void watch_uuid(const uint8_t uuid[16], char ret[WATCH_UUID])
{
	size_t at = 4;
	memcpy(ret, "GPU-", 5);
	for (unsigned i = 0; i < 16; i++) {
		const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
		at += (size_t)snprintf(
			ret + at, WATCH_UUID - at, "%s%02x", dash ? "-" : "", uuid[i]);
	}
}

static uint32_t waits_for(const struct share_file *f, uint32_t i)
{
	const struct share_slot *s = &f->slots[i];
	const struct share_device *d = &f->devices[s->who.device % SHARE_DEVICES];
	if (s->grant.class != CLASS_BEST_EFFORT)
		return 0;
	for (uint32_t k = 0; k < SHARE_SLOTS; k++)
		if (k != i && share_bit(d->active, k))
			return f->slots[k].who.pid;
	return 0;
}

/* From the first launch of a request until its end was seen; requests of several threads may
 * overlap. */
static uint64_t inside_ns(const struct share_slot *s, uint64_t now_ns)
{
	const uint64_t begun = load_relaxed(&s->work.begun_ns);
	const bool inside = load_relaxed(&s->work.inside) && now_ns > begun;
	return load_relaxed(&s->counts.request_ns) + (inside ? now_ns - begun : 0);
}

static void add_sharing(struct watch *w, uint32_t i)
{
	const struct share_slot *s = &w->file->slots[i];
	struct watch_program *p = array_push(&w->programs);
	*p = (struct watch_program){ .pid = s->who.pid,
		.shares = true,
		.class = load_relaxed(&s->grant.class),
		.mode = load_relaxed(&s->grant.mode),
		.inside = load_relaxed(&s->work.inside),
		.waits_for = waits_for(w->file, i),
		.device_ns = load_relaxed(&s->work.retired_ns),
		.requests = load_relaxed(&s->work.requests),
		.inside_ns = inside_ns(s, w->ns),
		.launches = load_relaxed(&s->counts.launches),
		.waits = load_relaxed(&s->counts.waits),
		.waited_ns = load_relaxed(&s->counts.waited_ns),
		.expired = load_relaxed(&s->counts.expired),
		.capped = load_relaxed(&s->counts.capped),
		.request_p50_ns = share_percentile(s->counts.request, 0.5),
		.request_p99_ns = share_percentile(s->counts.request, 0.99),
		.request_ns = load_relaxed(&s->counts.request_ns),
		.steer = s->steer,
		.memory_used = load_relaxed(&s->memory.used) + load_relaxed(&s->memory.idle),
		.memory_quota = s->memory.quota,
		.refused = load_relaxed(&s->memory.refused) };
	memcpy(p->request, s->counts.request, sizeof p->request);
	memcpy(p->uuid, w->file->devices[s->who.device % SHARE_DEVICES].who.uuid, 16);
	snprintf(p->name, sizeof p->name, "%.*s", (int)SHARE_NAME, s->who.name);
}

static void look_at_sharing(struct watch *w)
{
	const struct share_file *f = w->file;
	*w->policy = 0;
	w->open = w->has_arbiter = false;
	if (!f)
		return;
	snprintf(w->policy, sizeof w->policy, "%s", policy_of(f)->name);
	w->open = load_relaxed(&f->arbiter.open);
	w->has_arbiter = share_has_arbiter(f, w->ns);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (share_is_live(&f->slots[i]))
			add_sharing(w, i);
}

static struct watch_program *find(
	struct watch_program *v, size_t n, uint32_t pid, const uint8_t *uuid)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].pid == pid && (!uuid || !memcmp(v[i].uuid, uuid, 16)))
			return &v[i];
	return NULL;
}

static void add_recorded(struct watch *w, const struct recorded *r)
{
	struct watch_program *p = find(w->programs.v, w->programs.n, r->pid, NULL);
	if (!p) {
		p = array_push(&w->programs);
		*p = (struct watch_program){ .pid = r->pid };
		snprintf(p->name, sizeof p->name, "%s", r->name);
	}
	const struct trace_header *h = recording_header(r->recording);
	p->recorded = true;
	p->switched_off = !(load_relaxed(&h->control) & ~CONTROL_MORE);
	p->calls = r->calls;
	p->launches = r->launches;
	p->gpu_from_ns = r->gpu_from_ns;
	p->gpu_until_ns = r->gpu_until_ns;
	p->gpu_busy_ns = r->gpu_busy_ns;
	p->gpu_look_from_ns = r->gpu_look_from_ns;
	p->lost = load_relaxed(&h->lost);
}

static void look_at_recordings(struct watch *w)
{
	const struct follow_sink to = { feed_kernel, &w->feed };
	w->feed.recordings = &w->recordings;
	recordings_look(&w->recordings, w->feed.regress ? &to : NULL);
	for (size_t i = 0; i < w->recordings.processes.n; i++)
		add_recorded(w, &w->recordings.processes.v[i]);
}

static double per_s(uint64_t now, uint64_t before, uint64_t ns)
{
	return now > before && ns ? (double)(now - before) * 1e9 / (double)ns : 0;
}

static void push(float history[WATCH_HISTORY], const float *before, double value)
{
	if (before)
		memcpy(history, before + 1, (WATCH_HISTORY - 1) * sizeof *history);
	history[WATCH_HISTORY - 1] = (float)value;
}

/*
 * Activities come to a recording some time after they ended, many at once: what came since the look
 * before is of the time from the last that was there then to the last that is here now.  For a
 * program that ran nothing for long that would be the long time as well, so it is cut, unless what
 * came began before.
 */
static void rate_recorded(
	struct watch_program *p, const struct watch_program *before, uint64_t before_ns)
{
	const uint64_t seen = before->gpu_until_ns ? before->gpu_until_ns : p->gpu_from_ns;
	const uint64_t cut = before_ns > LATE_NS ? before_ns - LATE_NS : 0;
	const uint64_t from = cut > seen && p->gpu_look_from_ns >= cut ? cut : seen;
	if (p->gpu_until_ns <= seen)
		return;
	p->has_busy = true;
	p->busy = (double)(p->gpu_busy_ns - before->gpu_busy_ns) / (double)(p->gpu_until_ns - from);
}

/* Device time is predicted of launches that are regulated.  For others it is at most the time in
 * which they had work on the device. */
static void rate_shared(struct watch_program *p, const struct watch_program *before, uint64_t ns)
{
	p->has_busy = true;
	if (p->device_ns > before->device_ns || p->waits_for)
		p->busy = per_s(p->device_ns, before->device_ns, ns) / 1e9;
	else
		p->busy = per_s(p->inside_ns, before->inside_ns, ns) / 1e9;
	p->busy = MIN(1, p->busy);
}

/* A program that was not there before has no rates yet. */
static void rate(struct watch_program *p, const struct watch_program *before, uint64_t before_ns,
	uint64_t ns)
{
	p->has_rates = before;
	if (before) {
		rate_recorded(p, before, before_ns);
		if (p->shares && !p->has_busy)
			rate_shared(p, before, ns);
		p->calls_per_s = per_s(p->calls, before->calls, ns);
		p->launches_per_s = per_s(p->launches, before->launches, ns);
		p->requests_per_s = per_s(p->requests, before->requests, ns);
		p->waiting = per_s(p->waited_ns, before->waited_ns, ns) / 1e9;
	}
	push(p->history, before ? before->history : NULL, p->shares ? p->busy : p->launches_per_s);
}

static void add_to_class(struct watch *w, const struct watch_program *p, uint64_t ns)
{
	if (!p->shares)
		return;
	struct watch_class *c = &w->classes[p->class <= CLASS_BEST_EFFORT ? p->class : CLASS_NONE];
	const double s = (double)ns / 1e9;
	c->device_s += p->busy * s;
	c->waiting_s += p->waiting * s;
	c->requests += p->requests_per_s * s;
}

static void look_at_gpus(struct watch *w, enum nvml_how how)
{
	for (unsigned i = 0; i < nvml_count(w->nvml); i++) {
		struct watch_gpu *g = i < w->gpus.n ? &w->gpus.v[i] : array_push(&w->gpus);
		if (w->looks == 0) {
			*g = (struct watch_gpu){ 0 };
			snprintf(g->name, sizeof g->name, "%s", nvml_name(w->nvml, i));
		}
		nvml_sample(w->nvml, i, how, &g->sample);
		memmove(g->history, g->history + 1, sizeof g->history - sizeof *g->history);
		g->history[WATCH_HISTORY - 1] = g->sample.busy_pct;
	}
}

void watch_look(struct watch *w, enum nvml_how how)
{
	const uint64_t before_ns = w->ns;
	array_turn(&w->programs, &w->before);
	w->ns = monotonic_ns();
	look_at_sharing(w);
	look_at_recordings(w);
	feed_requests(&w->feed, w->file, w->ns);
	look_at_gpus(w, how);
	array_each(struct watch_program, p, w->programs) {
		rate(p, find(w->before.v, w->before.n, p->pid, p->uuid), before_ns,
			w->ns - before_ns);
		add_to_class(w, p, w->ns - before_ns);
	}
	w->looks++;
	w->took_ns = monotonic_ns() - w->ns;
}

void watch_fini(struct watch *w)
{
	recordings_fini(&w->recordings);
	feed_fini(&w->feed);
	array_free(&w->programs, &w->before, &w->gpus);
}

static void put_rate(struct json *j, const char *key, bool known, double value)
{
	if (known)
		json_put_real(j, key, value);
}

static void put_shared(struct json *j, const struct watch_program *p)
{
	json_u64(j, "predicted_device_ns", p->device_ns);
	json_u64(j, "requests", p->requests);
	json_u64_or_null(j, "request_p50_ns", p->request_p50_ns, p->request_p50_ns);
	json_u64_or_null(j, "request_p99_ns", p->request_p99_ns, p->request_p99_ns);
	json_u64(j, "waited_launches", p->waits);
	json_u64(j, "waited_ns", p->waited_ns);
	json_u64(j, "memory_used_bytes", p->memory_used);
	json_u64_or_null(j, "memory_quota_bytes", p->memory_quota, p->memory_quota);
}

static void put_program(struct json *j, const struct watch_program *p)
{
	char uuid[WATCH_UUID];
	watch_uuid(p->uuid, uuid);
	json_begin_object(j, NULL);
	json_u64(j, "pid", p->pid);
	json_str(j, "program", p->name);
	json_bool(j, "shares", p->shares);
	json_bool(j, "recorded", p->recorded);
	json_str_or_null(j, "device", p->shares ? uuid : NULL);
	json_str_or_null(j, "class", p->shares ? watch_class_name(p) : NULL);
	json_str_or_null(j, "mode", p->shares ? watch_mode_name(p) : NULL);
	json_u64_or_null(j, "waits_for", p->waits_for, p->waits_for);
	put_rate(j, "busy", p->has_busy, p->busy);
	put_rate(j, "launches_per_s", watch_has_launches(p), p->launches_per_s);
	put_rate(j, "calls_per_s", watch_has_calls(p), p->calls_per_s);
	put_rate(j, "requests_per_s", watch_has_requests(p), p->requests_per_s);
	put_rate(j, "waiting", watch_has_requests(p), p->waiting);
	if (p->shares)
		put_shared(j, p);
	if (p->recorded)
		json_u64_or_null(j, "lost_calls", watch_counts_calls(p), p->lost);
	json_end_object(j);
}

static void put_gpu(struct json *j, const struct watch_gpu *g)
{
	char uuid[WATCH_UUID];
	const struct gpu_sample *s = &g->sample;
	const uint32_t has = s->valid;
	watch_uuid(s->uuid, uuid);
	json_begin_object(j, NULL);
	json_u64(j, "device", s->device);
	json_str(j, "name", g->name);
	json_str(j, "uuid", uuid);
	json_u64_or_null(j, "utilization_pct", has & SAMPLE_BUSY, s->busy_pct);
	json_u64_or_null(j, "memory_used_bytes", has & SAMPLE_HAS_MEMORY, s->memory_used);
	json_u64_or_null(j, "memory_total_bytes", has & SAMPLE_HAS_MEMORY, s->memory_total);
	json_u64_or_null(j, "power_mw", has & SAMPLE_HAS_POWER, s->power_mw);
	json_u64_or_null(j, "power_limit_mw", has & SAMPLE_HAS_POWER_LIMIT, s->power_limit_mw);
	json_u64_or_null(j, "temperature_celsius", has & SAMPLE_HAS_CELSIUS, s->celsius);
	json_u64_or_null(j, "sm_clock_mhz", has & SAMPLE_HAS_SM_CLOCK, s->sm_mhz);
	json_u64_or_null(j, "memory_clock_mhz", has & SAMPLE_HAS_MEMORY_CLOCK, s->memory_mhz);
	json_u64_or_null(j, "throttle_reasons", has & SAMPLE_HAS_REASONS, s->reasons);
	json_end_object(j);
}

void watch_put_json(struct json *j, const struct watch *w)
{
	json_str_or_null(j, "policy", *w->policy ? w->policy : NULL);
	json_bool(j, "open", w->open);
	json_bool(j, "arbiter", w->has_arbiter);
	json_begin_array(j, "programs");
	for (size_t i = 0; i < w->programs.n; i++)
		put_program(j, &w->programs.v[i]);
	json_end_array(j);
	json_begin_array(j, "gpus");
	for (size_t i = 0; i < w->gpus.n; i++)
		put_gpu(j, &w->gpus.v[i]);
	json_end_array(j);
}
