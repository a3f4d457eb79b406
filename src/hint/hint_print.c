/* Hints as text and as JSON: see hint.h. */
#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "hint/hint.h"

#define SHORT_COUNT 3u
#define NAME_CUT    80u /* bytes of a kernel's name */

const char *hint_confidence_word(double confidence)
{
	return confidence >= 0.7 ? "high" : confidence >= 0.4 ? "medium" : "low";
}

/* "1.20 ms of each step's 15.0 ms (8 %)", or "20.8 ms (0.6 % of the wall time)". */
static void put_saved(const struct hints *h, double gain, FILE *out)
{
	const double step = hint_step_ns(h), ns = hint_gain_ns(h, gain);
	struct number saved, all;
	if (step > 0)
		fprintf(out, "%s of each step's %s (%.0f %%)",
			number_ns(&saved, (uint64_t)(gain * step)), number_ns(&all, (uint64_t)step),
			100 * gain);
	else
		fprintf(out, "%s (%.1f %% of the wall time)", number_ns(&saved, (uint64_t)ns),
			h->wall_ns ? 100 * ns / (double)h->wall_ns : 0);
}

static void put_gain(const struct hints *all, const struct hint *h, FILE *out)
{
	if (isnan(h->gain)) {
		fprintf(out, "saves memory, not time, confidence %s",
			hint_confidence_word(h->confidence));
		return;
	}
	fputs("may save about ", out);
	put_saved(all, h->gain, out);
	fprintf(out, ", confidence %s", hint_confidence_word(h->confidence));
}

static void put_line(FILE *out, const char *what, const char *text)
{
	fprintf(out, "     %-6s ", what);
	text_put_safe(out, text);
	putc('\n', out);
}

static void put_hint(const struct hints *all, size_t number, bool rule, FILE *out, const char *bold,
	const char *plain)
{
	const struct hint *h = &all->v.v[number - 1];
	fprintf(out, "  %zu. %s%s%s: %s: ", number, bold, h->rule->id, plain, h->rule->title);
	put_gain(all, h, out);
	putc('\n', out);
	put_line(out, "where", h->where);
	put_line(out, "why", h->evidence);
	if (rule)
		put_line(out, "rule", h->rule->when);
	put_line(out, "do", hint_advice(all, h->rule));
}

/* Start-up, most of all. */
static void put_outside(const char *when, const struct hint_outside *o, FILE *out)
{
	struct number ns, kernels, kernels_ns;
	fprintf(out, "%s it: %s, in which ", when, number_ns(&ns, o->ns));
	if (o->kernels)
		fprintf(out, "%s took %s", number_of(&kernels, o->kernels, "kernel"),
			number_ns(&kernels_ns, o->kernels_ns));
	else
		fputs("no kernel ran", out);
}

/* "steps 3 to 8, 120 ms of 1.20 s, 20.0 ms a step". */
void hint_put_window(const struct hints *h, FILE *out)
{
	const struct hint_window *w = &h->window;
	struct number ns, all, step;
	struct text_short name;
	if (w->steps > 1)
		fprintf(out, "steps %" PRIu64 " to %" PRIu64 ", ", w->first, w->last);
	else if (w->steps)
		fprintf(out, "step %" PRIu64 ", ", w->first);
	fprintf(out, "%s of %s%s", number_ns(&ns, w->ns), number_ns(&all, h->wall_ns),
		h->part ? " in the part that is read" : "");
	if (hint_step_ns(h) > 0)
		fprintf(out, ", %s a step", number_ns(&step, (uint64_t)hint_step_ns(h)));
	else if (w->kernel && !w->steps)
		fprintf(out, ", from the first launch of %s to its last",
			text_short(&name, text_kernel(w->kernel), NAME_CUT));
}

static size_t count_gains(const struct hints *h)
{
	size_t n = 0;
	for (size_t i = 0; i < h->v.n; i++)
		n += !isnan(h->v.v[i].gain);
	return n;
}

static void put_counted(const struct hints *h, FILE *out)
{
	struct number n;
	if (h->counted_ns) {
		fputs("  Analysed: ", out);
		hint_put_window(h, out);
		if (h->window.ns > h->counted_ns)
			fprintf(out, ", without %s that loaded code or came once or twice",
				number_ns(&n, h->window.ns - h->counted_ns));
		fputs(".\n", out);
	}
	if (h->counted_ns && !h->cut && (h->before.ns || h->after.ns)) {
		put_outside("  Before", &h->before, out);
		put_outside(". After", &h->after, out);
		fputs(".\n", out);
	}
	if (count_gains(h) > 1) {
		fputs("  Each gain is of that change alone. Together they save at most ", out);
		put_saved(h, h->together, out);
		fputs(".\n", out);
	}
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
		fputs("  No launch of a kernel was read, which most rules are about.\n", out);
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
		put_hint(h, i + 1, !short_, out, bold, plain);
	if (!h->v.n)
		put_none(h, out);
	if (shown < h->v.n)
		fprintf(out, "  … and %zu more (%s)\n", h->v.n - shown,
			short_ ? "weir hints FILE" : "-n 0 shows all");
	else if (short_)
		fputs("  (weir hints FILE shows hints alone)\n", out);
}

void hint_put_sentence(const struct hints *all, const struct hint *h, FILE *out)
{
	fprintf(out, "%s: ", h->rule->title);
	put_gain(all, h, out);
	fprintf(out, ". %s. To do: %s.", h->evidence, hint_advice(all, h->rule));
}
