/* weir export -o NAME.FORMAT FILE: writes a trace in another tool's format. */
#include "cmd/cli/command.h"
#include "cmd/cli/input.h"
#include "cmd/cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bounded.h"
#include "export/export.h"

static int list_formats(const char *wrong, const char *path)
{
	char list[512];
	struct bounded b = BOUNDED(list);
	for (int i = 0; exporters[i]; i++) {
		bounded_printf(&b, "%s%s", i ? ", " : "", exporters[i]->name);
		if (exporters[i]->suffixes)
			bounded_printf(&b, " (%s)", exporters[i]->suffixes);
	}
	bounded_end(&b);
	if (wrong)
		return complain(EXIT_USAGE, "%s is no format: there are %s", wrong, list);
	if (path)
		return complain(EXIT_USAGE,
			"%s does not end as a format does: choose one with -f: %s", path, list);
	return complain(
		EXIT_USAGE, "choose a format with -f, or a file that ends so with -o: %s", list);
}

static int export_trace(
	const struct exporter *e, const struct trace *t, const char *only, const char *path)
{
	struct error err = { .text = "" };
	const int failed = export_run(e, t, only, path, stdout, &err);
	if (failed) /* the trace does not have it, or it can't be written */
		return complain(failed == -ENODATA ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s", err.text);
	return EXIT_YES;
}

int cmd_export(const struct options *o)
{
	const char *format = opt_str(o, "format"), *path = output_path(o);
	const struct exporter *e = format ? exporter_find(format)
				   : path ? exporter_of_file(path)
					  : NULL;
	struct trace *t;
	if (!e)
		return list_formats(format, path);
	if (!path && e->wants_path)
		return complain(EXIT_USAGE, "%s needs a file: name one with -o", e->name);
	if (!path && (e == &export_perfetto || e == &export_memory_viz || e == &export_columns) &&
		isatty(STDOUT_FILENO) == 1)
		return complain(
			EXIT_USAGE, "%s is no text for a terminal: name a file with -o", e->name);
	int code = input_open(o, &t);
	if (code)
		return code;
	code = export_trace(e, t, opt_str(o, "only"), path);
	trace_close(t);
	return code;
}
