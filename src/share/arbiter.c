/* Runs the arbiter. */
#include "share/arbiter.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/monotonic.h"
#include "base/xmalloc.h"
#include "share/alone.h"

#define MS          1000000u
#define BURY_NS     (100 * MS)  /* whoever waits for a dead one looks sooner (hook/sched/wait.c) */
#define TAKE_MS     100         /* so often a process tries to become the arbiter */
#define UNDISTURBED 0.1         /* the quickest requests are those that nothing delayed */
#define KEEP_NS     (1000 * MS) /* between two looks at what requests take alone */
#define WRITE_NS    (5000 * MS) /* and two writings of it */
#define FEWEST      50u         /* requests that a p99 is told of */

struct arbiter {
	struct share_file *file;
	char directory[SHARE_PATH], known_path[SHARE_PATH + 16];
	int lock; /* -1: not the arbiter */
	uint64_t buried_ns;
	struct policy_state state[SHARE_DEVICES];
	struct policy_view view;
	struct share_grant grants[SHARE_SLOTS];
	uint32_t seen[SHARE_SLOTS][SHARE_BUCKETS]; /* of requests, when p99 was told last */
	uint64_t p99[SHARE_SLOTS];
	struct known known;
	uint64_t kept_ns, written_ns, greeted[SHARE_SLOTS];
	uint64_t told[SHARE_SLOTS]; /* of recent requests */
	uint64_t request[SHARE_SLOTS][SHARE_RECENT];
};

struct arbiter *arbiter_new(struct share_file *f, const char *directory)
{
	struct arbiter *a = xcalloc(1, sizeof *a);
	a->file = f;
	a->lock = -1;
	snprintf(a->directory, sizeof a->directory, "%s", directory);
	snprintf(a->known_path, sizeof a->known_path, "%s/alone", directory);
	return a;
}

static int lock_of(const char *directory)
{
	char path[SHARE_PATH + 16];
	snprintf(path, sizeof path, "%s/arbiter", directory);
	const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return -1;
}

/* Whether it begins as one of Weir's does, with another version. */
static bool is_of_another_version(const char *path)
{
	struct share_file f = { 0 };
	const size_t head = offsetof(struct share_file, identity);
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const bool is_whole =
		fd >= 0 && read(fd, &f, head) >= (ssize_t)offsetof(struct share_file, size);
	if (fd >= 0)
		close(fd);
	return is_whole && !memcmp(f.magic, SHARE_MAGIC, sizeof f.magic) &&
	       (f.version != SHARE_VERSION || f.size != sizeof f);
}

bool arbiter_renew(const char *directory)
{
	char path[SHARE_PATH + 16];
	const int lock = lock_of(directory);
	if (lock < 0)
		return false;
	snprintf(path, sizeof path, "%s/sched", directory);
	const bool gone = is_of_another_version(path) && !unlink(path);
	close(lock);
	return gone;
}

/* The lock goes with the process that holds it, however that ends. */
static bool take(struct arbiter *a)
{
	if (a->lock >= 0)
		return true;
	a->lock = lock_of(a->directory);
	if (a->lock < 0)
		return false;
	known_read(&a->known, a->known_path);
	a->file->arbiter.pid = (uint32_t)getpid();
	if (!a->file->arbiter.policy[0]) /* so that whoever waits can say by which */
		policy_set(a->file, policy_find(POLICY_DEFAULT));
	return true;
}

/* Over the requests since it was told last. */
static uint64_t p99_of(struct arbiter *a, uint32_t i)
{
	uint32_t fresh[SHARE_BUCKETS], all = 0;
	const uint32_t *now = a->file->slots[i].counts.request;
	for (uint32_t b = 0; b < SHARE_BUCKETS; b++) {
		fresh[b] = load_relaxed(shared(&now[b])) - a->seen[i][b];
		all += fresh[b];
	}
	if (all < FEWEST)
		return a->p99[i];
	memcpy(a->seen[i], now, sizeof a->seen[i]);
	return a->p99[i] = share_percentile(fresh, 0.99);
}

