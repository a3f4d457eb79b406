/* Writes the sentences above a report. */
#include "hint/summary.h"

#include "base/bounded.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/text.h"
#include "hint/hint.h"
#include "memory/memory.h"
#include "model/request_times.h"

#define NAME_CUT 40u

__attribute__((format(printf, 2, 3))) static void say(struct summary *s, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(s->text[s->n++], SUMMARY_BYTES, format, ap);
	va_end(ap);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100 * (double)part / (double)all : 0;
}

/* Behind "X, P % of the W wall time": why nothing ran, or NULL for what did. */
static const char *const idle_because[WALL_PARTS] = {
	[WALL_LAUNCHING] = "because the host was still launching",
	[WALL_WAITING] = "because the host was in a synchronizing call",
	[WALL_DRIVER] = "because the host was in another long CUDA call",
	[WALL_HOST] = "because the host was busy outside CUDA",
	[WALL_QUEUED] = "although activities were queued",
	[WALL_UNKNOWN] = "and the recording does not tell why",
};

static const char *const took[WALL_PARTS] = {
	[WALL_COMPUTING] = "Kernels ran for",
	[WALL_COMMUNICATING] = "Communication between devices ran alone for",
	[WALL_COPYING] = "Copies and memsets ran alone for",
	[WALL_OFF] = "Recording was switched off for",
	[WALL_BEFORE] = "The time before the first GPU activity was",
	[WALL_AFTER] = "The time after the last GPU activity was",
};

static enum wall_part largest_part(const struct report *r)
{
	enum wall_part largest = WALL_COMPUTING;
	for (int i = 0; i < WALL_PARTS; i++)
		if (r->analysis.wall_ns[i] > r->analysis.wall_ns[largest])
			largest = (enum wall_part)i;
	return largest;
}

static bool has_several_gpus(const struct report *r)
{
	unsigned n = 0;
	for (size_t i = 0; i < r->devices.n; i++)
		n += r->devices.v[i].busy_ns > 0;
	return n > 1;
}

static void say_part(struct summary *s, const struct report *r, enum wall_part part)
{
	const uint64_t ns = r->analysis.wall_ns[part];
	struct number time, wall;
	number_ns(&time, ns);
	number_ns(&wall, r->wall_ns);
	if (idle_because[part])
		say(s, "%s for %s, %.1f %% of the %s wall time, %s.",
			has_several_gpus(r) ? "No GPU ran anything" : "The GPU was idle", time.text,
			percent(ns, r->wall_ns), wall.text, idle_because[part]);
	else
		say(s, "%s %s, %.1f %% of the %s wall time.",
			part == WALL_COMPUTING && has_several_gpus(r)
				? "Kernels ran on some GPU for"
				: took[part],
			time.text, percent(ns, r->wall_ns), wall.text);
}

/* The largest activity that is a kernel, or a collective operation, or neither. */
static const struct activity_row *largest_activity(
	const struct report *r, bool kernels, bool communicates, uint64_t *ret_all_ns)
{
	const struct activity_row *largest = NULL;
	*ret_all_ns = 0;
	array_each(const struct activity_row, a, r->activities) {
		const bool fits = kernels ? a->kind == GPU_KERNEL
					  : a->kind == GPU_MEMCPY || a->kind == GPU_MEMSET;
		if (!fits || (communicates && !a->communicates))
			continue;
		*ret_all_ns += a->total_ns;
		if (!largest || a->total_ns > largest->total_ns)
			largest = a;
	}
	return largest;
}

static void say_activity(
	struct summary *s, const struct report *r, bool kernels, bool communicates, const char *of)
{
	uint64_t all;
	const struct activity_row *a = largest_activity(r, kernels, communicates, &all);
	struct text_short name;
	struct number ns;
	uint64_t busy = 0;
	for (size_t i = 0; i < r->devices.n; i++)
		busy = MAX(r->devices.v[i].busy_ns, busy);
	if (a)
		say(s, "The largest is %s: %s, %.1f %% of %s%s.",
			text_short(&name, text_kernel(a->name), NAME_CUT),
			number_ns(&ns, a->total_ns), percent(a->total_ns, all), of,
			all > busy ? ", added up" : "");
}

/* " in cuLibraryLoadData of aten::_softmax": the call and the operator or module, as far as known.
 */
