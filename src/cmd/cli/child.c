/* Starts a program with the injected library and follows it to its end. */
#include "cmd/cli/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/xmalloc.h"
#include "cmd/cli/binary.h"
#include "cmd/cli/command.h"
#include "cmd/cli/input.h"
#include "base/shared_library.h"
#include "record/writer.h"
#include "weir_options.h"

#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND      127

static void join_words(char *to, size_t size, char **words)
{
	struct bounded b = { .to = to, .size = size };
	for (; *words; words++)
		bounded_printf(&b, "%s%s", b.used ? " " : "", *words);
	bounded_end(&b);
}

/* The first bytes of a file: how many there are, or -1 with errno. */
static ssize_t read_start(const char *path, char *to, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const ssize_t n = fd < 0 ? -1 : read(fd, to, size);
	const int failed = errno;
	if (fd >= 0)
		close(fd);
	errno = failed;
	return n;
}

/* A file that is no trace stays as it is: losing it would hurt. */
static int check_replaceable(const char *path, struct error *err)
{
	struct stat st;
	char magic[sizeof TRACE_MAGIC - 1];
	if (lstat(path, &st))
		return 0;
	if (!S_ISREG(st.st_mode))
		return error_set(
			err, -EEXIST, "%s is not a regular file. A trace can't be put there", path);
	const ssize_t n = read_start(path, magic, sizeof magic);
	if (n < 0)
		return error_set(err, -errno,
			"%s is there and can't be read: %s. Name another file", path,
			strerror(errno));
	if (!n || (n == (ssize_t)sizeof magic && !memcmp(magic, TRACE_MAGIC, sizeof magic)))
		return 0;
	return error_set(
		err, -EEXIST, "%s is there and is no trace. Remove it, or name another file", path);
}

int child_clear(const char *path, struct error *err)
{
	const int other = check_replaceable(path, err);
	if (other)
		return other;
	if (unlink(path) && errno != ENOENT)
		return error_set(err, -errno, "%s can't be replaced: %s", path, strerror(errno));
	return 0;
}

static int write_header(struct child *c, struct trace_header *h, struct error *err)
{
	const char *path = c->trace;
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, -errno, "%s can't be made: %s", path, strerror(errno));
	const int done = -trace_file_begin(fd, h);
	close(fd);
	if (!done)
		return 0;
	unlink(path);
	return error_set(err, -done, "%s can't be written: %s", path, strerror(done));
}

/* A page of the trace that has no file behind it: somebody has cut the file off.  With zeros there
 * this process lives to say so. */
static void put_memory(int number, siginfo_t *info, void *context)
{
	char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)4095);
	if (info->si_code != BUS_ADRERR ||
		mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			-1, 0) == MAP_FAILED)
		signal(number, SIG_DFL);
}

static int map_header(struct child *c, const char *path, struct error *err)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno, "%s can't be opened: %s", path, strerror(errno));
	void *map = mmap(NULL, TRACE_GRAIN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const int failed = errno;
	struct stat st = { 0 };
	fstat(fd, &st);
	close(fd);
	if (map == MAP_FAILED) {
		unlink(path);
		return error_set(
			err, -failed, "%s can't be mapped into memory: %s", path, strerror(failed));
	}
	c->header = map;
	c->device = st.st_dev;
	c->inode = st.st_ino;
	const struct sigaction cut = { .sa_sigaction = put_memory, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &cut, NULL);
	return 0;
}

int child_trace(struct child *c, const char *path, uint32_t control, uint64_t flight_bytes,
	struct error *err)
{
	struct trace_header h;
	header_blank(&h, control);
	h.launched = 1;
	if (flight_bytes) {
		h.mode = TRACE_FLIGHT;
		h.limit = flight_bytes + TRACE_GRAIN;
	}
	join_words(h.program, sizeof h.program, c->argv);
	c->trace = path;
	const int done = write_header(c, &h, err);
	return done ? done : map_header(c, path, err);
}

void child_finish(struct child *c, int status)
{
	c->header->end = clock_pair_now(c->header->clock);
	c->header->exit_status = (uint32_t)status;
	store_release(&c->header->state, TRACE_FINISHED);
}

void child_close(struct child *c)
{
	if (c->header)
		munmap(c->header, TRACE_GRAIN);
	c->header = NULL;
}

