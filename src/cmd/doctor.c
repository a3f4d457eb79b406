/*
 * weir doctor checks everything that recording depends on and says what to do about the rest. Each
 * check adds a finding, and text and JSON are printed after all checks. A child process asks the
 * driver, so a broken driver cannot take the doctor with it.
 */
#include "cmd/cli/command.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/json.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "cmd/cli/binary.h"
#include "cmd/cli/child.h"
#include "cmd/cli/launches.h"
#include "engine/engine.h"
#include "monitor/server.h"
#include "nvml/nvml.h"
#include "stack/libdw.h"
#include "trace/activity.h"

/* Below the folder that has bin/weir; the first that is there tells. */
static const struct {
	const char *pattern, *way;
} signs[] = {
	{ "CMakeCache.txt", "the build folder" },
	{ "pyproject.toml", "the portable tree" },
	{ "lib/python3*/*-packages/weir-*.dist-info", "a wheel, by pip" },
	{ "share/doc/weir/copyright", "Debian's packages" },
	{ "share/licenses/weir", "an RPM" },
};

static bool is_there(const char *prefix, const char *pattern)
{
	char path[PATH_MAX];
	glob_t found;
	if (snprintf(path, sizeof path, "%s/%s", prefix, pattern) >= (int)sizeof path ||
		glob(path, GLOB_NOSORT, NULL, &found))
		return false;
	globfree(&found);
	return true;
}

static const char *way_of(const char *prefix)
{
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (is_there(prefix, signs[i].pattern))
			return signs[i].way;
	return "make install";
}

static bool in_container(void)
{
	return !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) ||
	       getenv("KUBERNETES_SERVICE_HOST");
}

/* "the portable tree, /opt/weir", or what else it is; a text that does not fit is cut. */
static void installation_describe(char *ret_text, size_t size)
{
	static const char below[] = "/lib/weir/libweir.so";
	char prefix[PATH_MAX] = "";
	library_path("libweir.so", prefix, sizeof prefix);
	const size_t n = strlen(prefix);
	if (n > sizeof below - 1)
		prefix[n - (sizeof below - 1)] = 0;
	snprintf(ret_text, size, "%s, %s%s", way_of(prefix), prefix,
		in_container() ? ", in a container" : "");
}

enum verdict { OK, WARN, NO };

struct finding {
	enum verdict verdict;
	const char *subject; /* a literal */
	const char *advice;  /* a literal, or NULL */
	char text[PATH_MAX + 128];
};

struct examination {
	bool sim;
	struct finding found[32];
	size_t count;
};

__attribute__((format(printf, 5, 6))) static void add_finding(struct examination *x,
	enum verdict verdict, const char *subject, const char *advice, const char *format, ...)
{
	struct finding *f = &x->found[x->count];
	va_list ap;
	if (x->count == sizeof x->found / sizeof x->found[0])
		return;
	x->count++;
	f->verdict = verdict;
	f->subject = subject;
	f->advice = verdict == OK ? NULL : advice;
	va_start(ap, format);
	vsnprintf(f->text, sizeof f->text, format, ap);
	va_end(ap);
}

/* The first line of a file, without its end; "" when it can't be read. */
static void first_line(const char *path, char *ret_line, int size)
{
	FILE *file = fopen(path, "re");
	ret_line[0] = 0;
	if (file && fgets(ret_line, size, file))
		ret_line[strcspn(ret_line, "\n")] = 0;
	if (file)
		fclose(file);
}

static void check_own_libraries(struct examination *x)
{
	char path[PATH_MAX];
	installation_describe(path, sizeof path);
	add_finding(x, OK, "installed", NULL, "%s", path);
	if (library_path("libweir.so", path, sizeof path))
		add_finding(x, NO, "guest", "install Weir again, whole",
			"libweir.so is not in ../lib/weir beside this program");
	else
		add_finding(x, OK, "guest", NULL, "%s", path);
	if (library_path("libweir-audit.so", path, sizeof path))
		add_finding(x, WARN, "auditor", "install Weir again, whole",
			"libweir-audit.so is missing: programs that use RTLD_DEEPBIND or dlmopen "
			"are not seen");
	else
		add_finding(x, OK, "auditor", NULL, "%s", path);
	if (library_path("sim/libcuda.so.1", path, sizeof path))
		add_finding(x, x->sim ? NO : WARN, "simulator", "install Weir again, whole",
			"the simulated driver is not in ../lib/weir/sim: --sim does not work");
	else
		add_finding(x, OK, "simulator", NULL, "%s", path);
	if (library_path("python", path, sizeof path))
		add_finding(x, WARN, "python", "install Weir again, whole",
			"the Python package is not in ../lib/weir/python: --python does not work");
	else
		add_finding(x, OK, "python", NULL,
			"%s, for weir record --python, and for PYTHONPATH where a script says import weir",
			path);
}

