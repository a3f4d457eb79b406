/*
 * Writes the samples of a trace for training. The format dataset has a CSV line for each kernel
 * that ran, and dataset-card describes that table in Markdown. Unknown values are empty fields.
 */
#include "export/export.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/expect.h"
#include "base/sort.h"
#include "base/text.h"
#include "model/samples.h"

struct column {
	const char *name;
	const char *meaning;
	void (*put)(struct export *x, const struct launch_samples *all, const struct sample *s);
};

static const struct sample_kernel *kernel(const struct launch_samples *all, const struct sample *s)
{
	expect(s->p.name < all->kernels.n, "the kernel of a sample is one of all");
	return all->kernels.v[s->p.name];
}

/* The values of a column, or nothing if they are not known. */
#define FIELD(name, known, ...)                                                                    \
	static void put_##name(                                                                    \
		struct export *x, const struct launch_samples *all, const struct sample *s)        \
	{                                                                                          \
		if (known)                                                                         \
			fprintf(x->out, __VA_ARGS__);                                              \
	}

FIELD(trace, true, "%" PRIu64, x->trace->header.start.real_ns)
FIELD(order, true, "%zu", (size_t)(s - all->v.v))
FIELD(family, true, "%s", predict_family_word(kernel(all, s)->k.family))
FIELD(cc, s->on && s->on->capability, "%" PRIu32 ".%" PRIu32, s->on->capability >> 16,
	s->on->capability & 0xffff)
FIELD(sms, s->on && s->on->multiprocessors, "%" PRIu32, s->on->multiprocessors)
FIELD(shape, true, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32,
	s->p.launch.grid[0], s->p.launch.grid[1], s->p.launch.grid[2], s->p.launch.block[0],
	s->p.launch.block[1], s->p.launch.block[2])
FIELD(smem_static, kernel(all, s)->has_shared, "%" PRIu32, kernel(all, s)->k.smem_static_bytes)
FIELD(smem_dynamic, s->has_dynamic, "%" PRIu32, s->p.launch.smem_dynamic_bytes)
FIELD(regs, kernel(all, s)->k.has_regs, "%" PRIu32, kernel(all, s)->k.regs)
FIELD(local, kernel(all, s)->k.has_local, "%" PRIu32, kernel(all, s)->k.local_bytes)
FIELD(key, s->has_args, "0x%016" PRIx64, s->args_key)
FIELD(flops, s->p.launch.has_flops, "%.0f", s->p.launch.flops)
FIELD(bytes, s->p.launch.has_bytes, "%.0f", s->p.launch.bytes)
FIELD(ns, true, "%" PRIu64, s->end_ns - s->start_ns)
/* Between launches that were timed there may have been others. */
FIELD(contended, !x->trace->header.sampled, "%d", s->p.launch.contended)
FIELD(sampled, x->trace->header.sampled, "%" PRIu32, x->trace->header.sampled)

static void put_app(struct export *x, const struct launch_samples *all, const struct sample *s)
{
	text_put_csv(x->out, basename(x->meta->processes.v[s->p.app].executable));
}

static void put_kernel(struct export *x, const struct launch_samples *all, const struct sample *s)
{
	text_put_csv(x->out, kernel(all, s)->name);
}

static void put_args(struct export *x, const struct launch_samples *all, const struct sample *s)
{
	for (uint32_t i = 0; i < PREDICT_ARGS; i++) {
		if (i)
			putc(',', x->out);
		if (s->has_args && i < s->p.launch.args)
			fprintf(x->out, "%" PRIu64, s->p.launch.arg[i]);
	}
}

