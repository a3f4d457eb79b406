/* weir whatif A B...: how recorded programs would share a GPU, policy by policy. */
#include "cmd/cli/command.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/cli/input.h"
#include "cmd/cli/output.h"
#include "cmd/cli/report_input.h"
#include "cmd/cli/values.h"
#include "whatif/serving.h"
#include "whatif/whatif.h"

#define SEED_MOST     UINT32_MAX
#define REQUESTS_MOST 10000000u
#define RATE_MOST     1e8 /* a second */
#define SECONDS_MOST  100000u

struct question {
	struct whatif w;
	struct recording recordings[REPLAY_PROGRAMS];
	size_t count; /* of recordings */
};

static bool rate_parse(const char *text, uint64_t *ret_ns)
{
	char *end;
	const double rate = strtod(text, &end);
	if (*text < '0' || *text > '9' || *end || !(rate >= 1e-6) || rate > RATE_MOST)
		return false;
	*ret_ns = (uint64_t)(1e9 / rate);
	return true;
}

static int take_arrivals(const struct options *o, struct arrivals *a)
{
	const char *how = opt_str(o, "arrivals"), *value = strchr(how, ':');
	const size_t n = value ? (size_t)(value - how) : strlen(how);
	bool right = false;
	if (!value) {
		right = !strcmp(how, "recorded");
	} else if (n == 6 && !strncmp(how, "closed", n)) {
		a->kind = ARRIVE_CLOSED;
		right = duration_parse(value + 1, &a->time_ns);
	} else if (n == 8 && !strncmp(how, "periodic", n)) {
		a->kind = ARRIVE_PERIODIC;
		right = duration_parse(value + 1, &a->time_ns);
	} else if (n == 7 && !strncmp(how, "poisson", n)) {
		a->kind = ARRIVE_POISSON;
		right = rate_parse(value + 1, &a->time_ns);
	}
	if (right)
		return 0;
	return complain(EXIT_USAGE,
		"--arrivals=%s: give recorded, closed:2ms, periodic:20ms or poisson:100, for example",
		how);
}

static int take_policies(const struct options *o, struct whatif *w)
{
	const size_t most = sizeof w->policies / sizeof *w->policies;
	const char *name;
	for (int i = 0; (name = opt_nth(o, "policy", i)); i++) {
		const struct policy *p = policy_find(name);
		if (!p)
			return complain(EXIT_USAGE,
				"--policy=%s: there are fifo, strict, fair, edf and fit, and with --serve slack, delay, fifo and edf",
				name);
		if (w->policy_count == most)
			return complain(EXIT_USAGE, "--policy may be given %zu times", most);
		w->policies[w->policy_count++] = p;
	}
	return 0;
}

static int take_numbers(const struct options *o, struct whatif *w)
{
	const int code = take_number(o, "requests", 1, REQUESTS_MOST, &w->requests);
	return code ? code : take_number(o, "seed", 0, SEED_MOST, &w->arrivals.seed);
}

/* The class of the i-th recording; CLASS_NONE: the text has no such, or another word. */
static enum share_class class_of(const char *text, size_t i)
{
	if (!text)
		return i ? CLASS_BEST_EFFORT : CLASS_LATENCY;
	for (; i && text; i--) {
		text = strchr(text, ',');
		text = text ? text + 1 : NULL;
	}
	const size_t n = text ? strcspn(text, ",") : 0;
	if (n == 7 && !strncmp(text, "latency", n))
		return CLASS_LATENCY;
	return n == 11 && !strncmp(text, "best-effort", n) ? CLASS_BEST_EFFORT : CLASS_NONE;
}

static int check_classes(const struct options *o)
{
	const char *text = opt_str(o, "class");
	size_t words = text ? 1 : 0;
	for (const char *p = text; p && (p = strchr(p, ',')); p++)
		words++;
	bool right = !text || words == (size_t)opt_argc(o);
	for (size_t i = 0; i < words && right; i++)
		right = class_of(text, i) != CLASS_NONE;
	if (right)
		return 0;
	if (opt_argc(o) == 1)
		return complain(EXIT_USAGE,
			"--class=%s: give latency or best-effort for the one recording", text);
	return complain(EXIT_USAGE,
		"--class=%s: give latency or best-effort for each of the %d recordings, with commas between",
		text, opt_argc(o));
}

static int add_programs(
	struct whatif *w, const char *path, const struct recording *r, enum share_class class)
{
	for (size_t i = 0; i < r->programs.n; i++) {
		if (class == CLASS_LATENCY && !r->programs.v[i].requests)
			return complain(EXIT_USAGE,
				"%s has no request to replay: in %s no launch is recorded whose kernel "
				"has a time. Record the program with weir record --gpu, or say "
				"--class=best-effort",
				path, r->programs.v[i].name);
		if (w->count == REPLAY_PROGRAMS)
			return complain(EXIT_USAGE, "the recordings are of more than %d programs",
				REPLAY_PROGRAMS);
		w->programs[w->count++] = (struct replay_program){ &r->programs.v[i], class };
	}
	if (r->sms && r->sms <= LAW_SMS && r->sms > w->device.sms)
		w->device.sms = r->sms;
	return 0;
}

