/*
 * weir top watches programs that share a GPU or are recorded, and the GPUs (src/monitor). It prints
 * a screen, or text or JSON for scripts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/table.h"
#include "cmd/cli/command.h"
#include "cmd/cli/sharing.h"
#include "cmd/cli/values.h"
#include "monitor/screen.h"
#include "monitor/watch.h"

#define INTERVAL_SHORTEST 50000000u
#define INTERVAL_LONGEST  3600000000000u

struct top {
	const struct options *options;
	struct sharing sharing;
	struct watch watch;
	struct servers servers;
};

/* Programs may begin to share while this runs: the file is looked for until it is there. */
static int look(void *data)
{
	struct top *top = data;
	if (!top->sharing.file &&
		sharing_open(&top->sharing, opt_str(top->options, "share"), false))
		return -EACCES;
	top->watch.file = top->sharing.file;
	watch_look(&top->watch, NVML_QUICK);
	servers_look(&top->servers);
	return 0;
}

static void print_json(const struct watch *w)
{
	struct json j;
	json_begin_document(&j, stdout);
	watch_put_json(&j, w);
	servers_put_json(&j, w->servers);
	json_end_document(&j);
	fflush(stdout);
}

static void add_gpu(struct table *t, const struct watch_gpu *g)
{
	const struct gpu_sample *s = &g->sample;
	table_cell(t, "%u", s->device);
	table_cell_if(t, s->valid & SAMPLE_BUSY, "%.1f %%", (double)s->busy_pct);
	if (s->valid & SAMPLE_HAS_MEMORY)
		table_bytes(t, s->memory_used);
	else
		table_none(t);
	table_cell_if(t, s->valid & SAMPLE_HAS_POWER, "%u W", s->power_mw / 1000);
	table_cell_if(t, s->valid & SAMPLE_HAS_CELSIUS, "%u °C", s->celsius);
	table_cell_if(t, s->valid & SAMPLE_HAS_SM_CLOCK, "%u MHz", s->sm_mhz);
	table_cell_name(t, g->name, WATCH_NAME);
}

static void print_gpus(const struct watch *w)
{
	if (!w->gpus.n)
		return;
	struct table t = table_of(">GPU|>utilisation|>memory|>power|>temperature|>SM clock|<name");
	for (size_t i = 0; i < w->gpus.n; i++)
		add_gpu(&t, &w->gpus.v[i]);
	table_print(&t, stdout);
}

static void add_program(struct table *t, const struct watch_program *p)
{
	table_cell(t, "%u", p->pid);
	table_cell(t, "%s", p->shares ? watch_class_name(p) : "recorded");
	table_cell_if(t, p->has_busy, "%.1f %%", p->busy * 100);
	table_cell_if(t, watch_has_launches(p), "%.0f", p->launches_per_s);
	table_cell_if(t, watch_has_calls(p), "%.0f", p->calls_per_s);
	table_cell_if(t, watch_has_requests(p), "%.1f", p->requests_per_s);
	table_ns_if(t, p->request_p99_ns, p->request_p99_ns);
	table_cell_if(t, watch_has_requests(p), "%.1f %%", p->waiting * 100);
	if (p->shares)
		table_bytes(t, p->memory_used);
	else
		table_none(t);
	table_cell_name(t, p->name, WATCH_NAME);
}

static void print_programs(const struct watch *w)
{
	if (!w->programs.n && w->servers->models.n)
		return;
	if (!w->programs.n) {
		puts("no program shares a GPU or is recorded. Start one with: weir run -- ./program");
		return;
	}
	struct table t = table_of(
		">pid|<class|>busy|>launches/s|>calls/s|>requests/s|>p99|>waiting|>memory|<program");
	for (size_t i = 0; i < w->programs.n; i++)
		add_program(&t, &w->programs.v[i]);
	table_print(&t, stdout);
}

static void add_model(struct table *t, const struct served_model *m)
{
	table_cell(t, "%u", m->pid);
	table_cell_if(t, m->has_rate, "%.1f", m->requests_per_s);
	table_ns_if(t, m->p50_ns, m->p50_ns);
	table_ns_if(t, m->p99_ns, m->p99_ns);
	table_cell_if(t, m->has_missed, "%.1f %%", m->missed * 100);
	table_cell(t, "%" PRIu64, m->queued);
	table_cell_if(t, m->mean_rows > 0, "%.1f", m->mean_rows);
	table_cell(t, "%" PRIu64, m->version);
	table_cell_name(t, m->name, SERVERS_NAME);
}

static void print_models(const struct servers *s)
{
	if (!s->models.n)
		return;
	struct table t =
		table_of(">pid|>requests/s|>p50|>p99|>missed|>queued|>mean batch|>version|<model");
	for (size_t i = 0; i < s->models.n; i++)
		add_model(&t, &s->models.v[i]);
	table_print(&t, stdout);
}

static void print(const struct options *o, const struct watch *w)
{
	if (opt_flag(o, "json")) {
		print_json(w);
		return;
	}
	print_gpus(w);
	print_models(w->servers);
	print_programs(w);
}

/* Rates need two looks. */
static int print_looks(struct top *top, uint64_t interval_ns)
{
	const struct timespec pause = { (time_t)(interval_ns / 1000000000u),
		(long)(interval_ns % 1000000000u) };
	int e = look(top);
	do {
		nanosleep(&pause, NULL);
		e = e ? e : look(top);
		if (!e)
			print(top->options, &top->watch);
	} while (!e && !opt_flag(top->options, "once") && !ferror(stdout));
	return e;
}

static int answer(int e)
{
	switch (e) {
	case 0:
		return EXIT_YES;
	case -EACCES: /* has been said */
		return EXIT_ENVIRONMENT;
	case -ENOTTY:
		return complain(EXIT_ENVIRONMENT,
			"this terminal (TERM) is not known. Use `weir top --once`, which needs none");
	case -ENOSYS:
		return complain(EXIT_ENVIRONMENT,
			"this Weir was built without ncurses. Use `weir top --once`, which needs none");
	default:
		return complain(EXIT_ENVIRONMENT, "%s", strerror(-e));
	}
}

int cmd_top(const struct options *o)
{
	struct top top = { .options = o };
	uint64_t interval;
	int code = take_time(o, "interval", INTERVAL_SHORTEST, INTERVAL_LONGEST, &interval);
	if (code)
		return code;
	const bool prints = opt_flag(o, "once") || opt_flag(o, "json");
	if (!prints && !isatty(STDOUT_FILENO))
		return complain(EXIT_USAGE,
			"standard output is no terminal. `weir top --once` prints one look, and --json prints each as an object");
	code = sharing_open(&top.sharing, opt_str(o, "share"), false);
	if (code)
		return code;
	top.servers.directory = top.sharing.directory;
	top.watch.servers = &top.servers;
	nvml_open(NULL, &top.watch.nvml, NULL); /* without it there are no lines of GPUs */
	const int e = prints ? print_looks(&top, interval)
			     : screen_run(&top.watch, look, &top, (int)(interval / 1000000));
	watch_fini(&top.watch);
	servers_fini(&top.servers);
	nvml_close(top.watch.nvml);
	sharing_close(&top.sharing);
	return answer(e);
}
