/* See segment.h. */
#include "share/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/sys.h"

_Static_assert(sizeof(struct share_work) == 64, "a line of its own");
_Static_assert(sizeof(struct share_grant) == 64, "a line of its own");
_Static_assert(sizeof(struct share_slot) % 64 == 0, "slots don't share lines");

#define MAP_BYTES ((sizeof(struct share_file) + 4095) / 4096 * 4096)

/* ---- text ---- */

static bool append(char to[SHARE_PATH], size_t *used, const char *text)
{
	const size_t n = strlen(text);
	if (*used + n + 1 > SHARE_PATH)
		return false;
	memcpy(to + *used, text, n + 1);
	*used += n;
	return true;
}

static const char *decimal(char to[24], uint64_t value)
{
	char *at = to + 23;
	for (*at = 0; value || !*at; value /= 10)
		*--at = (char)('0' + value % 10);
	return at;
}

void share_directory(char ret[SHARE_PATH], const char *runtime_directory)
{
	size_t used = 0;
	char number[24];
	const bool has = runtime_directory && runtime_directory[0] == '/';
	ret[0] = 0;
	const bool fits =
		has ? append(ret, &used, runtime_directory) && append(ret, &used, "/weir")
		    : append(ret, &used, "/dev/shm/weir-") &&
				append(ret, &used, decimal(number, (uint64_t)sys(getuid)));
	if (!fits)
		ret[0] = 0;
}

/* ---- the file ---- */

/* The directory, opened; or -errno. */
static long open_directory(const char *path)
{
	struct stat st;
	const long made = sys(mkdir, path, 0700);
	if (sys_failed(made) && made != -EEXIST)
		return made;
	const long fd =
		sys(openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sys_failed(fd))
		return fd;
	if (sys_failed(sys(fstat, fd, &st)) || (long)st.st_uid != sys(geteuid) ||
		st.st_mode & 022) {
		sys(close, fd);
		return -EPERM;
	}
	return fd;
}

