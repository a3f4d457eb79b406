/* weir flame FILE: where the time went, as a flame graph. */
#include "cmd/cli/command.h"
#include "cmd/cli/input.h"

#include <stdio.h>
#include <string.h>

#include "cmd/cli/output.h"
#include "flame/flame.h"
#include "report/sections.h"
#include "report/report_make.h"

struct format {
	const char *name;
	const char *ending; /* of a file that is written so when nothing else is said */
	void (*put)(const struct flame *f, FILE *out);
};

static const struct format formats[] = {
	{ "svg", ".svg", flame_put_svg },
	{ "folded", ".folded", flame_put_folded },
	{ "speedscope", ".json", flame_put_speedscope },
};
#define FORMATS (sizeof formats / sizeof formats[0])

static const struct format *format_of_name(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

static const struct format *format_of_file(const char *path)
{
	const char *dot = strrchr(path, '.');
	for (size_t i = 0; dot && i < FORMATS; i++)
		if (!strcmp(formats[i].ending, dot))
			return &formats[i];
	return NULL;
}

static int choose(const struct options *o, const struct format **ret_format)
{
	const char *name = opt_str(o, "format"), *path = output_path(o);
	*ret_format = name ? format_of_name(name) : path ? format_of_file(path) : &formats[1];
	if (*ret_format)
		return 0;
	if (name)
		return complain(
			EXIT_USAGE, "%s is no format: there are svg, folded, speedscope", name);
	return complain(EXIT_USAGE,
		"%s does not end in .svg, .folded or .json: choose with --format", path);
}

static int choose_by(const struct options *o, enum flame_by *ret_by)
{
	const char *by = opt_str(o, "by");
	*ret_by = !by ? FLAME_AUTO : !strcmp(by, "device") ? FLAME_DEVICE : FLAME_HOST;
	if (!by || !strcmp(by, "device") || !strcmp(by, "host"))
		return 0;
	return complain(EXIT_USAGE, "--by=%s: there are device and host", by);
}

struct picture {
	const struct format *format;
	const struct flame *flame;
};

static int put(void *context, FILE *out)
{
	const struct picture *p = context;
	p->format->put(p->flame, out);
	return 0;
}

/* The report has a sampled trace's estimates of launches that were not timed. */
static int estimate(struct flame *f, const struct trace *t, struct error *err)
{
	struct report *r;
	if (!t->header.sampled || !f->by_device)
		return 0;
	const int e = report_make(t, 0, FACET(DEVICE), &r, err);
	if (e)
		return e;
	flame_estimate(f, r);
	complain(0, "one launch in %u was timed: times are estimates, without memcpys and memsets",
		r->sampled);
	report_free(r);
	return 0;
}

/* A picture without frames is no mistake, but looks like one. */
static void say_why_empty(const struct trace *t, bool by_device)
{
	struct error err = { .text = "" };
	struct report *r = NULL;
	const char *why =
		report_make(t, 0, FACET(DEVICE), &r, &err)
			? NULL
			: section_why_empty(r, by_device ? &section_gpu_trace : &section_api_trace);
	complain(0, "the flame graph is empty%s%s%s", why ? ": " : "", why ? why : "",
		by_device && r && r->calls ? ". --by host has the time of the calls" : "");
	report_free(r);
}

static int draw(const struct options *o, const struct trace *t, const struct format *format,
	enum flame_by by)
{
	const char *path = output_path(o);
	struct flame *f;
	struct error err = { .text = "" };
	if (flame_make(t, by, &f, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (estimate(f, t, &err)) {
		flame_free(f);
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	}
	struct picture picture = { format, f };
	const int e = output_write(path, put, &picture);
	const bool empty = !f->nodes.v[0].total_ns, by_device = f->by_device;
	flame_free(f);
	if (e)
		return complain(EXIT_ENVIRONMENT, "%s can't be written: %s",
			path ? path : "standard output", strerror(-e));
	if (empty)
		say_why_empty(t, by_device);
	return EXIT_YES;
}

int cmd_flame(const struct options *o)
{
	const struct format *format;
	enum flame_by by;
	struct trace *t;
	int code = choose(o, &format);
	if (!code)
		code = choose_by(o, &by);
	if (code)
		return code;
	code = input_open(o, &t);
	if (code)
		return code;
	code = draw(o, t, format, by);
	trace_close(t);
	return code;
}
