/*
 * weir sched: what programs that share a GPU do, and how they are to.  All of it is in the shared
 * file (docs/arbiter-protocol.md): this reads it, or changes a word.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/json.h"
#include "base/monotonic.h"
#include "base/slice.h"
#include "base/table.h"
#include "cmd/cli/command.h"
#include "cmd/cli/device_choice.h"
#include "cmd/cli/sharing.h"
#include "cmd/cli/values.h"
#include "monitor/change.h"
#include "share/arbiter.h"
#include "share/quota.h"

static const char *const class_name[] = { "none", "latency", "best-effort" };
static const char *const mode_name[] = { "open", "gated", "gated or capped", "budget", "held" };

static const char *name_of(const char *const *names, size_t n, uint32_t i)
{
	return i < n ? names[i] : "?";
}

#define CLASS_NAME(s) name_of(class_name, 3, load_relaxed(&(s)->grant.class))
#define MODE_NAME(s)  name_of(mode_name, 5, load_relaxed(&(s)->grant.mode))

static bool has_arbiter(const struct share_file *f)
{
	return share_has_arbiter(f, monotonic_ns());
}

/* Whom it waits for: the first that is inside a request. */
static const struct share_slot *waits_for(const struct share_file *f, uint32_t i)
{
	const struct share_slot *s = &f->slots[i];
	const struct share_device *d = &f->devices[s->who.device % SHARE_DEVICES];
	for (uint32_t k = 0; k < SHARE_SLOTS && s->grant.class == CLASS_BEST_EFFORT; k++)
		if (k != i && share_bit(d->active, k))
			return &f->slots[k];
	return NULL;
}

static void json_times(struct json *j, const char *key, const uint32_t bucket[SHARE_BUCKETS])
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++)
		n += bucket[i];
	json_begin_object(j, key);
	json_u64(j, "count", n);
	json_u64_or_null(j, "p50_ns", n, share_percentile(bucket, 0.5));
	json_u64_or_null(j, "p95_ns", n, share_percentile(bucket, 0.95));
	json_u64_or_null(j, "p99_ns", n, share_percentile(bucket, 0.99));
	json_end_object(j);
}

static void json_memory(struct json *j, const struct share_file *f, uint32_t i)
{
	const struct share_memory *m = &f->slots[i].memory;
	const struct quota_sum sum = quota_sum(f, i);
	const struct share_device *d = &f->devices[f->slots[i].who.device % SHARE_DEVICES];
	json_begin_object(j, "memory");
	json_u64(j, "used_bytes", load_relaxed(&m->used));
	json_u64(j, "idle_bytes", load_relaxed(&m->idle) + load_relaxed(&m->spare));
	json_u64(j, "given_bytes", load_relaxed(&m->given));
	json_u64(j, "context_bytes",
		load_relaxed(&m->contexts) * load_relaxed(&d->who.context_bytes));
	json_u64_or_null(j, "quota_bytes", m->quota, m->quota);
	json_u64_or_null(j, "quota_left_bytes", m->quota, quota_left(&sum));
	json_u64_or_null(j, "group", m->group, m->group);
	json_u64(j, "group_peak_bytes", load_relaxed(&m->peak));
	json_u64(j, "refused", load_relaxed(&m->refused));
	json_u64(j, "pool_hits", load_relaxed(&m->hits));
	json_times(j, "driver_allocations", m->took);
	json_end_object(j);
}

static bool has_quota(const struct share_slot *s)
{
	return s->memory.quota;
}

/* Not without an arbiter, or under another policy than fit. */
static bool has_target(const struct share_slot *s)
{
	return s->grant.class == CLASS_LATENCY &&
	       (s->steer.target || load_relaxed(&s->who.target_p99_ns));
}

/* Whether requests take longer than they are to. */
static bool is_missed(const struct share_slot *s)
{
	const struct share_steer *t = &s->steer;
	const uint32_t worst = t->p50 > t->p90 ? t->p50 : t->p90;
	const uint64_t p99 = share_percentile(s->counts.request, 0.99);
	if (load_relaxed(&s->who.target_p99_ns))
		return p99 > load_relaxed(&s->who.target_p99_ns);
	return t->target > 1000 && worst > t->target + (t->target - 1000) / 4;
}

