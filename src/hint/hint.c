/* Asking all rules: see hint.h. */
#include "hint/hint.h"

#include "hint/hint_facts.h"

#include "base/expect.h"
#include "base/sort.h"

#define HOPE_SHOWN 0.03 /* gain times confidence: a small one that is doubtful helps nobody */

void hint_add(struct hints *to, const struct hint_rule *rule, double gain, double confidence,
	char *where, char *evidence)
{
	expect(confidence >= 0 && confidence <= 1, "a confidence is between 0 and 1");
	const bool little = gain < GAIN_SHOWN || gain * confidence < HOPE_SHOWN; /* not of NAN */
	if (little) {
		free(where);
		free(evidence);
		return;
	}
	*array_push(&to->v) = (struct hint){ .rule = rule,
		.where = where,
		.evidence = evidence,
		.gain = isnan(gain) ? NAN : fmin(gain, 1),
		.confidence = confidence };
}

ORDERING(hint_order, struct hint,
	ORDER(isnan(b->gain) ? -1 : b->gain, isnan(a->gain) ? -1 : a->gain),
	ORDER(a->rule, b->rule), strcmp(a->where, b->where))

static bool has_share(const struct hint *h)
{
	return isnan(h->gain) || (h->gain >= GAIN_SHOWN && h->gain <= 1);
}

static void check(const struct hints *h)
{
	uint64_t idle = 0;
	for (size_t i = 0; i < h->v.n; i++) {
		expect(has_share(&h->v.v[i]), "a gain is a share of the analysed time");
		expect(!i || hint_order(&h->v.v[i - 1], &h->v.v[i]) <= 0,
			"the hint that gains most comes first");
	}
	for (int c = 0; c < GAP_CAUSES; c++)
		idle = sat_add(idle, h->idle_gaps[c].ns);
	expect(h->counted_ns <= h->window.ns, "what counts is part of the window");
	expect(idle <= h->counted_ns, "idle gaps are part of the analysed time");
	expect(h->before.ns + h->counted_ns + h->after.ns <= h->wall_ns ||
			(!h->before.ns && !h->after.ns),
		"what is analysed, before it and after it are parts of the wall time");
}

const char *hint_advice(const struct hints *h, const struct hint_rule *rule)
{
	return h->compiled && rule->compiled ? rule->compiled : rule->advice;
}

double hint_gain_ns(const struct hints *h, double gain)
{
	return gain * (double)h->counted_ns;
}

double hint_step_ns(const struct hints *h)
{
	return h->window.steps > 1 && h->window.alike
		       ? (double)h->counted_ns / (double)h->window.steps
		       : 0;
}

/* The same text where it lives as long as the report. */
static const char *lasting_name(const struct report *r, const char *kernel)
{
	for (size_t i = 0; kernel && i < r->activities.n; i++)
		if (!strcmp(r->activities.v[i].name, kernel))
			return r->activities.v[i].name;
	return NULL;
}

/* Each of what those before it left. */
static double together(const struct hints *h)
{
	double left = 1;
	for (size_t i = 0; i < h->v.n; i++)
		if (!isnan(h->v.v[i].gain))
			left *= 1 - h->v.v[i].gain;
	return 1 - left;
}

static void ask_rules(const struct hint_facts *f, struct hints *h)
{
	for (size_t i = 0; i < hint_rule_count; i++)
		hint_rules[i].evaluate(f, &hint_rules[i], h);
	SORT(h->v, hint_order);
	h->wall_ns = f->report->wall_ns;
	h->window = f->window;
	h->window.kernel = lasting_name(f->report, f->window.kernel);
	h->counted_ns = f->counted_ns;
	h->together = together(h);
	h->once_ns = f->once_ns;
	h->before = f->before;
	h->after = f->after;
	h->cut = f->cut;
	h->compiled = facts_compiled(f);
	h->part = f->report->trace->cut;
	memcpy(h->idle_gaps, f->idle_gaps, sizeof h->idle_gaps);
	h->sampled = f->report->sampled;
	h->launches = f->report->launches + f->report->graph_launches;
	check(h);
}

int hints_make(const struct report *r, struct hints **ret_hints)
{
	struct hint_facts f;
	struct hints *h = xcalloc(1, sizeof *h);
	int e = facts_make(r, &f);
	if (!e) {
		ask_rules(&f, h);
		facts_fini(&f);
	}
	if (e)
		hints_free(h);
	else
		*ret_hints = h;
	return e;
}

void hints_free(struct hints *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->v.n; i++) {
		free(h->v.v[i].where);
		free(h->v.v[i].evidence);
	}
	array_free(&h->v);
	free(h);
}
