/*
 * weir monitor serves metrics of programs and GPUs to Prometheus over HTTP. It also changes how
 * programs share and what is recorded (src/monitor/api.h). It looks even without a request, to find
 * slowdowns (src/monitor/regress.h).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/monotonic.h"
#include "cmd/cli/command.h"
#include "cmd/cli/sharing.h"
#include "cmd/cli/values.h"
#include "monitor/baseline_file.h"
#include "monitor/server.h"
#include "monitor/watch.h"

#define TIME_SHORTEST  50000000u
#define TIME_LONGEST   60000000000u
#define SAVED_EVERY_NS 600000000000u

struct monitor {
	const struct options *options;
	struct sharing sharing;
	struct watch watch;
	uint64_t interval, window, saved_ns;
};

/* Programs may begin to share while this runs: the file is looked for until it is there. */
static int look(void *data)
{
	struct monitor *m = data;
	if (!m->sharing.file && sharing_open(&m->sharing, opt_str(m->options, "share"), false))
		return -EACCES;
	m->watch.file = m->sharing.file;
	watch_look(&m->watch, NVML_ALL);
	return 0;
}

static void print_news(const struct monitor *m)
{
	const struct regress_series *s;
	while ((s = regress_news(m->watch.feed.regress)) != NULL) {
		struct json j;
		json_init(&j, stdout);
		j.pretty = false; /* a line each */
		feed_put_alarm(&j, s, m->watch.ns);
		putchar('\n');
		fflush(stdout);
	}
}

static int save(struct monitor *m)
{
	struct error err;
	const char *path = opt_str(m->options, "baseline");
	m->saved_ns = m->watch.ns;
	return path && baseline_save(m->watch.feed.regress, path, &err)
		       ? complain(EXIT_ENVIRONMENT, "%s", err.text)
		       : 0;
}

static void looked(void *data)
{
	struct monitor *m = data;
	if (opt_flag(m->options, "json"))
		print_news(m);
	if (m->watch.ns - m->saved_ns >= SAVED_EVERY_NS)
		save(m);
}

/* Reads the slowdowns that an earlier run kept. */
static int begin_slowdowns(struct monitor *m)
{
	struct error err;
	const char *path = opt_str(m->options, "baseline");
	m->saved_ns = monotonic_ns();
	m->watch.feed.regress = regress_new(REGRESS_SERIES, m->window, m->saved_ns);
	return path && baseline_load(m->watch.feed.regress, path, m->saved_ns, &err)
		       ? complain(EXIT_USAGE, "%s", err.text)
		       : 0;
}

/* Blocked before there are threads, so that this one alone gets them. */
static sigset_t block_ends(void)
{
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	return ends;
}

static void wait_for_end(const struct monitor *m, struct server *server, const sigset_t *ends)
{
	const struct timespec pause = { (time_t)(m->interval / 1000000000u),
		(long)(m->interval % 1000000000u) };
	while (sigtimedwait(ends, NULL, &pause) < 0)
		if (errno == EAGAIN)
			server_look(server);
}

static int serve(struct monitor *m)
{
	struct server *server;
	struct error err;
	unsigned port;
	const char *at = opt_str(m->options, "listen");
	const sigset_t ends = block_ends();
	const struct server_config c = { .listen = at,
		.control = opt_str(m->options, "control"),
		.token = opt_str(m->options, "token"),
		.version = WEIR_VERSION,
		.watch = &m->watch,
		.look = look,
		.looked = looked,
		.data = m };
	const int e = server_start(&c, &server, &port, &err);
	if (e)
		return complain(e == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s", err.text);
	if (!opt_flag(m->options, "quiet"))
		remark("metrics are at http://%.*s:%u/metrics", (int)(strrchr(at, ':') - at), at,
			port);
	wait_for_end(m, server, &ends);
	server_stop(server);
	return save(m);
}

int cmd_monitor(const struct options *o)
{
	struct monitor m = { .options = o };
	int code = take_time(o, "interval", TIME_SHORTEST, TIME_LONGEST, &m.interval);
	code = code ? code : take_time(o, "window", TIME_SHORTEST, TIME_LONGEST, &m.window);
	code = code ? code : sharing_open(&m.sharing, opt_str(o, "share"), false);
	code = code ? code : begin_slowdowns(&m);
	if (!code) {
		nvml_open(NULL, &m.watch.nvml, NULL); /* without it there are no metrics of GPUs */
		code = serve(&m);
		nvml_close(m.watch.nvml);
	}
	watch_fini(&m.watch);
	regress_free(m.watch.feed.regress);
	sharing_close(&m.sharing);
	return code;
}