bool child_trace_is_there(const struct child *c)
{
	struct stat st;
	char magic[sizeof TRACE_MAGIC - 1] = { 0 };
	const char *what = lstat(c->trace, &st) ? "removed" : NULL;
	if (!what && (st.st_dev != c->device || st.st_ino != c->inode))
		what = "replaced";
	if (!what && (read_start(c->trace, magic, sizeof magic) != sizeof magic ||
			     memcmp(magic, TRACE_MAGIC, sizeof magic) != 0))
		what = "cut off";
	if (what)
		complain(0, "%s was %s while the program ran. What it recorded is lost", c->trace,
			what);
	return !what;
}

/* The person's own value stays in front. */
static int cannot_set(void)
{
	return complain(EXIT_ENVIRONMENT, "the environment can't be set: %s", strerror(errno));
}

static int join_paths(const char *name, const char *first, char separator, const char *second)
{
	char *value = xasprintf("%s%c%s", first, separator, second);
	const int done = setenv(name, value, 1);
	free(value);
	return done;
}

static int append_path(const char *name, const char *path, char separator)
{
	const char *old = getenv(name);
	return old && *old ? join_paths(name, old, separator, path) : setenv(name, path, 1);
}

static int prepend_path(const char *name, const char *path)
{
	const char *old = getenv(name);
	return old && *old ? join_paths(name, path, ':', old) : setenv(name, path, 1);
}

/*
 * AddressSanitizer, where it is a library, ends a program in which another comes first.  Ours has
 * none of the functions that it stands in for.  The sanitizer still looks at the person's other
 * preloaded libraries.
 */
static int allow_sanitizer(void)
{
	const char *preload = getenv("LD_PRELOAD");
	if (preload && *preload)
		return 0;
	return prepend_path("ASAN_OPTIONS", "verify_asan_link_order=0");
}

/* With an auditor the loader finds no room for the thread-local variables of gcc's
 * ThreadSanitizer; a program into which clang has put it, the auditor sees itself. */
static bool bears_auditor(const struct child *c)
{
	struct binary program;
	return binary_look(c->argv[0], &program) || !program.needs_tsan;
}

/* NVTX asks for one library; whoever has named another wants that. */
static int set_injection(const char *hook)
{
	return setenv("NVTX_INJECTION64_PATH", hook, 0);
}

/* python/sitecustomize.py, which every Python of the program imports when it starts. */
static int set_python(const struct child *c)
{
	char directory[PATH_MAX];
	if (library_path("python", directory, sizeof directory))
		return complain(EXIT_ENVIRONMENT,
			"the Python package is not in ../lib/weir/python. Install Weir again");
	char words[256]; /* python_words() has looked at what the person has given */
	snprintf(words, sizeof words, "%s%s%s",
		!c->python   ? ""
		: *c->python ? c->python
			     : "operators",
		c->python && c->stacks ? "," : "", c->stacks ? "stacks" : "");
	if (prepend_path("PYTHONPATH", directory) || setenv("WEIR_PYTHON", words, 1))
		return cannot_set();
	return 0;
}

/* A program that weir run started passes its sharing and quota on to the programs that it starts
 * here. */
static const char *outer_words(void)
{
	static const char sched[] = WEIR_OPTION_sched ",";
	const char *words = getenv("WEIR");
	return words && !strncmp(words, sched, sizeof sched - 1) ? words : "";
}

static int set_words(const struct child *c, const char *full)
{
	char *config = NULL, gpu[32] = "";
	const char *outer = c->sched ? "" : outer_words();
	if (c->sample_rate)
		snprintf(gpu, sizeof gpu, WEIR_OPTION_gpu "=%s:%" PRIu32 ",",
			c->reconstruct ? "predict" : "sample", c->sample_rate);
	else if (c->gpu)
		memcpy(gpu, WEIR_OPTION_gpu ",", sizeof WEIR_OPTION_gpu ",");
	const int n = asprintf(&config, WEIR_OPTION_join ",%s%s%s%s%s%s%s%s%srecord:%s",
		c->sched ? c->sched : "", outer, *outer ? "," : "", gpu,
		c->predict ? c->predict : "", c->part ? c->part : "",
		c->stacks ? WEIR_OPTION_stacks : "", c->stacks ? c->stacks : "",
		c->stacks ? "," : "", full);
	const int done = n < 0 || setenv("WEIR", config, 1) ? cannot_set() : 0;
	if (n >= 0)
		free(config);
	return done;
}

static int set_config(const struct child *c)
{
	if (!c->trace)
		return setenv("WEIR", c->sched, 1) ? cannot_set() : 0;
	char *full = realpath(c->trace, NULL);
	if (!full)
		return complain(EXIT_ENVIRONMENT,
			"the whole path of %s is unknown: %s. Give a path that begins with a slash",
			c->trace, strerror(errno));
	const int done = set_words(c, full);
	free(full);
	return done;
}

