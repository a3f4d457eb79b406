/* Hints as text and as JSON: see hint.h. */
#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "base/table.h"
#include "base/text.h"
#include "hint/hint.h"

#include "base/banned.h"

#define SHORT_COUNT 3u

static const char *word_of(double confidence)
{
	return confidence >= 0.7 ? "high" : confidence >= 0.4 ? "medium" : "low";
}

/* "estimate: 43 % of the time, confidence medium" */
static void put_gain(const struct hint *h, FILE *out)
{
	if (isnan(h->gain))
		fprintf(out, "saves memory, not time; confidence %s", word_of(h->confidence));
	else
		fprintf(out,
			"may save about %.0f %% of the analysed time (an estimate; confidence %s)",
			100 * h->gain, word_of(h->confidence));
}

static void put_line(FILE *out, const char *what, const char *text)
{
	fprintf(out, "     %-6s ", what);
	text_put_safe(out, text);
	putc('\n', out);
}

static void put_hint(const struct hint *h, size_t number, bool rule, FILE *out, const char *bold,
	const char *plain)
{
	fprintf(out, "  %zu. %s%s%s: %s: ", number, bold, h->rule->id, plain, h->rule->title);
	put_gain(h, out);
	putc('\n', out);
	put_line(out, "where", h->where);
	put_line(out, "why", h->evidence);
	if (rule)
		put_line(out, "rule", h->rule->when);
	put_line(out, "do", h->rule->advice);
}

/* Start-up, most of all. */
static void put_outside(const char *when, const struct hint_outside *o, FILE *out)
{
	struct number ns, kernels, kernels_ns;
	fprintf(out, "%s it: %s, in which ", when, number_ns(&ns, o->ns));
	if (o->kernels)
		fprintf(out, "%s kernel%s took %s", number_count(&kernels, o->kernels),
			o->kernels > 1 ? "s" : "", number_ns(&kernels_ns, o->kernels_ns));
	else
		fputs("no kernel ran", out);
}

static void put_counted(const struct hints *h, FILE *out)
{
	struct number n, all;
	if (h->counted_ns)
		fprintf(out,
			"  Analysed time: %s of %s%s, from the first launch of the kernel with the largest "
			"total to its last",
			number_ns(&n, h->counted_ns), number_ns(&all, h->wall_ns),
			h->part ? " in the part that is read" : "");
	if (h->counted_ns && h->once_ns)
		fprintf(out, ", without %s in idle gaps that came once or twice",
			number_ns(&n, h->once_ns));
	if (h->counted_ns)
		fputs(".\n", out);
	if (h->counted_ns && !h->cut && (h->before.ns || h->after.ns)) {
		put_outside("  Before", &h->before, out);
		put_outside(". After", &h->after, out);
		fputs(".\n", out);
	}
	if (h->v.n > 1)
		fputs("  Each gain is of that change alone; they don't add up.\n", out);
	if (h->cut)
		fputs("  The trace is long: only its beginning was analysed.\n", out);
}

static void put_none(const struct hints *h, FILE *out)
{
	struct number n;
	if (h->counted_ns)
		fputs("  No rule found anything that matters.\n", out);
	else if (h->sampled)
		fprintf(out,
			"  One launch in %s was timed, and most rules need to know what ran when: "
			"record with weir record --gpu.\n",
			number_count(&n, h->sampled));
	else if (!h->launches)
		fputs("  The trace has no launch of a kernel, which most rules are about.\n", out);
	else
		fputs("  The trace says nothing about device times, which most rules need: record with "
		      "weir record --gpu.\n",
			out);
}

void hints_print_text(const struct hints *h, FILE *out, unsigned rows, bool short_, bool colour)
{
	const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
	const size_t most = short_ ? SHORT_COUNT : rows ? rows : h->v.n;
	const size_t shown = most < h->v.n ? most : h->v.n;
	if (short_ && !h->v.n)
		return;
	fprintf(out, "%s%sHints%s\n", short_ ? "\n" : "", bold, plain);
	put_counted(h, out);
	for (size_t i = 0; i < shown; i++)
		put_hint(&h->v.v[i], i + 1, !short_, out, bold, plain);
	if (!h->v.n)
		put_none(h, out);
	if (shown < h->v.n)
		fprintf(out, "  … and %zu more (%s)\n", h->v.n - shown,
			short_ ? "weir hints FILE" : "-n 0 shows all");
	else if (short_)
		fputs("  (weir hints FILE shows hints alone)\n", out);
}

static void json_hint(struct json *j, const struct hint *h)
{
	char *text = NULL;
	size_t bytes;
	json_begin_object(j, NULL);
	json_str(j, "id", h->rule->id);
	json_str(j, "where", h->where);
	json_put_real(j, "gain_pct", 100 * h->gain); /* null when it is none of time */
	json_put_real(j, "confidence", h->confidence);
	FILE *out = open_memstream(&text, &bytes);
	if (out) {
		fprintf(out, "%s: ", h->rule->title);
		put_gain(h, out);
		fprintf(out, ". %s. To do: %s.", h->evidence, h->rule->advice);
		fclose(out);
	}
	json_str(j, "text", text ? text : h->rule->title);
	free(text);
	json_str(j, "title", h->rule->title);
	json_str(j, "rule", h->rule->when);
	json_str(j, "evidence", h->evidence);
	json_str(j, "advice", h->rule->advice);
	json_end_object(j);
}

/* Why nothing ran, in the analysed time. */
static void json_gaps(struct json *j, const struct hints *h)
{
	json_begin_array(j, "hints_pauses");
	for (int i = 0; i < GAP_CAUSES; i++) {
		if (!h->idle_gaps[i].count)
			continue;
		json_begin_object(j, NULL);
		json_str(j, "cause", gap_cause_name[i]);
		json_u64(j, "count", h->idle_gaps[i].count);
		json_u64(j, "ns", h->idle_gaps[i].ns);
		json_end_object(j);
	}
	json_end_array(j);
}

void hints_put_json(struct json *j, const struct hints *h)
{
	json_begin_array(j, "hints");
	for (size_t i = 0; i < h->v.n; i++)
		json_hint(j, &h->v.v[i]);
	json_end_array(j);
	json_u64_or_null(j, "hints_of_ns", h->counted_ns, h->counted_ns);
	json_gaps(j, h);
}
