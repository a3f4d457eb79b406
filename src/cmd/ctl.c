/*
 * weir ctl: changes what a running program records, by changing one word of the trace that
 * it has mapped.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "cmd/cli/input.h"
#include "cmd/cli/running.h"
#include "event/format.h"
#include "event/level.h"
#include "monitor/change.h"
#include "trace/live_header.h"

static int map_header(const char *path, struct trace_header **ret_h)
{
	const int e = live_header_open(path, true, ret_h);
	const bool other = e && e != -EINVAL && e != -ESTALE;
	/* a program that runs, say */
	if (e == -EINVAL || (other && !access(path, R_OK) && !input_is_recording(path)))
		return complain(EXIT_USAGE, "%s is no trace", path);
	if (other)
		return complain(EXIT_USAGE, "%s can't be opened: %s", path, strerror(-e));
	return e ? complain(EXIT_NO, "%s is finished. Only a running recording can be switched",
			   path)
		 : 0;
}

static int apply(struct trace_header *h, const char *command)
{
	struct error err;
	const uint32_t now = load_acquire(&h->control);
	if (!strcmp(command, "status") && h->stopped == STOP_NOT) {
		printf("%s%s\n", level_of_control(now), now & CONTROL_ARGS ? " args" : "");
		return EXIT_YES;
	}
	const int e = change_header(h, command, &err);
	if (e == -EINVAL)
		return complain(EXIT_USAGE, "%s, or status, which prints the level", err.text);
	return e ? complain(EXIT_NO, "%s", err.text) : EXIT_YES;
}

int cmd_ctl(const struct options *o)
{
	char path[PATH_MAX];
	struct trace_header *h = NULL;
	if (opt_argc(o) != 2)
		return complain(EXIT_USAGE,
			"name a process or a trace, and a command: weir ctl 1234 off, for example");
	const char *target = opt_argv(o)[0];
	const bool is_pid = target[strspn(target, "0123456789")] == 0;
	int code = is_pid ? running_trace_of(target, path, sizeof path) : 0;
	if (!code)
		code = map_header(is_pid ? path : target, &h);
	if (code || !h)
		return code;
	const int done = apply(h, opt_argv(o)[1]);
	live_header_close(h);
	return done;
}
