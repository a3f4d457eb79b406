/*
 * weir serve answers inference requests for a repository of models, by the deadlines that they
 * have (src/serve).  It ends after a drain at SIGTERM or SIGINT, at once at a second one, and reads
 * the repository again at SIGHUP.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/shared_library.h"
#include "base/monotonic.h"
#include "base/slice.h"
#include "cmd/cli/command.h"
#include "cmd/cli/values.h"
#include "serve/model_server.h"
#include "share/arbiter.h"
#include "share/segment.h"

/* More than this zlib, a message of gRPC and one read() can't have. */
#define BODY_MOST ((uint64_t)1 << 30)

static bool read_number(const struct options *o, const char *name, unsigned *ret)
{
	uint64_t n = 0;
	const int code = take_number(o, name, 1, 64, &n);
	*ret = (unsigned)n;
	return !code;
}

static bool read_time(const struct options *o, const char *name, uint64_t *io_ns)
{
	return !take_time(o, name, 0, UINT64_MAX, io_ns);
}

static bool read_control(const char *text, enum model_control *ret)
{
	static const char *const names[] = { "poll", "explicit", "none" };
	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum model_control)i;
			return true;
		}
	complain(EXIT_USAGE, "--model-control=%s: it is poll, explicit or none", text);
	return false;
}

static bool read_policy(const char *text, enum batch_policy *ret)
{
	if (batch_policy_find(text, ret) == 0)
		return true;
	complain(EXIT_USAGE, "--policy=%s: it is slack, delay, fifo or edf", text);
	return false;
}

static void add_listen(struct serve_options *s, const char *at)
{
	if (at)
		s->listen[s->listens++] = at;
}

static bool find_driver(const struct options *o, struct serve_options *s)
{
	static char simulated[PATH_MAX];
	if (!opt_flag(o, "sim"))
		return true;
	s->engine.cuda = simulated;
	if (!library_path("sim/libcuda.so.1", simulated, sizeof simulated))
		return true;
	complain(EXIT_FAILURE, "--sim: there is no %s", simulated);
	return false;
}

static bool read_options(const struct options *o, struct serve_options *s)
{
	add_listen(s, opt_str(o, "listen"));
	add_listen(s, opt_str(o, "grpc"));
	add_listen(s, opt_str(o, "metrics"));
	s->engine.onnxruntime = opt_str(o, "onnxruntime");
	s->engine.engines = opt_str(o, "engines");
	s->engine.libtorch = opt_str(o, "libtorch");
	s->engine.torch = opt_flag(o, "torch");
	s->id = opt_str(o, "id");
	s->token = opt_str(o, "token");
	s->log = opt_str(o, "log");
	if (!read_number(o, "threads", &s->engine.threads) || !read_number(o, "loops", &s->loops))
		return false;
	s->open = opt_flag(o, "open");
	s->strict = opt_flag(o, "strict");
	while (s->loads < SERVE_LOADS &&
		(s->load[s->loads] = opt_nth(o, "load-model", (int)s->loads)))
		s->loads++;
	return find_driver(o, s) && read_control(opt_str(o, "model-control"), &s->control) &&
	       read_policy(opt_str(o, "policy"), &s->policy) && read_time(o, "poll", &s->poll_ns) &&
	       read_time(o, "delay", &s->delay_ns) && read_time(o, "idle-time", &s->idle_ns) &&
	       read_time(o, "drain-delay", &s->drain_ns) &&
	       !take_size(o, "body", 1, BODY_MOST, &s->body_bytes) &&
	       !take_size(o, "memory", 1, UINT64_MAX, &s->engine.memory) &&
	       !take_size(o, "request-memory", 1, UINT64_MAX, &s->memory_bytes);
}

#define WORDS_MOST 256

/* The words of this command as they were given: the parser has moved its own. */
static char **own_words(size_t *ret_n)
{
	static char *words[WORDS_MOST];
	char *text = NULL;
	size_t room = 0, n = 0;
	FILE *f = fopen("/proc/self/cmdline", "re");
	while (f && n < WORDS_MOST - 1 && getdelim(&text, &room, 0, f) > 0) {
		words[n++] = text;
		text = NULL;
		room = 0;
	}
	free(text);
	if (f)
		fclose(f);
	*ret_n = n;
	return words;
}

static bool has_driver(const struct options *o)
{
	void *driver = opt_flag(o, "sim") ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (driver)
		dlclose(driver);
	return driver || opt_flag(o, "sim");
}

/* Why programs can't share a GPU here; NULL: they can. */
static const char *why_unshared(void)
{
	char directory[SHARE_PATH];
	const char *why = NULL;
	share_directory(directory, getenv("XDG_RUNTIME_DIR"));
	struct share_file *f = share_open(directory, &why);
	if (!f && arbiter_renew(directory))
		f = share_open(directory, &why);
	if (!f)
		return why;
	share_close(f);
	return NULL;
}

/* The GPU has two thirds of the time of a request that runs alone.  So these are 1.2 as a client
 * sees it (bench/serve/h200.py: ResNet-50 and a BERT-base beside a training). */
#define SLOWDOWN "1.3"