struct driver {
	bool opened;
	int init; /* what cuInit answered */
	int version;
	int devices;
	char name[100]; /* of device 0 */
	int capability; /* 10 * major + minor */
	int multiprocessors;
	char error[300]; /* why it could not be opened */
};

static void ask_size(int (*attribute)(int *, int, int), struct driver *d)
{
	enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute */
	int major = 0, minor = 0;
	attribute(&d->multiprocessors, MULTIPROCESSORS, 0);
	attribute(&major, MAJOR, 0);
	attribute(&minor, MINOR, 0);
	d->capability = 10 * major + minor;
}

static void ask_driver(const char *library, struct driver *d)
{
	void *handle = dlopen(library, RTLD_NOW);
	int (*version)(int *), (*init)(unsigned), (*count)(int *), (*name)(char *, int, int);
	int (*attribute)(int *, int, int);
	if (!handle) {
		snprintf(d->error, sizeof d->error, "%s", dlerror());
		return;
	}
	*(void **)&version = dlsym(handle, "cuDriverGetVersion");
	*(void **)&init = dlsym(handle, "cuInit");
	*(void **)&count = dlsym(handle, "cuDeviceGetCount");
	*(void **)&name = dlsym(handle, "cuDeviceGetName");
	*(void **)&attribute = dlsym(handle, "cuDeviceGetAttribute");
	if (!version || !init || !count || !name || !attribute) {
		snprintf(d->error, sizeof d->error, "%.200s is not a CUDA driver", library);
		return;
	}
	d->opened = true;
	version(&d->version);
	d->init = init(0);
	if (d->init || count(&d->devices) || d->devices < 1)
		return;
	name(d->name, sizeof d->name, 0);
	ask_size(attribute, d);
}

/* In a child, which a broken driver may crash. */
static int driver_in_child(const char *library, struct driver *d)
{
	int ends[2], status;
	ssize_t n;
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		ask_driver(library, d);
		_exit(write(ends[1], d, sizeof *d) != sizeof *d);
	}
	close(ends[1]);
	n = read(ends[0], d, sizeof *d);
	close(ends[0]);
	waitpid(pid, &status, 0);
	return n == sizeof *d ? 0 : -EIO;
}

/* weir record --predict predicts new kernels by this model. */
static void check_model(struct examination *x, const struct driver *d)
{
	struct predict_device device;
	struct predict_model m;
	char path[PATH_MAX];
	void *bytes = NULL;
	if (!predict_device_find(
		    d->name, (unsigned)d->capability, (uint32_t)d->multiprocessors, &device) &&
		model_default(&device, &m, &bytes, path))
		add_finding(x, OK, "model", NULL, "%s, for weir record --predict", path);
	else
		add_finding(x, OK, "model", NULL,
			"none for this device: weir record --predict predicts new kernels from "
			"their siblings alone");
	free(bytes);
}

static void check_driver(struct examination *x)
{
	static const char *const get_one =
		"install NVIDIA's driver (in a container: pass the GPU in, --gpus all), "
		"or look around with --sim";
	char library[PATH_MAX] = "libcuda.so.1";
	struct driver d = { 0 };
	if (x->sim)
		library_path("sim/libcuda.so.1", library, sizeof library);
	if (driver_in_child(library, &d)) {
		add_finding(x, NO, "driver", "see what the kernel log says (dmesg)",
			"%s crashed when its devices were listed", library);
		return;
	}
	if (!d.opened) {
		add_finding(x, NO, "driver", get_one, "%s", d.error);
		return;
	}
	add_finding(x, OK, "driver", NULL, "%s, CUDA %d.%d", library, d.version / 1000,
		d.version % 1000 / 10);
	if (d.init || d.devices < 1)
		add_finding(x, NO, "devices", get_one, "none: cuInit answers %d, %d devices",
			d.init, d.devices);
	else
		add_finding(x, OK, "devices", NULL, "%d: %s%s", d.devices, d.name,
			d.devices > 1 ? " …" : "");
	if (!d.init && d.devices > 0)
		check_model(x, &d);
}

