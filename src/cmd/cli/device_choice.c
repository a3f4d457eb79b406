/* See device_choice.h.  The driver is asked in a child: it is not to be in this process. */
#include "cmd/cli/device_choice.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bounded.h"
#include "cmd/cli/command.h"
#include "base/shared_library.h"

#define DEVICES 64

struct device {
	unsigned char uuid[16];
	int sms;
};

/* In the child: what the driver says, written to `to`. */
static void tell_devices(const char *library, int to)
{
	enum { MULTIPROCESSORS = 16 };
	int count = 0;
	void *driver = dlopen(library, RTLD_NOW);
	int (*init)(unsigned) = driver ? dlsym(driver, "cuInit") : NULL;
	int (*how_many)(int *) = driver ? dlsym(driver, "cuDeviceGetCount") : NULL;
	int (*uuid)(void *, int) = driver ? dlsym(driver, "cuDeviceGetUuid_v2") : NULL;
	int (*ask)(int *, int, int) = driver ? dlsym(driver, "cuDeviceGetAttribute") : NULL;
	if (!init || !how_many || !uuid || !ask || init(0) || how_many(&count))
		return;
	for (int i = 0; i < count && i < DEVICES; i++) {
		struct device d = { 0 };
		if (uuid(d.uuid, i) || ask(&d.sms, MULTIPROCESSORS, i) ||
			write(to, &d, sizeof d) != sizeof d)
			return;
	}
}

static int ask_devices(const char *library, struct device devices[DEVICES])
{
	int told[2], count = 0;
	if (pipe(told))
		return 0;
	const pid_t pid = fork();
	if (pid == 0) {
		tell_devices(library, told[1]);
		_exit(0);
	}
	close(told[1]);
	while (count < DEVICES &&
		read(told[0], &devices[count], sizeof *devices) == sizeof *devices)
		count++;
	close(told[0]);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return count;
}

unsigned device_sms(void)
{
	struct device devices[DEVICES];
	return ask_devices("libcuda.so.1", devices) > 0 && devices[0].sms > 0
		       ? (unsigned)devices[0].sms
		       : 0;
}

/* Work in flight there, and a little for each program, so that idle ones spread as well. */
static uint64_t load_of(const struct share_file *f, const unsigned char uuid[16])
{
	uint64_t load = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &f->slots[i];
		const struct share_device *d = &f->devices[s->who.device % SHARE_DEVICES];
		if (!share_is_live(s) || memcmp(d->who.uuid, uuid, 16) != 0)
			continue;
		const uint64_t done = load_relaxed(&s->work.retired_ns),
			       all = load_relaxed(&s->work.submitted_ns);
		load += 1 + (all > done ? all - done : 0);
	}
	return load;
}

static int set_visible(const char *value)
{
	return setenv("CUDA_VISIBLE_DEVICES", value, 1)
		       ? complain(EXIT_ENVIRONMENT, "the environment can't be set: %s",
				 strerror(errno))
		       : 0;
}

void device_name(const unsigned char uuid[16], char ret[DEVICE_NAME])
{
	struct bounded to = { .to = ret, .size = DEVICE_NAME };
	bounded_put(&to, "GPU-");
	for (size_t i = 0; i < 16; i++)
		bounded_printf(
			&to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	bounded_end(&to);
}

static int set_device(const struct device *d)
{
	char name[DEVICE_NAME];
	device_name(d->uuid, name);
	return set_visible(name);
}

int device_choose(const struct sharing *s, const char *device, bool sim)
{
	char library[PATH_MAX] = "libcuda.so.1";
	struct device devices[DEVICES];
	int best = 0;
	if (strcmp(device, "auto") != 0)
		return set_visible(device);
	if (sim && library_path("sim/libcuda.so.1", library, sizeof library))
		return complain(EXIT_ENVIRONMENT,
			"the simulated driver is not in ../lib/weir/sim. Install Weir again");
	const int count = ask_devices(library, devices);
	if (!count)
		return complain(
			EXIT_ENVIRONMENT, "--device=auto: no GPU is seen. `weir doctor` says why");
	for (int i = 1; i < count; i++)
		if (load_of(s->file, devices[i].uuid) < load_of(s->file, devices[best].uuid))
			best = i;
	return count > 1 ? set_device(&devices[best]) : 0;
}