/* Becomes weir run or weir record of this same command.  Returns if that fails. */
static void become(const struct options *o, bool shares)
{
	const char *output = opt_str(o, "output");
	const char *command[WORDS_MOST + 16];
	char self[PATH_MAX];
	const ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
	size_t words, n = 0;
	char **own = own_words(&words);
	if (bytes < 0 || words < 2)
		return;
	self[bytes] = 0;
	command[n++] = own[0];
	command[n++] = shares ? "run" : "record";
	if (shares) {
		command[n++] = "--class=latency";
		command[n++] = "--slowdown=" SLOWDOWN;
	}
	command[n++] = "--no-audit";
	if (opt_flag(o, "quiet"))
		command[n++] = "--quiet";
	if (output) {
		command[n++] = "--output";
		command[n++] = output;
	}
	if (output && has_driver(o))
		command[n++] = "--gpu";
	if (opt_flag(o, "sim"))
		command[n++] = "--sim";
	command[n++] = "--";
	command[n++] = self;
	memcpy(command + n, own + 1, (words - 1) * sizeof *own);
	command[n + words - 1] = NULL;
	execv("/proc/self/exe", (char **)(uintptr_t)command);
}

/* Why the injected library can't be loaded into this program; NULL: it can. */
static const char *why_not_injected(void)
{
	char library[PATH_MAX];
	if (library_path("libweir.so", library, sizeof library))
		return "libweir.so is not in ../lib/weir beside this program";
	return strpbrk(library, " :") ? "Weir's path has a blank or a colon" : NULL;
}

static bool is_recorded(void)
{
	const char *words = getenv("WEIR");
	return words && strstr(words, ",record:");
}

static int cannot_record(const char *why)
{
	return complain(EXIT_ENVIRONMENT, "nothing can be recorded: %s", why);
}

/* Starts this command anew under libweir.so, which records and shares the GPU; alone where it
 * needs neither or has to.  0, or an exit code. */
static int start_anew(const struct options *o)
{
	const bool records = opt_str(o, "output") && !is_recorded();
	const bool shares = !opt_flag(o, "alone") && !getenv("WEIR") && has_driver(o);
	if (opt_str(o, "output") && !records && !serve_is_injected())
		return cannot_record("libweir.so was not loaded into this program");
	if (!records && !shares)
		return 0;
	const char *why = why_not_injected(), *why_alone = why;
	if (shares && !why)
		why_alone = why_unshared();
	if (!why && (records || !why_alone))
		become(o, shares && !why_alone);
	why = why ? why : "weir can't start itself anew";
	if (records)
		return cannot_record(why);
	if (!opt_flag(o, "quiet"))
		remark("the server shares no GPU with other programs: %s",
			why_alone ? why_alone : why);
	return 0;
}

/* Blocked before there are threads, so that this one alone gets them. */
static sigset_t block_signals(void)
{
	sigset_t all;
	sigemptyset(&all);
	sigaddset(&all, SIGINT);
	sigaddset(&all, SIGTERM);
	sigaddset(&all, SIGHUP);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	return all;
}

/* Until SIGTERM or SIGINT. */
static void wait_for_end(struct server *s, const sigset_t *signals)
{
	for (;;) {
		const int got = sigwaitinfo(signals, NULL);
		if (got == SIGHUP)
			serve_reread(s);
		else if (got > 0)
			return;
	}
}

/* Serves on for a while, so that whoever balances load sees that it is not ready.  False: a second
 * signal came. */
static bool drain(struct server *s, uint64_t ns, const sigset_t *signals)
{
	const uint64_t end = monotonic_ns() + ns;
	serve_drain(s);
	for (uint64_t now; (now = monotonic_ns()) < end;) {
		const struct timespec left = { (time_t)((end - now) / 1000000000u),
			(long)((end - now) % 1000000000u) };
		const int got = sigtimedwait(signals, NULL, &left);
		if (got == SIGTERM || got == SIGINT)
			return false;
	}
	return true;
}

static void say_ready(struct server *s, const struct serve_options *o, uint64_t began)
{
	serve_put_ready(s, stdout);
	for (unsigned i = 0; i < o->listens; i++) {
		const char *at = o->listen[i], *colon = strrchr(at, ':');
		if (strncmp(at, "unix:", 5) == 0)
			printf("ready at %s", at);
		else
			printf("ready at http://%.*s:%u", (int)(colon - at), at, serve_port(s, i));
		printf(i ? "\n" : " after %.0f ms\n", (double)(monotonic_ns() - began) / 1e6);
	}
	fflush(stdout);
}

int cmd_serve(const struct options *o)
{
	const uint64_t began = monotonic_ns();
	struct serve_options s = { 0 };
	struct server *server;
	struct error err;
	if (opt_argc(o) != 1)
		return complain(EXIT_USAGE, "give the repository of models, one folder");
	s.repository = opt_argv(o)[0];
	if (!read_options(o, &s))
		return EXIT_USAGE;
	const int code = start_anew(o);
	if (code)
		return code;
	char watch[SHARE_PATH];
	share_directory(watch, getenv("XDG_RUNTIME_DIR"));
	s.watch = watch;
	const sigset_t signals = block_signals();
	const int e = serve_start(&s, &server, &err);
	if (e)
		return complain(e == -EINVAL || e == -ENOENT ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s",
			err.text);
	if (!opt_flag(o, "quiet"))
		say_ready(server, &s, began);
	wait_for_end(server, &signals);
	const bool whole = drain(server, s.drain_ns, &signals);
	serve_stop(server, !whole);
	serve_free(server);
	return EXIT_YES;
}