/* Of the size that it needs; growing it twice does no harm.  Or -errno. */
static long open_file(long directory)
{
	struct stat st;
	const long fd =
		sys(openat, directory, "sched", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (sys_failed(fd))
		return fd;
	long failed = sys(fstat, fd, &st);
	if (!sys_failed(failed) && !S_ISREG(st.st_mode))
		failed = -EEXIST;
	if (!sys_failed(failed) && !st.st_size)
		failed = sys(ftruncate, fd, MAP_BYTES);
	else if (!sys_failed(failed) && st.st_size != (long)MAP_BYTES)
		failed = -EINVAL;
	if (!sys_failed(failed))
		return fd;
	sys(close, fd);
	return failed;
}

/* All who come at once write the same. */
static bool begin_file(struct share_file *f)
{
	static const char none[8];
	if (!memcmp(f->magic, none, 8) && !f->version) {
		f->version = SHARE_VERSION;
		f->size = sizeof *f;
		__atomic_thread_fence(__ATOMIC_RELEASE);
		memcpy(f->magic, SHARE_MAGIC, 8);
	}
	return !memcmp(f->magic, SHARE_MAGIC, 8) && f->version == SHARE_VERSION &&
	       f->size == sizeof *f;
}

static const char *why_not(long failed)
{
	switch (failed) {
	case -EINVAL:
		return "it is of another version of Weir";
	case -EPERM:
		return "the directory is another user's, or others may write to it";
	case -ENOENT:
		return "there is no such directory";
	case -EACCES:
		return "permission denied";
	case -ELOOP:
	case -EEXIST:
	case -ENOTDIR:
		return "something else has its name";
	case -ENOSPC:
	case -EDQUOT:
		return "no room is left";
	default:
		return "it can't be made or mapped";
	}
}

struct share_file *share_open(const char *directory, const char **ret_why)
{
	long at = open_directory(directory);
	long fd = sys_failed(at) ? at : open_file(at);
	if (!sys_failed(at))
		sys(close, at);
	if (sys_failed(fd)) {
		*ret_why = why_not(fd);
		return NULL;
	}
	const long map = sys(mmap, NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sys(close, fd);
	if (sys_failed(map)) {
		*ret_why = why_not(map);
		return NULL;
	}
	struct share_file *f = (struct share_file *)map;
	if (begin_file(f))
		return f;
	sys(munmap, f, MAP_BYTES);
	*ret_why = why_not(-EINVAL);
	return NULL;
}

uint32_t share_device(struct share_file *f, const uint8_t uuid[16], uint32_t sms)
{
	for (uint32_t i = 0; i < SHARE_DEVICES; i++) {
		struct share_device *d = &f->devices[i];
		uint32_t seen = SLOT_FREE;
		if (__atomic_compare_exchange_n(&d->who.state, &seen, SLOT_CLAIMED, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			memcpy(d->who.uuid, uuid, sizeof d->who.uuid);
			d->who.sms = sms;
			__atomic_store_n(&d->who.state, SLOT_LIVE, __ATOMIC_RELEASE);
			return i;
		}
		/* One that is just being made may be the same: its maker is quick, or was killed.
		 */
		for (int turn = 0; seen == SLOT_CLAIMED && turn < 1000; turn++) {
			sys(sched_yield);
			seen = __atomic_load_n(&d->who.state, __ATOMIC_ACQUIRE);
		}
		if (seen == SLOT_LIVE && !memcmp(d->who.uuid, uuid, sizeof d->who.uuid))
			return i;
	}
	return SHARE_DEVICES;
}

/* ---- who lives ---- */

/* The third and the 22nd field of /proc/PID/stat; false: there is no such process. */
static bool read_stat(uint32_t pid, char *ret_state, uint64_t *ret_start)
{
	char path[SHARE_PATH], text[1024], number[24];
	size_t used = 0;
	append(path, &used, "/proc/");
	append(path, &used, pid ? decimal(number, pid) : "self");
	append(path, &used, "/stat");
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return false;
	const long n = sys(read, fd, text, sizeof text - 1);
	sys(close, fd);
	text[n > 0 ? n : 0] = 0;
	const char *p = strrchr(text, ')'); /* the name may hold blanks and brackets */
	if (!p || p[1] != ' ')
		return false;
	*ret_state = p[2];
	p += 2;
	for (int field = 3; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	for (*ret_start = 0; p && *p >= '0' && *p <= '9'; p++)
		*ret_start = *ret_start * 10 + (uint64_t)(*p - '0');
	return p;
}

static uint64_t own_pid_space(void)
{
	struct stat st;
	return sys_failed(sys(stat, "/proc/self/ns/pid", &st)) ? 0 : st.st_ino;
}

bool share_is_dead(const struct share_slot *s)
{
	char state = 0;
	uint64_t start = 0;
	const uint32_t pid = s->who.pid;
	if (!pid || !s->who.pid_space || s->who.pid_space != own_pid_space())
		return false;
	if (sys(kill, pid, 0) == -ESRCH)
		return true;
	return read_stat(pid, &state, &start) &&
	       (start != s->who.start_time || state == 'Z' || state == 'X');
}

/* ---- slots ---- */

static bool is_mine(const struct share_slot *s, const struct share_who *w)
{
	return __atomic_load_n(&s->who.state, __ATOMIC_ACQUIRE) == SLOT_LIVE &&
	       s->who.pid == w->pid && s->who.start_time == w->start_time &&
	       s->who.pid_space == w->pid_space && s->who.device == w->device;
}

/* What a program left that was in this process before it: exec() keeps the process. */
static void release_own(struct share_file *f, const struct share_who *w)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (is_mine(&f->slots[i], w))
			share_release(f, i);
}

static void fill(struct share_slot *s, const struct share_who *w, const struct share_self *self)
{
	const uint32_t state = s->who.state;
	memset(&s->work, 0, sizeof s->work);
	memset(&s->counts, 0, sizeof s->counts);
	s->grant = (struct share_grant){
		.class = self->class,
		.mode = self->class == CLASS_BEST_EFFORT ? MODE_GATE : MODE_OPEN,
		.budget_ns = 100000,
		.full_below_ns = UINT64_MAX,
		.max_wait_ns = self->max_wait_ns,
	};
	s->who = *w;
	s->who.state = state;
}

uint32_t share_claim(struct share_file *f, uint32_t device, const struct share_self *self)
{
	char state;
	struct share_who w = { .device = device,
		.weight = self->weight,
		.deadline_ns = self->deadline_ns,
		.target_p99_ns = self->target_p99_ns,
		.sms = self->sms,
		.under_mps = self->under_mps,
		.pid = (uint32_t)sys(getpid),
		.pid_space = own_pid_space() };
	memcpy(w.name, self->name, sizeof w.name);
	w.name[SHARE_NAME - 1] = 0;
	if (!read_stat(0, &state, &w.start_time))
		w.pid_space = 0; /* nobody can ask after this process */
	release_own(f, &w);
	for (uint32_t i = 0; i < 2 * SHARE_SLOTS; i++) {
		struct share_slot *s = &f->slots[i % SHARE_SLOTS];
		uint32_t seen = SLOT_FREE;
		if (i == SHARE_SLOTS && !share_bury(f))
			break;
		if (!__atomic_compare_exchange_n(&s->who.state, &seen, SLOT_CLAIMED, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		fill(s, &w, self);
		__atomic_store_n(&s->who.state, SLOT_LIVE, __ATOMIC_RELEASE);
		__atomic_fetch_add(&f->arbiter.joined, 1, __ATOMIC_RELAXED);
		share_bit_set(f->devices[device].members, i % SHARE_SLOTS);
		if (self->class == CLASS_LATENCY)
			share_bit_set(f->devices[device].present, i % SHARE_SLOTS);
		return i % SHARE_SLOTS;
	}
	return SHARE_SLOTS;
}

static void clear_bits(struct share_file *f, uint32_t slot)
{
	for (uint32_t i = 0; i < SHARE_DEVICES; i++) {
		if (share_bit(f->devices[i].active, slot))
			share_bit_clear(f->devices[i].active, slot);
		if (share_bit(f->devices[i].present, slot))
			share_bit_clear(f->devices[i].present, slot);
	}
}

void share_release(struct share_file *f, uint32_t slot)
{
	struct share_slot *s = &f->slots[slot];
	uint32_t seen = SLOT_LIVE;
	if (!__atomic_compare_exchange_n(
		    &s->who.state, &seen, SLOT_CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return; /* another did it */
	clear_bits(f, slot);
	for (uint32_t i = 0; i < SHARE_DEVICES; i++)
		share_bit_clear(f->devices[i].members, slot);
	s->who.pid = 0;
	__atomic_store_n(&s->who.state, SLOT_FREE, __ATOMIC_RELEASE);
}

void share_set_class(struct share_file *f, uint32_t slot, enum share_class class)
{
	struct share_slot *s = &f->slots[slot];
	const uint32_t device = s->who.device % SHARE_DEVICES;
	__atomic_store_n(&s->grant.class, class, __ATOMIC_RELEASE);
	__atomic_store_n(&s->grant.mode, class == CLASS_BEST_EFFORT ? MODE_GATE : MODE_OPEN,
		__ATOMIC_RELEASE);
	if (class == CLASS_LATENCY)
		share_bit_set(f->devices[device].present, slot);
	else
		clear_bits(f, slot);
}

uint32_t share_bury(struct share_file *f)
{
	uint32_t buried = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &f->slots[i];
		if (__atomic_load_n(&s->who.state, __ATOMIC_ACQUIRE) != SLOT_LIVE ||
			!share_is_dead(s))
			continue;
		share_release(f, i);
		buried++;
	}
	return buried;
}

/* ---- durations ---- */

uint64_t share_percentile(const uint32_t bucket[SHARE_BUCKETS], double p)
{
	uint64_t all = 0, below = 0;
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++)
		all += bucket[i];
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++) {
		below += bucket[i];
		if (bucket[i] && (double)below >= p * (double)all)
			return (share_bucket_ns(i) + share_bucket_ns(i + 1)) / 2;
	}
	return 0;
}
