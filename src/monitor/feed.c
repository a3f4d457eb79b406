/* Feeds durations to the detector of slowdowns. */
#include "monitor/feed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/demangle.h"
#include "monitor/recordings.h"
#include "monitor/request_level.h"
#include "monitor/watch.h"

#define LISTED 1000u /* alarms in one answer */

struct feed_slot {
	uint32_t pid;
	uint64_t start_time, request_ns;
	uint32_t request[SHARE_BUCKETS];
};

static void take_program(struct feed *feed, uint32_t pid)
{
	if (feed->program && feed->pid == pid)
		return;
	feed->pid = pid;
	feed->program = recordings_name(feed->recordings, pid);
	feed->program_hash = regress_text_hash(feed->program, strlen(feed->program));
}

/* Names are made readable once, when a series begins. */
static void begin_series(struct feed *feed, struct regress_what *what, const char *mangled)
{
	char *name = demangle(mangled);
	snprintf(what->name, sizeof what->name, "%s", name);
	free(name);
	snprintf(what->program, sizeof what->program, "%s", feed->program);
}

void feed_kernel(void *data, const struct follow_kernel *k)
{
	struct feed *feed = data;
	const struct gpu_activity *ran = k->ran;
	struct regress_what what = { .kind = REGRESS_KERNEL, .name_hash = k->name_hash };
	const uint64_t took = ran->end_ns - ran->start_ns;
	take_program(feed, k->pid);
	what.program_hash = feed->program_hash;
	memcpy(what.uuid, k->uuid, sizeof what.uuid);
	if (ran->valid & GPU_HAS_SHAPE) {
		memcpy(what.grid, ran->grid, sizeof what.grid);
		memcpy(what.block, ran->block, sizeof what.block);
	}
	what.shared = ran->valid & GPU_HAS_SHARED ? ran->shared_dynamic : 0;
	const uint64_t key = regress_key(&what);
	if (regress_add(feed->regress, key, k->pid, ran->end_ns, took))
		return;
	begin_series(feed, &what, k->name);
	if (regress_begin(feed->regress, &what, ran->end_ns))
		regress_add(feed->regress, key, k->pid, ran->end_ns, took);
}

static void add_requests(struct feed *feed, const struct share_file *f, const struct share_slot *s,
	uint64_t level, uint64_t now_ns)
{
	const char *class =
		watch_class_name(&(struct watch_program){ .class = load_relaxed(&s->grant.class) });
	struct regress_what what = { .kind = REGRESS_REQUEST,
		.name_hash = regress_text_hash(class, strlen(class)) };
	snprintf(what.program, sizeof what.program, "%.*s", (int)SHARE_NAME, s->who.name);
	snprintf(what.name, sizeof what.name, "%s", class);
	what.program_hash = regress_text_hash(what.program, strlen(what.program));
	memcpy(what.uuid, f->devices[s->who.device % SHARE_DEVICES].who.uuid, sizeof what.uuid);
	if (regress_begin(feed->regress, &what, now_ns))
		regress_add(feed->regress, regress_key(&what), s->who.pid, now_ns, level);
}

static void look_at_slot(struct feed *feed, const struct share_file *f, uint32_t i, uint64_t now_ns)
{
	const struct share_slot *s = &f->slots[i];
	struct feed_slot *before = &feed->slots[i], now = { .pid = s->who.pid,
		.start_time = s->who.start_time,
		.request_ns = load_relaxed(&s->counts.request_ns) };
	uint32_t count;
	if (!share_is_joined(s) ||
		s->grant.class != CLASS_LATENCY) /* the others are slowed on purpose */
		return;
	memcpy(now.request, s->counts.request, sizeof now.request);
	if (before->pid == now.pid && before->start_time == now.start_time) {
		const uint64_t level = request_level(
			before->request, now.request, now.request_ns - before->request_ns, &count);
		if (count)
			add_requests(feed, f, s, level, now_ns);
	}
	*before = now;
}

