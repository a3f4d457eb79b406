/*
 * weir run starts a program that shares the GPU. The program itself decides at each launch from the
 * shared file (docs/arbiter-protocol.md). This process is the arbiter while it holds that lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/hash.h"
#include "base/xmalloc.h"
#include "cmd/cli/binary.h"
#include "cmd/cli/child.h"
#include "cmd/cli/command.h"
#include "cmd/cli/device_choice.h"
#include "cmd/cli/sharing.h"
#include "cmd/cli/values.h"
#include "cmd/record.h"
#include "share/alone.h"
#include "share/arbiter.h"
#include "weir_options.h"

/*
 * Starts NVIDIA's Multi-Process Service for the programs of one directory, so that they are
 * resident on a GPU together. It has its own pipes, so no other program is affected, and the
 * compute mode stays. It ends with the last weir run of the directory.
 */

struct mps {
	bool is_latency; /* of the program */
	double percent;  /* of the SMs, that it may use at most; 0: all */
	uint32_t sms;    /* the same as a number */
	int users;       /* a lock that each weir run shares; 0: none */
	char pipes[600], log[600], starting[600];
};

#define CONTROL "nvidia-cuda-mps-control"

extern char **environ;

/* Without what says which GPUs the program may see: those that come later may see others.  NULL */
static char **environment_of_daemon(void)
{
	static const char seen[] = "CUDA_VISIBLE_DEVICES=";
	size_t n = 0, kept = 0;
	while (environ[n])
		n++;
	char **all = xcalloc(n + 1, sizeof *all);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], seen, sizeof seen - 1) != 0)
			all[kept++] = environ[i];
	return all;
}

/* Its answer is of no interest, and its words are not the program's.  True when it has ended well.
 */
