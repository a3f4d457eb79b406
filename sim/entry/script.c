/*
 * The reader of WEIR_SIM and the fault rules in it.  A mistake in the script is kept as a
 * sentence until cuInit() says it: a test that silently runs without its faults would pass
 * for the wrong reason.
 */
#include "entry/script.h"
#include "entry/entry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_RULES = 64 };

struct rule {
	int id;            /* -1: every function */
	unsigned long nth; /* 0: every call */
	int code;
	bool sticky;
	uint64_t delay_ns;
	atomic_ulong seen;
};

#define CONTEXT_UNSAID SIZE_MAX
#define CONTEXT_SHARED ((size_t)96 << 20) /* less than on an H200, where one takes 527 MiB */

struct script script = {
	.devices = 1,
	.version = 13000,
	.capability = 90,
	.name = "Weir simulated GPU",
	.memory_bytes = (size_t)141 << 30,
	.context_bytes = CONTEXT_UNSAID,
	.launch_ns = 2000,
	.wave_ns = 3000,
	.copy_ns = 1500,
	.pcie_gbps = 55,
	.hbm_gbps = 4000,
	.queue_depth = 1024,
	.speed = 1,
	.slice_ns = 2000000,
	.switch_ns = 100000,
};

static struct rule rules[MAX_RULES];
static int rule_count;
static atomic_int sticky_code;
static char error_text[256];

static bool bad(const char *what, const char *value)
{
	if (error_text[0] == '\0')
		snprintf(error_text, sizeof error_text, "%s: \"%.200s\"", what, value);
	return false;
}

static bool read_scaled(const char *text, const char *units, const uint64_t *factors, double *ret_x)
{
	char *end;

	errno = 0;
	double value = strtod(text, &end);
	if (end == text || errno || !(value >= 0))
		return false;
	if (*end == '\0') {
		*ret_x = value;
		return true;
	}
	for (int i = 0; *units; i++, units += strlen(units) + 1) {
		if (strcmp(end, units) != 0)
			continue;
		*ret_x = value * (double)factors[i];
		return true;
	}
	return false;
}

static bool read_time(const char *text, uint64_t *ret_ns)
{
	static const uint64_t factors[] = { 1, 1000, 1000000, 1000000000 };
	double ns;

	if (!read_scaled(text, "ns\0us\0ms\0s\0", factors, &ns) || ns > 1e15)
		return bad("not a time (ns, us, ms or s)", text);
	*ret_ns = (uint64_t)ns;
	return true;
}

static bool read_bytes(const char *text, size_t *ret_bytes)
{
	static const uint64_t factors[] = { 1u << 10, 1u << 20, 1u << 30, (uint64_t)1 << 40 };
	double bytes;

	if (!read_scaled(text, "K\0M\0G\0T\0", factors, &bytes) || bytes > 1e15 || bytes < 1)
		return bad("not a size (K, M, G or T)", text);
	*ret_bytes = (size_t)bytes;
	return true;
}

static bool read_int(const char *text, int low, int high, int *ret_x)
{
	char *end;

	errno = 0;
	long value = strtol(text, &end, 10);
	if (end == text || *end || errno || value < low || value > high)
		return bad("not a number in range", text);
	*ret_x = (int)value;
	return true;
}

static bool read_rate(const char *text, double *ret_gbps)
{
	static const uint64_t none[] = { 1 };

	if (!read_scaled(text, "", none, ret_gbps) || !(*ret_gbps > 0))
		return bad("not a rate in GB/s", text);
	return true;
}

/* Finds the function a rule names: "*" is all of them. */
static bool read_function(const char *name, int *ret_id)
{
	*ret_id = strcmp(name, "*") == 0 ? -1 : entry_find(name);
	if (*ret_id < 0 && strcmp(name, "*") != 0)
		return bad("no such driver function", name);
	return true;
}