static const struct column columns[] = {
	{ "trace", "when the recording began, nanoseconds since 1970", put_trace },
	{ "app", "name of the program", put_app },
	{ "order", "number of the kernel in the trace, in the order in which they began",
		put_order },
	{ "kernel", "name of the kernel, demangled", put_kernel },
	{ "family", "what kind of kernel it is, by words in its name", put_family },
	{ "cc", "compute capability of the device", put_cc },
	{ "sms", "multiprocessors of the device", put_sms },
	{ "grid_x,grid_y,grid_z,block_x,block_y,block_z", "blocks, and threads of a block",
		put_shape },
	{ "smem_static", "bytes of shared memory that a block declares", put_smem_static },
	{ "smem_dynamic", "bytes that the launch adds", put_smem_dynamic },
	{ "regs", "registers of a thread", put_regs },
	{ "local", "bytes of local memory of a thread", put_local },
	{ "key", "equal for equal scalar arguments, addresses left out", put_key },
	{ "args0,args1,args2,args3,args4,args5,args6,args7",
		"the first scalar arguments, as the bits that they are", put_args },
	{ "flops", "floating-point operations that it has to do", put_flops },
	{ "bytes", "bytes that it has to move", put_bytes },
	{ "ns", "nanoseconds on the device, from start to end: what is to be predicted", put_ns },
	{ "contended", "1 when another kernel was on the device at the same moment",
		put_contended },
	{ "sampled",
		"one launch in so many was timed, with events: ns includes the wait of the device for "
		"the launch; empty: all that ran is here, as the device says it",
		put_sampled },
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void write_dataset(struct export *x, const struct launch_samples *all)
{
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(x->out, "%s%s", i ? "," : "", columns[i].name);
	putc('\n', x->out);
	for (size_t k = 0; k < all->v.n; k++) {
		for (size_t i = 0; i < COLUMNS; i++) {
			if (i)
				putc(',', x->out);
			columns[i].put(x, all, &all->v.v[k]);
		}
		putc('\n', x->out);
	}
}

static uint64_t *sorted(const struct launch_samples *all, uint64_t (*of)(const struct sample *s))
{
	uint64_t *v = xcalloc(all->v.n + 1, sizeof *v);
	for (size_t i = 0; i < all->v.n; i++)
		v[i] = of(&all->v.v[i]);
	qsort(v, all->v.n, sizeof *v, order_u64);
	return v;
}

static uint64_t key_of(const struct sample *s)
{
	return s->p.launch.key;
}

static uint64_t ns_of(const struct sample *s)
{
	return s->end_ns - s->start_ns;
}

static size_t distinct(const uint64_t *v, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += !i || v[i] != v[i - 1];
	return count;
}

static void put_source(struct export *x)
{
	const struct trace_header *h = &x->trace->header;
	const time_t when = (time_t)(h->start.real_ns / 1000000000u);
	struct tm parts;
	char day[32] = "";
	if (h->start.real_ns && gmtime_r(&when, &parts))
		strftime(day, sizeof day, "%Y-%m-%d", &parts);
	fputs("* program: `", x->out);
	text_put_safe(x->out, h->program);
	fputs("`\n", x->out);
	if (*day)
		fprintf(x->out, "* recorded: %s\n", day);
	array_each(const struct meta_device, d, x->meta->devices) {
		fprintf(x->out, "* device %" PRIu32 ": ", d->device);
		text_put_safe(x->out, x->meta->names.v[d->name].text);
		putc('\n', x->out);
	}
}

static void put_counts(struct export *x, const struct launch_samples *all)
{
	size_t contended = 0, args = 0, flops = 0;
	for (size_t i = 0; i < all->v.n; i++) {
		expect(!i || all->v.v[i - 1].start_ns <= all->v.v[i].start_ns,
			"samples come in the order in which they began");
		contended += all->v.v[i].p.launch.contended;
		args += all->v.v[i].has_args;
		flops += all->v.v[i].p.launch.has_flops;
	}
	fprintf(x->out, "| | |\n|---|---|\n| rows | %zu |\n| kernels | %zu |\n", all->v.n,
		all->kernels.n);
	if (!x->trace->header.sampled)
		fprintf(x->out, "| contended rows | %zu |\n", contended);
	fprintf(x->out, "| rows with arguments | %zu |\n", args);
	fprintf(x->out, "| rows with FLOPs | %zu |\n", flops);
	if (x->trace->header.sampled)
		fprintf(x->out, "| launches timed, with events | one in %" PRIu32 " |\n",
			x->trace->header.sampled);
	if (all->shapeless)
		fprintf(x->out, "| kernels left out, their shape is not known | %" PRIu64 " |\n",
			all->shapeless);
}

static void put_distribution(struct export *x, const struct launch_samples *all)
{
	uint64_t *keys = sorted(all, key_of), *ns = sorted(all, ns_of);
	const size_t n = all->v.n;
	if (keys && ns && n) {
		fprintf(x->out, "| different launches | %zu |\n", distinct(keys, n));
		fprintf(x->out,
			"| ns, median | %" PRIu64 " |\n| ns, 90th percentile | %" PRIu64 " |\n",
			ns[n / 2], ns[n * 9 / 10]);
	}
	free(keys);
	free(ns);
}

static void put_families(struct export *x, const struct launch_samples *all)
{
	size_t count[FAMILIES] = { 0 };
	for (size_t i = 0; i < all->v.n; i++)
		if (expect(kernel(all, &all->v.v[i])->k.family < FAMILIES,
			    "a family is one of all"))
			count[kernel(all, &all->v.v[i])->k.family]++;
	fputs("\n## Families\n\n| family | rows |\n|---|---|\n", x->out);
	for (int f = 0; f < FAMILIES; f++)
		if (count[f])
			fprintf(x->out, "| %s | %zu |\n",
				predict_family_word((enum predict_family)f), count[f]);
}

static void write_card(struct export *x, const struct launch_samples *all)
{
	fputs("# Kernel times\n\nOne row is one kernel that ran on a GPU. Written by `weir "
	      "export -f dataset`.\n\n",
		x->out);
	put_source(x);
	fputs("\n", x->out);
	put_counts(x, all);
	put_distribution(x, all);
	put_families(x, all);
	fputs("\n## Columns\n\nAn empty field is a value that is not known.\n\n| column | meaning "
	      "|\n|---|---|\n",
		x->out);
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(x->out, "| %s | %s |\n", columns[i].name, columns[i].meaning);
	fputs("\n## Limits\n\n"
	      "Rows are launches as the program made them: the same launch comes again and "
	      "again, so split by key,\nkernel or time, never by row. Integers, floating-point "
	      "numbers and addresses are distinguished by their bits.\nTimes are of this device with "
	      "the clocks that it had.\n",
		x->out);
}

static int with_samples(
	struct export *x, void (*write)(struct export *x, const struct launch_samples *all))
{
	struct launch_samples all;
	const int e = launch_samples_load(x->trace, x->meta, &all, x->err);
	if (e)
		return e;
	if (!all.v.n) {
		launch_samples_fini(&all);
		return error_set(x->err, -ENODATA,
			"the trace has no kernel with a device time: record with --gpu --args");
	}
	write(x, &all);
	launch_samples_fini(&all);
	return 0;
}

static int whole_dataset(struct export *x)
{
	return with_samples(x, write_dataset);
}

static int whole_card(struct export *x)
{
	return with_samples(x, write_card);
}

const struct exporter export_dataset = {
	.name = "dataset",
	.whole = whole_dataset,
};

const struct exporter export_dataset_card = {
	.name = "dataset-card",
	.suffixes = ".md",
	.whole = whole_card,
};