static int load(const struct options *o, struct question *q)
{
	int code = 0;
	struct error err;
	q->w.device = LAW_H200;
	q->w.device.sms = 0;
	for (int i = 0; i < opt_argc(o) && !code; i++) {
		struct recording *r = &q->recordings[q->count++];
		const char *path = opt_argv(o)[i];
		struct trace *t;
		code = input_open_file(path, &t);
		if (code)
			return code;
		if (recording_load(path, t, r, &err))
			code = complain(EXIT_USAGE, "%s", err.text);
		trace_close(t);
		if (!code)
			code = add_programs(
				&q->w, path, r, class_of(opt_str(o, "class"), (size_t)i));
	}
	q->w.sms_assumed = !q->w.device.sms;
	if (q->w.sms_assumed)
		q->w.device.sms = LAW_H200.sms;
	return code;
}

static int answer(const struct options *o, struct whatif *w)
{
	struct error err;
	if (whatif_run(w, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (opt_flag(o, "json"))
		whatif_put_json(w, stdout);
	else
		whatif_put_text(w, stdout, report_input_colour());
	return EXIT_YES;
}

static int ask(const struct options *o, struct question *q)
{
	int code = check_classes(o);
	code = code ? code : take_arrivals(o, &q->w.arrivals);
	code = code ? code : take_policies(o, &q->w);
	code = code ? code : take_numbers(o, &q->w);
	code = code ? code : load(o, q);
	return code ? code : answer(o, &q->w);
}

static int take_served_policies(const struct options *o, struct serving *w)
{
	const char *name;
	for (int i = 0; (name = opt_nth(o, "policy", i)); i++)
		if (w->policy_count == BATCH_POLICIES ||
			batch_policy_find(name, &w->policies[w->policy_count++]))
			return complain(EXIT_USAGE,
				"--policy=%s: a server of models has slack, delay, fifo and edf, each once",
				name);
	return 0;
}

static int take_seconds(const struct options *o, double *ret)
{
	uint64_t seconds = 0;
	const int code = take_number(o, "seconds", 1, SECONDS_MOST, &seconds);
	*ret = (double)seconds;
	return code;
}

static int take_served_arrivals(const struct options *o, struct serving *w)
{
	struct error err;
	const char *how;
	for (int i = 0; (how = opt_nth(o, "arrivals", i)); i++)
		if (serving_arrive(w, how, &err))
			return complain(EXIT_USAGE, "%s", err.text);
	return 0;
}

static int ask_served(const struct options *o, struct serving *w)
{
	struct error err;
	if (opt_argc(o))
		return complain(EXIT_USAGE, "--serve takes no recording: %s", opt_argv(o)[0]);
	if (!opt_nth(o, "arrivals", 0))
		return complain(EXIT_USAGE, "--serve needs --arrivals, poisson:300 for example");
	int code = take_number(o, "seed", 0, SEED_MOST, &w->seed);
	code = code ? code : take_time(o, "delay", 0, UINT64_MAX, &w->delay_ns);
	code = code ? code : take_served_policies(o, w);
	code = code ? code : take_seconds(o, &w->seconds);
	if (code)
		return code;
	if (serving_load(w, opt_str(o, "serve"), &err))
		return complain(EXIT_USAGE, "%s", err.text);
	code = take_served_arrivals(o, w);
	if (code)
		return code;
	if (serving_run(w, &err))
		return complain(EXIT_USAGE, "%s", err.text);
	if (opt_flag(o, "json"))
		serving_put_json(w, stdout);
	else
		serving_put_text(w, stdout);
	return EXIT_YES;
}

int cmd_whatif(const struct options *o)
{
	if (opt_str(o, "serve")) {
		struct serving w = { 0 };
		const int served = ask_served(o, &w);
		serving_fini(&w);
		return served;
	}
	if (opt_str(o, "seconds") || opt_str(o, "delay"))
		return complain(EXIT_USAGE, "--%s needs --serve",
			opt_str(o, "seconds") ? "seconds" : "delay");
	if (!opt_argc(o) || opt_argc(o) > REPLAY_PROGRAMS)
		return complain(EXIT_USAGE,
			"FILE is missing: name recordings, latency.weir best-effort.weir for example, or a repository with --serve");
	struct question *q = xcalloc(1, sizeof *q);
	const int code = ask(o, q);
	whatif_fini(&q->w);
	for (size_t i = 0; i < q->count; i++)
		recording_fini(&q->recordings[i]);
	free(q);
	return code;
}