/* fault=NAME:N:CODE[:sticky], N a call number from 1 or "*" */
static bool read_fault(char *text, struct rule *rule)
{
	char *save = NULL;
	char *name = strtok_r(text, ":", &save);
	char *nth = strtok_r(NULL, ":", &save);
	char *code = strtok_r(NULL, ":", &save);
	char *last = strtok_r(NULL, "", &save);
	int n = 0;

	if (!name || !nth || !code)
		return bad("a fault is NAME:N:CODE", text);
	if (last && strcmp(last, "sticky") != 0)
		return bad("only \"sticky\" may follow a fault's code", last);
	if (strcmp(nth, "*") != 0 && !read_int(nth, 1, 1 << 30, &n))
		return false;
	if (!read_function(name, &rule->id) || !read_int(code, 1, 9999, &rule->code))
		return false;
	rule->nth = (unsigned long)n;
	rule->sticky = last != NULL;
	return true;
}

/* delay=NAME:TIME */
static bool read_delay(char *text, struct rule *rule)
{
	char *colon = strchr(text, ':');

	if (!colon)
		return bad("a delay is NAME:TIME", text);
	*colon = '\0';
	return read_function(text, &rule->id) && read_time(colon + 1, &rule->delay_ns);
}

static bool read_rule(char *value, bool (*read)(char *, struct rule *))
{
	if (rule_count == MAX_RULES)
		return bad("too many faults and delays", value);
	return read(value, &rules[rule_count]) && ++rule_count;
}

static bool read_mode(const char *value)
{
	script.real_time = strcmp(value, "real") == 0;
	return script.real_time || strcmp(value, "virtual") == 0 ||
	       bad("time is real or virtual, not", value);
}

/* One of two words. */
static bool read_word(const char *value, const char *no, const char *yes, bool *ret_x)
{
	*ret_x = strcmp(value, yes) == 0;
	if (*ret_x || strcmp(value, no) == 0)
		return true;
	return bad(no[0] == 's' ? "sharing is slices or mps, not" : "clock is device or host, not",
		value);
}

static bool read_speed(const char *value)
{
	return read_rate(value, &script.speed) &&
	       ((script.speed >= .001 && script.speed <= 1000) ||
		       bad("a speed is .001 to 1000, not", value));
}

static bool read_gpu(const char *value)
{
	if (!*value || strlen(value) >= sizeof script.gpu)
		return bad("gpu is the name of a file, not", value);
	memcpy(script.gpu, value, strlen(value) + 1);
	return true;
}

static bool read_queue(const char *value)
{
	int depth;

	if (!read_int(value, 1, 1 << 20, &depth))
		return false;
	script.queue_depth = (unsigned)depth;
	return true;
}

/* kernel=NAME:PARAMETER:TIME */
static bool read_kernel(char *value)
{
	char *save = NULL;
	const char *name = strtok_r(value, ":", &save), *param = strtok_r(NULL, ":", &save);
	const char *unit = strtok_r(NULL, "", &save);

	if (!unit || strlen(name) >= sizeof script.kernel)
		return bad("a kernel is NAME:PARAMETER:TIME, unlike", value);
	memcpy(script.kernel, name, strlen(name) + 1);
	return read_int(param, 0, 1023, &script.kernel_param) && read_time(unit, &script.unit_ns);
}

static bool read_name(const char *value)
{
	if (!*value || strlen(value) >= sizeof script.name)
		return bad("a name has 1 to 63 bytes, unlike", value);
	memcpy(script.name, value, strlen(value) + 1);
	return true;
}

