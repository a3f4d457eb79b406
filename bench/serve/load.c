/*
 * An open-loop load of a server of models over HTTP/1.1 with the binary extension.
 *
 *	bench-serve --to ADDRESS:PORT --model NAME[,share=N][,deadline=US][,ask=US] [OPTIONS]
 *
 * Requests are due by a schedule that no answer moves: --arrivals poisson:RATE, periodic:RATE (a
 * second) or FILE, whose lines are times in seconds and, behind a blank, the name of a model.  The
 * latency of a request counts from the time when it was due, and so does its deadline.  The server
 * is told the same deadline (or ask=US) in the header Weir-Deadline-Us.  --arrivals closed:N keeps
 * N requests under way instead, and its latency counts from the sending.
 *
 * A request ends as met (answered in time), late, shed (504), refused (429) or failed.  The rate
 * of goodput is the share of met ones among all that were due.  A request that is sent more than a
 * millisecond late is one where the generator fell behind; a run with more than one in a thousand
 * of them (--behind SHARE) is void, because it no longer says anything about the server.
 *
 * --find-rate 99,99.9 looks for the highest rate at which that share is met, by doubling and then
 * halving the interval down to --precision; each probe lasts --seconds and has a seed of its own.
 * A void probe is repeated; when the repetitions are void too, the one that was least behind
 * counts, and the rate is marked.  The result is JSON on standard output.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/hist.h"
#include "base/json.h"
#include "client.h"

#define MODELS_MOST   16
#define RATES_MOST    8
#define PROBES_MOST   256
#define BEHIND_NS     1000000u
#define DRAIN_NS      3000000000u
#define VOID_REPEATED 3

enum outcome { MET, LATE, SHED, REFUSED, FAILED, OUTCOMES };
static const char *const outcome_names[OUTCOMES] = { "met", "late", "shed", "refused", "failed" };

struct model {
	const char *name;
	double share;
	uint64_t deadline_us, ask_us; /* 0: none */
	char *request;
	size_t request_bytes;
};

struct due {
	uint64_t at_ns; /* from the start */
	unsigned model;
};

struct tally {
	uint64_t due, outcome[OUTCOMES], unanswered;
	struct hist latency; /* of answers with 200, in ns */
};

struct probe {
	double rate;
	uint64_t seed, behind;
	unsigned connections;
	double seconds;
	bool is_void;
	struct tally all, model[MODELS_MOST];
	int code; /* of the first request that failed; 0: it had no answer */
	bool any_failed;
};

static struct {
	const char *to;
	struct model model[MODELS_MOST];
	unsigned models;
	unsigned connections;
	double seconds, warm, precision, rate, behind;
	uint64_t seed;
	bool periodic;
	unsigned closed; /* requests under way; 0: open loop */
	struct due *recorded;
	size_t recordeds;
	double recorded_rate;
	double wanted[RATES_MOST]; /* shares, of --find-rate */
	unsigned wanteds;
	unsigned rows;
} o = { .connections = 1024,
	.seconds = 5,
	.warm = 1,
	.precision = .03,
	.behind = .001,
	.seed = 1,
	.rows = 1 };

/* The data that a probe's callbacks need. */
static struct {
	struct client *client;
	struct probe *probe;
	const struct due *due;
	size_t dues;
	uint64_t began, counts_from, ends;
	uint64_t random;
} now;