static bool loadable(const char *const *names, char *ret_name, size_t size)
{
	for (; *names; names++) {
		void *handle = dlopen(*names, RTLD_LAZY);
		if (!handle)
			continue;
		snprintf(ret_name, size, "%s", *names);
		dlclose(handle);
		return true;
	}
	return false;
}

/* The hook looks there too; a program that has loaded its own is asked first. */
static void check_cupti(struct examination *x)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so",
		"/usr/local/cuda/lib64/libcupti.so",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", CPU_CUPTI, NULL };
	char name[PATH_MAX];
	if (x->sim && !library_path("sim/libcupti.so.13", name, sizeof name))
		add_finding(x, OK, "cupti", NULL, "%s, for weir record --sim --gpu", name);
	else if (loadable(names, name, sizeof name))
		add_finding(x, OK, "cupti", NULL, "%s, for weir record --gpu", name);
	else
		add_finding(x, OK, "cupti", NULL,
			"none: weir record --gpu has times only of programs that bring it, as "
			"PyTorch does");
}

static void check_libdw(struct examination *x)
{
	const char *why;
	if (libdw_open(&why))
		add_finding(x, OK, "libdw", NULL, "libdw.so.1, for weir record --stacks");
	else
		add_finding(x, WARN, "libdw", "nothing to do, unless you want call stacks",
			"none: call stacks of weir record --stacks can't be unwound here. %s", why);
}

static void check_microhttpd(struct examination *x)
{
	struct error err;
	if (!server_load(&err))
		add_finding(x, OK, "microhttpd", NULL, "libmicrohttpd.so.12, for weir monitor");
	else
		add_finding(
			x, OK, "microhttpd", NULL, "none: weir monitor can't serve. %s", err.text);
}

/* weir serve runs models with these engines. */
static void check_engines(struct examination *x)
{
	struct buf versions = { 0 };
	char simulated[PATH_MAX];
	struct engine_options o = { 0 };
	if (x->sim && !library_path("sim/libcuda.so.1", simulated, sizeof simulated))
		o.cuda = simulated;
	const bool all = engine_put_versions(&o, &versions);
	add_finding(x, all ? OK : WARN, "engines",
		"nothing to do, unless weir serve is to run models of those that are missing",
		"for weir serve: %s", buf_text(&versions));
	buf_free(&versions);
}

static void check_optional(struct examination *x)
{
	static const char *const nvml[] = { "libnvidia-ml.so.1", NULL };
	const char *nvtx = getenv("NVTX_INJECTION64_PATH");
	struct binary nvcc;
	struct tegra tegra;
	char name[128], home[PATH_MAX];
	const char *root = getenv("CUDA_HOME");
	snprintf(home, sizeof home, "%s/bin/nvcc", root ? root : "/usr/local/cuda");
	if (!binary_look("nvcc", &nvcc) || !binary_look(home, &nvcc))
		add_finding(x, OK, "toolkit", NULL, "%s", nvcc.path);
	else
		add_finding(x, OK, "toolkit", NULL, "none, and recording needs none");
	check_cupti(x);
	check_libdw(x);
	check_microhttpd(x);
	check_engines(x);
	if (nvtx && *nvtx)
		add_finding(x, WARN, "nvtx",
			"unset NVTX_INJECTION64_PATH to have NVTX ranges recorded",
			"ranges go to %s", nvtx);
	if (loadable(nvml, name, sizeof name))
		add_finding(x, OK, "nvml", NULL, "%s", name);
	else if (!tegra_find("", &tegra))
		add_finding(x, OK, "nvml", NULL, "none, files in %s in its place", tegra.gpu);
	else
		add_finding(x, OK, "nvml", NULL, "none, and recording needs none");
}

