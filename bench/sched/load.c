/*
 * A program with a known load on a GPU, of which bench/sched/run.py starts two to measure a
 * scheduler.
 *
 *	load latency|best-effort|calibrate [OPTIONS] --work WORK [--work WORK]...
 *
 * WORK is kernel or copy (pinned host memory to the device, asynchronously), and what is known of
 * it: kernel,us=31,blocks=264,threads=256,share=95,amount=N.  A kernel spins through `amount`
 * rounds of a dependent multiplication, a copy has `amount` bytes; without an amount the program
 * finds the one that lasts `us` microseconds when the device has nothing else to do.  If there are
 * several kinds of work, each is drawn with its share.
 *
 * latency sends requests of --batch pieces of work and waits for each.  Requests are due by a
 * schedule (--arrival poisson or periodic, --rate a second), which is never moved because an
 * earlier request is late, or --pause microseconds after the answer to the last one (closed).  The
 * latency of a request counts from the time when it was due.  The program ends after --requests
 * or after --seconds; requests that were due but not begun within twice the time of the schedule
 * are counted as unanswered, and in the quantiles with the age that they have then.
 *
 * best-effort does --batch pieces of work and waits for them, again and again, and prints the rate
 * between the first end of a batch after `begin` and the last one before `end`.
 *
 * With --controlled a program that can begin prints `ready` and is told what to do by lines on
 * its standard input: `run` starts the load of a best-effort program, `begin` and `end` are the
 * window that counts; the end of the input ends the program.  Without it, the window begins at once
 * and lasts --seconds.  The result is one line of JSON on standard output.  calibrate only finds
 * the amounts.
 *
 *	cc -O2 -o load load.c -ldl -lm
 */
#include <dlfcn.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CU_FUNCTIONS(X)                                                                            \
	X(cuInit, (unsigned))                                                                      \
	X(cuDriverGetVersion, (int *))                                                             \
	X(cuDeviceGetName, (char *, int, int))                                                     \
	X(cuDeviceGetAttribute, (int *, int, int))                                                 \
	X(cuDevicePrimaryCtxRetain, (void **, int))                                                \
	X(cuCtxSetCurrent, (void *))                                                               \
	X(cuModuleLoadData, (void **, const void *))                                               \
	X(cuModuleGetFunction, (void **, void *, const char *))                                    \
	X(cuMemAlloc_v2, (uint64_t *, size_t))                                                     \
	X(cuMemHostAlloc, (void **, size_t, unsigned))                                             \
	X(cuMemsetD8_v2, (uint64_t, unsigned char, size_t))                                        \
	X(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                          \
	X(cuStreamCreate, (void **, unsigned))                                                     \
	X(cuStreamSynchronize, (void *))                                                           \
	X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
				  unsigned, void *, void **, void **))

#define CU_DECLARE(name, parameters) static int(*name) parameters;
CU_FUNCTIONS(CU_DECLARE)

#define ATTRIBUTE_SMS       16
#define STREAM_NON_BLOCKING 1
#define COPY_ROOM           ((size_t)64 << 20)
#define MOST_WORKS          8

/* Two kernels that do the same: a program with several works has kernels that can be told apart. */
#define SPIN(name)                                                                                 \
	".visible .entry " name "(.param .u64 place, .param .u32 rounds)\n{\n"                     \
	"\t.reg .pred %p;\n\t.reg .b32 %r<4>;\n\t.reg .f32 %f;\n\t.reg .b64 %a<4>;\n"              \
	"\tld.param.u64 %a0, [place];\n\tld.param.u32 %r0, [rounds];\n"                            \
	"\tcvta.to.global.u64 %a1, %a0;\n\tmov.u32 %r1, %tid.x;\n"                                 \
	"\tmul.wide.u32 %a2, %r1, 4;\n\tadd.s64 %a3, %a1, %a2;\n"                                  \
	"\tld.global.f32 %f, [%a3];\n"                                                             \
	"again:\n\tfma.rn.f32 %f, %f, 0f3F800001, 0f3F000000;\n"                                   \
	"\tadd.u32 %r0, %r0, -1;\n\tsetp.ne.u32 %p, %r0, 0;\n\t@%p bra again;\n"                   \
	"\tst.global.f32 [%a3], %f;\n\tret;\n}\n"

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n" SPIN("spin") SPIN("spin_again");

