/*
 * When work happens.  Work waits for its dependencies, then takes effect, then is done.
 *
 * Virtual time: work whose dependencies are done is done at once, and only its dates move:
 *
 *	start = max(when the host handed it over, the ends of what it waits for)
 *	end   = start + cost
 *
 * Real time: the dates are CLOCK_MONOTONIC, and work is done when its end has come.
 *
 * Work that cannot be done at once waits in a list in the order of submission, and one
 * driver thread looks after it: it sleeps until the next end, and it calls host functions,
 * one at a time, without the lock.
 */
#include "driver/gpu_file.h"
#include "driver/sim.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/*
 * A device that processes share (gpu_file.h) has a law of its own: work is handed to it as soon as
 * all that it waits for is done or handed to the same device, and is done when that says so, with
 * its dates. A waiting thread asks it, and sleeps until the next date at which something may end
 * there, so that only host functions, and work behind them, need the driver thread.
 */
enum {
	DONE_AT_ONCE = 64,
	SPIN_NS = 60000,    /* sleeps are about that much too long */
	LAZY_NS = 10000000, /* between looks on behalf of nobody */
};

struct pending {
	struct pending *next;
	struct work work;
	struct fence *fence;
	uint64_t submit_ns;
	uint64_t seen_submit_ns;
	bool handed; /* to the shared device */
	size_t dep_count;
	struct fence *deps[];
};

static struct pending *first, **tail = &first;
static unsigned pending_count, handed_count;
static uint64_t virtual_ns, waits;
static pthread_cond_t changed; /* partner: timeline_thread(), fence_wait() */
static bool thread_started;

struct fence *fence_ref(struct fence *fence)
{
	if (fence)
		fence->refs++;
	return fence;
}

void fence_unref(struct fence *fence)
{
	if (fence && --fence->refs == 0)
		free(fence);
}

bool fence_done(const struct fence *fence)
{
	return !fence || fence->done;
}

uint64_t fence_end_ns(const struct fence *fence)
{
	return fence ? fence->end_ns : 0;
}