int child_hook(char ret_path[PATH_MAX])
{
	if (library_path("libweir.so", ret_path, PATH_MAX))
		return complain(EXIT_ENVIRONMENT,
			"libweir.so is not in ../lib/weir beside this program. Install Weir again");
	if (strpbrk(ret_path, " :"))
		return complain(EXIT_ENVIRONMENT,
			"%s can't be preloaded: for the loader a blank or colon ends a path. "
			"Install Weir elsewhere",
			ret_path);
	return 0;
}

/* 0, or an exit code. */
static int set_environment(const struct child *c)
{
	char hook[PATH_MAX], audit[PATH_MAX], sim[PATH_MAX];
	const int none = child_hook(hook);
	if (none)
		return none;
	if (allow_sanitizer() || append_path("LD_PRELOAD", hook, ':') || set_injection(hook))
		return cannot_set();
	const int unset = set_config(c);
	if (unset)
		return unset;
	if (c->audit && bears_auditor(c) &&
		!library_path("libweir-audit.so", audit, sizeof audit) &&
		append_path("LD_AUDIT", audit, ':'))
		return cannot_set();
	if ((c->python || c->stacks) && set_python(c))
		return EXIT_ENVIRONMENT;
	if (!c->sim)
		return 0;
	if (library_path("sim", sim, sizeof sim))
		return complain(EXIT_ENVIRONMENT,
			"the simulated driver is not in ../lib/weir/sim. Install Weir again");
	if (c->reconstruct &&
		setenv("WEIR_SIM", "time=real", 0)) /* what a host waits for takes time */
		return cannot_set();
	if (prepend_path("LD_LIBRARY_PATH", sim))
		return cannot_set();
	return 0;
}

static const int passed_on[] = { SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH };
static sigset_t before;
static struct sigaction int_before, quit_before, child_before;

static sigset_t waited_for(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		sigaddset(&set, passed_on[i]);
	return set;
}

/* SIGINT and SIGQUIT come from the terminal to the program as well: it decides.  If SIGCHLD is
 * ignored, the kernel throws away how a child ended. */
static void take_signals(void)
{
	const sigset_t set = waited_for();
	sigprocmask(SIG_BLOCK, &set, &before);
	const struct sigaction ignore = { .sa_handler = SIG_IGN },
			       normal = { .sa_handler = SIG_DFL };
	sigaction(SIGCHLD, &normal, &child_before);
	sigaction(SIGINT, &ignore, &int_before);
	sigaction(SIGQUIT, &ignore, &quit_before);
}

static void give_signals_back(void)
{
	sigaction(SIGCHLD, &child_before, NULL);
	sigaction(SIGINT, &int_before, NULL);
	sigaction(SIGQUIT, &quit_before, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* In the child: becomes the program, or writes why not. */
static void become(const struct child *c, int report)
{
	int why = 0;
	give_signals_back();
	if (set_environment(c) == 0) {
		execvp(c->argv[0], c->argv);
		why = errno;
	}
	if (write(report, &why, sizeof why) != sizeof why)
		_exit(EXIT_ENVIRONMENT);
	_exit(EXIT_ENVIRONMENT);
}

static int refuse(const struct child *c, int why)
{
	const char *name = c->argv[0];
	const int code = why == ENOENT || why == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	if (input_is_recording(name))
		return complain(code,
			"%s is a recording, not a program. `weir report %s` says what is in it, and `weir export -f csv %s` lists its calls",
			name, name, name);
	return complain(code, "%s can't be run: %s%s", name, strerror(why),
		why == ENOENT ? ". Is it spelled right, and is its directory in PATH?" : "");
}

static int why_not(const char *path)
{
	struct stat st;
	if (stat(path, &st))
		return errno;
	return S_ISREG(st.st_mode) && !access(path, X_OK) ? 0 : EACCES;
}

/* Finds a program as execvp() does: 0, or why it does not, as errno has it. */
static int find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int why = ENOENT;
	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return ENAMETOOLONG;
		return why_not(path);
	}
	dirs = dirs ? dirs : "/bin:/usr/bin";
	for (const char *end; why; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - dirs), end > dirs ? dirs : ".",
			    name) < PATH_MAX &&
			why_not(path) != ENOENT)
			why = why_not(path);
		if (!*end)
			break;
	}
	return why;
}

int child_check(const struct child *c)
{
	char path[PATH_MAX];
	const int why = find_program(c->argv[0], path);
	return why ? refuse(c, why) : 0;
}

