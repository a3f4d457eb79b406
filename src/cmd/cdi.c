/*
 * weir cdi writes a specification for the Container Device Interface (CDI): runtimes of containers
 * read it, and add to a container what a "device" of it says.  Ours are ways of recording.  They
 * mount the program and its libraries where they are on the host, and set the variables that load
 * the library.
 */
#include "cmd/cli/command.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/shared_library.h"
#include "cmd/cli/child.h"
#include "cmd/cli/output.h"
#include "weir_options.h"

struct cdi {
	char hook[PATH_MAX];  /* PREFIX/lib/weir/libweir.so */
	char audit[PATH_MAX]; /* "" where there is none */
	const char *traces;
};

__attribute__((format(printf, 2, 3))) static void put_text(struct json *j, const char *format, ...)
{
	char text[2 * PATH_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	json_str(j, NULL, text);
}

/* A part of the host's files, at the same path inside. */
static void put_mount(struct json *j, const char *path, size_t n, const char *access)
{
	json_begin_object(j, NULL);
	json_strn(j, "hostPath", path, n);
	json_strn(j, "containerPath", path, n);
	json_begin_array(j, "options");
	json_str(j, NULL, access);
	json_str(j, NULL, "nosuid");
	json_str(j, NULL, "nodev");
	json_str(j, NULL, "rbind");
	json_end_array(j);
	json_end_object(j);
}

/* Not the whole of PREFIX: that may be /usr. */
static void put_mounts(struct json *j, const struct cdi *c)
{
	char program[PATH_MAX];
	const size_t libraries = (size_t)(strrchr(c->hook, '/') - c->hook);
	const size_t prefix = libraries - strlen("/lib/weir");
	snprintf(program, sizeof program, "%.*s/bin/weir", (int)prefix, c->hook);
	json_begin_array(j, "mounts");
	put_mount(j, program, strlen(program), "ro");
	put_mount(j, c->hook, libraries, "ro");
	put_mount(j, c->traces, strlen(c->traces), "rw");
	json_end_array(j);
}

static void put_device(struct json *j, const struct cdi *c, const char *name, const char *settings)
{
	json_begin_object(j, NULL);
	json_str(j, "name", name);
	json_begin_object(j, "containerEdits");
	json_begin_array(j, "env");
	put_text(j, "LD_PRELOAD=%s", c->hook);
	if (*c->audit)
		put_text(j, "LD_AUDIT=%s", c->audit);
	put_text(j, "NVTX_INJECTION64_PATH=%s", c->hook);
	put_text(j, "WEIR=%srecord:%s/%%h.weir", settings, c->traces);
	json_end_array(j);
	json_end_object(j);
	json_end_object(j);
}

/* Runtimes refuse keys that they do not know, so nothing of Weir's own stands in it. */
static int put_specification(void *context, FILE *out)
{
	const struct cdi *c = context;
	struct json j;
	json_init(&j, out);
	j.pretty_depth = 4;
	json_begin_object(&j, NULL);
	json_str(&j, "cdiVersion", "0.3.0"); /* the first: nothing here is newer */
	json_str(&j, "kind", "weir/inject");
	json_begin_array(&j, "devices");
	put_device(&j, c, "record", "");
	put_device(&j, c, "gpu", WEIR_OPTION_gpu ",");
	json_end_array(&j);
	json_begin_object(&j, "containerEdits");
	put_mounts(&j, c);
	json_end_object(&j);
	json_end_document(&j);
	return 0;
}

int cmd_cdi(const struct options *o)
{
	struct cdi c = { .traces = opt_str(o, "traces") };
	const char *output = output_path(o);
	if (opt_argc(o))
		return complain(
			EXIT_USAGE, "'%s' is too much. Only options are known", opt_argv(o)[0]);
	if (c.traces[0] != '/' || !c.traces[1])
		return complain(EXIT_USAGE,
			"--traces=%s: give a path that begins with a slash and is not / itself",
			c.traces);
	if (strlen(c.traces) >= PATH_MAX - NAME_MAX)
		return complain(EXIT_USAGE, "--traces: the path is too long");
	const int none = child_hook(c.hook);
	if (none)
		return none;
	if (library_path("libweir-audit.so", c.audit, sizeof c.audit))
		c.audit[0] = 0;
	const int failed = output_write(output, put_specification, &c);
	return failed ? complain(EXIT_ENVIRONMENT, "%s can't be written: %s",
				output ? output : "standard output", strerror(-failed))
		      : EXIT_YES;
}
