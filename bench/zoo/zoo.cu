/* The kernel zoo: runs kernels of known cost over many shapes, to be recorded.
 *
 *	zoo [--part zoo|repeat|contend] [--family NAME] [--seconds S] [--shapes N] [--seed N]
 *	    [--app NAME] [--csv FILE]
 *	zoo --dry-run	what would run, and how long it might take; needs no GPU
 *	zoo --check	each kernel against its oracle, on small shapes
 *
 * Each launch is a row of FILE, in order: README.md says what the columns mean. */
#include "zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void dry_kernel(const struct list *l, const struct kernel *k)
{
	double low = INFINITY, high = 0, total = 0;
	long n = 0, keys = 0, bytes = 0;
	for (long i = 0; i < l->n; i++) {
		const struct item *it = l->items + i;
		if (it->kernel != k)
			continue;
		const double us = plan_us(k, &it->plan);
		low = fmin(low, us);
		high = fmax(high, us);
		total += us;
		n++;
		keys += it->repeat == 0;
		for (int b = 0; b < BUFFERS; b++)
			if (it->plan.need[b] > bytes)
				bytes = it->plan.need[b];
	}
	printf("%-12s %-24s %6ld %6ld %9.1f %9.0f %8.2f %8.2f\n", k->family, k->name, keys, n, low,
		high, total / 1e6, (double)bytes / 1e9);
}

static int dry_run(const struct options *o)
{
	double total = 0;
	long n = 0;
	printf("%-12s %-24s %6s %6s %9s %9s %8s %8s\n", "family", "kernel", "shapes", "runs",
		"least us", "most us", "sum s", "GB");
	for (int f = 0; families[f]; f++) {
		if (o->family && strcmp(o->family, families[f]->name))
			continue;
		struct list l = list_family(families[f], o->seed, o->shapes, 2, 10000);
		for (int k = 0; k < families[f]->n; k++)
			dry_kernel(&l, families[f]->kernels + k);
		for (long i = 0; i < l.n; i++)
			total += plan_us(l.items[i].kernel, &l.items[i].plan);
		n += l.n;
		free(l.items);
	}
	printf("%ld launches, about %.1f s of the GPU by estimate\n", n, total / 1e6);
	return n == 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: zoo [--part zoo|repeat|contend] [--family NAME] [--seconds S]\n"
			"           [--shapes N] [--seed N] [--app NAME] [--csv FILE]\n"
			"           [--dry-run] [--check]\n");
	return 2;
}

static bool take(struct options *o, const char *name, const char *value)
{
	if (!strcmp(name, "--part"))
		o->part = value;
	else if (!strcmp(name, "--family"))
		o->family = value;
	else if (!strcmp(name, "--app"))
		o->app = value;
	else if (!strcmp(name, "--csv"))
		o->csv = value;
	else if (!strcmp(name, "--seconds"))
		o->seconds = strtod(value, NULL);
	else if (!strcmp(name, "--shapes"))
		o->shapes = (int)strtol(value, NULL, 10);
	else if (!strcmp(name, "--seed"))
		o->seed = strtoull(value, NULL, 10);
	else
		return false;
	return true;
}

static int run_part(const struct options *o)
{
#ifdef __CUDACC__
	if (!strcmp(o->part, "zoo"))
		return run_zoo(o);
	if (!strcmp(o->part, "repeat"))
		return run_repeat(o);
	if (!strcmp(o->part, "contend"))
		return run_contend(o);
	return usage();
#else
	fprintf(stderr, "zoo: this is the emulated zoo: --dry-run and --check only\n");
	return 3;
#endif
}

int main(int argc, char **argv)
{
	struct options o = { "zoo", NULL, "zoo", NULL, 60, 60, 1 };
	bool dry = false, check = false;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--dry-run"))
			dry = true;
		else if (!strcmp(argv[i], "--check"))
			check = true;
		else if (i + 1 < argc && take(&o, argv[i], argv[i + 1]))
			i++;
		else
			return usage();
	}
	if (o.shapes < 1 || o.shapes > 100000 || o.seconds <= 0)
		return usage();
	if (dry)
		return dry_run(&o);
	if (check)
		return check_all(o.family, o.seed, at_most(o.shapes, 20)) != 0;
	return run_part(&o);
}