static const char *where_of(const struct report *r, const struct idle_gap *g, struct bounded *b)
{
	const struct idle_culprit *c = &g->culprit;
	const uint32_t range = c->operator!= META_NONE ? c->operator: c->module;
	struct fn_name fn;
	struct text_short name;
	const bool called = c->call_ns >= g->ns / 2 && c->call_ns;
	if (called)
		bounded_printf(b, " in %s", report_fn_name(r, c->call_fn, &fn));
	if (range != META_NONE)
		bounded_printf(b, " %s %s", called ? "of" : "in",
			text_short(&name, r->meta.names.v[range].text, NAME_CUT));
	return bounded_end(b);
}

/* Only the longest gaps are kept: none of them may be of this cause. */
static bool say_gap(struct summary *s, const struct report *r, enum wall_part part)
{
	struct number ns, at;
	struct text_short name;
	const struct idle_gap *longest = NULL;
	array_each(const struct idle_gap, g, r->analysis.idle_gaps)
		if (g->cause == part && (!longest || g->ns > longest->ns))
			longest = g;
	if (longest && longest->began) {
		char room[160] = "";
		struct bounded where = BOUNDED(room);
		say(s, "The longest gap, mainly for this reason, lasted %s%s, from %s until %s.",
			number_ns(&ns, longest->ns), where_of(r, longest, &where),
			number_ns(&at, longest->start_ns),
			text_short(&name, text_kernel(longest->began), NAME_CUT));
	}
	return longest && longest->began;
}

/* Start-up is often longer than all that follows. */
static void say_busy(struct summary *s, const struct report *r)
{
	const uint64_t *wall = r->analysis.wall_ns;
	const uint64_t busy = wall[WALL_COMPUTING] + wall[WALL_COMMUNICATING] + wall[WALL_COPYING];
	uint64_t idle = 0;
	struct number ns, between;
	for (int i = 0; i < WALL_PARTS; i++)
		if (idle_because[i])
			idle += wall[i];
	const bool several = has_several_gpus(r);
	say(s, "%s busy for %s, %.1f %% of the wall time, and %s for %s between activities.",
		several ? "Some GPU was" : "The GPU was", number_ns(&ns, busy),
		percent(busy, r->wall_ns), several ? "none" : "idle", number_ns(&between, idle));
}

static void say_why(struct summary *s, const struct report *r, enum wall_part part)
{
	if (part == WALL_COMPUTING)
		say_activity(s, r, true, false, "the time of all kernels");
	else if (part == WALL_COMMUNICATING)
		say_activity(s, r, true, true, "the time of all communication");
	else if (part == WALL_COPYING)
		say_activity(s, r, false, false, "the time of all copies and memsets");
	else if (!idle_because[part] || !say_gap(s, r, part))
		say_busy(s, r);
}

/* Its first clause: what follows are other ways, and reasons.  A call keeps its arguments. */
static int first_clause(const char *advice)
{
	int n = 0;
	while (advice[n] && !strchr(",;", advice[n]) &&
		!(advice[n] == '(' && n && advice[n - 1] == ' '))
		n++;
	return n;
}

static int trimmed(const char *advice, int n)
{
	while (n && advice[n - 1] == ' ')
		n--;
	return n;
}

static void say_hint(struct summary *s, const struct hints *all, const struct hint *h)
{
	const char *advice = h->rule->advice;
	const int n = trimmed(advice, first_clause(advice));
	struct number ns;
	if (isnan(h->gain))
		say(s, "First: %.*s (%s saves memory, not time).", n, advice, h->rule->id);
	else
		say(s, "First: %.*s (%s saves about %s).", n, advice, h->rule->id,
			number_ns(&ns, (uint64_t)hint_gain_ns(all, h->gain)));
}

static bool is_damaged(const struct report *r)
{
	return r->damaged_chunks || r->trace->damage_count;
}

static void say_first(struct summary *s, const struct report *r)
{
	const struct hints *h = r->hints;
	if (h && h->v.n)
		say_hint(s, h, &h->v.v[0]);
	else if (h && h->counted_ns)
		say(s, "No hint found a change that is worth its effort.");
	else if (h && h->launches && !is_damaged(r))
		say(s, "First: record with weir record --gpu, so that hints know what ran when.");
}

