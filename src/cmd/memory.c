/*
 * weir memory shows live memory over time, the blocks at the peak and leaks. With --replay it shows
 * how other allocators would have served the same requests.
 */
#include "allocator/allocator.h"
#include "cmd/cli/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/input.h"
#include "cmd/cli/output.h"
#include "cmd/cli/pager.h"
#include "cmd/cli/report_input.h"
#include "cmd/cli/values.h"
#include "hint/hint.h"
#include "report/memory_print.h"

#define HANDLE_LEAST (UINT64_C(2) << 20)
#define HANDLE_MOST  (UINT64_C(64) << 20)

static int take_replay(const struct options *o, unsigned *ret_designs, uint64_t *ret_handle)
{
	const char *names = opt_str(o, "replay");
	*ret_designs = alloc_designs_parse(*names ? names : "pool,expandable,pytorch,driver");
	if (!*ret_designs)
		return complain(EXIT_USAGE,
			"--replay=%s: give a list with commas of pool, pytorch, expandable and driver",
			names);
	const int code = take_size(o, "handle", HANDLE_LEAST, HANDLE_MOST, ret_handle);
	return code || !(*ret_handle & (*ret_handle - 1))
		       ? code
		       : complain(EXIT_USAGE, "--handle=%s: give a power of two",
				 opt_str(o, "handle"));
}

static int put_picture(void *context, FILE *out)
{
	alloc_put_svg(context, out);
	return ferror(out) ? -EIO : 0;
}

static int put_replay(const struct options *o, struct alloc_replay *replay)
{
	const char *path = output_path(o);
	const int e = opt_str(o, "output") ? output_write(path, put_picture, replay) : 0;
	if (e)
		return complain(EXIT_ENVIRONMENT, "can't write %s: %s", path ? path : "the picture",
			strerror(-e));
	if (opt_str(o, "output") && !path)
		return EXIT_YES; /* standard output has the picture */
	if (opt_flag(o, "json"))
		alloc_put_json(replay, stdout);
	else
		alloc_put_text(replay, stdout, report_input_colour());
	return EXIT_YES;
}

static int replay_trace(const struct options *o, const struct alloc_trace *t, unsigned designs,
	uint64_t handle_bytes)
{
	struct alloc_replay *replay = xmalloc(sizeof *replay);
	int e = allocator_replay(t, designs, handle_bytes, replay), code;
	if (e)
		code = complain(EXIT_ENVIRONMENT, "the allocations can't be replayed: %s",
			e == -ENOSPC ? "they take more addresses than the pool can have"
				     : strerror(-e));
	else
		code = put_replay(o, replay);
	free(replay);
	return code;
}

static int show_replay(const struct options *o, struct report *r)
{
	struct alloc_trace t;
	struct error err;
	unsigned designs;
	uint64_t handle_bytes;
	int code = take_replay(o, &designs, &handle_bytes);
	if (code)
		return code;
	if (alloc_trace_read(r, &t, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (t.blocks)
		code = replay_trace(o, &t, designs, handle_bytes);
	else
		code = complain(EXIT_USAGE,
			"%s has no allocations of device memory to replay. weir record and weir import "
			"make traces that have them",
			input_files(o).v[0]);
	alloc_trace_free(&t);
	return code;
}

static int show(const struct options *o, struct report *r, unsigned rows)
{
	if (opt_str(o, "replay"))
		return show_replay(o, r);
	if (opt_str(o, "output"))
		return complain(EXIT_USAGE, "--output draws a replay: give --replay too");
	const bool colour = report_input_colour();
	pager_begin();
	r->all_live = !rows;
	if (opt_flag(o, "json"))
		memory_print_json(r, stdout, false);
	else
		memory_print_text(r, stdout, rows, colour, report_input_utf8());
	pager_end();
	return EXIT_YES;
}

int cmd_memory(const struct options *o)
{
	return report_input_show(o, FACETS_ALL, show);
}