static bool control(const char *argument, const char *command)
{
	int in[2], status = -1;
	pid_t pid;
	posix_spawn_file_actions_t files;
	char *const argv[] = { (char *)CONTROL, (char *)argument, NULL };
	char **const environment = environment_of_daemon();
	if (!environment || pipe2(in, O_CLOEXEC)) {
		free(environment);
		return false;
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	const int failed = posix_spawnp(&pid, CONTROL, &files, NULL, argv, environment);
	free(environment);
	posix_spawn_file_actions_destroy(&files);
	const bool told = write(in[1], command, strlen(command)) == (ssize_t)strlen(command);
	close(in[0]);
	close(in[1]);
	if (failed)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return told && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool is_running(void)
{
	return control(NULL, "get_default_active_thread_percentage\n");
}

static bool be_running(const struct mps *m)
{
	if (mkdir(m->pipes, 0700) && errno != EEXIST)
		return false;
	if (mkdir(m->log, 0700) && errno != EEXIST)
		return false;
	return is_running() || control("-d", "");
}

/* Starting and ending it is one process's at a time: the lock, or -1. */
static int lock_file(const char *path, int how)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && flock(fd, how)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Down to what the device can be divided by. */
static bool percent_of_sms(struct mps *m)
{
	const uint32_t all = device_sms(), step = 2;
	if (!all || m->sms < step)
		return false;
	m->percent = 100.0 * (m->sms / step * step) / all;
	return true;
}

static void set_limits(struct mps *m)
{
	char percent[32];
	setenv("CUDA_MPS_CLIENT_PRIORITY", m->is_latency ? "0" : "1", 0);
	if (m->sms && !percent_of_sms(m))
		remark("the number of the GPU's SMs is unknown, so --sms has no effect. Give a percentage");
	if (m->percent > 0 && m->percent < 100) {
		snprintf(percent, sizeof percent, "%.3f", m->percent);
		setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
	}
}

static void unset_mps(void)
{
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	unsetenv("CUDA_MPS_LOG_DIRECTORY");
}

static bool without(struct mps *m, const char *why)
{
	unset_mps();
	remark("%s: programs take turns on the GPU, each change costs about 0.1 ms, and nothing runs beside a request%s",
		why, m->percent > 0 || m->sms ? ". --sms has no effect" : "");
	return false;
}

/* Starts it where it is not running, and sets the environment for the program.  False when it is
 * not there or not wanted, after a sentence that says what that costs. */
static bool mps_start(struct mps *m, const char *directory, bool isolated)
{
	char users[600];
	if (isolated) {
		unset_mps();
		return false;
	}
	if (getenv("CUDA_MPS_PIPE_DIRECTORY")) { /* the person has one running */
		set_limits(m);
		return true;
	}
	snprintf(m->starting, sizeof m->starting, "%s/mps.starting", directory);
	snprintf(users, sizeof users, "%s/mps.users", directory);
	snprintf(m->pipes, sizeof m->pipes, "%s/mps", directory);
	snprintf(m->log, sizeof m->log, "%s/mps-log", directory);
	const int starting = lock_file(m->starting, LOCK_EX);
	if (starting < 0)
		return without(m, "MPS can't be started");
	const bool runs = !setenv("CUDA_MPS_PIPE_DIRECTORY", m->pipes, 1) &&
			  !setenv("CUDA_MPS_LOG_DIRECTORY", m->log, 1) && be_running(m);
	if (runs)
		m->users = lock_file(users, LOCK_SH);
	close(starting);
	if (!runs)
		return without(m, "MPS (" CONTROL ") is not there");
	set_limits(m);
	return true;
}

static void mps_stop(struct mps *m)
{
	if (m->users <= 0)
		return;
	const int starting = lock_file(m->starting, LOCK_EX);
	if (!flock(m->users, LOCK_EX | LOCK_NB)) /* no other uses it */
		control(NULL, "quit\n");
	close(m->users);
	if (starting >= 0)
		close(starting);
	m->users = 0;
}

#define MEMORY_LEAST (1u << 20)

struct run {
	const char *unheld; /* why the library can't be loaded into the program; NULL: it can */
	struct sharing sharing;
	struct mps mps;
	struct arbiter *arbiter;
	char sched[2 * SHARE_PATH]; /* as in WEIR */
};

static bool number(const char *text, uint64_t most, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !errno && !*end && *ret && *ret <= most;
}

static int put_duration(
	const struct options *o, const char *option, const char *word, struct bounded *to)
{
	uint64_t ns;
	const char *text = opt_str(o, option);
	if (!text)
		return 0;
	if (!duration_parse(text, &ns))
		return complain(EXIT_USAGE,
			"--%s=%s is no duration. Write 500ms, 20us or 2s, for example", option,
			text);
	bounded_printf(to, ",%s=%" PRIu64, word, ns);
	return 0;
}

static int put_slowdown(const struct options *o, struct bounded *to)
{
	uint32_t thousandths;
	const char *text = opt_str(o, "slowdown");
	if (!text)
		return 0;
	if (!slowdown_parse(text, &thousandths))
		return complain(EXIT_USAGE,
			"--slowdown=%s: give a number from 1.01 to 100. 1.15 is 15 %% longer than alone",
			text);
	bounded_printf(to, "," WEIR_OPTION_slowdown "=%" PRIu32, thousandths);
	return 0;
}

static int put_weight(const struct options *o, struct bounded *to)
{
	uint64_t weight;
	if (!number(opt_str(o, "weight"), 1000000, &weight))
		return complain(EXIT_USAGE, "--weight=%s: give a whole number from 1 to 1000000",
			opt_str(o, "weight"));
	bounded_printf(to, "," WEIR_OPTION_weight "=%" PRIu64, weight);
	return 0;
}

/* A number of the WEIR that this command has been given, as by another weir run; 0: not there. */
static uint64_t given(const char *word)
{
	const char *words = getenv("WEIR");
	const size_t n = strlen(word);
	for (const char *at = words ? strchr(words, ',') : NULL; at; at = strchr(at + 1, ','))
		if (!strncmp(at + 1, word, n) && at[1 + n] == '=')
			return strtoull(at + 2 + n, NULL, 10);
	return 0;
}

/* The directory of the weir run that this one is in, where that has a quota. */
static const char *given_share(char ret[SHARE_PATH])
{
	static const char word[] = "," WEIR_OPTION_share "=";
	const char *words = getenv("WEIR"), *at = words ? strstr(words, word) : NULL;
	if (!at || !given(WEIR_OPTION_memory))
		return NULL;
	snprintf(ret, SHARE_PATH, "%.*s", (int)strcspn(at + sizeof word - 1, ","),
		at + sizeof word - 1);
	return ret;
}

static void put_given(struct bounded *to, const char *word, const char *as)
{
	if (given(word))
		bounded_printf(to, ",%s=%" PRIu64, as, given(word));
}

/* A quota in whose program this is holds for what is run here as well. */
static int put_outer_memory(struct bounded *to, bool has_own)
{
	if (has_own && given(WEIR_OPTION_outer_memory))
		return complain(EXIT_USAGE,
			"--memory: this is inside two weir run --memory already, and at most two hold");
	put_given(to, WEIR_OPTION_memory, has_own ? WEIR_OPTION_outer_memory : WEIR_OPTION_memory);
	put_given(to, WEIR_OPTION_memory_group,
		has_own ? WEIR_OPTION_outer_group : WEIR_OPTION_memory_group);
	put_given(to, WEIR_OPTION_outer_memory, WEIR_OPTION_outer_memory);
	put_given(to, WEIR_OPTION_outer_group, WEIR_OPTION_outer_group);
	return 0;
}

/* The quota is that of all processes whose WEIR bears the same number. */
static int put_memory(const struct options *o, struct bounded *to)
{
	uint64_t bytes;
	struct timespec now;
	const char *text = opt_str(o, "memory");
	if (!text)
		return put_outer_memory(to, false);
	if (!size_parse(text, &bytes) || bytes < MEMORY_LEAST)
		return complain(EXIT_USAGE,
			"--memory=%s: give a size of at least 1M: 8G, for example", text);
	clock_gettime(CLOCK_MONOTONIC, &now);
	bounded_printf(to,
		"," WEIR_OPTION_memory "=%" PRIu64 "," WEIR_OPTION_memory_group "=%" PRIu64, bytes,
		(uint64_t)getpid() << 32 | (uint32_t)now.tv_nsec);
	return put_outer_memory(to, true);
}

/* PyTorch's own allocator keeps what it has in segments, which leaves the pool little to do. */
static int put_pool(const struct options *o, struct bounded *to)
{
	static const char conf[] = "PYTORCH_CUDA_ALLOC_CONF";
	if (!opt_flag(o, "pool"))
		return 0;
	bounded_printf(to, "," WEIR_OPTION_pool);
	if (getenv(conf) || getenv("PYTORCH_ALLOC_CONF")) {
		remark("PyTorch's allocator is configured already: --pool serves only its requests to the driver");
		return 0;
	}
	return setenv(conf, "backend:cudaMallocAsync", 1)
		       ? complain(EXIT_ENVIRONMENT, "the environment can't be set: %s",
				 strerror(errno))
		       : 0;
}

/* As the injected library reads it: src/hook/core/config.c. */
static int put_request(const struct options *o, struct bounded *to)
{
	static const char range[] = "range:";
	const char *text = opt_str(o, "request");
	const size_t n = text ? strlen(text) : 0, k = sizeof range - 1;
	if (!text)
		return 0;
	if (strncmp(text, range, k) != 0 || n == k || n - k > 63 || strchr(text, ','))
		return complain(EXIT_USAGE,
			"--request=%s: give an NVTX range's name of at most 63 bytes without a comma: range:answer, for example",
			text);
	bounded_printf(to, "," WEIR_OPTION_request "=%s", text);
	return 0;
}

/* Sets the driver's own limit: percent of the SMs. */
static int take_sms(const struct options *o, struct run *run)
{
	double share;
	uint64_t sms;
	const char *text = opt_str(o, "sms");
	if (!text)
		return 0;
	if (strchr(text, '%') && percent_parse(text, &share) && share > 0)
		run->mps.percent = share * 100;
	else if (number(text, 65535, &sms))
		run->mps.sms = (uint32_t)sms;
	else
		return complain(EXIT_USAGE,
			"--sms=%s: give a number of SMs, or a percentage such as 60%%", text);
	if (opt_flag(o, "isolated"))
		return complain(EXIT_USAGE,
			"--sms needs MPS, which --isolated does without. Give one of them");
	return 0;
}

static int put_class(const struct options *o, struct run *run, struct bounded *to)
{
	const char *class = opt_str(o, "class");
	if (strcmp(class, "latency") != 0 && strcmp(class, "best-effort") != 0)
		return complain(EXIT_USAGE,
			"'%s' is no class. The classes are latency and best-effort", class);
	run->mps.is_latency = !strcmp(class, "latency");
	bounded_printf(to, "," WEIR_OPTION_class "=%s", class);
	return 0;
}

/* Who is run again the same way in the same folder is known again; never 0. */
static uint64_t command_of(char *const *argv)
{
	char folder[PATH_MAX];
	uint64_t key = getcwd(folder, sizeof folder) ? hash_bytes(folder, strlen(folder)) : 0;
	for (; *argv; argv++)
		key = hash_mix(key ^ hash_bytes(*argv, strlen(*argv)));
	return (uint32_t)key | 1;
}

static bool any_latency_under_mps(const struct share_file *f)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &f->slots[i];
		if (load_acquire(&s->who.state) == SLOT_LIVE && s->who.under_mps &&
			load_relaxed(&s->grant.class) == CLASS_LATENCY)
			return true;
	}
	return false;
}