static const char *const part_words[REQUEST_PARTS] = {
	[PART_SOCKET] = "Clients sent their bytes for",
	[PART_PARSE] = "Parsing took",
	[PART_QUEUE] = "Requests were queued for",
	[PART_GATHER] = "Putting inputs together took",
	[PART_KERNELS] = "Kernels ran for",
	[PART_COPIES] = "Copies ran for",
	[PART_NEIGHBOURS] = "Work of others on the GPU took",
	[PART_ENGINE] = "The engine on the host took",
	[PART_ANSWER] = "Writing the answers took",
};

static void say_times(struct summary *s, const struct requests *all)
{
	uint64_t *ns = xcalloc(all->v.n, sizeof *ns);
	size_t answered = 0;
	struct number count, of, p50, p99;
	for (size_t i = 0; i < all->v.n; i++) {
		const struct request_row *q = &all->v.v[i];
		if (q->q.outcome == REQUEST_ANSWERED || q->q.outcome == REQUEST_MET ||
			q->q.outcome == REQUEST_LATE)
			ns[answered++] = request_total(q);
	}
	qsort(ns, answered, sizeof *ns, order_u64);
	if (answered)
		say(s, "The server answered %s of %s. Their median time was %s, the p99 %s.",
			number_count(&count, answered), number_of(&of, all->v.n, "request"),
			number_ns(&p50, ns[(answered - 1) / 2]),
			number_ns(&p99, ns[(answered * 99 - 1) / 100]));
	else
		say(s, "The server answered none of %s.", number_of(&of, all->v.n, "request"));
	free(ns);
}

static void say_largest(struct summary *s, const struct requests *all)
{
	uint64_t part[REQUEST_PARTS] = { 0 }, sum = 0;
	int largest = 0;
	struct number ns;
	for (size_t i = 0; i < all->v.n; i++)
		for (int k = 0; k < REQUEST_PARTS; k++) {
			part[k] = sat_add(part[k], all->v.v[i].part[k]);
			sum = sat_add(sum, all->v.v[i].part[k]);
		}
	for (int k = 0; k < REQUEST_PARTS; k++)
		largest = part[k] > part[largest] ? k : largest;
	say(s, "%s %s, %.1f %% of the time of all requests.", part_words[largest],
		number_ns(&ns, part[largest]), percent(part[largest], sum));
}

static void say_slowest(struct summary *s, const struct requests *all)
{
	const struct request_row *slowest = &all->v.v[0];
	struct number ns;
	for (size_t i = 1; i < all->v.n; i++)
		if (request_total(&all->v.v[i]) > request_total(slowest))
			slowest = &all->v.v[i];
	say(s, "First: weir report --request %llu says why the slowest took %s.",
		(unsigned long long)slowest->q.id, number_ns(&ns, request_total(slowest)));
}

static void say_requests(struct summary *s, const struct requests *all)
{
	say_times(s, all);
	say_largest(s, all);
	say_slowest(s, all);
}

static void say_sampled(struct summary *s, const struct report *r)
{
	struct number ns, least, most, one;
	uint64_t all;
	struct text_short name;
	if (isnan(r->sampled_least_ns))
		say(s, "Kernels ran for at most %s, estimated from one launch in %s.",
			number_ns(&most, sat_from(report_sampled_most_ns(r))),
			number_count(&one, r->sampled));
	else
		say(s, "Kernels ran for about %s (%s to %s), estimated from one launch in %s.",
			number_ns(&ns, sat_from(r->sampled_ns + 0.5)),
			number_ns(&least, sat_from(r->sampled_least_ns)),
			number_ns(&most, sat_from(report_sampled_most_ns(r))),
			number_count(&one, r->sampled));
	const struct activity_row *a = largest_activity(r, true, false, &all);
	if (a)
		say(s, "The largest is %s: about %s.",
			text_short(&name, text_kernel(a->name), NAME_CUT),
			number_ns(&ns, a->total_ns));
}

