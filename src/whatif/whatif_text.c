/* The answer as a table, and as JSON. */
#include "whatif/whatif.h"

#include <stdio.h>

#include "base/json.h"
#include "base/number.h"
#include "base/table.h"
#include "base/text.h"

static size_t count_latency(const struct whatif *w)
{
	size_t n = 0;
	for (size_t i = 0; i < w->count; i++)
		n += whatif_is_latency(w, i);
	return n;
}

#define DIFFERS 1.25 /* times as long, or as short: more is said */

/* The replay plays a few requests again and again, with pauses of its own, and the device of a
 * model: medians may differ, above all where requests are short or of two lengths. */
static void put_requests(const struct whatif *w, FILE *out, size_t i)
{
	const struct program *p = w->programs[i].recorded;
	const struct replay_results *alone = &w->alone[i].results;
	const uint64_t replayed = whatif_latency(alone, 0, 0.5), recorded = p->recorded_p50_ns;
	const double ratio = recorded ? (double)replayed / (double)recorded : 1;
	struct number a, b, c, d;
	fprintf(out, ", %s replayed alone: median %s; %s recorded: median %s\n",
		number_of(&a, alone->programs[0].latency.v.n, "request"), number_ns(&b, replayed),
		number_count(&c, p->requests), number_ns(&d, recorded));
	if (ratio > DIFFERS || ratio < 1 / DIFFERS)
		fprintf(out,
			"             the replay of a request takes %.2g times as long as recorded: "
			"the ratios below compare replays, trust the times less\n",
			ratio);
}

static void put_program(const struct whatif *w, FILE *out, size_t i)
{
	const struct program *p = w->programs[i].recorded;
	const struct replay_results *alone = &w->alone[i].results;
	struct number a, b, c;
	fputs(whatif_is_latency(w, i) ? "latency:     " : "best effort: ", out);
	text_put_safe(out, p->name);
	if (whatif_is_latency(w, i))
		put_requests(w, out, i);
	else
		fprintf(out, ", %s; once through in %s alone, %s of it device time\n",
			number_of(&a, alone->programs[0].ops, "GPU activity"),
			number_ns(&b, alone->end_ns), number_ns(&c, p->work_ns));
	if (p->untimed)
		fprintf(out,
			"             %s launches were not timed: as long as their like, or as predicted\n",
			number_count(&a, p->untimed));
	if (p->left_out)
		fprintf(out, "             %s submissions are left out: no time of them is known\n",
			number_count(&a, p->left_out));
}

static void cell_shares(const struct whatif *w, const struct replay_results *r, struct table *t)
{
	char text[200] = "-";
	size_t n = 0;
	for (size_t i = 0; i < w->count && n + 16 < sizeof text; i++)
		if (!whatif_is_latency(w, i))
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%.1f%%", n ? " + " : "",
				100 * whatif_share(w, r, i));
	table_cell(t, "%s", text);
}

static void cell_latency(
	const struct whatif *w, const struct whatif_way *way, struct table *t, size_t i)
{
	static const double q[] = { 0.5, 0.95, 0.99 };
	for (int k = 0; k < 3; k++)
		table_ns(t, whatif_latency(&way->results, i, q[k]));
	table_cell(t, "%.2f", whatif_slowdown(w, &way->results, i, 0.5));
	table_cell(t, "%.2f", whatif_slowdown(w, &way->results, i, 0.99));
}

static void cell_way(const struct whatif_way *way, struct table *t)
{
	table_cell(t, "%s%s", way->policy ? way->policy->name : "(none)",
		way->results.finished ? "" : " (gave up)");
	table_cell(t, "%s", way->both ? "both" : way->sharing == LAW_MPS ? "mps" : "slices");
}

/* A row a latency program, of which there may be none. */
static void put_rows(const struct whatif *w, struct table *t, const struct whatif_way *way)
{
	for (size_t i = 0; i < w->count; i++) {
		if (!whatif_is_latency(w, i))
			continue;
		cell_way(way, t);
		cell_latency(w, way, t, i);
		cell_shares(w, &way->results, t);
		table_cell_name(t, w->programs[i].recorded->name, 40);
	}
	if (count_latency(w))
		return;
	cell_way(way, t);
	for (int k = 0; k < 5; k++)
		table_none(t);
	cell_shares(w, &way->results, t);
	table_none(t);
}

