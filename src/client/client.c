/* Starts libweirapi, and defines the functions of include/weir/sched.h that take a few lines. */
#include "client/client.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/monotonic.h"
#include "record/control.h"
#include "record/writer.h"
#include "share/policy.h"

static size_t size_of(const void *structure)
{
	size_t size;
	memcpy(&size, structure, sizeof size);
	return size;
}

bool sized_is_known(const void *structure, size_t known)
{
	return size_of(structure) >= known && size_of(structure) <= 4096;
}

bool sized_read(void *to, size_t known, const void *from)
{
	if (!sized_is_known(from, known))
		return false;
	const char *beyond = (const char *)from + known;
	for (size_t i = 0; i < size_of(from) - known; i++)
		if (beyond[i])
			return false;
	memcpy(to, from, known);
	return true;
}

void sized_write(void *to, const void *from, size_t known)
{
	const size_t size = size_of(to);
	memcpy(to, from, known);
	memset((char *)to + known, 0, size - known);
	memcpy(to, &size, sizeof size);
}

int own_slots_find(struct handle *h, struct own_slots *ret)
{
	uint32_t slot;
	ret->count = 0;
	ret->injected = injected_in(h->directory);
	if (!ret->injected)
		return WEIR_ERROR_NOT_SCHEDULED;
	while (ret->count < SHARE_DEVICES && !ret->injected->slot(ret->count, &slot) &&
		slot < SHARE_SLOTS)
		ret->slot[ret->count++] = slot;
	return ret->count ? handle_reach_file(h, &ret->file) : WEIR_ERROR_NOT_JOINED;
}

const char *weir_sched_strerror(int status)
{
	static const char *const text[] = {
		[WEIR_OK] = "done",
		[WEIR_ERROR_ARGUMENT] = "an argument is NULL, out of range, or contradicts another",
		[WEIR_ERROR_HANDLE] = "the handle is closed, or never was one",
		[WEIR_ERROR_SIZE] =
			"the structure has an unknown size or value: set its first member to sizeof",
		[WEIR_ERROR_NO_FILE] =
			"no program has shared a GPU in that directory. Start one with: weir run",
		[WEIR_ERROR_FILE] =
			"the shared file can't be used: it is of another version, or others may write to it. `weir sched status` says which",
		[WEIR_ERROR_NOT_SCHEDULED] =
			"this process does not run under weir run, or shares through another directory",
		[WEIR_ERROR_NOT_JOINED] =
			"this process has not called cuInit() yet: call it after that",
		[WEIR_ERROR_UNSUPPORTED] =
			"the scheduler can't do that: a kernel that runs is not interrupted",
		[WEIR_ERROR_NOT_FOUND] =
			"there is no such policy or process. `weir sched policy` and `weir sched status` list them",
		[WEIR_ERROR_LIMIT] = "too many are open at once",
		[WEIR_ERROR_NOT_RECORDED] =
			"calls of this process are not recorded. Record with: weir run -o FILE",
		[WEIR_ERROR_RECORDING_ENDED] =
			"the recording has ended: there was no room for more",
		[WEIR_ERROR_NO_DRIVER] =
			"there is no CUDA driver (libcuda.so.1), or it lacks a function",
		[WEIR_ERROR_NO_CONTEXT] = "no CUDA context is current to this thread",
		[WEIR_ERROR_DRIVER] = "the CUDA driver refused",
	};
	const bool known = status >= 0 && (size_t)status < sizeof text / sizeof *text;
	return known ? text[status] : "there is no such status";
}

uint32_t weir_sched_version(void)
{
	return WEIR_SCHED_VERSION;
}

/* As weir run names it: without links. */
static int set_directory(struct handle *h, const char *directory)
{
	char whole[PATH_MAX];
	const struct injected *i = injected_find();
	const char *shares = i && !directory ? i->share_directory() : NULL;
	if (!directory && !shares) {
		share_directory(h->directory, getenv("XDG_RUNTIME_DIR"));
		return *h->directory ? WEIR_OK : WEIR_ERROR_ARGUMENT;
	}
	const char *from = shares ? shares : realpath(directory, whole) ? whole : directory;
	const size_t n = strlen(from);
	if (!n || n >= SHARE_PATH)
		return WEIR_ERROR_ARGUMENT;
	memcpy(h->directory, from, n + 1);
	return WEIR_OK;
}

int weir_sched_open(const char *directory, weir_sched *ret_handle)
{
	if (!ret_handle)
		return WEIR_ERROR_ARGUMENT;
	*ret_handle = 0;
	struct handle *h = handle_new();
	if (!h)
		return WEIR_ERROR_LIMIT;
	const int status = set_directory(h, directory);
	const weir_sched number = handle_publish(h);
	if (status)
		weir_sched_close(number);
	else
		*ret_handle = number;
	return status;
}