bool child_say_closed(const struct child *c)
{
	struct binary program;
	const char *why = binary_look(c->argv[0], &program) ? NULL : binary_why_closed(&program);
	if (why)
		remark("%s %s, so its CUDA calls can't be seen", c->argv[0], why);
	return why;
}

static int explain(const struct child *c, int why)
{
	waitpid(c->pid, NULL, 0);
	give_signals_back();
	if (!why)
		return EXIT_ENVIRONMENT; /* the child has complained */
	return refuse(c, why);
}

int child_start(struct child *c)
{
	int report[2], why;
	if (pipe2(report, O_CLOEXEC))
		return complain(EXIT_ENVIRONMENT, "no pipe can be made: %s", strerror(errno));
	take_signals();
	c->pid = fork();
	if (c->pid < 0) {
		give_signals_back();
		close(report[0]);
		close(report[1]);
		return complain(EXIT_ENVIRONMENT, "no process can be made: %s", strerror(errno));
	}
	if (c->pid == 0)
		become(c, report[1]);
	if (c->header)
		c->header->root_pid = (uint32_t)c->pid;
	close(report[1]);
	const ssize_t got = read(report[0], &why, sizeof why);
	close(report[0]);
	return got == sizeof why ? explain(c, why) : 0;
}

static void handle(const struct child *c, int signal, int *keep_usr1)
{
	if (signal == SIGUSR1 && keep_usr1)
		++*keep_usr1;
	else if (signal != SIGCHLD)
		kill(c->pid, signal);
}

bool child_wait(struct child *c, int wait_ms, int *keep_usr1, int *ret_status)
{
	const sigset_t set = waited_for();
	for (;;) {
		if (waitpid(c->pid, ret_status, WNOHANG) == c->pid) {
			give_signals_back();
			return true;
		}
		const struct timespec limit = { wait_ms / 1000, wait_ms % 1000 * 1000000L };
		const int signal =
			wait_ms < 0 ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &limit);
		if (signal < 0 && errno == EAGAIN)
			return waitpid(c->pid, ret_status, WNOHANG) == c->pid
				       ? (give_signals_back(), true)
				       : false;
		handle(c, signal, keep_usr1);
		if (keep_usr1 && *keep_usr1)
			return false;
	}
}

int child_exit(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	const struct rlimit no_core = { 0, 0 };
	const int number = WTERMSIG(status);
	setrlimit(RLIMIT_CORE, &no_core);
	fflush(stdout);
	signal(number, SIG_DFL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
	return 128 + number;
}

/* A mapping as /proc tells it.  Which device that is differs from what stat() says on file systems
 * that have several, so this process's own mapping of the file is what others' are held against. */
struct mapping {
	unsigned major, minor;
	unsigned long inode;
};

static bool find_mapping(const char *pid,
	bool (*wanted)(const void *data, const char *line, const struct mapping *m),
	const void *data, struct mapping *ret_m)
{
	char path[64], line[PATH_MAX + 128];
	snprintf(path, sizeof path, "/proc/%s/maps", pid);
	FILE *maps = fopen(path, "re");
	bool found = false;
	while (maps && !found && fgets(line, sizeof line, maps))
		found = sscanf(line, "%*x-%*x %*4s %*x %x:%x %lu", &ret_m->major, &ret_m->minor,
				&ret_m->inode) == 3 &&
			wanted(data, line, ret_m);
	if (maps)
		fclose(maps);
	return found;
}

static bool begins_at(const void *data, const char *line, const struct mapping *m)
{
	return strtoull(line, NULL, 16) == (uintptr_t)data;
}

static bool is_same_file(const void *data, const char *line, const struct mapping *m)
{
	const struct mapping *want = data;
	return m->inode == want->inode && m->major == want->major && m->minor == want->minor &&
	       strstr(line, " rw-s");
}

/* A process that is older than this one is none of the program's, and most are; to see that takes
 * a line, where its mappings are hundreds. */
static bool is_later(const char *name, uint64_t since)
{
	const unsigned long pid = strtoul(name, NULL, 10);
	return pid && pid != (unsigned long)getpid() && process_start_of((uint32_t)pid) >= since;
}

int child_others(const struct child *c)
{
	struct mapping file, other;
	int count = 0;
	if (!load_acquire(&c->header->processes))
		return 0; /* nobody has come to CUDA */
	const uint64_t since = process_start_of(0);
	DIR *proc = opendir("/proc");
	if (proc && find_mapping("self", begins_at, c->header, &file))
		for (struct dirent *d; (d = readdir(proc));)
			count += is_later(d->d_name, since) &&
				 find_mapping(d->d_name, is_same_file, &file, &other);
	if (proc)
		closedir(proc);
	return count;
}