static const char *why(const struct share_slot *s)
{
	static const char *const text[STEER_COUNT] = {
		[STEER_NO_BASELINE] = "how long requests take alone is not known yet",
		[STEER_FEW] = "too few requests since it changed",
		[STEER_IDLE] = "best effort has hardly any work beside them",
		[STEER_HOLDS] = "the target is met",
		[STEER_MORE] = "grows: requests are quicker than they need to be",
		[STEER_LESS] = "falls: requests are slower than they are to be",
		[STEER_LEAST] = "least: requests are slower all the same",
		[STEER_MOST] = "most: more changes nothing",
		[STEER_RESTS] = "no requests lately: as much as alone",
		[STEER_FIXED] = "set with weir sched policy",
	};
	const uint32_t reason = s->steer.reason;
	return load_relaxed(&s->who.target_p99_ns)       ? "follows --target-p99"
	       : reason < STEER_COUNT && s->steer.target ? text[reason]
							 : NULL;
}

static void json_times_alone(struct json *j, const char *key, uint32_t thousandths)
{
	json_put_real(j, key, thousandths ? thousandths / 1e3 : NAN);
}

static void json_slowdown(struct json *j, const struct share_slot *s)
{
	const struct share_steer *t = &s->steer;
	if (!has_target(s)) {
		json_put_null(j, "slowdown");
		return;
	}
	json_begin_object(j, "slowdown");
	json_times_alone(j, "target", load_relaxed(&s->who.target_p99_ns) ? 0 : t->target);
	json_u64_or_null(j, "target_p99_ns", load_relaxed(&s->who.target_p99_ns),
		load_relaxed(&s->who.target_p99_ns));
	json_times_alone(j, "p50", t->p50);
	json_times_alone(j, "p90", t->p90);
	json_times_alone(j, "p99", t->p99);
	json_bool(j, "missed", is_missed(s));
	json_u64_or_null(j, "alone_p50_ns", t->alone_p50_ns, t->alone_p50_ns);
	json_u64(j, "alone_requests", t->alone_requests);
	json_u64_or_null(j, "budget_ns", t->budget_ns, t->budget_ns);
	json_str_or_null(j, "budget_why", why(s));
	json_u64(j, "held_ns", t->windows_ns);
	json_u64(j, "beside_ns", t->passed_ns);
	json_end_object(j);
}

static void json_program(struct json *j, const struct share_file *f, uint32_t i)
{
	char device[DEVICE_NAME];
	const struct share_slot *s = &f->slots[i];
	const struct share_counts *c = &s->counts;
	const struct share_slot *other = waits_for(f, i);
	const uint64_t next = load_relaxed(&s->work.next_ns), now = monotonic_ns();
	json_begin_object(j, NULL);
	json_u64(j, "pid", s->who.pid);
	json_strn(j, "program", s->who.name, strnlen(s->who.name, SHARE_NAME));
	device_name(f->devices[s->who.device % SHARE_DEVICES].who.uuid, device);
	json_str(j, "device", device);
	json_str(j, "class", CLASS_NAME(s));
	json_str(j, "mode", MODE_NAME(s));
	json_u64(j, "weight", s->who.weight);
	json_bool(j, "mps", s->who.under_mps);
	json_bool(j, "inside", load_relaxed(&s->work.inside));
	json_u64_or_null(j, "waits_for", other, other ? other->who.pid : 0);
	json_u64(j, "requests", load_relaxed(&s->work.requests));
	json_u64_or_null(j, "next_request_in_ns", next > now, next - now);
	json_u64(j, "cap_sms", load_relaxed(&s->grant.cap_sms));
	json_u64(j, "cap_ahead_sms", load_relaxed(&s->grant.cap_ahead_sms));
	json_u64(j, "budget_ns", load_relaxed(&s->grant.budget_ns));
	json_u64(j, "hold_ns", load_relaxed(&s->grant.hold_ns));
	json_u64(j, "predicted_device_ns", load_relaxed(&s->work.retired_ns));
	json_u64(j, "waited_launches", load_relaxed(&c->waits));
	json_u64(j, "waited_ns", load_relaxed(&c->waited_ns));
	json_u64(j, "expired", load_relaxed(&c->expired));
	json_u64(j, "capped", load_relaxed(&c->capped));
	json_u64(j, "unmarked", load_relaxed(&c->unmarked));
	json_u64(j, "contended", load_relaxed(&c->contended));
	json_u64(j, "predicted_ns", load_relaxed(&c->predicted_ns));
	json_u64(j, "measured_ns", load_relaxed(&c->measured_ns));
	json_u64(j, "off_ns", load_relaxed(&c->off_ns));
	json_slowdown(j, s);
	json_memory(j, f, i);
	json_times(j, "request", c->request);
	json_times(j, "wait", c->wait);
	json_end_object(j);
}