uint64_t timeline_now_ns(void)
{
	struct timespec t;

	if (gpu_shared())
		return gpu_now_ns();
	if (!script.real_time)
		return virtual_ns;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t timeline_waits(void)
{
	return waits;
}

void timeline_reach(uint64_t ns)
{
	waits++;
	if (ns > virtual_ns)
		virtual_ns = ns;
}

bool timeline_idle(const struct fence *fence)
{
	return !script.real_time && fence_done(fence);
}

static void date_for_observers(struct pending *p)
{
	uint64_t start = p->seen_submit_ns;

	for (size_t i = 0; i < p->dep_count; i++)
		if (p->deps[i]->seen_ns > start)
			start = p->deps[i]->seen_ns;
	p->fence->seen_ns = start ? start + p->work.cost_ns : 0;
}

/* Gives work its dates once everything before it has some. */
static void date(struct pending *p)
{
	uint64_t start = p->submit_ns;

	for (size_t i = 0; i < p->dep_count; i++) {
		if (!p->deps[i]->dated)
			return;
		if (p->deps[i]->end_ns > start)
			start = p->deps[i]->end_ns;
	}
	p->fence->dated = p->work.host == NULL;
	p->fence->end_ns = start + p->work.cost_ns;
	date_for_observers(p);
}

static bool ready(const struct pending *p)
{
	for (size_t i = 0; i < p->dep_count; i++)
		if (!p->deps[i]->done)
			return false;
	return !script.real_time || p->work.host || gpu_shared() ||
	       p->fence->end_ns <= timeline_now_ns();
}

static void release(struct pending *p)
{
	if (p->work.drop)
		p->work.drop(p->work.arg);
	free(p->work.seen);
	for (size_t i = 0; i < p->dep_count; i++)
		fence_unref(p->deps[i]);
	fence_unref(p->fence);
	free(p);
}

/* Runs work whose turn has come.  Only a host function gives the lock away meanwhile. */
static void run(struct pending *p)
{
	if (p->work.host) {
		sim_unlock();
		entry_callback_begin();
		p->work.host(p->work.arg);
		entry_callback_end();
		sim_lock();
		if (script.real_time)
			p->fence->end_ns = timeline_now_ns();
	}
	if (p->work.effect)
		p->work.effect(p->work.arg);
	p->fence->dated = true;
	p->fence->done = true;
	if (p->work.seen)
		observe_done(p->work.seen, p->fence->seen_ns - p->work.cost_ns, p->fence->seen_ns);
	release(p);
}

static struct pending *take(struct pending **link)
{
	struct pending *p = *link;

	*link = p->next;
	if (!*link)
		tail = link;
	pending_count--;
	handed_count -= p->handed;
	return p;
}

/* The shared device is to have it: true, unless something is in the way that only time removes. */
static bool hand_over(struct pending *p)
{
	uint64_t after[LAW_MAX_AFTER];
	struct law_work w = p->work.law;
	struct fence *f = p->fence;
	bool known = w.kind != LAW_MARK;

	f->device = p->work.device;
	for (size_t i = 0; i < p->dep_count; i++) {
		const struct fence *dep = p->deps[i];

		if (dep->done)
			continue;
		if (!known)
			f->device = dep->device;
		known = true;
		if (!dep->id || dep->device != f->device || w.after_count == LAW_MAX_AFTER)
			return false;
		after[w.after_count++] = dep->id;
	}
	w.after = after;
	w.tag = (uintptr_t)p;
	if (gpu_submit(f->device, &w, &f->id))
		return false;
	p->handed = true;
	handed_count++;
	return true;
}

static struct pending *take_ready(void)
{
	if (gpu_shared() && handed_count == pending_count)
		return NULL;
	for (struct pending **link = &first; *link; link = &(*link)->next) {
		struct pending *p = *link;

		if (p->handed || (gpu_shared() && !p->work.host && hand_over(p)))
			continue;
		if (gpu_shared() && !p->work.host)
			continue;
		if (!p->fence->dated)
			date(p);
		if (ready(p))
			return take(link);
	}
	return NULL;
}

static void run_done(const struct law_done *done)
{
	struct pending **link = &first;
	struct pending *p = (struct pending *)(uintptr_t)done->tag;

	while (*link != p)
		link = &(*link)->next;
	take(link);
	p->fence->id = 0;
	p->fence->end_ns = done->end_ns;
	if (p->work.seen) {
		const uint64_t start = gpu_host_ns(done->start_ns);

		p->fence->seen_ns = start + gpu_told_ns(done->end_ns - done->start_ns);
		p->work.cost_ns = p->fence->seen_ns - start;
	}
	run(p);
}

/* The device has lost everything: all of it is to be handed over again. */
static void hand_over_again(void)
{
	for (struct pending *p = first; p; p = p->next) {
		p->handed = false;
		p->fence->id = 0;
	}
	handed_count = 0;
}

/* True when something has changed: has ended, or must be handed over again. */
static bool collect(void)
{
	struct law_done done[DONE_AT_ONCE];
	size_t count = 0;

	if (!pending_count)
		return false;
	if (gpu_pop(done, DONE_AT_ONCE, &count) == -ESTALE) {
		hand_over_again();
		return true;
	}
	for (size_t i = 0; i < count; i++)
		run_done(&done[i]);
	return count != 0;
}

/* Work that has ended is done, also if the driver thread has not had a processor since. */
static bool catch_up(void)
{
	for (struct pending **link = &first; *link; link = &(*link)->next) {
		struct pending *p = *link;

		if (!p->fence->dated)
			date(p);
		if (p->work.host || !ready(p))
			continue;
		run(take(link));
		return true;
	}
	return false;
}

void timeline_look(void)
{
	bool any = false;

	if (!gpu_shared()) {
		while (catch_up())
			any = true;
		if (any)
			pthread_cond_broadcast(&changed);
		return;
	}
	while (collect())
		any = true;
	if (any && handed_count < pending_count)
		pthread_cond_broadcast(&changed); /* the thread hands over what waited for that */
}

static uint64_t next_end_ns(void)
{
	uint64_t end = UINT64_MAX;

	for (struct pending *p = first; p; p = p->next)
		if (p->fence->dated && p->fence->end_ns < end)
			end = p->fence->end_ns;
	return end;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	if (!script.real_time || ns == UINT64_MAX)
		pthread_cond_wait(&changed, sim_mutex());
	else
		pthread_cond_timedwait(&changed, sim_mutex(), &t);
}

/* Waits a while for the shared device, or for the driver thread. */
static void wait_a_while(uint64_t most_ns)
{
	uint64_t wake = gpu_wake_ns();
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	const uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	if (wake > now + most_ns)
		wake = now + most_ns;
	if (wake > now + SPIN_NS) {
		sleep_until(wake - SPIN_NS);
		return;
	}
	sim_unlock();
	sched_yield();
	sim_lock();
}

/* Until something has changed: what has ended is done then. */
static void wait_for_change(void)
{
	if (!gpu_shared())
		pthread_cond_wait(&changed, sim_mutex());
	else if (collect())
		pthread_cond_broadcast(&changed);
	else
		wait_a_while(LAZY_NS);
}

/* The thread's own waiting: it is in no hurry as long as only the device has work. */
static void idle(void)
{
	struct timespec t;

	if (!gpu_shared()) {
		sleep_until(next_end_ns());
	} else if (collect()) {
		pthread_cond_broadcast(&changed);
	} else if (handed_count < pending_count) {
		wait_a_while(LAZY_NS);
	} else if (pending_count) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		sleep_until((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + LAZY_NS);
	} else {
		sleep_until(UINT64_MAX);
	}
}

static void *timeline_thread(void *unused)
{
	sim_lock();
	for (;;) {
		struct pending *p = take_ready();

		if (p) {
			run(p);
			pthread_cond_broadcast(&changed);
		} else {
			idle();
		}
	}
	return NULL;
}

static void start_thread(void)
{
	pthread_condattr_t clock;
	pthread_attr_t detached;
	pthread_t thread;

	if (thread_started)
		return;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &clock);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	thread_started = pthread_create(&thread, &detached, timeline_thread, NULL) == 0;
}