void whatif_put_text(const struct whatif *w, FILE *out, bool colour)
{
	for (size_t i = 0; i < w->count; i++)
		put_program(w, out, i);
	fprintf(out, "device:      %u SMs, simulated", w->device.sms);
	if (w->sms_assumed)
		fprintf(out,
			" as of an H200: the number of its own GPU is not recorded, or over %u",
			LAW_SMS);
	putc('\n', out);
	if (w->count == 1)
		fputs("alone:       one program has the GPU to itself whatever the policy: name a second "
		      "recording, or this one twice, to see how they share\n",
			out);
	putc('\n', out);
	struct table t = table_of(
		"<policy|<sharing|>median|>p95|>p99|>median/alone|>p99/alone|>best effort/alone|<latency program");
	for (size_t i = 0; i < w->way_count; i++)
		put_rows(w, &t, &w->ways[i]);
	table_end(&t, out, colour ? "\033[2m" : "", colour ? "\033[0m" : "", 0);
}

static void json_latency(struct json *j, const struct replay_results *r, size_t i)
{
	json_u64(j, "answered", r->programs[i].latency.v.n);
	json_u64(j, "p50_ns", whatif_latency(r, i, 0.5));
	json_u64(j, "p95_ns", whatif_latency(r, i, 0.95));
	json_u64(j, "p99_ns", whatif_latency(r, i, 0.99));
}

static void json_program(struct json *j, const struct whatif *w, size_t i)
{
	const struct program *p = w->programs[i].recorded;
	const struct replay_results *alone = &w->alone[i].results;
	json_begin_object(j, NULL);
	json_str(j, "program", p->name);
	json_str(j, "class", whatif_is_latency(w, i) ? "latency" : "best-effort");
	json_u64(j, "recorded_requests", p->requests);
	json_u64(j, "recorded_p50_ns", p->recorded_p50_ns);
	json_u64(j, "untimed", p->untimed);
	json_u64(j, "left_out", p->left_out);
	json_u64(j, "work_ns", p->work_ns);
	json_u64(j, "alone_ns", alone->end_ns);
	if (whatif_is_latency(w, i))
		json_latency(j, alone, 0);
	json_end_object(j);
}

static void json_result(
	struct json *j, const struct whatif *w, const struct whatif_way *way, size_t i)
{
	const struct replay_result *p = &way->results.programs[i];
	json_begin_object(j, NULL);
	json_str(j, "program", w->programs[i].recorded->name);
	if (whatif_is_latency(w, i)) {
		json_latency(j, &way->results, i);
		json_put_real(j, "p50_ratio", whatif_slowdown(w, &way->results, i, 0.5));
		json_put_real(j, "p95_ratio", whatif_slowdown(w, &way->results, i, 0.95));
		json_put_real(j, "p99_ratio", whatif_slowdown(w, &way->results, i, 0.99));
	} else {
		json_put_real(j, "share", whatif_share(w, &way->results, i));
	}
	json_u64(j, "work_ns", p->work_ns);
	json_u64(j, "waits", p->waits);
	json_u64(j, "waited_ns", p->waited_ns);
	json_u64(j, "expired", p->expired);
	json_u64(j, "capped", p->capped);
	json_end_object(j);
}

static void json_way(struct json *j, const struct whatif *w, const struct whatif_way *way)
{
	json_begin_object(j, NULL);
	json_str_or_null(j, "policy", way->policy ? way->policy->name : NULL);
	json_str(j, "sharing", way->both ? "both" : way->sharing == LAW_MPS ? "mps" : "slices");
	json_bool(j, "finished", way->results.finished);
	json_u64(j, "end_ns", way->results.end_ns);
	json_u64(j, "switches", way->results.totals.switches);
	json_begin_array(j, "programs");
	for (size_t i = 0; i < w->count; i++)
		json_result(j, w, way, i);
	json_end_array(j);
	json_end_object(j);
}

void whatif_put_json(const struct whatif *w, FILE *out)
{
	struct json j;
	json_begin_document(&j, out);
	json_u64(&j, "sms", w->device.sms);
	json_u64(&j, "seed", w->arrivals.seed);
	json_begin_array(&j, "programs");
	for (size_t i = 0; i < w->count; i++)
		json_program(&j, w, i);
	json_end_array(&j);
	json_begin_array(&j, "ways");
	for (size_t i = 0; i < w->way_count; i++)
		json_way(&j, w, &w->ways[i]);
	json_end_array(&j);
	json_end_object(&j);
}