static void json_device(struct json *j, const struct share_device *d)
{
	char name[DEVICE_NAME];
	json_begin_object(j, NULL);
	device_name(d->who.uuid, name);
	json_str(j, "device", name);
	json_u64_or_null(j, "context_bytes", load_relaxed(&d->who.context_bytes),
		load_relaxed(&d->who.context_bytes));
	json_end_object(j);
}

static void print_json(const struct share_file *f)
{
	struct json j;
	json_begin_document(&j, stdout);
	json_str_or_null(&j, "policy", f ? policy_of(f)->name : NULL);
	json_bool(&j, "open", f && load_relaxed(&f->arbiter.open));
	json_u64_or_null(&j, "arbiter", f && has_arbiter(f), f ? f->arbiter.pid : 0);
	json_begin_array(&j, "programs");
	for (uint32_t i = 0; f && i < SHARE_SLOTS; i++)
		if (share_is_live(&f->slots[i]))
			json_program(&j, f, i);
	json_end_array(&j);
	json_begin_array(&j, "devices");
	for (uint32_t i = 0; f && i < SHARE_DEVICES; i++)
		if (load_acquire(&f->devices[i].who.state) == SLOT_LIVE)
			json_device(&j, &f->devices[i]);
	json_end_array(&j);
	json_end_document(&j);
}

static void percentile_cell(struct table *t, const uint32_t bucket[SHARE_BUCKETS], double p)
{
	const uint64_t ns = share_percentile(bucket, p);
	table_ns_if(t, ns, ns);
}

/* How far predictions were off, of what was predicted and measured. */
static void off_cell(struct table *t, const struct share_counts *c)
{
	table_cell_if(t, load_relaxed(&c->measured_ns), "%.1f %%",
		100.0 * (double)load_relaxed(&c->off_ns) / (double)load_relaxed(&c->measured_ns));
}

static void add_program(struct table *t, const struct share_file *f, uint32_t i)
{
	const struct share_slot *s = &f->slots[i];
	const struct share_slot *other = waits_for(f, i);
	table_cell(t, "%u", s->who.pid);
	table_cell(t, "%s", CLASS_NAME(s));
	if (other)
		table_cell(t, "waits for %u", other->who.pid);
	else
		table_cell(t, "%s", load_relaxed(&s->work.inside) ? "runs" : "idle");
	table_cell(t, "%s", MODE_NAME(s));
	table_share(t, load_relaxed(&s->work.retired_ns), share_retired(f, s->who.device));
	percentile_cell(t, s->counts.request, 0.5);
	percentile_cell(t, s->counts.request, 0.95);
	percentile_cell(t, s->counts.request, 0.99);
	table_ns(t, load_relaxed(&s->counts.waited_ns));
	off_cell(t, &s->counts);
	table_cell_name(t, s->who.name, SHARE_NAME);
}

static void add_memory(struct table *t, const struct share_file *f, uint32_t i)
{
	const struct share_slot *s = &f->slots[i];
	const struct quota_sum sum = quota_sum(f, i);
	table_cell(t, "%u", s->who.pid);
	table_bytes(t, load_relaxed(&s->memory.used));
	table_bytes(t, load_relaxed(&s->memory.idle) + load_relaxed(&s->memory.spare));
	table_bytes(t, sum.used + sum.contexts);
	table_bytes(t, load_relaxed(&s->memory.peak));
	table_bytes(t, sum.quota);
	table_cell(t, "%" PRIu32, load_relaxed(&s->memory.refused));
	table_cell_name(t, s->who.name, SHARE_NAME);
}

static void times_cell(struct table *t, uint32_t thousandths)
{
	table_cell_if(t, thousandths, "%.2f", thousandths / 1e3);
}

static void ns_cell(struct table *t, uint64_t ns)
{
	table_ns_if(t, ns, ns);
}

