/* Prints the state of the GPUs. */
#include "report/gpu_table.h"

#include <math.h>
#include <string.h>

#include "base/bounded.h"
#include "base/number.h"
#include "base/text.h"
#include "model/gpu_state.h"

#include "base/banned.h"

/* What a damaged recording says may be anything. */
static uint64_t whole(double value)
{
	return value < 0x1p63 ? (uint64_t)value : UINT64_MAX;
}

static void cell_value(struct table *t, double value, const char *unit)
{
	struct number n;
	if (*unit != 'B')
		table_cell(t, "%.*f%s%s", fmod(value, 1) != 0, value, *unit ? " " : "", unit);
	else
		table_cell(t, "%s%s", number_bytes(&n, whole(value)), unit + 1);
}

static const char *reasons_text(uint16_t reasons, struct bounded *b)
{
	if (!reasons)
		return "not said";
	for (unsigned i = 0; i < 16; i++)
		if (reasons >> i & 1)
			bounded_printf(b, "%s%s", b->used ? ", " : "", throttle_reason_name(i));
	return bounded_end(b);
}

static void put_ranges(const struct gpu_states *s, const struct text_page *p)
{
	static const char *const headings[] = { "GPU", "min", "median", "max", "what" };
	struct table t;
	table_init(&t, ">>>><", headings);
	for (size_t i = 0; i < s->gpus.n; i++)
		for (enum gpu_metric m = 0; m < GPU_METRICS; m++) {
			const struct gpu_range *r = &s->gpus.v[i].range[m];
			if (!r->count)
				continue;
			table_cell(&t, "%u", s->gpus.v[i].device);
			cell_value(&t, r->low, gpu_metrics[m].unit);
			cell_value(&t, r->median, gpu_metrics[m].unit);
			cell_value(&t, r->high, gpu_metrics[m].unit);
			table_cell(&t, "%s", gpu_metrics[m].name);
		}
	table_end(&t, p->out, p->dim, p->plain, 0);
}

static void add_slow(struct table *t, const struct report *r, const struct gpu_state *g,
	const struct gpu_slow *at)
{
	char text[200];
	struct bounded b = BOUNDED(text);
	const uint64_t begin = r->trace->header.start.mono_ns;
	table_cell(t, "%u", g->device);
	table_ns(t, at->start_ns > begin ? at->start_ns - begin : 0);
	table_ns(t, at->ns);
	table_cell(t, "%u MHz", at->mhz);
	table_cell(t, "%.0f %%", at->mhz * 100 / g->range[METRIC_SM_CLOCK].high);
	if (at->kernel_ns)
		table_ns(t, at->kernel_ns);
	else
		table_none(t);
	table_cell(t, "%s", reasons_text(at->reasons, &b));
}

static void put_slow(const struct report *r, const struct gpu_states *s, const struct text_page *p)
{
	static const char *const headings[] = { "GPU", "at", "for", "SM clock", "of highest",
		"kernels", "why, says NVML" };
	struct table t;
	size_t rows = 0, all = 0;
	for (size_t i = 0; i < s->gpus.n; i++)
		all += s->gpus.v[i].slow.n;
	if (!all)
		return;
	page_heading(p, "GPU clock below its highest while busy");
	table_init(&t, ">>>>>><", headings);
	for (size_t i = 0; i < s->gpus.n; i++)
		for (size_t k = 0; k < s->gpus.v[i].slow.n && rows < page_shown(p, all);
			k++, rows++)
			add_slow(&t, r, &s->gpus.v[i], &s->gpus.v[i].slow.v[k]);
	page_end_table(p, &t, all);
}

void gpu_table_put_text(const struct report *r, const struct text_page *p)
{
	char heading[100];
	struct number interval;
	const struct gpu_states *s = r->gpu_states;
	if (!s || !s->gpus.n)
		return;
	snprintf(heading, sizeof heading, "GPU state (NVML, a sample each %s)",
		number_ns(&interval, s->interval_ns));
	page_heading(p, s->interval_ns ? heading : "GPU state (NVML, one sample)");
	put_ranges(s, p);
	put_slow(r, s, p);
}
