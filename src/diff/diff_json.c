/* The comparison as JSON.  Keys are a promise: they are added to, not renamed. */
#include "diff/diff.h"

#include <math.h>

#include "base/json.h"
#include "diff/fail_condition.h"

#include "base/banned.h"

/* Sums are whole numbers, unless they are the median of two. */
static void put_number(struct json *j, const char *key, double value)
{
	if (value >= 0 && value < 9e15)
		json_u64(j, key, (uint64_t)(value + 0.5));
	else
		json_put_real(j, key, value);
}

static void put_judgement(struct json *j, const struct diff_change *c)
{
	json_put_real(j, "noise_pct", c->noise_pct > DIFF_NOISE_MOST_PCT ? NAN : c->noise_pct);
	json_str_or_null(j, "verdict", diff_verdict_word(c->verdict));
	json_put_real(j, "p", c->p);
}

static void put_inputs(struct json *j, const struct diff *d, enum diff_side_id side)
{
	json_begin_array(j, side == DIFF_A ? "a" : "b");
	for (size_t i = 0; i < d->inputs[side].n; i++) {
		json_begin_object(j, NULL);
		json_str(j, "file", d->inputs[side].v[i].file);
		json_str(j, "program", d->inputs[side].v[i].program);
		json_u64_or_null(
			j, "sampled", d->inputs[side].v[i].sampled, d->inputs[side].v[i].sampled);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_sum(struct json *j, const struct diff_sum *s)
{
	put_number(j, "a", s->side[DIFF_A]);
	put_number(j, "b", s->side[DIFF_B]);
	json_put_real(j, "change_pct", s->change.pct);
	put_judgement(j, &s->change);
}

static void put_totals(struct json *j, const struct diff *d)
{
	json_begin_object(j, "totals");
	for (unsigned t = 0; t < DIFF_TOTALS; t++) {
		json_begin_object(j, diff_total_name(t).json);
		json_str(j, "text", diff_total_text(d, t));
		put_sum(j, &d->sums[t]);
		json_end_object(j);
	}
	json_end_object(j);
}

static void put_parts(
	struct json *j, const struct diff *d, const char *key, unsigned from, unsigned to)
{
	json_begin_array(j, key);
	for (unsigned t = from; t < to; t++) {
		json_begin_object(j, NULL);
		json_str(j, "name", diff_total_name(t).json);
		put_sum(j, &d->sums[t]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_side(
	struct json *j, const struct diff_row *row, enum diff_side_id side, enum diff_table table)
{
	const struct diff_value *v = &row->value[side];
	const char *key = side == DIFF_A ? "a" : "b";
	if (!v->there) {
		json_put_null(j, key);
		return;
	}
	json_begin_object(j, key);
	put_number(j, "count", v->count);
	put_number(j, "total_ns", v->total_ns);
	if (table == TABLE_COPIES) {
		put_number(j, "bytes", v->bytes);
	} else {
		put_number(j, "mean_ns", diff_mean(row, side));
		put_number(j, "p50_ns", v->median_ns);
		put_number(j, "p95_ns", diff_percentile(row, side, 0.95));
		put_number(j, "p99_ns", diff_percentile(row, side, 0.99));
	}
	json_end_object(j);
}

static void put_table(struct json *j, const struct diff *d, enum diff_table table, const char *key)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < d->rows[table].n; i++) {
		const struct diff_row *row = &d->rows[table].v[i];
		json_begin_object(j, NULL);
		json_str(j, "name", row->name);
		if (row->kind)
			json_str(j, table == TABLE_CALLS ? "api" : "kind", row->kind);
		put_side(j, row, DIFF_A, table);
		put_side(j, row, DIFF_B, table);
		json_put_real(j, "change_ns", row->total_ns);
		json_put_real(j, "change_pct", row->total_pct);
		json_put_real(j, "median_change_pct", row->change.pct);
		put_judgement(j, &row->change);
		json_put_real(j, "b_longer", row->longer);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_phase(struct json *j, const char *key, const struct diff_value *v)
{
	if (!v->there) {
		json_put_null(j, key);
		return;
	}
	json_begin_object(j, key);
	put_number(j, "count", v->count);
	put_number(j, "span_p50_ns", v->span_ns);
	put_number(j, "device_p50_ns", v->busy_ns);
	put_number(j, "host_p50_ns", v->host_ns);
	json_end_object(j);
}

static void put_phases(struct json *j, const struct diff *d, enum diff_table table, const char *key)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < d->rows[table].n; i++) {
		const struct diff_row *row = &d->rows[table].v[i];
		json_begin_object(j, NULL);
		json_str(j, "name", row->name);
		if (row->kind)
			json_str(j, "kind", row->kind);
		json_str(j, "compared", row->by_device ? "span" : "host");
		put_phase(j, "a", &row->value[DIFF_A]);
		put_phase(j, "b", &row->value[DIFF_B]);
		json_put_real(j, "factor", row->factor);
		json_put_real(j, "change_pct", row->change.pct);
		put_judgement(j, &row->change);
		json_put_real(j, "b_longer", row->longer);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_notes(struct json *j, const struct diff *d)
{
	json_begin_array(j, "notes");
	for (size_t i = 0; i < d->notes.n; i++)
		json_str(j, NULL, d->notes.v[i]);
	json_end_array(j);
}

static void put_conclusion(struct json *j, const struct diff *d)
{
	const struct diff_conclusion *c = &d->conclusion;
	json_begin_array(j, "conclusion");
	for (size_t i = 0; i < DIFF_SENTENCES; i++)
		json_str(j, NULL, c->sentence[i]);
	json_end_array(j);
	json_begin_object(j, "judged");
	json_str_or_null(j, "of", diff_one_word(c->one));
	json_str_or_null(j, "name", c->row ? c->row->name : NULL);
	json_u64(j, "names", c->rows);
	json_bool(j, "by_device", c->by_device);
	put_number(j, "a_ns", c->one ? c->side[DIFF_A] : NAN);
	put_number(j, "b_ns", c->one ? c->side[DIFF_B] : NAN);
	json_put_real(j, "change_pct", c->one ? c->change.pct : NAN);
	json_put_real(j, "from_pct", c->one ? c->change.pct - c->change.below_pct : NAN);
	json_put_real(j, "to_pct", c->one ? c->change.pct + c->change.above_pct : NAN);
	json_str_or_null(j, "verdict", diff_verdict_word(c->change.verdict));
	json_put_real(j, "p", c->one ? c->change.p : NAN);
	json_end_object(j);
}

static void put_work(struct json *j, const struct diff *d)
{
	static const enum diff_one ones[] = { ONE_LAUNCH, ONE_STEP, ONE_REQUEST };
	static const char *const keys[][DIFF_SIDES] = { { "launches_a", "launches_b" },
		{ "steps_a", "steps_b" }, { "requests_a", "requests_b" } };
	json_begin_object(j, "work");
	json_bool(j, "same", d->work.same);
	json_str_or_null(j, "common", diff_one_word(diff_common(d)));
	json_bool(j, "flight", d->window[DIFF_A] || d->window[DIFF_B]);
	for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
		for (int s = 0; s < DIFF_SIDES; s++)
			put_number(j, keys[i][s], diff_count(d, ones[i], (enum diff_side_id)s));
	put_number(j, "copied_bytes_a", d->sums[TOTAL_COPIED].side[DIFF_A]);
	put_number(j, "copied_bytes_b", d->sums[TOTAL_COPIED].side[DIFF_B]);
	json_end_object(j);
}

static void put_conditions(struct json *j, const struct fail_condition *conditions,
	const struct judgement *judged, size_t count)
{
	json_begin_array(j, "fail_conditions");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(j, NULL);
		json_str(j, "expression", conditions[i].text);
		json_put_real(j, "value", judged[i].known ? judged[i].value : NAN);
		json_bool(j, "failed", judged[i].failed);
		json_str_or_null(j, "name", judged[i].where);
		json_u64(j, "rows", judged[i].rows);
		json_str_or_null(j, "per", diff_one_word(judged[i].per));
		json_bool(j, "undecided", judged[i].undecided);
		json_end_object(j);
	}
	json_end_array(j);
}

void diff_print_json(const struct diff *d, const struct fail_condition *conditions,
	const struct judgement *judged, size_t condition_count, FILE *out)
{
	struct json j;
	json_begin_document(&j, out);
	json_begin_object(&j, "runs");
	put_inputs(&j, d, DIFF_A);
	put_inputs(&j, d, DIFF_B);
	json_end_object(&j);
	put_conclusion(&j, d);
	put_work(&j, d);
	json_str(&j, "kernel_times", d->by_device ? "device" : "host");
	json_put_real(&j, "threshold_pct", d->threshold_pct);
	put_notes(&j, d);
	put_conditions(&j, conditions, judged, condition_count);
	put_totals(&j, d);
	put_parts(&j, d, "breakdown", TOTAL_BREAKDOWN, TOTAL_PATH);
	put_parts(&j, d, "critical_path", TOTAL_PATH, DIFF_SUMS);
	put_phases(&j, d, TABLE_PHASES, "phases");
	put_phases(&j, d, TABLE_STEPS, "steps");
	put_phases(&j, d, TABLE_REQUESTS, "requests");
	put_table(&j, d, TABLE_KERNELS, "kernels");
	put_table(&j, d, TABLE_CALLS, "calls");
	put_table(&j, d, TABLE_OPERATORS, "operators");
	put_table(&j, d, TABLE_COPIES, "memops");
	json_end_object(&j);
}