/* A latency program that MPS would only make slower, as an earlier run has shown. It would take
 * turns with other latency programs too. */
static bool takes_turns(const struct options *o, const struct run *run)
{
	static struct known known;
	char path[SHARE_PATH + 8];
	if (!run->mps.is_latency || opt_str(o, "sms") || getenv("CUDA_MPS_PIPE_DIRECTORY") ||
		any_latency_under_mps(run->sharing.file))
		return false;
	snprintf(path, sizeof path, "%s/alone", run->sharing.directory);
	known_read(&known, path);
	const struct known_program *p = known_find(&known, NULL, command_of(opt_argv(o)));
	if (!p || !known_takes_turns(p))
		return false;
	if (!opt_flag(o, "quiet"))
		remark("requests of %s took %.0f ms, which MPS would make slower, so it runs without MPS. With --sms 100%% it runs under MPS",
			opt_argv(o)[0], p->alone.p50_ns * p->alone.run / 1e6);
	return true;
}

/* A simulated device says itself how it is shared. */
static bool has_mps(const struct options *o, struct run *run)
{
	const char *sim = getenv("WEIR_SIM");
	const bool isolated = opt_flag(o, "isolated") || takes_turns(o, run);
	if (opt_flag(o, "sim"))
		return sim && strstr(sim, "sharing=mps") && !isolated;
	return mps_start(&run->mps, run->sharing.directory, isolated);
}

