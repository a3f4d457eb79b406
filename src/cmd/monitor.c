/*
 * weir monitor: what is to be seen of programs and GPUs, as metrics for Prometheus over HTTP, and
 * on a Unix socket the means to change how programs share (src/monitor/server.h).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cmd/cli/command.h"
#include "cmd/cli/sharing.h"
#include "monitor/server.h"
#include "monitor/watch.h"

struct monitor {
	const struct options *options;
	struct sharing sharing;
	struct watch watch;
};

/* Programs may begin to share while this runs: the file is looked for until it is there. */
static int look(void *data)
{
	struct monitor *m = data;
	if (!m->sharing.file && sharing_open(&m->sharing, opt_str(m->options, "share"), false))
		return -EACCES;
	m->watch.file = m->sharing.file;
	return watch_look(&m->watch, NVML_ALL);
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

static int serve(struct monitor *m)
{
	struct server *server;
	struct error err;
	unsigned port;
	int number;
	const char *at = opt_str(m->options, "listen"), *control = opt_str(m->options, "control");
	const sigset_t ends = block_ends();
	const struct server_config c = { .listen = at,
		.control = control,
		.version = WEIR_VERSION,
		.watch = &m->watch,
		.look = look,
		.data = m };
	const int e = server_start(&c, &server, &port, &err);
	if (e)
		return complain(e == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s", err.text);
	if (!opt_flag(m->options, "quiet"))
		remark("metrics are at http://%.*s:%u/metrics", (int)(strrchr(at, ':') - at), at,
			port);
	sigwait(&ends, &number);
	server_stop(server);
	return EXIT_YES;
}

int cmd_monitor(const struct options *o)
{
	struct monitor m = { .options = o };
	int code = sharing_open(&m.sharing, opt_str(o, "share"), false);
	if (code)
		return code;
	nvml_open(NULL, &m.watch.nvml, NULL); /* without it there are no metrics of GPUs */
	code = serve(&m);
	watch_fini(&m.watch);
	nvml_close(m.watch.nvml);
	sharing_close(&m.sharing);
	return code;
}
