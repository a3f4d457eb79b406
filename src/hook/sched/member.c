/* Joins the shared file as a member and leaves it. */
#include "hook/sched/member.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/sys.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "hook/core/own_calls.h"
#include "record/sandbox.h"

#define MEMBER_STATE_BITS 8
#define JOIN_NS           2000000000u /* so long a thread waits for one that joins */

static struct member members[MEMBERS];
static _Atomic(struct share_file *) file;
static _Atomic uint32_t held;    /* bits of the devices of the file */
static _Atomic int device_count; /* that the driver tells; 0: not asked yet */

static void read_name(char to[SHARE_NAME])
{
	const long fd = sys(openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC);
	const long n = sys_failed(fd) ? 0 : sys(read, fd, to, SHARE_NAME - 1);
	if (!sys_failed(fd))
		sys(close, fd);
	to[n > 0 ? n - 1 : 0] = 0; /* it ends with a line feed */
}

static bool ask_uuid(int device, uint8_t uuid[16])
{
	int (*ask)(void *, int) = real_at(FN_cuDeviceGetUuid_v2);
	ask = ask ? ask : real_at(FN_cuDeviceGetUuid);
	return ask && !ask(uuid, device);
}

static uint32_t ask_sms(int device)
{
	enum { MULTIPROCESSORS = 16 };
	int n = 0;
	if (!real_at(FN_cuDeviceGetAttribute) ||
		REAL(cuDeviceGetAttribute)(&n, MULTIPROCESSORS, device) || n < 0)
		return 0;
	return (uint32_t)n;
}

static void outside(const char *why)
{
	char text[128];
	struct bounded b = BOUNDED(text);
	bounded_put(&b, "the program is not scheduled: ");
	bounded_put(&b, why);
	meta_message(bounded_end(&b));
}

static struct share_file *reach_file(void)
{
	const char *why = "";
	char directory[SHARE_PATH];
	const struct config *c = config_get();
	if (load_acquire(&file))
		return load_relaxed(&file);
	if (*c->share)
		memcpy(directory, c->share, sizeof directory);
	else
		share_directory(directory, NULL);
	struct share_file *f = share_open(directory, &why);
	if (!f)
		outside(why);
	store_release(&file, f);
	return f;
}

static bool join(struct member *m, int ordinal)
{
	uint8_t uuid[16];
	struct share_self self = config_get()->self;
	self.held = &held;
	if (!self.group)
		self.group = (uint64_t)sys(getpid);
	if (sandbox_is_closed(NULL)) {
		outside("it has shut itself in");
		return false;
	}
	if (!reach_file() || !ask_uuid(ordinal, uuid))
		return false;
	m->sms = ask_sms(ordinal);
	m->device_index = share_device(load_relaxed(&file), uuid, m->sms);
	if (m->device_index == SHARE_DEVICES)
		return false;
	read_name(self.who.name);
	atomic_fetch_or_explicit(&held, 1u << m->device_index, memory_order_release);
	m->index = share_claim(load_relaxed(&file), m->device_index, &self);
	if (m->index == SHARE_SLOTS) {
		outside("256 programs share the GPU already");
		return false;
	}
	m->max_wait_ns = self.max_wait_ns;
	m->file = load_relaxed(&file);
	m->slot = &m->file->slots[m->index];
	m->device = &m->file->devices[m->device_index];
	return true;
}

/* The state while a thread joins: which one, in 24 bits, so that it does not wait for itself where
 * the driver calls what calls CUDA. */
static uint32_t join_word(void)
{
	return MEMBER_JOINING | (uint32_t)sys(gettid) << MEMBER_STATE_BITS;
}

static bool is_joining(uint32_t state)
{
	return (state & ((1u << MEMBER_STATE_BITS) - 1)) == MEMBER_JOINING;
}

/* It takes some system calls and questions to the driver, unless the process that begins the shared
 * file is stopped, or a clone that joined was killed. */
static uint32_t await_join(struct member *m, uint32_t seen)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	const uint64_t since = monotonic_ns();
	const bool shut_in = sandbox_is_closed(NULL);
	if (seen == join_word() || load_relaxed(&m->abandoned))
		return seen;
	for (uint32_t turn = 0; is_joining(seen) && monotonic_ns() - since < JOIN_NS; turn++) {
		if (shut_in)
			cpu_pause();
		else if (turn < 100)
			sys(sched_yield);
		else
			sys(nanosleep, &nap, NULL);
		seen = load_acquire(&m->state);
	}
	if (is_joining(seen) && !atomic_exchange_explicit(&m->abandoned, 1, memory_order_relaxed)) {
		outside("its first calls passed while one of its threads joined for more than 2 s");
		struct share_file *f = load_acquire(&file);
		if (f)
			add_relaxed(&f->arbiter.passed, 1);
	}
	return seen;
}

static struct member *joined(struct member *m, int ordinal)
{
	uint32_t seen = MEMBER_NONE;
	const int kept = errno;
	if (replace_if(&m->state, &seen, join_word(), acq_rel, acquire)) {
		struct own_calls own;
		own_calls_begin(&own);
		m->ordinal = ordinal;
		seen = join(m, ordinal) ? MEMBER_JOINED : MEMBER_OUTSIDE;
		store_release(&m->state, seen);
		own_calls_end(&own);
	} else if (is_joining(seen)) {
		seen = await_join(m, seen);
	}
	errno = kept;
	return seen == MEMBER_JOINED ? m : NULL;
}

/* Most programs see one device. */
static int current_device(void)
{
	int ordinal = 0, count = load_relaxed(&device_count);
	if (!count) {
		if (!real_at(FN_cuDeviceGetCount) || REAL(cuDeviceGetCount)(&count))
			return -1;
		store_relaxed(&device_count, count);
	}
	if (count > 1 && (!real_at(FN_cuCtxGetDevice) || REAL(cuCtxGetDevice)(&ordinal)))
		return -1;
	return ordinal;
}

struct member *member_current(void)
{
	return member_of(current_device());
}

struct member *member_of(int ordinal)
{
	if (ordinal < 0 || ordinal >= (int)MEMBERS)
		return NULL;
	struct member *m = &members[ordinal];
	const uint32_t state = load_acquire(&m->state);
	return state == MEMBER_JOINED ? m : state == MEMBER_OUTSIDE ? NULL : joined(m, ordinal);
}

bool member_is_only(void)
{
	return load_relaxed(&device_count) == 1;
}

struct member *member_at(uint32_t i)
{
	struct member *m = &members[i];
	return load_acquire(&m->state) == MEMBER_JOINED ? m : NULL;
}

bool member_is_latency(const struct member *m)
{
	return load_relaxed(&m->slot->grant.class) == CLASS_LATENCY;
}

void members_leave(void)
{
	each_member(m) {
		store_release(&m->state, MEMBER_OUTSIDE);
		/* The member's memory is on the device until the driver sees the process gone.
		 * Another program buries it then: who buries it then.
		 */
		if (!load_relaxed(&m->slot->memory.used) &&
			!load_relaxed(&m->slot->memory.contexts) && !sandbox_is_closed(NULL))
			share_release(m->file, m->index);
	}
}

void members_forget(void)
{
	memset(members, 0, sizeof members);
	store_relaxed(&held, 0);
	store_relaxed(&device_count, 0);
}