static void add_slowdown(struct table *t, const struct share_file *f, uint32_t i)
{
	const struct share_slot *s = &f->slots[i];
	const struct share_steer *r = &s->steer;
	const char *because = why(s);
	table_cell(t, "%u", s->who.pid);
	if (load_relaxed(&s->who.target_p99_ns))
		table_ns(t, load_relaxed(&s->who.target_p99_ns));
	else
		times_cell(t, r->target);
	times_cell(t, r->p50);
	times_cell(t, r->p90);
	times_cell(t, r->p99);
	table_cell(t, "%s", is_missed(s) ? "missed" : "");
	ns_cell(t, r->alone_p50_ns);
	ns_cell(t, r->budget_ns);
	if (r->passed_ns)
		table_share(t, r->windows_ns, r->passed_ns);
	else
		table_none(t);
	table_cell(t, "%s", because ? because : "-");
	table_cell_name(t, s->who.name, SHARE_NAME);
}

static const struct listing {
	const char *title, *columns;
	bool (*lists)(const struct share_slot *s);
	void (*add)(struct table *t, const struct share_file *f, uint32_t i);
} listings[] = {
	{ NULL, ">pid|<class|<now|<rule|>share|>p50|>p95|>p99|>waited|>off|<program", share_is_live,
		add_program },
	{ "Requests, as multiples of alone",
		">pid|>target|>p50|>p90|>p99|<|>alone|>budget|>held|<why|<program", has_target,
		add_slowdown },
	{ "Memory", ">pid|>used|>idle|>group used|>group peak|>quota|>refused|<program", has_quota,
		add_memory },
};

static void print_listing(const struct share_file *f, const struct listing *l)
{
	bool any = false;
	struct table t = table_of(l->columns);
	for (uint32_t i = 0; f && i < SHARE_SLOTS; i++)
		if (share_is_live(&f->slots[i]) && l->lists(&f->slots[i])) {
			l->add(&t, f, i);
			any = true;
		}
	if (any && l->title)
		printf("\n%s\n", l->title);
	if (any)
		table_print(&t, stdout);
	else if (!l->title)
		puts("no program shares a GPU. Start one with: weir run -- ./program");
	table_fini(&t);
}

static int status(const struct options *o, struct sharing *s)
{
	const struct share_file *f = s->file;
	if (opt_flag(o, "json")) {
		print_json(f);
		return EXIT_YES;
	}
	if (f)
		printf("policy %s%s, %s\n", policy_of(f)->name,
			load_relaxed(&f->arbiter.open) ? ", all gates open" : "",
			has_arbiter(f) ? "an arbiter runs" : "no arbiter runs");
	for (size_t i = 0; i < sizeof listings / sizeof *listings; i++)
		print_listing(f, &listings[i]);
	return EXIT_YES;
}

static void list_policies(const struct share_file *f)
{
	for (const struct policy *p = policies; p->name; p++)
		printf("%c %-7s %s\n", strcmp(p->name, policy_of(f)->name) ? ' ' : '*', p->name,
			p->help);
}

/* "cap=64" and the like; false when it is none. */
static bool tune(struct share_tuning *t, const char *word)
{
	char *end;
	double share;
	const char *value = strchr(word, '=');
	const struct slice key = { word, value ? (size_t)(value - word) : 0 };
	if (!value++)
		return false;
	if (slice_is(key, "budget"))
		return duration_parse(value, &t->budget_ns);
	if (slice_is(key, "full-below"))
		return duration_parse(value, &t->full_below_ns);
	if (slice_is(key, "slowdown"))
		return slowdown_parse(value, &t->slowdown);
	if (slice_is(key, "alone"))
		return duration_parse(value, &t->alone_ns) && t->alone_ns;
	if (slice_is(key, "hold"))
		return duration_parse(value, &t->hold_ns);
	if (slice_is(key, "min-share") && percent_parse(value, &share)) {
		t->min_share = (uint32_t)(share * 1e6);
		return t->min_share;
	}
	if (!slice_is(key, "cap") || *value < '1' || *value > '9')
		return false;
	const unsigned long sms = strtoul(value, &end, 10);
	t->cap_sms = (uint32_t)sms;
	return !*end && sms <= UINT16_MAX;
}

static int set_policy(const struct options *o, struct sharing *s)
{
	struct share_file *f = s->file;
	const char *to = opt_argc(o) > 1 ? opt_argv(o)[1] : NULL;
	struct share_tuning tuning = { 0 };
	if (!to) {
		list_policies(f);
		return EXIT_YES;
	}
	const struct policy *chosen = policy_find(to);
	if (!chosen)
		return complain(
			EXIT_USAGE, "'%s' is no policy. `weir sched policy` lists them", to);
	for (int i = 2; i < opt_argc(o); i++)
		if (!tune(&tuning, opt_argv(o)[i]))
			return complain(EXIT_USAGE,
				"'%s' is no setting of a policy. Use budget=100us, full-below=100us, cap=64, hold=200us, alone=20ms, slowdown=1.15 or min-share=2%%",
				opt_argv(o)[i]);
	f->tuning = tuning;
	policy_set(f, chosen);
	return EXIT_YES;
}