/* Starts this program with the auditor loaded: does the dynamic linker take it? */
static bool audit_works(void)
{
	char audit[PATH_MAX];
	int status = -1;
	pid_t pid;
	if (library_path("libweir-audit.so", audit, sizeof audit))
		return false;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		setenv("LD_AUDIT", audit, 1);
		execl("/proc/self/exe", "weir", "version", (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void check_libc(struct examination *x)
{
	const char *version = gnu_get_libc_version();
	int major = 0, minor = 0;
	sscanf(version, "%d.%d", &major, &minor);
	if (major < 2 || (major == 2 && minor < 28))
		add_finding(x, NO, "libc", "use a system with glibc 2.28 or newer", "glibc %s",
			version);
	else
		add_finding(x, OK, "libc", NULL, "glibc %s", version);
	if (audit_works())
		add_finding(x, OK, "LD_AUDIT", NULL, "%s",
			major == 2 && minor < 35
				? "needs glibc 2.35: programs that use RTLD_DEEPBIND or dlmopen are not seen"
				: "works");
	else
		add_finding(x, WARN, "LD_AUDIT",
			"use weir record --no-audit where programs fail to start",
			"the dynamic linker does not take the auditor");
}

static void check_clock(struct examination *x)
{
	static const char *const path =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char source[64];
	first_line(path, source, sizeof source);
	if (cpu_has_ticks() && (!*source || cpu_ticks_trusted(source)))
		add_finding(x, OK, "clock", NULL, "the time-stamp counter is steady%s%s",
			*source ? ". The kernel uses " : "", source);
	else
		add_finding(x, WARN, "clock", "nothing to do, but a call costs about 30 ns more",
			"the time-stamp counter is not steady: CLOCK_MONOTONIC is used");
}

static void check_room(struct examination *x)
{
	struct statvfs fs;
	double free_gb;
	if (statvfs(".", &fs))
		return;
	free_gb = (double)fs.f_bavail * (double)fs.f_frsize / 1e9;
	if (access(".", W_OK))
		add_finding(x, WARN, "room", "name another directory: weir record -o FILE",
			"this directory can't be written");
	else if (free_gb < 1)
		add_finding(x, WARN, "room",
			"name another disk (-o FILE), or record less (--level=work)",
			"%.1f GB free here. A million calls take about 0.06 GB", free_gb);
	else
		add_finding(x, OK, "room", NULL, "%.1f GB free here", free_gb);
}

static void check_privileges(struct examination *x)
{
	const char *preload = getenv("LD_PRELOAD");
	add_finding(x, OK, "privileges", NULL, "none needed: no root, no ptrace, no perf events");
	if (getauxval(AT_SECURE))
		add_finding(x, WARN, "secure mode",
			"start weir without setuid or file capabilities",
			"the dynamic linker ignores LD_PRELOAD for programs started like this one");
	if (preload && *preload)
		add_finding(
			x, OK, "LD_PRELOAD", NULL, "is set already and will be kept: %s", preload);
}

struct tally {
	uint64_t driver, runtime;
};

static int tally_trace(const char *path, struct tally *ret_sum)
{
	struct tally sum = { 0 };
	struct trace *t;
	struct error err;
	int rc = trace_open(path, &t, &err);
	if (rc)
		return rc;
	struct cursor at = { .t = t };
	for (const struct record *r; (r = trace_next_call(&at));) {
		const struct schema_fn *fn = schema_find(&t->schema, r->fn);
		const bool runtime = fn && !strncmp(fn->name, "cuda", 4);
		sum.runtime += runtime;
		sum.driver += fn && !runtime;
	}
	trace_close(t);
	*ret_sum = sum;
	return 0;
}

/* weir record, in a child whose output is dropped.  Returns the status as wait() gives it. */
static int record_quietly(
	const struct examination *x, bool audit, const char *trace, char **program)
{
	const char *argv[64] = { "weir", "record", "--quiet", "--output", trace };
	int n = 5, status = -1;
	pid_t pid;
	if (!audit)
		argv[n++] = "--no-audit";
	if (x->sim)
		argv[n++] = "--sim";
	argv[n++] = "--";
	while (*program && n < 63)
		argv[n++] = *program++;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		execv("/proc/self/exe", (char *const *)argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static int recorded_calls(const struct examination *x, bool audit, char **program,
	struct tally *ret_sum, int *ret_status)
{
	char directory[] = "/tmp/weir-doctor.XXXXXX", trace[64];
	int rc;
	if (!mkdtemp(directory))
		return -errno;
	snprintf(trace, sizeof trace, "%s/t.weir", directory);
	*ret_status = record_quietly(x, audit, trace, program);
	rc = tally_trace(trace, ret_sum);
	unlink(trace);
	rmdir(directory);
	return rc;
}

/* Runs the program under record, and again with the auditor if nothing was seen without. */
static void try_program(struct examination *x, char **program)
{
	struct tally sum = { 0 };
	bool audit = false;
	int status = 0;
	recorded_calls(x, false, program, &sum, &status);
	if (!sum.driver && !sum.runtime) {
		audit = true;
		recorded_calls(x, true, program, &sum, &status);
	}
	if (!sum.driver && !sum.runtime)
		add_finding(x, NO, "recorded",
			"does it use CUDA when started like this?  Give it the arguments that make it",
			"no CUDA call was seen, and it left with status %d", WEXITSTATUS(status));
	else
		add_finding(x, OK, "recorded", NULL, "%llu driver and %llu runtime calls, %s",
			(unsigned long long)sum.driver, (unsigned long long)sum.runtime,
			audit ? "which only the auditor recorded"
			      : "recorded by the preloaded library");
	if (WIFSIGNALED(status) || WEXITSTATUS(status))
		add_finding(x, WARN, "program", "run it without Weir: does it fail there too?",
			"it ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void describe_cuda(struct examination *x, const struct binary *b)
{
	if (*b->runtime)
		add_finding(x, OK, "cuda", NULL, "the shared runtime, %s", b->runtime);
	else if (b->has_kernels)
		add_finding(x, OK, "cuda", NULL, "its own copy of the runtime (static)");
	else if (b->needs_driver)
		add_finding(x, OK, "cuda", NULL, "the driver, libcuda.so.1");
	else
		add_finding(x, OK, "cuda", NULL,
			"not by itself, perhaps through a library that it loads");
}

static bool check_binary(struct examination *x, const struct binary *b)
{
	const char *why = binary_why_closed(b);
	if (why) {
		add_finding(x, NO, "file",
			b->privileged ? "run a copy without setuid, setgid and capabilities"
				      : "link it dynamically to glibc, the default of compilers",
			"%s %s", b->path, why);
		return false;
	}
	switch (b->kind) {
	case BINARY_UNKNOWN:
		add_finding(
			x, NO, "file", "name the program itself", "%s is not a program", b->path);
		return false;
	case BINARY_FOREIGN:
		add_finding(x, NO, "file", "use a Weir that was built for it",
			"%s is for another kind of machine", b->path);
		return false;
	case BINARY_SCRIPT:
		add_finding(x, OK, "file", NULL, "%s is a script for %s", b->path, b->interpreter);
		return true;
	case BINARY_STATIC:
	case BINARY_DYNAMIC:
		break;
	}
	add_finding(x, OK, "file", NULL, "%s, 64-bit, dynamic", b->path);
	describe_cuda(x, b);
	return true;
}

static void check_program(struct examination *x, char **program)
{
	struct binary b;
	int rc = binary_look(program[0], &b);
	if (rc)
		add_finding(
			x, NO, "file", "is it spelled right?", "%s: %s", program[0], strerror(-rc));
	else if (check_binary(x, &b))
		try_program(x, program);
}

static const char *const verdicts[] = { [OK] = "ok", [WARN] = "warn", [NO] = "no" };

static bool healthy(const struct examination *x)
{
	for (size_t i = 0; i < x->count; i++)
		if (x->found[i].verdict == NO)
			return false;
	return true;
}

static void print_text(const struct examination *x)
{
	for (size_t i = 0; i < x->count; i++) {
		const struct finding *f = &x->found[i];
		printf("%-4s  %-11s ", verdicts[f->verdict], f->subject);
		text_put_safe(stdout, f->text);
		putchar('\n');
		if (f->advice)
			printf("%-4s  %-11s %s\n", "", "", f->advice);
	}
	puts(healthy(x) ? "\nPrograms can be recorded here."
			: "\nNothing can be recorded like this.");
}

static void print_json(const struct examination *x)
{
	struct json j;
	json_begin_document(&j, stdout);
	json_bool(&j, "can_record", healthy(x));
	json_begin_array(&j, "checks");
	for (size_t i = 0; i < x->count; i++) {
		json_begin_object(&j, NULL);
		json_str(&j, "subject", x->found[i].subject);
		json_str(&j, "verdict", verdicts[x->found[i].verdict]);
		json_str(&j, "text", x->found[i].text);
		if (x->found[i].advice)
			json_str(&j, "advice", x->found[i].advice);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
}

int cmd_doctor(const struct options *o)
{
	struct examination x = { .sim = opt_flag(o, "sim") };
	check_own_libraries(&x);
	check_driver(&x);
	check_optional(&x);
	check_libc(&x);
	check_clock(&x);
	check_privileges(&x);
	check_room(&x);
	if (opt_argc(o))
		check_program(&x, opt_argv(o));
	if (opt_flag(o, "json"))
		print_json(&x);
	else
		print_text(&x);
	return healthy(&x) ? EXIT_YES : EXIT_ENVIRONMENT;
}