/* Requests since the look before, how many; those that were written over are lost. */
static uint32_t fresh(struct arbiter *a, uint32_t i)
{
	const struct share_recent *r = &a->file->slots[i].recent;
	const uint64_t count = load_acquire(&r->count);
	uint64_t from = a->told[i] <= count ? a->told[i] : count;
	uint32_t n = 0;
	if (count - from > SHARE_RECENT)
		from = count - SHARE_RECENT;
	for (; from < count; from++)
		a->request[i][n++] = load_relaxed(&r->request[from % SHARE_RECENT]);
	a->told[i] = count;
	return n;
}

static void look(struct arbiter *a, uint32_t i)
{
	const struct share_slot *s = &a->file->slots[i];
	const uint64_t retired = load_relaxed(&s->work.retired_ns);
	const uint64_t submitted = load_relaxed(&s->work.submitted_ns);
	a->view.program[i] = (struct policy_program){ .here = true,
		.class = load_relaxed(&s->grant.class),
		.weight = s->who.weight,
		.sms = s->who.sms,
		.widest = load_relaxed(&s->work.widest),
		.inside = load_relaxed(&s->work.inside) || submitted > retired,
		.begun_ns = load_relaxed(&s->work.begun_ns),
		.deadline_ns = load_relaxed(&s->who.deadline_ns),
		.target_p99_ns = load_relaxed(&s->who.target_p99_ns),
		.max_wait_ns = load_relaxed(&s->grant.max_wait_ns),
		.retired_ns = retired,
		.requests = load_relaxed(&s->work.requests),
		.launches = load_relaxed(&s->counts.launches),
		.lasts_ns = s->grant.class == CLASS_LATENCY
				    ? share_percentile(s->counts.request, UNDISTURBED)
				    : 0,
		.p99_ns = load_relaxed(&s->who.target_p99_ns) ? p99_of(a, i) : 0,
		.who = ((uint64_t)s->who.pid << 32 ^ s->who.start_time) | 1,
		.slowdown = s->who.slowdown / 1e3,
		.request = a->request[i],
		.fresh = fresh(a, i) };
	if (a->view.program[i].slowdown < SLOWDOWN_LEAST ||
		a->view.program[i].slowdown > SLOWDOWN_MOST)
		a->view.program[i].slowdown = 0;
	a->view.mps = a->view.mps && s->who.under_mps;
}

static bool is_of(const struct arbiter *a, uint32_t i, uint32_t device)
{
	const struct share_slot *s = &a->file->slots[i];
	return share_is_joined(s) && s->who.device == device;
}

/* How many programs there are. */
static uint32_t see(struct arbiter *a, uint32_t device, uint64_t now)
{
	uint32_t programs = 0;
	memset(&a->view, 0, sizeof a->view);
	a->view.now_ns = now;
	a->view.requests = load_acquire(&a->file->devices[device].requests);
	const uint32_t sms = a->file->devices[device].who.sms;
	a->view.sms = sms <= UINT16_MAX ? sms : 0; /* no cap is of more */
	a->view.step = 8; /* what a green context's number of SMs is a multiple of, since sm_90 */
	a->view.mps = true;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (is_of(a, i, device)) {
			look(a, i);
			programs++;
		}
	return programs;
}

/* Word by word: a program that reads meanwhile sees a mixture of two that are both right.  The
 * class is weir sched's to change. */
static void put(struct share_slot_grant *to, const struct share_grant *g)
{
	store_relaxed(&to->budget_ns, g->budget_ns);
	store_relaxed(&to->full_below_ns, g->full_below_ns);
	store_relaxed(&to->ahead_ns, g->ahead_ns);
	store_relaxed(&to->cap_sms, g->cap_sms);
	store_relaxed(&to->cap_ahead_sms, g->cap_ahead_sms);
	store_relaxed(&to->rest, g->rest);
	store_relaxed(&to->hold_ns, g->hold_ns);
	store_relaxed(&to->alone_ns, g->alone_ns);

	store_release(&to->mode, g->mode);
}