static void say_calls(struct summary *s, const struct report *r)
{
	const struct call_row *largest = NULL;
	struct fn_name room;
	struct number ns, count;
	for (size_t i = 0; i < r->call_rows.n; i++)
		if (!largest || r->call_rows.v[i].total_ticks > largest->total_ticks)
			largest = &r->call_rows.v[i];
	say(s, "%s has no device times, so it does not tell what ran on the GPU.",
		is_damaged(r) ? "What is left of the file" : "The recording");
	if (largest && largest->summed)
		say(s, "The host's largest call was %s: %s in %s.",
			report_fn_name(r, largest->id, &room),
			number_ns(&ns, trace_span_ns(r->trace, largest->total_ticks)),
			number_of(&count, largest->summed, "call"));
}

void summary_make(const struct report *r, struct summary *ret)
{
	*ret = (struct summary){ 0 };
	if (r->requests && r->requests->v.n)
		return say_requests(ret, r->requests);
	if (report_has_device_times(r) && r->analysis.known) {
		const enum wall_part part = largest_part(r);
		say_part(ret, r, part);
		say_why(ret, r, part);
	} else if (r->sampled && r->activities.n) {
		say_sampled(ret, r);
	} else if (r->calls) {
		say_calls(ret, r);
	}
	if (ret->n)
		say_first(ret, r);
}

static void say_peak(struct summary *s, const struct report *r)
{
	const struct memory_detail *d = r->memory_detail;
	struct number bytes, at;
	say(s, "GPU memory peaked at %s, %s after the start.", number_bytes(&bytes, d->peak_live),
		number_ns(&at, trace_since_ns(r->trace, d->peak_ticks)));
}

static bool is_unseen(const struct report *r, uint32_t fn)
{
	const struct schema_fn *f = schema_find(&r->trace->schema, fn);
	return f && !strcmp(f->class, MEMORY_UNSEEN);
}

/* The operator that had most of it, or else the call. */
static void say_owner(struct summary *s, const struct report *r)
{
	const struct memory_detail *d = r->memory_detail;
	const struct memory_operator *op = NULL;
	const struct memory_row *call = NULL;
	struct fn_name room;
	struct text_short name;
	struct number bytes;
	for (size_t i = 0; i < d->operators.n; i++)
		if (!op || d->operators.v[i].at_peak_bytes > op->at_peak_bytes)
			op = &d->operators.v[i];
	for (size_t i = 0; i < d->calls.n; i++)
		if (!call || d->calls.v[i].at_peak_bytes > call->at_peak_bytes)
			call = &d->calls.v[i];
	if (op && op->name && op->at_peak_bytes)
		say(s, "The operator %s had the largest part of it: %s, %.1f %%.",
			text_short(&name, op->name, NAME_CUT),
			number_bytes(&bytes, op->at_peak_bytes),
			percent(op->at_peak_bytes, d->peak_live));
	else if (call && call->at_peak_bytes && is_unseen(r, (uint32_t)call->key))
		say(s, "The profiler did not see who allocated the largest part of it: %s, %.1f %%.",
			number_bytes(&bytes, call->at_peak_bytes),
			percent(call->at_peak_bytes, d->peak_live));
	else if (call && call->at_peak_bytes)
		say(s, "The call %s allocated the largest part of it: %s, %.1f %%.",
			report_fn_name(r, (uint32_t)call->key, &room),
			number_bytes(&bytes, call->at_peak_bytes),
			percent(call->at_peak_bytes, d->peak_live));
}

/* A hint about memory, if there is one. */
static void say_memory_first(struct summary *s, const struct report *r)
{
	const struct hints *h = r->hints;
	for (size_t i = 0; h && i < h->v.n; i++)
		if (isnan(h->v.v[i].gain))
			return say_hint(s, h, &h->v.v[i]);
	if (h)
		say(s, "No hint found memory that is worth saving.");
}

void summary_make_memory(const struct report *r, struct summary *ret)
{
	*ret = (struct summary){ 0 };
	if (!r->memory_detail || !r->memory_detail->peak_live)
		return;
	say_peak(ret, r);
	say_owner(ret, r);
	say_memory_first(ret, r);
}

void summary_put_text(const struct summary *s, FILE *out)
{
	for (unsigned i = 0; i < s->n; i++) {
		text_put_safe(out, s->text[i]);
		fputs(i + 1 < s->n ? "\n" : "\n\n", out);
	}
}

void summary_put_json(const struct summary *s, struct json *j)
{
	json_begin_array(j, "summary");
	for (unsigned i = 0; i < s->n; i++)
		json_str(j, NULL, s->text[i]);
	json_end_array(j);
}