static bool set_value(const char *key, char *value)
{
	if (!strcmp(key, "time"))
		return read_mode(value);
	if (!strcmp(key, "devices"))
		return read_int(value, 0, 16, &script.devices);
	if (!strcmp(key, "version"))
		return read_int(value, 2000, 99990, &script.version);
	if (!strcmp(key, "cc"))
		return read_int(value, 50, 129, &script.capability);
	if (!strcmp(key, "name"))
		return read_name(value);
	if (!strcmp(key, "uuid"))
		return read_int(value, 0, 200, &script.uuid);
	if (!strcmp(key, "memory"))
		return read_bytes(value, &script.memory_bytes);
	if (!strcmp(key, "context"))
		return !strcmp(value, "0") ? !(script.context_bytes = 0)
					   : read_bytes(value, &script.context_bytes);
	if (!strcmp(key, "launch"))
		return read_time(value, &script.launch_ns);
	if (!strcmp(key, "wave"))
		return read_time(value, &script.wave_ns);
	if (!strcmp(key, "load"))
		return read_time(value, &script.load_ns);
	if (!strcmp(key, "kernel"))
		return read_kernel(value);
	if (!strcmp(key, "copy"))
		return read_time(value, &script.copy_ns);
	if (!strcmp(key, "pcie"))
		return read_rate(value, &script.pcie_gbps);
	if (!strcmp(key, "hbm"))
		return read_rate(value, &script.hbm_gbps);
	if (!strcmp(key, "queue"))
		return read_queue(value);
	if (!strcmp(key, "gpu"))
		return read_gpu(value);
	if (!strcmp(key, "sharing"))
		return read_word(value, "slices", "mps", &script.mps);
	if (!strcmp(key, "clock"))
		return read_word(value, "device", "host", &script.host_clock);
	if (!strcmp(key, "speed"))
		return read_speed(value);
	if (!strcmp(key, "slice"))
		return read_time(value, &script.slice_ns) &&
		       (script.slice_ns || bad("a slice is longer than", value));
	if (!strcmp(key, "switch"))
		return read_time(value, &script.switch_ns);
	if (!strcmp(key, "fault"))
		return read_rule(value, read_fault);
	if (!strcmp(key, "delay"))
		return read_rule(value, read_delay);
	if (!strcmp(key, "log"))
		return log_open(value), true;
	return bad("unknown key", key);
}

static void read_directive(char *text)
{
	text += strspn(text, " \t");
	if (*text == '\0' || *text == '#')
		return;
	char *equal = strchr(text, '=');
	if (!equal) {
		bad("not key=value", text);
		return;
	}
	*equal = '\0';
	set_value(text, equal + 1);
}

static void read_file(const char *path)
{
	char line[512];
	FILE *f = fopen(path, "re");

	if (!f) {
		bad("cannot open the script", path);
		return;
	}
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\r\n")] = '\0';
		read_directive(line);
	}
	fclose(f);
}

static void read_list(const char *env)
{
	char *copy = strdup(env);
	char *save = NULL;

	if (!copy)
		return;
	for (char *d = strtok_r(copy, ",", &save); d; d = strtok_r(NULL, ",", &save))
		read_directive(d);
	free(copy);
}

static void load(void)
{
	const char *env = getenv("WEIR_SIM");

	if (env && env[0] == '@')
		read_file(env + 1);
	else if (env)
		read_list(env);
	if (script.gpu[0] && !script.real_time)
		bad("a shared device needs time=real", script.gpu);
	if (script.context_bytes == CONTEXT_UNSAID)
		script.context_bytes = script.gpu[0] ? CONTEXT_SHARED : 0;
}

void script_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
}

const char *script_error(void)
{
	return error_text[0] ? error_text : NULL;
}

void script_wait_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static int apply(struct rule *rule)
{
	if (rule->delay_ns) {
		script_wait_ns(rule->delay_ns);
		return 0;
	}
	unsigned long call = atomic_fetch_add_explicit(&rule->seen, 1, memory_order_relaxed) + 1;
	if (rule->nth && rule->nth != call)
		return 0;
	if (rule->sticky)
		atomic_store_explicit(&sticky_code, rule->code, memory_order_relaxed);
	return rule->code;
}

int script_fault(int id)
{
	int code = atomic_load_explicit(&sticky_code, memory_order_relaxed);

	for (int i = 0; i < rule_count; i++) {
		if (rules[i].id != id && rules[i].id != -1)
			continue;
		int fault = apply(&rules[i]);
		if (fault && !code)
			code = fault;
	}
	return code;
}
