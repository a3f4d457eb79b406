/*
 * Setting the guest up in its process, and again in each forked child: see process.h.
 *
 * Nothing happens before the first sign of CUDA except reading the orders; a program that
 * never comes near a GPU pays for the loading of the library alone.
 */
#include "hook/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "event/level.h"
#include "record/sandbox.h"
#include "hook/online/online.h"
#include "hook/meta/metadata.h"
#include "hook/time/cupti.h"
#include "hook/resolve.h"
#include "hook/time/event_timer.h"
#include "hook/trace_text.h"

struct recorder hook_recorder;
__thread struct writer hook_self = { .kind = CHUNK_EVENTS };
__thread struct writer hook_ranges = { .kind = CHUNK_RANGES };

union hook_hot_page hook_hot_page;

/* Everything is wanted, so that the first call of a process comes to call_leave, which starts it;
 * and all calls that other threads make meanwhile, which wait there. */
uint32_t hook_idle = (1u << CLASS_COUNT) - 1;

/* The control word once it is known that nobody asks, or that calls become lines. */
static uint32_t lone_control;

/* What this memory is of: of no process that began to start; of this one, or of whom it was forked
 * from; of a child whose threads no longer write where their parent does. */
static enum { MEMORY_NEW, MEMORY_USED, MEMORY_PARTED } memory;

static struct {
	bool read;
	bool text; /* lines, in place of a recording */
	uint32_t control;
	uint64_t flight_bytes;
	bool gpu;             /* device times as well */
	uint32_t sample_rate; /* of one launch in so many; 0: of all work */
	bool args;            /* what kernels are given as well */
	bool predict;         /* and how long they will run */
	char history[RECORDER_PATH], warm[RECORDER_PATH], model[RECORDER_PATH]; /* "": none */
	char models[RECORDER_PATH];
	char path[RECORDER_PATH]; /* "" : no orders */
} orders;