enum kind { KERNEL, COPY };

struct work {
	enum kind kind;
	unsigned blocks, threads;
	double us, share;
	uint64_t amount; /* rounds or bytes; 0: to be found */
	double alone_us; /* as found */
	bool calibrated; /* `us` could be reached */
};

enum arrival { CLOSED, POISSON, PERIODIC };

static struct work works[MOST_WORKS];
static int work_count;
static enum arrival arrival = CLOSED;
static double rate_s, pause_us = 2000, seconds = 2;
static long requests, batch;
static uint64_t seed = 1;
static bool controlled;

static void *stream, *spin, *spin_again, *host;
static uint64_t device;
static uint64_t launches, copies; /* all, the warm-up too */

static void must(int code, const char *what)
{
	if (!code)
		return;
	fprintf(stderr, "load: %s failed with CUDA error %d\n", what, code);
	exit(3);
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* In (0, 1]; splitmix64, so that a seed gives the same schedule everywhere. */
static double draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0 + 1.0 / 18014398509481984.0;
}

/* The device. */

static void open_device(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *module;
	if (!library) {
		fprintf(stderr, "load: %s\n", dlerror());
		exit(3);
	}
#define CU_RESOLVE(name, parameters)                                                               \
	*(void **)&name = dlsym(library, #name);                                                   \
	must(!name, "looking up " #name);
	CU_FUNCTIONS(CU_RESOLVE)
	must(cuInit(0), "cuInit");
	must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&spin, module, "spin"), "cuModuleGetFunction");
	must(cuModuleGetFunction(&spin_again, module, "spin_again"), "cuModuleGetFunction");
	must(cuStreamCreate(&stream, STREAM_NON_BLOCKING), "cuStreamCreate");
	bool copying = false;
	for (int i = 0; i < work_count; i++)
		copying |= works[i].kind == COPY;
	const size_t room = copying ? COPY_ROOM : 1 << 20;
	must(cuMemAlloc_v2(&device, room), "cuMemAlloc");
	must(cuMemsetD8_v2(device, 0, room), "cuMemsetD8");
	if (!copying)
		return;
	must(cuMemHostAlloc(&host, room, 0), "cuMemHostAlloc");
	memset(host, 1, room);
}

static void submit(const struct work *w)
{
	if (w->kind == COPY) {
		must(cuMemcpyHtoDAsync_v2(device, host, w->amount, stream), "cuMemcpyHtoDAsync");
		copies++;
		return;
	}
	uint32_t rounds = (uint32_t)w->amount;
	void *params[] = { &device, &rounds };
	must(cuLaunchKernel(w == works ? spin : spin_again, w->blocks, 1, 1, w->threads, 1, 1, 0,
		     stream, params, NULL),
		"cuLaunchKernel");
	launches++;
}

