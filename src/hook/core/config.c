/* Reads the environment variable WEIR into the configuration of the injected library. */
#include "hook/core/config.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

#include "base/bounded.h"
#include "base/sys.h"
#include "hook/core/libc.h"
#include "weir_options.h"

static struct config config;
static bool is_read;

static const char *environment(const char *name)
{
	extern char **environ;
	const size_t n = strlen(name);
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* At load time only, where a wrong value can still be told to the person who gave it. */
static void refuse(const char *all, const char *why)
{
	static const char head[] = "weir: WEIR=", tail[] = "; the program runs unrecorded\n";
	sys(write, 2, head, sizeof head - 1);
	sys(write, 2, all, strlen(all));
	sys(write, 2, ": ", 2);
	sys(write, 2, why, strlen(why));
	sys(write, 2, tail, sizeof tail - 1);
	config.records = false;
	config.sched = false;
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

/* A value as it is, where there is one and room for it. */
static bool keep_text(char *to, size_t size, const char *value, size_t n)
{
	if (!value || !n || n >= size)
		return false;
	memcpy(to, value, n);
	to[n] = 0;
	return true;
}

static bool is(const char *value, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(value, word, n);
}

/* A number that is not 0. */
static bool set_number(uint64_t *to, uint64_t most, const char *value, size_t n)
{
	*to = value && n && value[n - 1] <= '9' ? parse_bytes(value, n) : 0;
	return *to && *to <= most;
}

static bool set_small(uint32_t *to, uint32_t most, const char *value, size_t n)
{
	uint64_t number;
	const bool fits = set_number(&number, most, value, n);
	*to = (uint32_t)number;
	return fits;
}

/* set_NAME() for each row of the table; value is what stands behind the =, NULL without one. */
#define SET(name, done)                                                                            \
	static bool set_##name(const char *value, size_t n)                                        \
	{                                                                                          \
		return done;                                                                       \
	}
#define FLAG(name) SET(name, (config.name = true, !value))
/* A file as it stands: absolute, or found from where the program is. */
#define TEXT(name)        SET(name, keep_text(config.name, sizeof config.name, value, n))
#define NUMBER(name, to)  SET(name, set_number(&config.to, INT64_MAX, value, n))
#define SMALL(name, most) SET(name, set_small(&config.self.who.name, most, value, n))
FLAG(join)
FLAG(args)
FLAG(predict)
FLAG(sched)
SET(mps, (config.self.who.under_mps = true, !value))
FLAG(pool)
TEXT(history)
TEXT(warm)
TEXT(model)
TEXT(models)
NUMBER(deadline, self.deadline_ns)
NUMBER(target, self.target_p99_ns)
NUMBER(wait, self.max_wait_ns)
NUMBER(wait_memory, wait_memory_ns)
NUMBER(memory, self.quota)
NUMBER(memory_group, self.group)
NUMBER(command, self.who.command)
NUMBER(outer_memory, self.outer_quota)
NUMBER(outer_group, self.outer_group)
NUMBER(duration, capture.duration_ns)
NUMBER(launches, capture.launches)
SMALL(weight, 1000000)
SMALL(sms, 65535)
SMALL(slowdown, 100000)
SET(window, set_number(&config.window, UINT32_MAX, value, n))
SET(stacks, stack_options_parse(value ? value : "", n, &config.stacks))

/* N of "sample:N" and "predict:N". */
static uint32_t rate_behind(const char *word, const char *value, size_t n)
{
	const size_t k = strlen(word);
	const uint64_t each = n > k && !memcmp(value, word, k) ? parse_bytes(value + k, n - k) : 0;
	return each <= SAMPLE_MOST ? (uint32_t)each : 0;
}

static bool set_gpu(const char *value, size_t n)
{
	config.gpu = true;
	if (!value)
		return true;
	const uint32_t predict = rate_behind("predict:", value, n);
	config.reconstruct = predict > 0;
	config.sample_rate = predict ? predict : rate_behind("sample:", value, n);
	return config.sample_rate;
}

static bool set_level(const char *value, size_t n)
{
	char name[16] = { 0 };
	if (!value)
		return false;
	memcpy(name, value, n < sizeof name ? n : sizeof name - 1);
	return control_of_level(name, &config.control);
}

static bool set_flight(const char *value, size_t n)
{
	config.flight_bytes = value ? parse_bytes(value, n) : 0;
	return config.flight_bytes;
}

SET(share, keep_text(config.share, sizeof config.share, value, n) && *value == '/')

static bool set_class(const char *value, size_t n)
{
	if (!value)
		return false;
	config.self.class = is(value, n, "latency")       ? CLASS_LATENCY
			    : is(value, n, "best-effort") ? CLASS_BEST_EFFORT
							  : CLASS_NONE;
	return config.self.class;
}

/* What stands behind the word; false: it begins otherwise. */
static bool keep_behind(const char *word, char *to, size_t size, const char *value, size_t n)
{
	const size_t k = strlen(word);
	return value && n > k && !memcmp(value, word, k) && keep_text(to, size, value + k, n - k);
}

SET(request, keep_behind("range:", config.request_range, sizeof config.request_range, value, n))

static bool set_delay(const char *value, size_t n)
{
	struct config_capture *c = &config.capture;
	return set_number(&c->delay_ns, INT64_MAX, value, n) &&
	       keep_text(c->delay, sizeof c->delay, value, n);
}

/* N-M */
static bool set_steps(const char *value, size_t n)
{
	struct config_capture *c = &config.capture;
	const char *dash = memchr(value, '-', n);
	const size_t k = dash ? (size_t)(dash - value) : 0;
	return dash && set_small(&c->first_step, UINT32_MAX - 1, value, k) &&
	       set_small(&c->last_step, UINT32_MAX - 1, dash + 1, n - k - 1) &&
	       c->first_step <= c->last_step;
}

static bool set_capture(const char *value, size_t n)
{
	static const char step[] = "step:";
	const size_t s = sizeof step - 1;
	if (!keep_text(config.capture.what, sizeof config.capture.what, value, n))
		return false;
	config.capture.profiler = is(value, n, "profiler");
	if (config.capture.profiler)
		return true;
	if (n > s && !memcmp(value, step, s))
		return set_steps(value + s, n - s);
	return keep_behind("range:", config.capture.range, sizeof config.capture.range, value, n);
}

#define SETTER(name) { #name, set_##name },
static const struct {
	const char *name;
	bool (*set)(const char *value, size_t n);
} options[] = { WEIR_OPTIONS(SETTER) };

static bool parse_option(const char *text, size_t n)
{
	const char *equals = memchr(text, '=', n);
	const size_t k = equals ? (size_t)(equals - text) : n;
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (strlen(options[i].name) == k && !memcmp(options[i].name, text, k))
			return options[i].set(equals ? equals + 1 : NULL, equals ? n - k - 1 : 0);
	return false;
}

/* With the host's name for %h: each container has its own.  weir record has put it in already. */
static void put_name(struct bounded *to, const char *path)
{
	struct utsname host = { 0 };
	for (; *path; path++) {
		const bool mark = !config.join && path[0] == '%' && path[1] == 'h';
		if (!mark || sys_failed(sys(uname, &host))) {
			bounded_char(to, *path);
			continue;
		}
		bounded_put(to, host.nodename);
		path++;
	}
}

/* The path is made absolute: the program may change its directory.  NULL, or why it can't be. */
static const char *set_path(const char *path)
{
	size_t at = 0;
	if (!*path)
		return "the file name is missing";
	if (path[0] != '/') {
		const long got = sys(getcwd, config.path, sizeof config.path);
		/* one that was unmounted begins with "(unreachable)" */
		if (got != -ERANGE && (got <= 1 || config.path[0] != '/'))
			return "the working directory has no name any more. Give the file's whole path";
		at = got > 1 ? (size_t)got : sizeof config.path;
		config.path[at - 1] = '/'; /* in place of the NUL, which is counted */
	}
	struct bounded b = { .to = config.path, .size = sizeof config.path, .used = at };
	put_name(&b, path);
	bounded_end(&b);
	return b.cut ? "the file name is too long" : NULL;
}

/* The trace's name comes last; a program that only shares the GPU has none.  The end, or NULL. */
static const char *parse_options(const char *p)
{
	while (*p && strncmp(p, "record:", 7)) {
		const char *comma = strchr(p, ',');
		const size_t n = comma ? (size_t)(comma - p) : strlen(p);
		if (!parse_option(p, n))
			return NULL;
		p += n + (p[n] == ',');
	}
	return *p || config.sched ? p : NULL;
}

static void set_defaults(void)
{
	control_of_level("full", &config.control);
	config.self.class = CLASS_BEST_EFFORT;
	config.self.who.weight = 1;
	config.self.max_wait_ns = 500000000;
}

static void set_share_default(void)
{
	const char *ranks = environment("WORLD_SIZE");
	config.is_rank = ranks && *ranks && strcmp(ranks, "1") != 0;
	if (config.sched && !*config.share)
		share_directory(config.share, environment("XDG_RUNTIME_DIR"));
}

static void read_config(void)
{
	const char *all = environment("WEIR");
	if (!all || !*all || getauxval(AT_SECURE) || !libc_is_glibc())
		return;
	set_defaults();
	const char *p = parse_options(all);
	if (!p) {
		refuse(all, "expected " WEIR_OPTIONS_USAGE "record:FILE, or sched");
		return;
	}
	set_share_default();
	if (!*p)
		return;
	config.control |= (config.args ? CONTROL_ARGS : 0) |
			  (config.predict ? CONTROL_PREDICT : 0) | config.stacks.control;
	config.records = true;
	const char *why = set_path(strchr(p, ':') + 1);
	if (why)
		refuse(all, why);
}

const struct config *config_get(void)
{
	if (is_read)
		return &config;
	read_config();
	is_read = true;
	return &config;
}