void feed_requests(struct feed *feed, const struct share_file *f, uint64_t now_ns)
{
	if (!f || !feed->regress)
		return;
	if (!feed->slots)
		feed->slots = xcalloc(SHARE_SLOTS, sizeof *feed->slots);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		look_at_slot(feed, f, i, now_ns);
}

void feed_fini(struct feed *feed)
{
	free(feed->slots);
	feed->slots = NULL;
}

const char *feed_kind_name(const struct regress_series *s)
{
	return s->what.kind == REGRESS_KERNEL ? "kernel" : "requests";
}

static void put_evidence(struct json *j, const struct regress_series *s, uint64_t now_ns)
{
	const uint64_t since = now_ns > s->raised_ns ? now_ns - s->raised_ns : 0;
	json_str(j, "found_by", s->state == REGRESS_SLOWER ? "step" : "creep");
	json_put_real(j, "raised_s_ago", (double)since / 1e9);
	json_u64(j, "before_ns", (uint64_t)exp(s->before));
	json_u64(j, "after_ns", (uint64_t)exp(s->after));
	json_put_real(j, "slowdown_ratio", exp(s->after - s->before));
	json_put_real(j, "slowdown_ratio_now",
		exp(s->state == REGRESS_SLOWER ? s->effect : s->after - s->before));
	json_put_real(j, "p", s->p);
	json_put_real(j, "p_needed", s->level);
	json_put_real(j, "usual_swing", s->swing);
	json_u64(j, "windows_before", s->base_n);
	json_u64(j, "windows_after", s->current_n);
}

void feed_put_alarm(struct json *j, const struct regress_series *s, uint64_t now_ns)
{
	char id[20], uuid[WATCH_UUID];
	snprintf(id, sizeof id, "%016" PRIx64, s->key);
	watch_uuid(s->what.uuid, uuid);
	json_begin_object(j, NULL);
	json_str(j, "id", id);
	json_str(j, "kind", feed_kind_name(s));
	json_str(j, "program", s->what.program);
	json_u64(j, "pid", s->pid);
	json_str(j, "name", s->what.name);
	json_dim3(j, "grid", s->what.grid);
	json_dim3(j, "block", s->what.block);
	json_u64(j, "shared_bytes", s->what.shared);
	json_str(j, "device", uuid);
	put_evidence(j, s, now_ns);
	json_end_object(j);
}

static bool is_of(const struct regress_series *s, const char *program)
{
	return !program || !strcmp(s->what.program, program);
}

static void put_counts(
	struct json *j, const struct regress *r, const char *program, uint64_t now_ns)
{
	uint32_t series = 0, known = 0, firing = 0;
	for (uint32_t i = 0; i < regress_count(r); i++) {
		const struct regress_series *s = regress_at(r, i);
		if (!is_of(s, program))
			continue;
		series++;
		known += s->base_n >= REGRESS_LEAST;
		firing += regress_fires(s, now_ns);
	}
	json_u64(j, "series", series);
	json_u64(j, "series_known", known);
	json_u64(j, "firing", firing);
}

void feed_put_json(struct json *j, const struct feed *feed, const char *program, uint64_t now_ns)
{
	const struct regress_series *firing[LISTED];
	const struct regress_counts c = regress_counts(feed->regress);
	const uint32_t all = regress_firing(feed->regress, now_ns, LISTED, firing);
	put_counts(j, feed->regress, program, now_ns);
	json_u64(j, "durations", c.values);
	json_u64(j, "durations_left_out", c.left_out);
	json_u64(j, "tests", c.tests);
	json_u64(j, "raised", c.raised);
	json_begin_array(j, "regressions");
	for (uint32_t i = 0; i < all && i < LISTED; i++)
		if (is_of(firing[i], program))
			feed_put_alarm(j, firing[i], now_ns);
	json_end_array(j);
}
