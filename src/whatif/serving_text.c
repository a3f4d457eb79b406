/* The answer as text, with the answer first, and as JSON. */
#include "whatif/serving.h"

#include "base/json.h"
#include "base/table.h"
#include "base/text.h"

static const struct simulated *sum(const struct serving *w, size_t policy)
{
	return &w->results[policy][w->models.n];
}

static size_t best_policy(const struct serving *w)
{
	size_t best = 0;
	for (size_t p = 1; p < w->policy_count; p++)
		if (sum(w, p)->met > sum(w, best)->met)
			best = p;
	return best;
}

static bool have_deadlines(const struct serving *w)
{
	bool have = false;
	for (size_t i = 0; i < w->models.n; i++)
		have |= w->models.v[i].simulated.deadline_ns != BATCH_NEVER;
	return have;
}

static void put_answer(const struct serving *w, FILE *out)
{
	if (!have_deadlines(w)) {
		fputs("no model has a deadline (weir.deadline_us in config.pbtxt), so every answer is in time\n\n",
			out);
		return;
	}
	const size_t best = best_policy(w);
	const struct simulated *s = sum(w, best);
	fprintf(out, "%s answers %.2f %% of %.4g requests a second in time",
		batch_policy_name(w->policies[best]), 100 * simulated_goodput(s),
		(double)s->arrived / w->seconds);
	for (size_t p = 0; p < w->policy_count; p++)
		if (p != best)
			fprintf(out, ", %s %.2f %%", batch_policy_name(w->policies[p]),
				100 * simulated_goodput(sum(w, p)));
	fputs("\n\n", out);
}

static void put_share(struct table *t, uint64_t part, uint64_t all)
{
	table_cell_if(t, all, "%.2f %%", 100 * (double)part / (double)all);
}

static void put_time(struct table *t, const struct simulated *s, double p)
{
	table_ns_if(t, s->latency.count, hist_at(&s->latency, p));
}

static void put_row(struct table *t, const struct serving *w, size_t policy, size_t i)
{
	const struct simulated *s = &w->results[policy][i];
	const bool all = i == w->models.n;
	table_cell(t, "%s", batch_policy_name(w->policies[policy]));
	table_cell(t, "%.4g", (double)s->arrived / w->seconds);
	put_share(t, s->met, s->arrived);
	put_time(t, s, 0.5);
	put_time(t, s, 0.99);
	put_share(t, s->refused + s->full, s->arrived);
	put_share(t, s->shed, s->arrived);
	put_share(t, s->late, s->arrived);
	table_cell_if(t, s->batches, "%.1f", (double)(s->met + s->late) / (double)s->batches);
	if (all || w->models.v[i].simulated.deadline_ns == BATCH_NEVER)
		table_none(t);
	else
		table_ns(t, w->models.v[i].simulated.deadline_ns);
	table_cell_name(t, all ? "all models" : w->models.v[i].name, TEXT_MOST);
}

void serving_put_text(const struct serving *w, FILE *out)
{
	put_answer(w, out);
	struct table t = table_of(
		"<policy|>requests/s|>in time|>p50|>p99|>refused|>shed|>late|>rows|>deadline|<model");
	for (size_t p = 0; p < w->policy_count; p++)
		for (size_t i = w->models.n == 1 ? 1 : 0; i <= w->models.n; i++)
			if (w->results[p][i].arrived)
				put_row(&t, w, p, w->models.n == 1 ? 0 : i);
	table_print(&t, out);
	for (size_t i = 0; i < w->left_out.n; i++) {
		fputs(i ? ", " : "\nno saved latency, left out: ", out);
		text_put_safe(out, w->left_out.v[i]);
	}
	if (w->left_out.n)
		fputs("\n", out);
}

static void put_counts(struct json *j, const struct simulated *s)
{
	const bool ran = s->latency.count;
	json_u64(j, "requests", s->arrived);
	json_u64(j, "met", s->met);
	json_u64(j, "late", s->late);
	json_u64(j, "shed", s->shed);
	json_u64(j, "refused", s->refused + s->full);
	if (s->arrived)
		json_put_real(j, "goodput", simulated_goodput(s));
	else
		json_put_null(j, "goodput");
	json_u64_or_null(j, "p50_ns", ran, ran ? hist_at(&s->latency, 0.5) : 0);
	json_u64_or_null(j, "p99_ns", ran, ran ? hist_at(&s->latency, 0.99) : 0);
	json_u64(j, "batches", s->batches);
	json_u64(j, "busy_ns", s->busy_ns);
}

static void put_queue(struct json *j, const struct simulated_model *m)
{
	json_u64_or_null(j, "timeout_ns", m->timeout_ns != BATCH_NEVER, m->timeout_ns);
	json_u64(j, "class", m->class);
	json_u64(j, "max_rows", m->config.max_rows);
	json_u64(j, "max_queue", m->config.max_queue);
	json_u64(j, "max_delay_ns", m->config.max_delay_ns);
	json_put_real(j, "weight", (double)m->config.weight);
}

void serving_put_json(const struct serving *w, FILE *out)
{
	struct json j;
	json_begin_document(&j, out);
	json_str(&j, "repository", w->repository);
	json_u64(&j, "seed", w->seed);
	json_put_real(&j, "seconds", w->seconds);
	json_begin_array(&j, "models");
	array_each(const struct serving_model, m, w->models) {
		const uint64_t deadline = m->simulated.deadline_ns;
		json_begin_object(&j, NULL);
		json_str(&j, "model", m->name);
		json_u64(&j, "version", m->version);
		json_u64_or_null(&j, "deadline_ns", deadline != BATCH_NEVER, deadline);
		put_queue(&j, &m->simulated);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_begin_array(&j, "policies");
	for (size_t p = 0; p < w->policy_count; p++) {
		json_begin_object(&j, NULL);
		json_str(&j, "policy", batch_policy_name(w->policies[p]));
		put_counts(&j, sum(w, p));
		json_begin_array(&j, "models");
		for (size_t i = 0; i < w->models.n; i++) {
			json_begin_object(&j, NULL);
			json_str(&j, "model", w->models.v[i].name);
			put_counts(&j, &w->results[p][i]);
			json_end_object(&j);
		}
		json_end_array(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
}
