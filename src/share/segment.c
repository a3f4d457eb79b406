/* Reads and writes the shared segment. */
#include "share/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/sys.h"

_Static_assert(sizeof(struct share_work) == 64, "a line of its own");
_Static_assert(sizeof(struct share_slot_grant) == 64, "a line of its own");
_Static_assert(sizeof(struct share_slot) % 64 == 0, "slots don't share lines");

#define MAP_BYTES ((sizeof(struct share_file) + 4095) / 4096 * 4096)

void share_directory(char ret[SHARE_PATH], const char *runtime_directory)
{
	struct bounded b = { .to = ret, .size = SHARE_PATH };
	if (runtime_directory && runtime_directory[0] == '/') {
		bounded_put(&b, runtime_directory);
		bounded_put(&b, "/weir");
	} else {
		bounded_put(&b, "/dev/shm/weir-");
		bounded_decimal(&b, (uint64_t)sys(getuid));
	}
	bounded_end(&b);
	if (b.cut)
		ret[0] = 0;
}

size_t share_mapped_bytes(void)
{
	return MAP_BYTES;
}

/* A number, where p is at the third. */
static bool read_field(const char *p, int number, uint64_t *ret)
{
	for (int field = 3; p && field < number; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	for (*ret = 0; p && *p >= '0' && *p <= '9'; p++)
		*ret = *ret * 10 + (uint64_t)(*p - '0');
	return p;
}

struct stat_line {
	bool gone;      /* all of its threads */
	uint64_t start; /* the 22nd field */
	uint64_t stack; /* the 28th: another after each exec; 0: not for this process to know */
};

/* Reads /proc/PID/stat; false: there is no such process. */
static bool read_stat(uint32_t pid, struct stat_line *ret)
{
	char path[40], text[1024];
	struct bounded b = BOUNDED(path);
	bounded_put(&b, "/proc/");
	if (pid)
		bounded_decimal(&b, pid);
	else
		bounded_put(&b, "self");
	bounded_put(&b, "/stat");
	const long fd = sys(openat, AT_FDCWD, bounded_end(&b), O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return false;
	const long n = sys(read, fd, text, sizeof text - 1);
	sys(close, fd);
	text[n > 0 ? n : 0] = 0;
	const char *p = strrchr(text, ')'); /* the name may hold blanks and brackets */
	if (!p || p[1] != ' ')
		return false;
	const char state = p[2];
	uint64_t threads;
	const bool whole = read_field(p + 2, 20, &threads) && read_field(p + 2, 22, &ret->start) &&
			   read_field(p + 2, 28, &ret->stack);
	/* Its first thread may have ended before the others. */
	ret->gone = (state == 'Z' || state == 'X') && threads <= 1;
	return whole;
}

/* /proc may be of another name space of process ids than this process. */
static bool proc_is_own(void)
{
	char text[24], own[24];
	struct bounded b = BOUNDED(own);
	const long n = sys(readlinkat, AT_FDCWD, "/proc/self", text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	bounded_decimal(&b, (uint64_t)sys(getpid));
	return !strcmp(text, bounded_end(&b));
}

uint64_t share_space(const char *path)
{
	struct stat st;
	return sys_failed(sys(newfstatat, AT_FDCWD, path, &st, 0)) ? 0 : st.st_ino;
}

static uint64_t own_pid_space(void)
{
	return share_space("/proc/self/ns/pid");
}

bool share_is_dead(const struct share_slot *s)
{
	struct stat_line line;
	const uint32_t pid = s->who.pid;
	const uint64_t stack = load_relaxed(&s->who.stack);
	if (!pid || !s->who.pid_space || s->who.pid_space != own_pid_space())
		return false;
	if (sys(kill, pid, 0) == -ESRCH)
		return true;
	if (!proc_is_own() || !read_stat(pid, &line))
		return false;
	const bool is_another = stack && line.stack && line.stack != stack;
	/* Not one that has just claimed this slot anew. */
	return line.start != s->who.start_time || line.gone ||
	       (is_another && stack == load_acquire(&s->who.stack));
}

/* Process and state of a slot change together, so that whoever finds one half done knows who was at
 * it, and whoever buries the dead does not bury the next.  While it is claimed the state also has
 * the name space of that process. */
typedef _Atomic uint64_t __attribute__((may_alias)) owner_word;
_Static_assert(offsetof(struct share_who, state) == offsetof(struct share_who, pid) + 4, "a word");

static owner_word *owner_of(struct share_slot *s)
{
	return (owner_word *)&s->who;
}

static uint64_t owner(uint32_t pid, uint32_t state)
{
	return pid | (uint64_t)state << 32;
}

static uint32_t claimed(void)
{
	return SLOT_CLAIMED | (uint32_t)own_pid_space() << SLOT_STATE_BITS;
}

/* State and SMs of a device change together, as process and state of a slot do.  While it is
 * claimed the process that is at it stands in the place of the SMs. */
static owner_word *maker_of(struct share_device *d)
{
	return (owner_word *)&d->who;
}
_Static_assert(
	offsetof(struct share_device, who.sms) == offsetof(struct share_device, who.state) + 4,
	"a word");

static bool make_device(struct share_device *d, uint64_t from, const uint8_t uuid[16], uint32_t sms)
{
	const uint64_t mine = claimed() | (uint64_t)sys(getpid) << 32;
	if (!replace_if(maker_of(d), &from, mine, acq_rel, acquire))
		return false;
	memcpy(d->who.uuid, uuid, sizeof d->who.uuid);
	store_release(maker_of(d), SLOT_LIVE | (uint64_t)sms << 32);
	return true;
}

/* One that is just being made may be the same: its maker is quick, waits for a core, or was killed.
 * Returns its state then. */
static uint64_t settled(struct share_device *d)
{
	const struct timespec nap = { 0, 1000000 };
	uint64_t seen = load_acquire(maker_of(d));
	for (int turn = 0; (uint32_t)seen > SLOT_LIVE && turn < 1500; turn++) {
		if ((uint32_t)seen == claimed() && sys(kill, seen >> 32, 0) == -ESRCH)
			break;
		if (turn < 1000)
			sys(sched_yield);
		else
			sys(nanosleep, &nap, NULL);
		seen = load_acquire(maker_of(d));
	}
	return seen;
}

uint32_t share_device(struct share_file *f, const uint8_t uuid[16], uint32_t sms)
{
	for (uint32_t i = 0; i < SHARE_DEVICES; i++) {
		struct share_device *d = &f->devices[i];
		uint64_t seen = settled(d);
		const bool free = (uint32_t)seen != SLOT_LIVE;
		if (free && make_device(d, seen, uuid, sms))
			return i;
		seen = settled(d);
		if ((uint32_t)seen == SLOT_LIVE && !memcmp(d->who.uuid, uuid, sizeof d->who.uuid))
			return i;
	}
	return SHARE_DEVICES;
}

static bool take(struct share_slot *s, uint64_t from)
{
	return replace_if(
		owner_of(s), &from, owner((uint32_t)sys(getpid), claimed()), acq_rel, relaxed);
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

/* False: another did it. */
static bool release_from(struct share_file *f, uint32_t slot, uint64_t from)
{
	struct share_slot *s = &f->slots[slot];
	if (!take(s, from))
		return false;
	clear_bits(f, slot);
	for (uint32_t i = 0; i < SHARE_DEVICES; i++)
		share_bit_clear(f->devices[i].members, slot);
	store_release(owner_of(s), owner(0, SLOT_FREE));
	return true;
}

void share_release(struct share_file *f, uint32_t slot)
{
	release_from(f, slot, owner((uint32_t)sys(getpid), SLOT_LIVE));
}

static bool is_mine(const struct share_slot *s, const struct share_who *w)
{
	return share_is_joined(s) && s->who.pid == w->pid && s->who.start_time == w->start_time &&
	       s->who.pid_space == w->pid_space;
}

/* Whether another device is held. */
static bool is_held(
	const struct share_slot *s, uint32_t claimed_device, const _Atomic uint32_t *held)
{
	const uint32_t device = s->who.device;
	return held && device != claimed_device && device < SHARE_DEVICES &&
	       load_acquire(held) >> device & 1;
}

/* Releases the slots of a program that was in this process before. */
static void release_own(
	struct share_file *f, const struct share_who *w, const _Atomic uint32_t *held)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (is_mine(&f->slots[i], w) && !is_held(&f->slots[i], w->device, held))
			share_release(f, i);
}

static void fill(struct share_slot *s, const struct share_who *w, const struct share_self *self)
{
	memset(&s->work, 0, sizeof s->work);
	memset(&s->counts, 0, sizeof s->counts);
	memset(&s->recent, 0, sizeof s->recent);
	memset(&s->steer, 0, sizeof s->steer);
	s->memory = (struct share_memory){ .quota = self->quota,
		.group = self->group,
		.outer_quota = self->outer_quota,
		.outer_group = self->outer_group };
	s->grant = (struct share_slot_grant){
		.class = self->class,
		.mode = self->class == CLASS_BEST_EFFORT ? MODE_GATE : MODE_OPEN,
		.budget_ns = 100000,
		.full_below_ns = UINT64_MAX,
		.max_wait_ns = self->max_wait_ns,
		.alone_ns = SHARE_ALONE_NS,
	};
	s->who = *w; /* which is its owner already */
}

uint32_t share_claim(struct share_file *f, uint32_t device, const struct share_self *self)
{
	struct stat_line line = { 0 };
	struct share_who w = self->who;
	w.device = device;
	w.pid = (uint32_t)sys(getpid);
	w.pid_space = own_pid_space();
	store_relaxed(&w.state, claimed());
	store_relaxed(&w.deadline_ns, self->deadline_ns);
	store_relaxed(&w.target_p99_ns, self->target_p99_ns);
	if (read_stat(0, &line)) {
		w.start_time = line.start;
		store_relaxed(&w.stack, line.stack);
	} else {
		w.pid_space = 0; /* nobody can ask after this process */
	}
	release_own(f, &w, self->held);
	for (uint32_t i = 0; i < 2 * SHARE_SLOTS; i++) {
		struct share_slot *s = &f->slots[i % SHARE_SLOTS];
		if (i == SHARE_SLOTS && !share_bury(f))
			break;
		if (!take(s, owner(0, SLOT_FREE)))
			continue;
		clear_bits(f, i % SHARE_SLOTS);
		fill(s, &w, self);
		store_release(&s->who.state, SLOT_LIVE);
		add_relaxed(&f->arbiter.joined, 1);
		share_bit_set(f->devices[device].members, i % SHARE_SLOTS);
		if (self->class == CLASS_LATENCY)
			share_bit_set(f->devices[device].present, i % SHARE_SLOTS);
		return i % SHARE_SLOTS;
	}
	add_relaxed(&f->arbiter.refused, 1);
	return SHARE_SLOTS;
}

struct share_grant share_grant(const struct share_slot *s)
{
	const struct share_slot_grant *g = &s->grant;
	/* Acquire pairs with the release of the arbiter's put(): who sees the mode sees the rest.
	 */
	const uint32_t mode = load_acquire(&g->mode);
	return (struct share_grant){ .class = load_relaxed(&g->class),
		.mode = mode,
		.cap_sms = load_relaxed(&g->cap_sms),
		.cap_ahead_sms = load_relaxed(&g->cap_ahead_sms),
		.rest = load_relaxed(&g->rest),
		.budget_ns = load_relaxed(&g->budget_ns),
		.full_below_ns = load_relaxed(&g->full_below_ns),
		.ahead_ns = load_relaxed(&g->ahead_ns),
		.max_wait_ns = load_relaxed(&g->max_wait_ns),
		.hold_ns = load_relaxed(&g->hold_ns),
		.alone_ns = load_relaxed(&g->alone_ns) };
}

void share_set_class(struct share_file *f, uint32_t slot, enum share_class class)
{
	struct share_slot *s = &f->slots[slot];
	const uint32_t device = s->who.device % SHARE_DEVICES;
	store_release(&s->grant.class, class);
	store_release(&s->grant.mode, class == CLASS_BEST_EFFORT ? MODE_GATE : MODE_OPEN);
	if (class == CLASS_LATENCY)
		share_bit_set(f->devices[device].present, slot);
	if (class != CLASS_LATENCY || !share_is_joined(s)) /* it has ended */
		clear_bits(f, slot);
}

/* The process that was changing it may have been killed in between. */
static bool was_left(uint64_t word)
{
	const uint32_t pid = (uint32_t)word;
	return pid && word >> 32 == claimed() && sys(kill, pid, 0) == -ESRCH;
}

bool share_bury_slot(struct share_file *f, uint32_t slot)
{
	struct share_slot *s = &f->slots[slot];
	const uint64_t word = load_acquire(owner_of(s));
	const bool live = word >> 32 == SLOT_LIVE;
	return (live ? share_is_dead(s) : was_left(word)) && release_from(f, slot, word);
}

uint32_t share_bury(struct share_file *f)
{
	uint32_t buried = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		buried += share_bury_slot(f, i);
	return buried;
}

uint64_t share_retired(const struct share_file *f, uint32_t device)
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (share_is_live(&f->slots[i]) && f->slots[i].who.device == device)
			all += load_relaxed(&f->slots[i].work.retired_ns);
	return all;
}

/* A program goes inside or outside before it changes its bit: that is looked at again behind it. */
static bool end_lingering(struct share_file *f, uint32_t device, uint32_t slot, uint64_t now)
{
	struct share_work *w = &f->slots[slot].work;
	_Atomic uint64_t *active = f->devices[device].active;
	const uint64_t until = share_lingers_until(w);
	if (load_acquire(&w->inside) || !until)
		return false;
	if (now < until)
		return true;
	share_bit_clear(active, slot);
	while (atomic_load_explicit(&w->inside, memory_order_seq_cst)) {
		share_bit_set(active, slot);
		if (atomic_load_explicit(&w->inside, memory_order_seq_cst))
			break;
		share_bit_clear(active, slot);
	}
	return false;
}

bool share_end_lingering(struct share_file *f, uint32_t device, uint64_t now)
{
	bool any = false;
	each_bit(i, w, load_acquire(&f->devices[device].active[w]))
		any = end_lingering(f, device, i, now) || any;
	return any;
}

uint64_t share_percentile(const uint32_t bucket[SHARE_BUCKETS], double p)
{
	uint64_t all = 0, below = 0;
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++)
		all += load_relaxed(shared(&bucket[i]));
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++) {
		const uint32_t n = load_relaxed(shared(&bucket[i]));
		below += n;
		if (n && (double)below >= p * (double)all)
			return (share_bucket_ns(i) + share_bucket_ns(i + 1)) / 2;
	}
	return 0;
}