static int set_class(const struct options *o, struct sharing *s)
{
	struct error err;
	const uint32_t pid = opt_argc(o) == 3 ? change_pid(opt_argv(o)[1]) : 0;
	if (!pid)
		return complain(EXIT_USAGE,
			"name a process and its class: weir sched set 1234 latency, for example");
	const int e = change_class(s->file, pid, opt_argv(o)[2], &err);
	return e ? complain(e == -EINVAL ? EXIT_USAGE : EXIT_NO, "%s", err.text) : EXIT_YES;
}

static volatile sig_atomic_t asked_to_end;

static void end(int number)
{
	asked_to_end = 1;
}

static bool is_alive(uint32_t pid)
{
	return pid && pid <= INT32_MAX && (!kill((pid_t)pid, 0) || errno != ESRCH);
}

/* The weir sched start that runs; 0: none. */
static uint32_t server_of(const struct share_file *f)
{
	const uint32_t pid = load_acquire(&f->arbiter.server);
	return is_alive(pid) ? pid : 0;
}

static int start(const struct options *o, struct sharing *s)
{
	const struct sigaction ends = { .sa_handler = end };
	const uint32_t own = (uint32_t)getpid();
	_Atomic uint32_t *const server = &s->file->arbiter.server;
	uint32_t seen = own;
	if (server_of(s->file))
		return complain(EXIT_NO, "weir sched start runs already, as process %u",
			server_of(s->file));
	struct arbiter *a = arbiter_new(s->file, s->directory);
	store_release(server, own);
	sigaction(SIGINT, &ends, NULL);
	sigaction(SIGTERM, &ends, NULL);
	while (!asked_to_end && load_acquire(server) == own) {
		const int ms = arbiter_step(a);
		const struct timespec wait = { 0, ms * 1000000L };
		nanosleep(&wait, NULL);
	}
	replace_if(server, &seen, 0, acq_rel, relaxed);
	arbiter_free(a);
	return EXIT_YES;
}

static int open_gates(const struct options *o, struct sharing *s)
{
	store_relaxed(&s->file->arbiter.open, 1);
	return EXIT_YES;
}

static int close_gates(const struct options *o, struct sharing *s)
{
	store_relaxed(&s->file->arbiter.open, 0);
	return EXIT_YES;
}

static int stop(const struct options *o, struct sharing *s)
{
	if (server_of(s->file)) {
		store_release(&s->file->arbiter.server, 0);
		return EXIT_YES;
	}
	return has_arbiter(s->file) && is_alive(s->file->arbiter.pid)
		       ? complain(EXIT_NO,
				 "nothing was stopped: the arbiter is process %u, a weir run, which ends with its program",
				 s->file->arbiter.pid)
		       : complain(EXIT_NO, "nothing was stopped: no weir sched start runs");
}

static const struct word {
	const char *name;
	bool makes, looks; /* the file where there is none; also without one */
	int (*run)(const struct options *o, struct sharing *s);
} words[] = {
	{ "status", false, true, status },
	{ "start", true, false, start },
	{ "policy", true, false, set_policy },
	{ "set", false, false, set_class },
	{ "open", false, false, open_gates },
	{ "close", false, false, close_gates },
	{ "stop", false, false, stop },
};

static const struct word *find_word(const char *name)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(words[i].name, name))
			return &words[i];
	return NULL;
}

int cmd_sched(const struct options *o)
{
	struct sharing s = { 0 };
	const char *name = opt_argc(o) ? opt_argv(o)[0] : "status";
	const struct word *word = find_word(name);
	if (!word)
		return complain(EXIT_USAGE,
			"'%s' is no command of weir sched. Use status, start, policy, set, open, close or stop",
			name);
	int code = sharing_open(&s, opt_str(o, "share"), word->makes);
	if (code)
		return code;
	if (!s.file && !word->looks)
		code = complain(EXIT_NO, "no program has shared a GPU in %s", s.directory);
	else
		code = word->run(o, &s);
	sharing_close(&s);
	return code;
}