static void refuse(const char *what, const char *value)
{
	fprintf(stderr, "bench-serve: %s: %s\n", what, value);
	exit(2);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static double draw_unit(uint64_t *state)
{
	return ((double)(draw(state) >> 11) + .5) / (double)(UINT64_C(1) << 53);
}

static unsigned draw_model(uint64_t *state)
{
	double all = 0;
	for (unsigned i = 0; i < o.models; i++)
		all += o.model[i].share;
	double at = draw_unit(state) * all;
	for (unsigned i = 0; i + 1 < o.models; i++)
		if ((at -= o.model[i].share) < 0)
			return i;
	return o.models - 1;
}

/* The schedule of one probe: `seconds` of it, at a rate. */
static struct due *schedule(double rate, double seconds, uint64_t seed, size_t *ret_n)
{
	size_t n = 0, room = 1024;
	struct due *due = malloc(room * sizeof *due);
	const double factor = o.recorded ? o.recorded_rate / rate : 1;
	for (double at = 0; due;) {
		unsigned model;
		if (o.recorded) {
			const struct due *last = &o.recorded[o.recordeds - 1];
			const struct due *r = &o.recorded[n % o.recordeds];
			at = (double)(r->at_ns + (n / o.recordeds) * (last->at_ns + 1)) / 1e9 *
			     factor;
			model = r->model == MODELS_MOST ? draw_model(&seed) : r->model;
		} else {
			at += o.periodic ? 1 / rate : -log(draw_unit(&seed)) / rate;
			model = draw_model(&seed);
		}
		if (at >= seconds)
			break;
		if (n == room)
			due = realloc(due, (room *= 2) * sizeof *due);
		if (due)
			due[n++] = (struct due){ (uint64_t)(at * 1e9), model };
	}
	if (!due)
		refuse("no memory for the schedule", "fewer seconds help");
	*ret_n = n;
	return due;
}

static enum outcome outcome_of(int code, uint64_t latency, const struct model *m)
{
	if (code == 200)
		return m->deadline_us && latency > m->deadline_us * 1000 ? LATE : MET;
	return code == 504 ? SHED : code == 429 ? REFUSED : FAILED;
}

static void count(struct probe *p, unsigned model, int code, uint64_t latency)
{
	const enum outcome what = outcome_of(code, latency, &o.model[model]);
	struct tally *of[] = { &p->all, &p->model[model] };
	for (unsigned i = 0; i < 2; i++) {
		of[i]->due++;
		of[i]->outcome[what]++;
		if (code == 200)
			hist_add(&of[i]->latency, latency);
	}
	if (what == FAILED && !p->any_failed) {
		p->any_failed = true;
		p->code = code;
	}
}

static void open_ended(void *of, uint64_t tag, int code, uint64_t at)
{
	(void)of;
	const struct due *d = &now.due[tag];
	if (now.began + d->at_ns >= now.counts_from)
		count(now.probe, d->model, code, at - (now.began + d->at_ns));
}

static void run_open(void)
{
	size_t next = 0;
	while (next < now.dues) {
		uint64_t at = client_now();
		while (next < now.dues && now.began + now.due[next].at_ns <= at) {
			const struct due *d = &now.due[next];
			const struct model *m = &o.model[d->model];
			if (client_send(now.client, m->request, m->request_bytes, next) != 0)
				break; /* all connections are busy: it waits here, and counts as
					  behind */
			const uint64_t due_at = now.began + d->at_ns;
			now.probe->behind += due_at >= now.counts_from && at - due_at > BEHIND_NS;
			next++;
			at = client_now();
		}
		if (next == now.dues)
			break;
		const uint64_t due_at = now.began + now.due[next].at_ns;
		client_wait(now.client, due_at > at ? due_at : at + BEHIND_NS);
	}
}

/* In a closed loop a tag is the time of the sending and the model. */
static void send_closed(void)
{
	const unsigned model = draw_model(&now.random);
	const struct model *m = &o.model[model];
	const uint64_t tag = (client_now() - now.began) * MODELS_MOST + model;
	if (client_send(now.client, m->request, m->request_bytes, tag) != 0)
		refuse("no connection to the server", o.to);
}

static void closed_ended(void *of, uint64_t tag, int code, uint64_t at)
{
	(void)of;
	const uint64_t sent = now.began + tag / MODELS_MOST;
	if (sent >= now.counts_from)
		count(now.probe, tag % MODELS_MOST, code, at - sent);
	if (at < now.ends && code != 0)
		send_closed();
}

static void run_closed(void)
{
	for (unsigned i = 0; i < o.closed; i++)
		send_closed();
	while (client_now() < now.ends && client_busy(now.client) > 0)
		client_wait(now.client, now.ends);
}

/* The next probe must not meet the queue of the last: a request to each model is answered first. */
static void settle(void)
{
	for (unsigned i = 0; i < o.models; i++) {
		char path[300];
		int code = 0;
		snprintf(path, sizeof path, "/v2/models/%s/ready", o.model[i].name);
		char *body = client_ask(o.to, path, &code);
		free(body);
		if (code != 200)
			refuse("the server has no such model that is ready", o.model[i].name);
	}
}

static void run(struct probe *p, double rate, uint64_t seed)
{
	*p = (struct probe){ .rate = rate, .seed = seed, .seconds = o.seconds };
	now.probe = p;
	now.random = seed;
	settle();
	struct due *due = NULL;
	if (!o.closed)
		due = schedule(rate, o.warm + o.seconds, seed, &now.dues);
	now.due = due;
	now.client = client_new(o.to, o.connections, o.closed ? closed_ended : open_ended, NULL);
	if (!now.client)
		exit(2);
	client_open(now.client, o.closed ? o.closed : 16);
	now.began = client_now();
	now.counts_from = now.began + (uint64_t)(o.warm * 1e9);
	now.ends = now.counts_from + (uint64_t)(o.seconds * 1e9);
	if (o.closed)
		run_closed();
	else
		run_open();
	const uint64_t last = client_now() + DRAIN_NS;
	while (client_busy(now.client) > 0 && client_now() < last)
		client_wait(now.client, last);
	p->all.unanswered = client_busy(now.client);
	p->connections = client_opened(now.client);
	p->is_void = !o.closed && (double)p->behind > o.behind * (double)now.dues;
	client_free(now.client);
	free(due);
}

static uint64_t asked(const struct tally *t)
{
	return t->due + t->unanswered;
}

static double share_met(const struct probe *p)
{
	return asked(&p->all) ? (double)p->all.outcome[MET] / (double)asked(&p->all) : 0;
}

static void put_tally(struct json *j, const struct tally *t)
{
	json_u64(j, "due", asked(t));
	for (enum outcome i = 0; i < OUTCOMES; i++)
		json_u64(j, outcome_names[i], t->outcome[i] + (i == FAILED ? t->unanswered : 0));
	const uint64_t served = t->outcome[MET] + t->outcome[LATE];
	json_put_real(j, "goodput", asked(t) ? (double)t->outcome[MET] / (double)asked(t) : NAN);
	json_put_real(j, "late_share", served ? (double)t->outcome[LATE] / (double)served : NAN);
	static const struct {
		const char *key;
		double p;
	} at[] = { { "p50_us", .5 }, { "p90_us", .9 }, { "p99_us", .99 }, { "p999_us", .999 },
		{ "max_us", 1 } };
	for (unsigned i = 0; i < sizeof at / sizeof at[0]; i++)
		json_put_real(
			j, at[i].key, served ? (double)hist_at(&t->latency, at[i].p) / 1e3 : NAN);
}

static void put_probe(struct json *j, const char *key, const struct probe *p)
{
	json_begin_object(j, key);
	if (!o.closed)
		json_put_real(j, "rate", p->rate);
	json_u64(j, "seed", p->seed);
	json_put_real(j, "seconds", p->seconds);
	json_put_real(j, "answered_per_s",
		(double)(p->all.outcome[MET] + p->all.outcome[LATE]) / p->seconds);
	json_u64(j, "connections", p->connections);
	json_u64(j, "behind", p->behind);
	json_bool(j, "void", p->is_void);
	put_tally(j, &p->all);
	if (p->any_failed)
		json_u64(j, "first_failed_code", (uint64_t)p->code);
	json_begin_array(j, "models");
	for (unsigned i = 0; i < o.models; i++) {
		json_begin_object(j, NULL);
		json_str(j, "name", o.model[i].name);
		json_u64_or_null(j, "deadline_us", o.model[i].deadline_us, o.model[i].deadline_us);
		put_tally(j, &p->model[i]);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

struct search {
	struct probe *probe[PROBES_MOST];
	unsigned probes;
};

static const struct probe *look(struct search *s, double rate)
{
	const struct probe *best = NULL;
	for (unsigned repeated = 0; repeated <= VOID_REPEATED; repeated++) {
		if (s->probes == PROBES_MOST)
			refuse("more probes than there is room for", "a coarser --precision helps");
		struct probe *p = malloc(sizeof *p);
		if (!p)
			refuse("no memory for a probe", "");
		run(p, rate, o.seed + s->probes);
		s->probe[s->probes++] = p;
		fprintf(stderr, "bench-serve: %.0f/s: %.3f %% met%s\n", rate, 100 * share_met(p),
			p->is_void ? " (void: the generator fell behind)" : "");
		if (!best || p->behind < best->behind)
			best = p;
		if (!p->is_void)
			return p;
	}
	return best;
}

/* The highest rate that kept the share; 0: none did.  Earlier probes bound the search. */
static double find_rate(struct search *s, double wanted, bool *ret_void)
{
	double low = 0, high = 0;
	for (unsigned i = 0; i < s->probes; i++)
		if (!s->probe[i]->is_void && share_met(s->probe[i]) < wanted &&
			(high == 0 || s->probe[i]->rate < high))
			high = s->probe[i]->rate;
	for (unsigned i = 0; i < s->probes; i++)
		if (!s->probe[i]->is_void && share_met(s->probe[i]) >= wanted &&
			(high == 0 || s->probe[i]->rate < high) && s->probe[i]->rate > low)
			low = s->probe[i]->rate;
	*ret_void = false;
	while (high == 0 || low == 0 || high / low > 1 + o.precision) {
		const double rate = high == 0  ? (low == 0 ? o.rate : 2 * low)
				    : low == 0 ? high / 2
					       : sqrt(low * high);
		if (rate < 1)
			return 0;
		const struct probe *p = look(s, rate);
		*ret_void |= p->is_void;
		*(share_met(p) >= wanted ? &low : &high) = rate;
	}
	return low;
}

/* One input of the model's metadata as an input of a request; returns its bytes. */
static size_t append_input(FILE *out, bool first, const json_t *input)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = { { "BOOL", 1 }, { "UINT8", 1 }, { "INT8", 1 }, { "UINT16", 2 }, { "INT16", 2 },
		{ "FP16", 2 }, { "BF16", 2 }, { "UINT32", 4 }, { "INT32", 4 }, { "FP32", 4 },
		{ "UINT64", 8 }, { "INT64", 8 }, { "FP64", 8 },
		{ "BYTES", 4 } /* an empty text */ };
	const char *type = json_string_value(json_object_get(input, "datatype"));
	size_t bytes = 0;
	for (unsigned i = 0; type && i < sizeof types / sizeof types[0]; i++)
		if (strcmp(type, types[i].name) == 0)
			bytes = types[i].bytes;
	if (bytes == 0)
		refuse("the model has an input of a type that is not known here", type ? type : "");
	fprintf(out, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[", first ? "" : ",",
		json_string_value(json_object_get(input, "name")), type);
	size_t i;
	json_t *dim;
	json_array_foreach(json_object_get(input, "shape"), i, dim)
	{
		const long long size = json_integer_value(dim);
		const size_t sent = size > 0 ? (size_t)size : i == 0 ? o.rows : 1;
		fprintf(out, "%s%zu", i ? "," : "", sent);
		bytes *= sent;
	}
	fprintf(out, "],\"parameters\":{\"binary_data_size\":%zu}}", bytes);
	return bytes;
}

/* Builds the request of a model from what the server says of its inputs: all values are 0. */
static void prepare(struct model *m)
{
	char path[300];
	int code = 0;
	snprintf(path, sizeof path, "/v2/models/%s", m->name);
	char *body = client_ask(o.to, path, &code);
	if (!body)
		refuse("no answer from the server", o.to);
	json_t *said = json_loads(body, 0, NULL);
	if (code != 200 || !said)
		refuse("the server does not know this model", m->name);
	char *json;
	size_t json_bytes, data_bytes = 0, i;
	FILE *out = open_memstream(&json, &json_bytes);
	fprintf(out, "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[");
	json_t *input;
	json_array_foreach(json_object_get(said, "inputs"), i, input) data_bytes +=
		append_input(out, i == 0, input);
	fprintf(out, "]}");
	fclose(out);
	out = open_memstream(&m->request, &m->request_bytes);
	fprintf(out,
		"POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\n"
		"Content-Type: application/octet-stream\r\n"
		"Inference-Header-Content-Length: %zu\r\nContent-Length: %zu\r\n",
		m->name, json_bytes, json_bytes + data_bytes);
	if (m->ask_us)
		fprintf(out, "Weir-Deadline-Us: %" PRIu64 "\r\n", m->ask_us);
	fprintf(out, "\r\n%s", json);
	while (data_bytes-- > 0)
		putc(0, out);
	fclose(out);
	free(json);
	json_decref(said);
	free(body);
}

static double number(const char *what, const char *text, double least)
{
	char *end;
	const double value = strtod(text, &end);
	if (end == text || *end || !(value >= least))
		refuse(what, text);
	return value;
}

static void read_model(char *text)
{
	if (o.models == MODELS_MOST)
		refuse("too many models", text);
	struct model *m = &o.model[o.models++];
	*m = (struct model){ .name = text, .share = 1 };
	bool asks = false;
	for (char *at = strchr(text, ','); at;) {
		*at++ = 0;
		char *key = at, *value = strchr(at, '=');
		at = strchr(at, ',');
		if (!value)
			refuse("--model takes NAME,share=N,deadline=US,ask=US", key);
		*value++ = 0;
		if (at)
			*at = 0;
		const double n = number("--model", value, 0);
		if (at)
			*at = ',';
		if (strcmp(key, "share") == 0)
			m->share = n;
		else if (strcmp(key, "deadline") == 0)
			m->deadline_us = (uint64_t)n;
		else if (strcmp(key, "ask") == 0)
			m->ask_us = (uint64_t)n, asks = true;
		else
			refuse("--model takes NAME,share=N,deadline=US,ask=US", key);
	}
	if (!asks)
		m->ask_us = m->deadline_us;
}

static void read_recorded(const char *path)
{
	FILE *in = fopen(path, "re");
	if (!in)
		refuse("--arrivals takes poisson:RATE, periodic:RATE, closed:N or a file", path);
	size_t room = 0;
	char line[256];
	while (fgets(line, sizeof line, in)) {
		char *end;
		const double at = strtod(line, &end);
		if (end == line)
			continue;
		unsigned model = MODELS_MOST; /* drawn by the shares */
		char *name = end + strspn(end, " \t");
		name[strcspn(name, "\n")] = 0;
		for (unsigned i = 0; *name && i < o.models; i++)
			if (strcmp(name, o.model[i].name) == 0)
				model = i;
		if (o.recordeds == room)
			o.recorded =
				realloc(o.recorded, (room = 2 * room + 64) * sizeof *o.recorded);
		if (!o.recorded)
			refuse("no memory for the arrivals of", path);
		o.recorded[o.recordeds++] = (struct due){ (uint64_t)(at * 1e9), model };
	}
	fclose(in);
	if (o.recordeds < 2 || o.recorded[o.recordeds - 1].at_ns == 0)
		refuse("no times of arrivals in", path);
	o.recorded_rate = (double)o.recordeds * 1e9 / (double)o.recorded[o.recordeds - 1].at_ns;
	o.rate = o.recorded_rate;
}

static void read_arrivals(const char *text)
{
	const char *colon = strchr(text, ':');
	const size_t n = colon ? (size_t)(colon - text) : 0;
	if (n == 7 && strncmp(text, "poisson", n) == 0)
		o.rate = number("--arrivals", colon + 1, 1e-3);
	else if (n == 8 && strncmp(text, "periodic", n) == 0)
		o.rate = number("--arrivals", colon + 1, 1e-3), o.periodic = true;
	else if (n == 6 && strncmp(text, "closed", n) == 0)
		o.closed = (unsigned)number("--arrivals", colon + 1, 1);
	else
		read_recorded(text);
}

static void read_rates(char *text)
{
	char *rest = text;
	for (char *word; (word = strsep(&rest, ","));) {
		if (o.wanteds == RATES_MOST)
			refuse("--find-rate", text);
		o.wanted[o.wanteds++] = number("--find-rate", word, 0) / 100;
	}
}

static const char *read_options(int argc, char **argv)
{
	enum {
		TO = 256,
		MODEL,
		ARRIVALS,
		CONNECTIONS,
		SECONDS,
		WARM,
		SEED,
		FIND,
		PRECISION,
		ROWS,
		BEHIND
	};
	static const struct option options[] = {
		{ "to", 1, NULL, TO },
		{ "model", 1, NULL, MODEL },
		{ "arrivals", 1, NULL, ARRIVALS },
		{ "connections", 1, NULL, CONNECTIONS },
		{ "seconds", 1, NULL, SECONDS },
		{ "warm", 1, NULL, WARM },
		{ "seed", 1, NULL, SEED },
		{ "find-rate", 1, NULL, FIND },
		{ "precision", 1, NULL, PRECISION },
		{ "rows", 1, NULL, ROWS },
		{ "behind", 1, NULL, BEHIND },
		{ 0 },
	};
	const char *arrivals = NULL;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		switch (c) {
		case TO:
			o.to = optarg;
			break;
		case MODEL:
			read_model(optarg);
			break;
		case ARRIVALS:
			arrivals = optarg;
			break;
		case CONNECTIONS:
			o.connections = (unsigned)number("--connections", optarg, 1);
			break;
		case SECONDS:
			o.seconds = number("--seconds", optarg, .001);
			break;
		case WARM:
			o.warm = number("--warm", optarg, 0);
			break;
		case SEED:
			o.seed = (uint64_t)number("--seed", optarg, 0);
			break;
		case FIND:
			read_rates(optarg);
			break;
		case PRECISION:
			o.precision = number("--precision", optarg, .001);
			break;
		case ROWS:
			o.rows = (unsigned)number("--rows", optarg, 1);
			break;
		case BEHIND:
			o.behind = number("--behind", optarg, 0);
			break;
		default:
			exit(2);
		}
	if (!o.to || !arrivals || o.models == 0 || optind < argc)
		refuse("wanted: --to ADDRESS:PORT --model NAME --arrivals poisson:RATE",
			optind < argc ? argv[optind] : "something is missing");
	return arrivals;
}

int main(int argc, char **argv)
{
	const char *arrivals = read_options(argc, argv);
	read_arrivals(arrivals);
	if (o.closed && o.wanteds)
		refuse("--find-rate needs an open loop, not", arrivals);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	setpriority(PRIO_PROCESS, 0, -15); /* it sleeps most of the time; not allowed to all */
	for (unsigned i = 0; i < o.models; i++)
		prepare(&o.model[i]);
	struct json j;
	json_begin_document(&j, stdout);
	json_str(&j, "arrivals", arrivals);
	struct search s = { 0 };
	if (o.wanteds == 0) {
		struct probe *p = malloc(sizeof *p);
		if (!p)
			refuse("no memory for a probe", "");
		run(p, o.rate, o.seed);
		put_probe(&j, "run", p);
		s.probe[s.probes++] = p;
	} else {
		json_begin_array(&j, "rates");
		for (unsigned i = 0; i < o.wanteds; i++) {
			bool is_void;
			const double rate = find_rate(&s, o.wanted[i], &is_void);
			json_begin_object(&j, NULL);
			json_put_real(&j, "share", o.wanted[i]);
			json_put_real(&j, "rate", rate > 0 ? rate : NAN);
			json_bool(&j, "void", is_void);
			json_end_object(&j);
		}
		json_end_array(&j);
		json_begin_array(&j, "probes");
		for (unsigned i = 0; i < s.probes; i++)
			put_probe(&j, NULL, s.probe[i]);
		json_end_array(&j);
	}
	json_end_object(&j);
	putchar('\n');
	bool void_run = false;
	for (unsigned i = 0; i < s.probes; i++)
		void_run |= o.wanteds == 0 && s.probe[i]->is_void;
	return void_run ? 1 : 0;
}
