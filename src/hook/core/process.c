/*
 * Sets the library up in its process and again in each forked child. Before the first sign of CUDA
 * it only reads its configuration. A program without CUDA pays only for loading the library.
 */
#include "hook/core/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/sys.h"
#include "hook/core/config.h"
#include "hook/core/hook_parts.h"
#include "record/sandbox.h"

#define START_NS 2000000000u /* so long a thread waits for the one that starts the process */

struct recorder hook_recorder;
__thread struct writer hook_self = { .kind = CHUNK_EVENTS };
__thread struct writer hook_ranges = { .kind = CHUNK_RANGES };
__thread struct writer hook_stacks = { .kind = CHUNK_STACKS };

union hook_hot_page hook_hot_page;

/* Everything is wanted, so that the first call of a process comes to call_leave, which starts it;
 * and all calls that other threads make meanwhile, which wait there. */
_Atomic uint32_t hook_idle = (1u << CLASS_COUNT) - 1;

/* The control word while no trace has one: nothing. */
static _Atomic uint32_t own_control;

/* The owner of this memory: of no process that began to start; of this one, or of whom it was
 * forked from; of a child whose threads no longer write where their parent does. */
static enum { MEMORY_NEW, MEMORY_USED, MEMORY_PARTED } memory;

#define EACH_PART(function)                                                                        \
	for (const struct hook_part *each = hook_parts; each->name; each++)                        \
		if (each->function)                                                                \
	each->function()

/* From now on calls are recorded, or left alone, as this word says. */
static void control_by(const _Atomic uint32_t *word)
{
	store_release(&hook_hot.control, (const char *)word - (const char *)&hook_idle);
}

/* The word that replaces a trace's own, or NULL. */
static _Atomic(const _Atomic uint32_t *) diverted;

static const _Atomic uint32_t *control_word(void)
{
	const _Atomic uint32_t *other = load_acquire(&diverted);
	return other ? other : hook_recorder.header ? &hook_recorder.header->control : &own_control;
}

void process_divert(const _Atomic uint32_t *word)
{
	store_release(&diverted, word);
	if (process_is_started())
		control_by(control_word());
}

static bool reach_trace(const struct config *c)
{
	struct trace_header blank;
	header_blank(&blank, c->control);
	if (c->flight_bytes) {
		blank.mode = TRACE_FLIGHT;
		blank.limit = c->flight_bytes + TRACE_GRAIN;
	}
	hook_recorder.join = c->join;
	memcpy(hook_recorder.path, c->path, sizeof c->path);
	return hook_recorder.header || !recorder_open(&hook_recorder, &blank);
}

/* Without the trace there is nowhere to say what is lost, so what failed for a moment only, for
 * want of a descriptor, say, is tried again. */
static void open_trace(const struct config *c)
{
	if (reach_trace(c) || reach_trace(c))
		store_relaxed(&hook_hot.tsc, hook_recorder.header->clock == CLOCK_IS_TSC);
}

static void start(void)
{
	const struct config *c = config_get();
	memory = MEMORY_USED;
	/* A page of the program file can't be wiped; this one is none.  Kernels before 4.14 can't.
	 */
	if (config_is_asked(c))
		sys(madvise, &hook_hot_page, sizeof hook_hot_page, MADV_WIPEONFORK);
	if (c->records)
		open_trace(c);
	EACH_PART(start);
	/* Last: until here every call of any thread has come to wait.  A trace has a word of its
	 * own, which other processes change. */
	control_by(control_word());
}

/* A process that has shut itself in since the library was loaded is left alone. */
static bool stands_aside(void)
{
	if (!config_is_asked(config_get()) || (!sandbox_is_closed(NULL) && !sandbox_hides_clock()))
		return false;
	control_by(&own_control);
	return true;
}

uint64_t clock_slowly(void)
{
	const bool started = process_is_started();
	if (!started && stands_aside())
		return 0;
	const struct trace_header *h = hook_recorder.header; /* a parent's, after a fork */
	return started || (h && h->clock != CLOCK_IS_TSC) ? monotonic_ns() : cpu_ticks();
}

void process_driver_begins(void)
{
	EACH_PART(driver_begins);
}

void process_functions_end(void)
{
	EACH_PART(functions_end);
}

void process_context_ends(void)
{
	EACH_PART(context_ends);
}

/* In the child of a fork: what it is in the middle of is finished in memory of its own. */
static void part(void)
{
	if (memory != MEMORY_USED)
		return;
	memory = MEMORY_PARTED;
	writer_forked(&hook_recorder, &hook_self);
	writer_forked(&hook_recorder, &hook_ranges);
	writer_forked(&hook_recorder, &hook_stacks);
}

/*
 * Same orders, same file, a new process with nothing open: when a child comes to CUDA, since most
 * never do.  One of a bare clone(), or of _Fork(), comes here as well, its page of hook_hot wiped.
 * Until it has started, a child of its own is in the same state.
 */
static void begin_anew(void)
{
	if (memory == MEMORY_USED)
		EACH_PART(forked); /* in_child() has not run */
	part();
	if (memory != MEMORY_PARTED)
		return;
	EACH_PART(forget);
	recorder_forked(&hook_recorder);
}

static void in_child(void)
{
	hook_hot = (struct hot_line){ 0 }; /* on kernels that do not wipe */
	EACH_PART(forked);
	if (memory != MEMORY_USED || stands_aside())
		return;
	part();
	/* in the middle of a call, which may be its last */
	if (hook_self.early || hook_self.settled)
		begin_anew();
}

/* A signal handler may fork in the middle of a call: child and parent both return from it. */
static void before_fork(void)
{
	const struct thread_account *a = hook_self.account;
	hook_self.before_fork = a ? a->entered - a->returned : 0;
}

/* A child that comes by clone(), without all this, is not to find it. */
static void in_parent(void)
{
	hook_self.before_fork = 0;
}

/* Until another thread has started the process; should that not come to an end, calls go on
 * unrecorded and unregulated. */
static void await_start(void)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	const uint64_t since = monotonic_ns();
	for (int turn = 0; !process_is_started() && monotonic_ns() - since < START_NS; turn++)
		if (turn < 1000)
			sys(sched_yield);
		else
			sys(nanosleep, &nap, NULL);
}

void process_start(void)
{
	uint32_t seen = PROCESS_NEW;
	if (process_is_started() || stands_aside())
		return;
	/* With signals blocked no handler can come here while this thread is at it. */
	uint64_t all = ~0ull, mask = 0;
	sys(rt_sigprocmask, SIG_BLOCK, &all, &mask, 8);
	if (replace_if(&hook_hot.state, &seen, PROCESS_STARTING, acq_rel, acquire)) {
		begin_anew();
		start();
		store_release(&hook_hot.state, PROCESS_READY);
	} else {
		await_start();
	}
	sys(rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
}

/* The last part first: what it completes, those before it keep. */
static void at_exit(void)
{
	const struct hook_part *part = hook_parts;
	while (part->name)
		part++;
	while (part-- != hook_parts)
		if (part->at_exit)
			part->at_exit();
}

void process_at_exit(void)
{
	atexit(at_exit);
}

/* A killed process leaves what was read when names were noted. */
__attribute__((destructor)) static void unloaded(void)
{
	if (!process_is_started())
		return;
	EACH_PART(unloaded);
	recorder_read_clock(&hook_recorder);
}

__attribute__((constructor)) static void loaded(void)
{
	if (!config_is_asked(config_get())) {
		control_by(&own_control);
		return;
	}
	sandbox_is_closed(NULL); /* as it is now */
	pthread_atfork(before_fork, in_parent, in_child);
}