uint64_t clock_monotonic(void)
{
	struct timespec t = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- orders --------------------------------------------------------------------------- */

static const char *environment(const char *name)
{
	extern char **environ;
	const size_t n = strlen(name);
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* At load time only, where a wrong order can still be told to the person who gave it. */
static void refuse(const char *orders_text, const char *why)
{
	static const char head[] = "weir: WEIR=", tail[] = "; the program runs unrecorded\n";
	sys(write, 2, head, sizeof head - 1);
	sys(write, 2, orders_text, strlen(orders_text));
	sys(write, 2, ": ", 2);
	sys(write, 2, why, strlen(why));
	sys(write, 2, tail, sizeof tail - 1);
	orders.path[0] = 0;
	orders.text = false;
}

/* "64M" and the like; 0 when it is no number. */
static uint64_t parse_bytes(const char *text, size_t n)
{
	uint64_t value = 0;
	size_t i = 0;
	for (; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return 0;
	static const char units[] = "KMG";
	const char *unit = i + 1 == n ? strchr(units, text[i]) : NULL;
	if (unit && *unit)
		return __builtin_mul_overflow(value, 1ull << 10 * (unit - units + 1), &value)
			       ? 0
			       : value;
	return i == n ? value : 0;
}

/* A file that an option names, as it stands: absolute, or found from where the program is. */
static bool path_option(const char *text, size_t n, const char *key, char to[RECORDER_PATH])
{
	const size_t k = strlen(key);
	if (n <= k || memcmp(text, key, k) || n - k >= RECORDER_PATH)
		return false;
	memcpy(to, text + k, n - k);
	to[n - k] = 0;
	return true;
}

static bool sample_option(const char *text, size_t n)
{
	static const char key[] = "gpu=sample:";
	const size_t k = sizeof key - 1;
	if (n <= k || memcmp(text, key, k))
		return false;
	const uint64_t each = parse_bytes(text + k, n - k);
	if (!each || each > SAMPLE_MOST)
		return false;
	orders.gpu = true;
	orders.sample_rate = (uint32_t)each;
	return true;
}

static bool parse_option(const char *text, size_t n)
{
	if (n == 4 && !memcmp(text, "join", 4)) {
		hook_recorder.join = true;
		return true;
	}
	if (n == 3 && !memcmp(text, "gpu", 3)) {
		orders.gpu = true;
		return true;
	}
	if (sample_option(text, n))
		return true;
	if (n == 4 && !memcmp(text, "args", 4)) {
		orders.args = true;
		return true;
	}
	if (n == 7 && !memcmp(text, "predict", 7)) {
		orders.predict = true;
		return true;
	}
	if (path_option(text, n, "history=", orders.history) ||
		path_option(text, n, "warm=", orders.warm) ||
		path_option(text, n, "model=", orders.model) ||
		path_option(text, n, "models=", orders.models))
		return true;
	static const char level[] = "level=", flight[] = "flight=";
	if (n > sizeof level - 1 && !memcmp(text, level, sizeof level - 1)) {
		text += sizeof level - 1, n -= sizeof level - 1;
		char name[16] = { 0 };
		memcpy(name, text, n < sizeof name ? n : sizeof name - 1);
		return control_of_level(name, &orders.control);
	}
	if (n > sizeof flight - 1 && !memcmp(text, flight, sizeof flight - 1)) {
		orders.flight_bytes = parse_bytes(text + sizeof flight - 1, n - sizeof flight + 1);
		return orders.flight_bytes != 0;
	}
	return false;
}

/* The path is made absolute: the program may change its directory.  NULL, or why it can't be. */
static const char *set_path(const char *path)
{
	size_t at = 0;
	if (!*path)
		return "the file name is missing";
	if (path[0] != '/') {
		const long got = sys(getcwd, orders.path, sizeof orders.path);
		/* one that was unmounted begins with "(unreachable)" */
		if (got != -ERANGE && (got <= 1 || orders.path[0] != '/'))
			return "the working directory has no name any more; give the file's whole path";
		at = got > 1 ? (size_t)got : sizeof orders.path;
		orders.path[at - 1] = '/'; /* in place of the NUL, which is counted */
	}
	const size_t n = strlen(path);
	if (at + n + 1 > sizeof orders.path)
		return "the file name is too long";
	memcpy(orders.path + at, path, n + 1);
	return NULL;
}

static void read_orders(void)
{
	if (orders.read)
		return;
	orders.read = true;
	const char *all = environment("WEIR");
	if (!all || !*all || getauxval(AT_SECURE))
		return;
	control_of_level("full", &orders.control);
	const char *p = all;
	for (const char *comma; strncmp(p, "record:", 7) && strncmp(p, "trace:", 6);
		p = comma + 1) {
		comma = strchr(p, ',');
		if (!comma || !parse_option(p, (size_t)(comma - p))) {
			refuse(all, "expected [level=LEVEL,][flight=SIZE,][gpu[=sample:N],][args,]"
				    "[predict,]record:FILE or trace:FILE");
			return;
		}
	}
	orders.text = *p == 't';
	p = strchr(p, ':') + 1;
	const char *why = set_path(p);
	if (why)
		refuse(all, why);
}

/* --- life ----------------------------------------------------------------------------- */

static size_t read_whole(const char *path, char *to, size_t size)
{
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return 0;
	const long got = sys(read, fd, to, size);
	sys(close, fd);
	return got > 0 ? (size_t)got : 0;
}

static void describe_process(void)
{
	char text[2048];
	const long link = sys(readlink, "/proc/self/exe", text, 512);
	size_t n = link > 0 ? (size_t)link : 0;
	text[n++] = 0;
	n += read_whole("/proc/self/cmdline", text + n, sizeof text - n);
	const uint64_t parent = (uint64_t)sys(getppid);
	note_text(META_PROCESS, &parent, 1, text, (uint32_t)n);
}

bool process_wants_gpu(void)
{
	return orders.gpu && hook_recorder.header;
}

uint32_t process_sample_rate(void)
{
	return orders.sample_rate;
}

bool process_keeps_ranges(void)
{
	return orders.path[0] && !orders.text;
}

bool process_wants_devices(void)
{
	return process_wants_gpu() ||
	       (hook_recorder.header &&
		       hook_recorder.header->control & (CONTROL_ARGS | CONTROL_PREDICT));
}

bool process_wants_forecast(struct forecast_orders *ret_orders)
{
	*ret_orders = (struct forecast_orders){ orders.history, orders.warm, orders.model,
		orders.models };
	return orders.predict && hook_recorder.header;
}

void process_note(const char *text)
{
	note_text(META_NOTE, NULL, 0, text, (uint32_t)strlen(text));
}

/* From now on calls are recorded, or left alone, as this word says. */
static void control_by(const uint32_t *word)
{
	__atomic_store_n(
		&hook_hot.control, (const char *)word - (const char *)&hook_idle, __ATOMIC_RELEASE);
}

static bool reach_trace(void)
{
	struct trace_header blank;
	header_blank(&blank, orders.control | (orders.args ? CONTROL_ARGS : 0) |
				     (orders.predict ? CONTROL_PREDICT : 0));
	if (orders.flight_bytes) {
		blank.mode = TRACE_FLIGHT;
		blank.limit = orders.flight_bytes + TRACE_GRAIN;
	}
	memcpy(hook_recorder.path, orders.path, sizeof orders.path);
	return hook_recorder.header || !recorder_open(&hook_recorder, &blank);
}

/* Without the trace there is nowhere to say what is lost, so what failed for a moment only, for
 * want of a descriptor, say, is tried again. */
static void open_trace(void)
{
	if (!reach_trace() && !reach_trace())
		return;
	hook_hot.tsc = hook_recorder.header->clock == CLOCK_IS_TSC;
	describe_process();
	resolve_declare();
	control_by(&hook_recorder.header->control);
}

static void start(void)
{
	memory = MEMORY_USED;
	read_orders();
	/* A page of the program file can't be wiped; this one is none.  Kernels before 4.14 can't.
	 */
	if (orders.path[0])
		sys(madvise, &hook_hot_page, sizeof hook_hot_page, MADV_WIPEONFORK);
	hook_hot.text = orders.text;
	if (orders.path[0] && !orders.text)
		open_trace();
	if (orders.path[0] && orders.text) {
		hook_recorder.scratch = true;
		hook_recorder.pid = (uint32_t)sys(getpid);
		hook_hot.tsc = true;
		if (text_start(orders.path))
			lone_control = orders.control & ~CONTROL_QUERY_COUNT;
	}
	/* Last: until here every call of any thread has come to wait. */
	if (!hook_hot.control)
		control_by(&lone_control);
}

/* A process that has shut itself in since the library was loaded is left alone. */
static bool stands_aside(void)
{
	if (!orders.path[0] || (!sandbox_is_closed(NULL) && !sandbox_hides_clock()))
		return false;
	control_by(&lone_control);
	return true;
}

uint64_t clock_slowly(void)
{
	const bool started = process_is_started();
	if (!started && stands_aside())
		return 0;
	const struct trace_header *h = hook_recorder.header; /* a parent's, after a fork */
	return started || (h && h->clock != CLOCK_IS_TSC) ? clock_monotonic()
							  : __builtin_ia32_rdtsc();
}

/* In the child of a fork: what it is in the middle of is finished in memory of its own. */
static void part(void)
{
	if (memory != MEMORY_USED)
		return;
	memory = MEMORY_PARTED;
	writer_forked(&hook_recorder, &hook_self);
	writer_forked(&hook_recorder, &hook_ranges);
	resolve_forked();
}

/*
 * Same orders, same file, a new process with nothing open: when a child comes to CUDA, since most
 * never do.  One of a bare clone(), or of _Fork(), comes here as well, its page of hook_hot wiped.
 * Until it has started, a child of its own is in the same state.
 */
static void begin_anew(void)
{
	if (memory == MEMORY_USED)
		cupti_forked(); /* in_child() has not run */
	part();
	if (memory != MEMORY_PARTED)
		return;
	note_forget();
	recorder_forked(&hook_recorder);
}

static void in_child(void)
{
	hook_hot = (struct hot_line){ 0 }; /* on kernels that do not wipe */
	cupti_forked();
	if (memory != MEMORY_USED || stands_aside())
		return;
	part();
	if (hook_self.early) /* in the middle of a call, which may be its last */
		begin_anew();
}

/* A signal handler may fork in the middle of a call: child and parent both return from it. */
static void before_fork(void)
{
	const struct thread_account *a = hook_self.account;
	hook_self.before_fork = a ? a->entered - a->returned : 0;
}

void process_start(void)
{
	uint32_t seen = PROCESS_NEW;
	if (process_is_started() || stands_aside())
		return;
	/* With signals blocked no handler can come here while this thread is at it. */
	uint64_t all = ~0ull, mask = 0;
	sys(rt_sigprocmask, SIG_BLOCK, &all, &mask, 8);
	if (__atomic_compare_exchange_n(&hook_hot.state, &seen, PROCESS_STARTING, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		begin_anew();
		start();
		__atomic_store_n(&hook_hot.state, PROCESS_READY, __ATOMIC_RELEASE);
	} else {
		for (int i = 0; i < 100000 && !process_is_started(); i++)
			sys(sched_yield);
	}
	sys(rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
}

/* Who is killed leaves what was read when names were noted. */
__attribute__((destructor)) static void unloaded(void)
{
	if (process_is_started())
		recorder_read_clock(&hook_recorder);
}

__attribute__((constructor)) static void loaded(void)
{
	read_orders();
	if (!orders.path[0]) {
		control_by(&lone_control);
		return;
	}
	sandbox_is_closed(NULL); /* as it is now */
	pthread_atfork(before_fork, NULL, in_child);
}