int weir_sched_close(weir_sched handle)
{
	struct handle *h = handle_enter(handle);
	if (!h)
		return WEIR_ERROR_HANDLE;
	const bool closed = handle_close(h);
	if (closed)
		stream_pool_destroy(&h->streams);
	const struct injected *i = closed ? injected_in(h->directory) : NULL;
	if (i && !handle_any())
		i->requests_by_work();
	handle_leave(h);
	return closed ? WEIR_OK : WEIR_ERROR_HANDLE;
}

static uint32_t recording_state(void)
{
	const struct injected *i = injected_find();
	const struct trace_header *h = i ? i->trace() : NULL;
	if (!h || h->stopped != STOP_NOT)
		return 0;
	const uint32_t control = load_relaxed(&h->control);
	return WEIR_STATE_TRACED | (control_is_off(control) ? 0 : WEIR_STATE_RECORDING);
}

static int get_state(struct handle *h, uint32_t *ret_state)
{
	struct own_slots own;
	struct share_file *f;
	if (!ret_state)
		return WEIR_ERROR_ARGUMENT;
	*ret_state = recording_state();
	if (!handle_reach_file(h, &f))
		*ret_state |= WEIR_STATE_FILE |
			      (share_has_arbiter(f, monotonic_ns()) ? WEIR_STATE_ARBITER : 0);
	if (injected_in(h->directory))
		*ret_state |= WEIR_STATE_INJECTED;
	if (!own_slots_find(h, &own))
		*ret_state |= WEIR_STATE_JOINED;
	return WEIR_OK;
}

int weir_sched_get_state(weir_sched handle, uint32_t *ret_state)
{
	return WITH_HANDLE(handle, h, get_state(h, ret_state));
}

static int set_log_level(struct handle *h, int level)
{
	if (level < WEIR_LOG_OFF || level > WEIR_LOG_CHANGES)
		return WEIR_ERROR_ARGUMENT;
	store_relaxed(&h->log_level, level);
	return WEIR_OK;
}

int weir_sched_set_log_level(weir_sched handle, int level)
{
	return WITH_HANDLE(handle, h, set_log_level(h, level));
}

static int set_policy(struct handle *h, const char *name)
{
	struct share_file *f;
	const int status = name ? handle_reach_file(h, &f) : WEIR_ERROR_ARGUMENT;
	if (status)
		return status;
	const struct policy *p = policy_find(name);
	if (!p)
		return WEIR_ERROR_NOT_FOUND;
	policy_set(f, p);
	share_keep(f, h->directory);
	return WEIR_OK;
}

int weir_sched_set_policy(weir_sched handle, const char *name)
{
	return WITH_LOG(handle, h, set_policy(h, name), name);
}

static int get_policy(struct handle *h, char *ret_name, size_t room)
{
	struct share_file *f;
	const int status = ret_name ? handle_reach_file(h, &f) : WEIR_ERROR_ARGUMENT;
	if (status)
		return status;
	const char *used = policy_of(f)->name;
	if (strlen(used) >= room)
		return WEIR_ERROR_ARGUMENT;
	memcpy(ret_name, used, strlen(used) + 1);
	return WEIR_OK;
}

int weir_sched_get_policy(weir_sched handle, char *ret_name, size_t room)
{
	return WITH_LOG(handle, h, get_policy(h, ret_name, room), NULL);
}

#define MOST_US (INT64_MAX / 1000)

static int request_begin(const struct handle *h, uint64_t deadline_us, uint64_t *ret_request)
{
	if (!ret_request || deadline_us > MOST_US)
		return WEIR_ERROR_ARGUMENT;
	*ret_request = 0;
	const struct injected *i = injected_in(h->directory);
	if (!i)
		return WEIR_ERROR_NOT_SCHEDULED;
	*ret_request = i->request_begin(deadline_us * 1000);
	return *ret_request ? WEIR_OK : WEIR_ERROR_LIMIT;
}

int weir_sched_request_begin(weir_sched handle, uint64_t deadline_us, uint64_t *ret_request)
{
	return WITH_HANDLE(handle, h, request_begin(h, deadline_us, ret_request));
}

static int request_end(const struct handle *h, uint64_t request)
{
	const struct injected *i = injected_in(h->directory);
	if (!i)
		return WEIR_ERROR_NOT_SCHEDULED;
	return i->request_end(request) ? WEIR_ERROR_ARGUMENT : WEIR_OK;
}

int weir_sched_request_end(weir_sched handle, uint64_t request)
{
	return WITH_HANDLE(handle, h, request_end(h, request));
}

static int record(const char *what)
{
	const struct injected *i = injected_find();
	struct trace_header *h = i ? i->trace() : NULL;
	if (!what)
		return WEIR_ERROR_ARGUMENT;
	if (!h)
		return WEIR_ERROR_NOT_RECORDED;
	switch (control_switch(h, what)) {
	case CONTROL_DONE:
		return WEIR_OK;
	case CONTROL_UNKNOWN:
		return WEIR_ERROR_ARGUMENT;
	default:
		return WEIR_ERROR_RECORDING_ENDED;
	}
}

int weir_sched_record(weir_sched handle, const char *what)
{
	return WITH_LOG(handle, h, record(what), what);
}