void fence_wait(struct fence *fence)
{
	if (!fence)
		return;
	fence_ref(fence);
	while (!fence->done && thread_started)
		wait_for_change();
	timeline_reach(fence->end_ns);
	observe_reach(fence->seen_ns);
	fence_unref(fence);
	pools_settle();
}

static struct pending *pending_new(
	const struct work *work, struct fence *const *deps, size_t dep_count)
{
	struct pending *p = calloc(1, sizeof *p + dep_count * sizeof p->deps[0]);
	struct fence *fence = calloc(1, sizeof *fence);

	if (!p || !fence) {
		free(p);
		free(fence);
		return NULL;
	}
	fence->refs = 2;
	p->fence = fence;
	p->work = *work;
	p->submit_ns = timeline_now_ns();
	p->seen_submit_ns = observe_now();
	for (size_t i = 0; i < dep_count; i++)
		if (deps[i])
			p->deps[p->dep_count++] = fence_ref(deps[i]);
	return p;
}

static void enqueue(struct pending *p)
{
	start_thread();
	*tail = p;
	tail = &p->next;
	pending_count++;
	pthread_cond_broadcast(&changed);
}

/* Everything before it that could be handed over has been, so this comes behind them. */
static void enqueue_shared(struct pending *p)
{
	start_thread();
	*tail = p;
	tail = &p->next;
	pending_count++;
	if (!hand_over(p))
		pthread_cond_broadcast(&changed);
}

void timeline_throttle(void)
{
	while (pending_count > script.queue_depth)
		wait_for_change();
}

struct fence *timeline_submit(const struct work *work, struct fence *const *deps, size_t dep_count)
{
	struct pending *p = pending_new(work, deps, dep_count);

	if (!p) {
		if (work->drop)
			work->drop(work->arg);
		free(work->seen);
		return NULL;
	}
	struct fence *fence = p->fence;
	date(p);
	if (gpu_shared() && !work->host && (work->law.kind != LAW_MARK || !ready(p)))
		enqueue_shared(p);
	else if (!work->host && ready(p))
		run(p);
	else
		enqueue(p);
	return fence;
}