static void synchronize(void)
{
	must(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static const struct work *choose(uint64_t *state)
{
	if (work_count == 1)
		return works;
	double left = draw(state) * 100;
	for (int i = 0; i < work_count - 1; i++) {
		left -= works[i].share;
		if (left <= 0)
			return &works[i];
	}
	return &works[work_count - 1];
}

static void do_batch(uint64_t *state)
{
	for (long i = 0; i < batch; i++)
		submit(choose(state));
	synchronize();
}

/* How much work lasts how long. */

static double timed(struct work *w, uint64_t amount, int n)
{
	w->amount = amount;
	double best = 1e300;
	for (int i = 0; i < 5; i++) {
		const double begun = now_us();
		for (int k = 0; k < n; k++)
			submit(w);
		synchronize();
		best = fmin(best, now_us() - begun);
	}
	return best;
}

/* The cost of one more in a row of them. */
static double each_us(struct work *w, uint64_t amount)
{
	return (timed(w, amount, 12) - timed(w, amount, 4)) / 8;
}

/* A straight line through two measurements, the second of them moved to where it matters. */
static void find_amount(struct work *w)
{
	const uint64_t most = w->kind == COPY ? COPY_ROOM : UINT32_MAX;
	const uint64_t low = w->kind == COPY ? 256 << 10 : 1000;
	const double low_us = each_us(w, low);
	uint64_t high = low * 8;
	for (int i = 0; i < 3; i++) {
		const double slope = (each_us(w, high) - low_us) / ((double)high - (double)low);
		const double amount = (double)low + (w->us - low_us) / slope;
		if (!(slope > 0) || !(amount >= 1) || amount > (double)most)
			break;
		high = (uint64_t)amount + ((uint64_t)amount == low);
	}
	w->alone_us = each_us(w, high);
	/* Simulated kernels last as long whatever they are given. */
	w->calibrated = fabs(w->alone_us - w->us) < .1 * w->us;
	w->amount = w->calibrated ? high : low;
}

static void prepare(void)
{
	for (int i = 0; i < work_count; i++) {
		const bool wanted = !works[i].amount;
		for (int k = 0; wanted && k < 3 && !works[i].calibrated; k++)
			find_amount(&works[i]);
		for (int k = 0; k < 3; k++)
			submit(&works[i]);
	}
	synchronize();
}

/* The runner's orders. */

enum order { NONE, RUN, BEGIN, END };

/* The next line of standard input; NONE if none is there and wait is false. */
static enum order next_order(bool wait)
{
	static char line[64];
	static size_t length;
	for (;;) {
		struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
		if (!wait && poll(&p, 1, 0) <= 0)
			return NONE;
		if (read(STDIN_FILENO, line + length, 1) != 1 || length + 2 > sizeof line)
			exit(0);
		if (line[length++] != '\n')
			continue;
		line[length - 1] = '\0';
		length = 0;
		if (!strcmp(line, "run"))
			return RUN;
		if (!strcmp(line, "begin"))
			return BEGIN;
		if (!strcmp(line, "end"))
			return END;
		fprintf(stderr, "load: unknown order \"%s\"; run, begin and end are known\n", line);
		exit(2);
	}
}

static void wait_for(enum order wanted)
{
	if (!controlled)
		return;
	while (next_order(true) != wanted)
		;
}

/* The results. */

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The nearest rank. */
static double quantile(const double *sorted, size_t n, double q)
{
	const size_t rank = (size_t)ceil(q * (double)n);
	return n ? sorted[rank ? rank - 1 : 0] : 0;
}

static void print_works(void)
{
	printf("\"launches\": %lu, \"copies\": %lu, \"work\": [", (unsigned long)launches,
		(unsigned long)copies);
	for (int i = 0; i < work_count; i++) {
		const struct work *w = &works[i];
		printf("%s{\"kind\": \"%s\", \"us\": %.10g, \"blocks\": %u, \"threads\": %u, "
		       "\"amount\": %lu, \"alone_us\": %.3f, \"calibrated\": %s}",
			i ? ", " : "", w->kind == COPY ? "copy" : "kernel", w->us, w->blocks,
			w->threads, (unsigned long)w->amount, w->alone_us,
			w->calibrated ? "true" : "false");
	}
	printf("]}\n");
	fflush(stdout);
}

struct latencies {
	double *us;
	size_t count, room, unanswered;
};

static void keep(struct latencies *l, double us)
{
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 4096;
		l->us = realloc(l->us, l->room * sizeof *l->us);
		must(!l->us, "allocating");
	}
	l->us[l->count++] = us;
}

/* The median of those from one to before another, in the order in which they were due. */
static double median_of(const struct latencies *l, size_t from, size_t to)
{
	struct latencies part = { 0 };
	for (size_t i = from; i < to; i++)
		keep(&part, l->us[i]);
	if (part.count)
		qsort(part.us, part.count, sizeof *part.us, ascending);
	const double median = part.count ? quantile(part.us, part.count, .5) : 0;
	free(part.us);
	return median;
}

static void print_latencies(struct latencies *l, double window_us)
{
	double sum = 0;
	const double early = median_of(l, l->count / 40, l->count / 4),
		     late = median_of(l, l->count / 2, l->count);
	qsort(l->us, l->count, sizeof *l->us, ascending);
	for (size_t i = 0; i < l->count; i++)
		sum += l->us[i];
	const size_t answered = l->count - l->unanswered;
	printf("{\"role\": \"latency\", \"requests\": %zu, \"answered\": %zu, \"unanswered\": %zu, "
	       "\"p50_us\": %.1f, \"p95_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, "
	       "\"mean_us\": %.1f, \"early_p50_us\": %.1f, \"late_p50_us\": %.1f, "
	       "\"rate_s\": %.2f, \"window_s\": %.4f, ",
		l->count, answered, l->unanswered, quantile(l->us, l->count, .5),
		quantile(l->us, l->count, .95), quantile(l->us, l->count, .99),
		quantile(l->us, l->count, 1), l->count ? sum / (double)l->count : 0, early, late,
		(double)answered / window_us * 1e6, window_us / 1e6);
	print_works();
}

/* The roles. */

static double next_due(double due, uint64_t *state)
{
	if (arrival == CLOSED)
		return now_us() + pause_us;
	return due + (arrival == PERIODIC ? 1e6 / rate_s : -log(draw(state)) * 1e6 / rate_s);
}

/* A sleeping thread wakes too late to be exact. */
static void wait_until(double due)
{
	const double left = due - now_us();
	if (left > 100) {
		const uint64_t ns = (uint64_t)((left - 80) * 1e3);
		const struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
		nanosleep(&t, NULL);
	}
	while (now_us() < due)
		;
}

static bool is_due(long sent, double due, double begun)
{
	return requests ? sent < requests : due - begun < seconds * 1e6;
}

static void be_latency(void)
{
	struct latencies l = { 0 };
	uint64_t arrivals = seed, mix = seed + 1;
	wait_for(BEGIN);
	const double begun = now_us();
	const double length = requests && rate_s > 0 ? (double)requests / rate_s : seconds;
	const double latest = begun + 2e6 * length + 1e6;
	double due = next_due(begun, &arrivals);
	for (long sent = 0; is_due(sent, due, begun); sent++) {
		wait_until(fmin(due, latest));
		const bool late = arrival != CLOSED && now_us() >= latest;
		if (late)
			l.unanswered++;
		else
			do_batch(&mix);
		keep(&l, fmax(0, now_us() - due));
		due = next_due(due, &arrivals);
	}
	print_latencies(&l, now_us() - begun);
}

struct mark {
	double us;
	uint64_t batches;
};

static void print_rate(struct mark from, struct mark to)
{
	const uint64_t n = to.batches - from.batches;
	const double us = to.us - from.us;
	printf("{\"role\": \"best-effort\", \"batches\": %lu, \"work_done\": %lu, \"rate_s\": %.4f, "
	       "\"window_s\": %.4f, ",
		(unsigned long)n, (unsigned long)n * (unsigned long)batch,
		n ? (double)n * (double)batch / us * 1e6 : 0, us / 1e6);
	print_works();
}

/* The order of the runner, or of the clock without one, at the end of a batch. */
static enum order order_at(double us, double begun)
{
	if (controlled)
		return next_order(false);
	return begun < 0 ? BEGIN : us - begun >= seconds * 1e6 ? END : NONE;
}

static void be_best_effort(void)
{
	struct mark from = { .us = -1 }, last = { 0 };
	uint64_t mix = seed, batches = 0;
	wait_for(RUN);
	for (;;) {
		do_batch(&mix);
		const struct mark here = { now_us(), ++batches };
		const enum order order = order_at(here.us, from.us);
		if (order == BEGIN)
			from = here;
		/* A single batch may be longer than the window. */
		if (order == END && from.us >= 0) {
			print_rate(from, last.batches > from.batches ? last : here);
			return;
		}
		last = here;
	}
}

/* The command line. */

static int usage(const char *what)
{
	fprintf(stderr,
		"load: %s\n"
		"usage: load latency|best-effort|calibrate --work kernel|copy[,us=US][,blocks=N]"
		"[,threads=N][,share=PCT][,amount=N]...\n"
		"  [--batch N] [--arrival closed|poisson|periodic] [--rate PER_S] [--pause US]\n"
		"  [--seconds S] [--requests N] [--seed N] [--controlled]\n",
		what);
	exit(2);
}

static double number(const char *text, double low)
{
	char *end = NULL;
	const double x = text ? strtod(text, &end) : 0;
	if (!text || end == text || *end || !(x >= low) || x > 1e15)
		usage("a number is missing or out of range");
	return x;
}

static void read_work(char *text)
{
	static const char *const keys[] = { "kernel", "copy", "us", "blocks", "threads", "share",
		"amount", NULL };
	if (work_count == MOST_WORKS)
		usage("too many kinds of work");
	struct work *w = &works[work_count++];
	*w = (struct work){ .blocks = 264, .threads = 256, .us = 100, .share = 100 };
	while (*text) {
		char *value;
		const int key = getsubopt(&text, (char *const *)keys, &value);
		switch (key) {
		case 0:
			w->kind = KERNEL;
			break;
		case 1:
			w->kind = COPY;
			break;
		case 2:
			w->us = number(value, 1);
			break;
		case 3:
			w->blocks = (unsigned)number(value, 1);
			break;
		case 4:
			w->threads = (unsigned)number(value, 1);
			break;
		case 5:
			w->share = number(value, 0);
			break;
		case 6:
			w->amount = (uint64_t)number(value, 1);
			break;
		default:
			usage("unknown word in --work");
		}
	}
	if (w->amount > (w->kind == COPY ? COPY_ROOM : UINT32_MAX))
		usage("an amount is out of range: at most 2^32-1 rounds, 64 MiB");
}

static enum arrival read_arrival(const char *text)
{
	if (!strcmp(text, "closed"))
		return CLOSED;
	if (!strcmp(text, "poisson"))
		return POISSON;
	if (!strcmp(text, "periodic"))
		return PERIODIC;
	usage("--arrival is closed, poisson or periodic");
	return CLOSED;
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = { { "work", 1, NULL, 'w' },
		{ "batch", 1, NULL, 'b' }, { "arrival", 1, NULL, 'a' }, { "rate", 1, NULL, 'r' },
		{ "pause", 1, NULL, 'p' }, { "seconds", 1, NULL, 's' },
		{ "requests", 1, NULL, 'n' }, { "seed", 1, NULL, 'e' },
		{ "controlled", 0, NULL, 'c' }, { NULL, 0, NULL, 0 } };
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'w':
			read_work(optarg);
			break;
		case 'b':
			batch = (long)number(optarg, 1);
			break;
		case 'a':
			arrival = read_arrival(optarg);
			break;
		case 'r':
			rate_s = number(optarg, 1e-3);
			break;
		case 'p':
			pause_us = number(optarg, 0);
			break;
		case 's':
			seconds = number(optarg, 0);
			break;
		case 'n':
			requests = (long)number(optarg, 1);
			break;
		case 'e':
			seed = (uint64_t)number(optarg, 0);
			break;
		case 'c':
			controlled = true;
			break;
		default:
			usage("unknown option");
		}
	}
	if (optind < argc)
		usage("too many arguments");
	if (!work_count)
		usage("--work is missing");
	if (arrival != CLOSED && !(rate_s > 0))
		usage("--rate is missing");
}

static void print_device(void)
{
	char name[128] = "";
	int version = 0, sms = 0;
	cuDriverGetVersion(&version);
	cuDeviceGetName(name, sizeof name, 0);
	cuDeviceGetAttribute(&sms, ATTRIBUTE_SMS, 0);
	printf("{\"role\": \"calibrate\", \"device\": \"%s\", \"cuda\": %d, \"sms\": %d, ", name,
		version, sms);
	print_works();
}

int main(int argc, char **argv)
{
	if (argc < 2)
		usage("the role is missing");
	const char *role = argv[1];
	const bool latency = !strcmp(role, "latency"), best_effort = !strcmp(role, "best-effort");
	if (!latency && !best_effort && strcmp(role, "calibrate"))
		usage("the role is latency, best-effort or calibrate");
	batch = latency ? 10 : 32;
	read_options(argc - 1, argv + 1);
	prctl(PR_SET_TIMERSLACK, 1);
	open_device();
	prepare();
	if (controlled) {
		printf("ready\n");
		fflush(stdout);
	}
	if (latency)
		be_latency();
	else if (best_effort)
		be_best_effort();
	else
		print_device();
	return 0;
}