static int prepare_words(const struct options *o, struct run *run)
{
	struct bounded to = { .to = run->sched, .size = sizeof run->sched };
	bounded_printf(&to,
		WEIR_OPTION_sched "," WEIR_OPTION_share "=%s," WEIR_OPTION_command "=%" PRIu64,
		run->sharing.directory, command_of(opt_argv(o)));
	int code = put_class(o, run, &to);
	code = code ? code : put_weight(o, &to);
	code = code ? code : put_duration(o, "deadline", WEIR_OPTION_deadline, &to);
	code = code ? code : put_duration(o, "target-p99", WEIR_OPTION_target, &to);
	code = code ? code : put_slowdown(o, &to);
	code = code ? code : put_duration(o, "max-wait", WEIR_OPTION_wait, &to);
	code = code ? code : put_request(o, &to);
	code = code ? code : put_memory(o, &to);
	code = code ? code : put_pool(o, &to);
	code = code ? code : put_duration(o, "wait-memory", WEIR_OPTION_wait_memory, &to);
	code = code ? code : take_sms(o, run);
	if (code)
		return code;
	if (has_mps(o, run))
		bounded_printf(&to, "," WEIR_OPTION_mps);
	if (opt_str(o, "output"))
		bounded_printf(&to, ",");
	bounded_end(&to);
	return 0;
}

/* Programs of one directory share one simulated device, which takes real time. */
static int share_simulated(const struct run *run)
{
	char text[SHARE_PATH + 64];
	snprintf(text, sizeof text, "gpu=%s/gpu,time=real", run->sharing.directory);
	return setenv("WEIR_SIM", text, 0)
		       ? complain(EXIT_ENVIRONMENT, "the environment can't be set: %s",
				 strerror(errno))
		       : 0;
}