/* A program that comes is what it was when it was here before, until it has been measured. */
static void greet(struct arbiter *a, uint32_t device, uint32_t i)
{
	struct slowdown_program *p = &a->state[device].slowdown.program[i];
	const struct known_program *known = known_find(
		&a->known, a->file->devices[device].who.uuid, a->file->slots[i].who.command);
	if (!p->who || a->greeted[i] == p->who)
		return;
	a->greeted[i] = p->who;
	if (known)
		known_remind(known, a->file->slots[i].who.under_mps, p);
}

/* Keeps the measured values for when the programs come again. */
static void keep_known(struct arbiter *a)
{
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &a->file->slots[i];
		const uint32_t device = s->who.device;
		struct known_program p = { .command = s->who.command, .mps = s->who.under_mps };
		const struct slowdown_program *q =
			device < SHARE_DEVICES ? &a->state[device].slowdown.program[i] : NULL;
		if (!q || !is_of(a, i, device) || !slowdown_has_begun(q))
			continue;
		p.guess = !slowdown_learnt(q, &p.alone);
		if (p.guess && !slowdown_guess(q, &p.alone))
			continue;
		const uint32_t sms = a->file->devices[device].who.sms,
			       widest = load_relaxed(&s->work.widest);
		p.fills = widest < sms ? (uint32_t)(100ull * widest / sms) : 100;
		memcpy(p.uuid, a->file->devices[device].who.uuid, sizeof p.uuid);
		known_put(&a->known, &p);
	}
}

static void write_known(struct arbiter *a)
{
	if (a->known.changed)
		known_write(&a->known, a->known_path);
}

/* For weir sched status. */
static void tell(struct arbiter *a, uint32_t device, bool steers)
{
	const struct slowdown *s = &a->state[device].slowdown;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
		if (!a->view.program[i].here || a->view.program[i].class != CLASS_LATENCY)
			continue;
		struct share_steer told = steers ? s->program[i].steer : (struct share_steer){ 0 };
		if (told.target && a->state[device].rests)
			told.reason = STEER_RESTS;
		if (told.target) {
			told.budget_ns = (uint64_t)s->budget_ns;
			told.windows_ns = (uint64_t)s->windows_ns;
			told.passed_ns = (uint64_t)s->passed_ns;
		}
		a->file->slots[i].steer = told;
		greet(a, device, i);
	}
}

/* When it wants to be asked again. */
static uint64_t decide(struct arbiter *a, uint32_t device, uint64_t now)
{
	uint64_t again = now + 50 * MS;
	if (!see(a, device, now))
		return again;
	const bool lingers = share_end_lingering(a->file, device, now);
	const struct policy_params params = policy_params_of(&a->file->tuning);
	const struct policy *policy = policy_of(a->file);
	policy->decide(&a->view, &params, &a->state[device], a->grants, &again);
	tell(a, device, !strcmp(policy->name, "fit"));
	policy_check(&a->view, a->grants, again);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (a->view.program[i].here && is_of(a, i, device))
			put(&a->file->slots[i].grant, &a->grants[i]);
	return lingers && again > now + MS ? now + MS : again;
}

int arbiter_step(struct arbiter *a)
{
	const uint64_t now = monotonic_ns();
	uint64_t again = now + 50 * MS;
	if (!take(a))
		return TAKE_MS;
	store_release(&a->file->arbiter.heartbeat_ns, now);
	if (now - a->buried_ns > BURY_NS) {
		share_bury(a->file);
		share_keep(a->file, a->directory);
		a->buried_ns = now;
	}
	if (now - a->kept_ns > KEEP_NS) {
		keep_known(a);
		a->kept_ns = now;
	}
	if (now - a->written_ns > WRITE_NS) {
		write_known(a);
		a->written_ns = now;
	}
	for (uint32_t i = 0; i < SHARE_DEVICES; i++) {
		if (load_acquire(&a->file->devices[i].who.state) != SLOT_LIVE)
			continue;
		const uint64_t next = decide(a, i, now);
		again = next < again ? next : again;
	}
	const uint64_t wait = again > now ? (again - now) / MS : 0;
	return wait < 1 ? 1 : (int)wait;
}

void arbiter_free(struct arbiter *a)
{
	if (a && a->lock >= 0) {
		write_known(a);
		close(a->lock);
	}
	free(a);
}