/* Whether the program can be held to a quota. */
static int check_held(const struct options *o, struct run *run)
{
	const char *program = opt_argv(o)[0];
	struct binary b;
	/* what can't be run is said when it is started */
	run->unheld = binary_look(program, &b) ? NULL : binary_why_closed(&b);
	if (!run->unheld || opt_flag(o, "best-effort-quota") ||
		!(opt_str(o, "memory") || given(WEIR_OPTION_memory)))
		return 0;
	return complain(EXIT_ENVIRONMENT,
		"%s can't be held to a quota: it %s. With --best-effort-quota it runs without one",
		program, run->unheld);
}

static int prepare(const struct options *o, struct run *run)
{
	char outer[SHARE_PATH];
	const char *share = opt_str(o, "share");
	int code = sharing_open(&run->sharing, share ? share : given_share(outer), true);
	code = code ? code : prepare_words(o, run);
	code = code ? code : check_held(o, run);
	if (!code && opt_flag(o, "sim"))
		code = share_simulated(run);
	if (!code && opt_str(o, "device"))
		code = device_choose(&run->sharing, opt_str(o, "device"), opt_flag(o, "sim"));
	if (code)
		return code;
	run->arbiter = arbiter_new(run->sharing.file, run->sharing.directory);
	return 0;
}

static int turn(void *data)
{
	struct run *run = data;
	return arbiter_step(run->arbiter);
}

static int run_program(const struct options *o, struct run *run)
{
	int status = 0;
	struct child c = { .argv = opt_argv(o),
		.sched = run->sched,
		.sim = opt_flag(o, "sim"),
		.audit = !opt_flag(o, "no-audit") };
	int code = child_check(&c);
	code = code ? code : child_start(&c);
	if (code)
		return code;
	while (!child_wait(&c, turn(run), NULL, &status))
		;
	child_close(&c);
	return child_exit(status);
}

/* Programs that did not get what was asked, of all that share the file. */
struct unheld {
	uint64_t refused, passed, unpooled;
};

static struct unheld count_unheld(const struct run *run)
{
	return (struct unheld){ load_relaxed(&run->sharing.file->arbiter.refused),
		load_relaxed(&run->sharing.file->arbiter.passed),
		load_relaxed(&run->sharing.file->arbiter.unpooled) };
}

/* Programs of this run or of another at the same time: the file does not say whose. */
static void say_unheld(const struct options *o, const struct run *run, const struct unheld *before)
{
	const struct unheld now = count_unheld(run);
	if (run->unheld && !opt_flag(o, "quiet"))
		remark("1 program ran without its class and quota: %s %s", opt_argv(o)[0],
			run->unheld);
	const uint64_t refused = now.refused - before->refused;
	const uint64_t passed = now.passed - before->passed;
	if (refused && !opt_flag(o, "quiet"))
		remark("%" PRIu64
		       " program%s not scheduled, since %u share the GPU already. The launches of those went on unregulated",
			refused, refused == 1 ? " was" : "s were", SHARE_SLOTS);
	if (passed && !opt_flag(o, "quiet"))
		remark("%" PRIu64
		       " program%s took more than 2 s to join the shared GPU: first calls passed unregulated, and no quota counts them",
			passed, passed == 1 ? "" : "s");
	if (now.unpooled > before->unpooled && opt_flag(o, "pool") && !opt_flag(o, "quiet"))
		remark("the pool served no memory: a recording says why (-o FILE, then weir report FILE)");
}

int cmd_run(const struct options *o)
{
	struct run run = { 0 };
	int code = prepare(o, &run);
	if (!code) {
		const struct unheld before = count_unheld(&run);
		const struct record_beside beside = { run.sched, turn, &run };
		code = opt_str(o, "output") ? record_program(o, &beside) : run_program(o, &run);
		say_unheld(o, &run, &before);
	}
	if (run.sharing.file)
		share_bury(run.sharing.file);
	arbiter_free(run.arbiter);
	mps_stop(&run.mps);
	sharing_close(&run.sharing);
	return code;
}
