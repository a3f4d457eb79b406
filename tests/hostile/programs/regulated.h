/*
 * The common part of programs that are hard on the scheduler (regulated.c, gated.c).
 *
 * A case prints the same without Weir.  With it (WEIR=sched,share=DIR,...) the program finds the
 * shared file as any process of its user may, and plays the others: a latency program, an arbiter,
 * one that writes nonsense.  Then it looks, as they would, at what its own slot says.
 */
#pragma once

#include "cu.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "share/segment.h"

enum { OTHER = 200 }; /* the slot of the latency program */

#define MORE_FUNCTIONS(X)                                                                          \
	X(cuCtxCreate_v2, (void **, unsigned, int))                                                \
	X(cuCtxDestroy_v2, (void *))                                                               \
	X(cuDevicePrimaryCtxReset_v2, (int))                                                       \
	X(cuModuleUnload, (void *))                                                                \
	X(cuStreamCreate, (void **, unsigned))                                                     \
	X(cuStreamDestroy_v2, (void *))                                                            \
	X(cuStreamSynchronize, (void *))                                                           \
	X(cuStreamSynchronize_ptsz, (void *))                                                      \
	X(cuStreamBeginCapture_v2, (void *, int))                                                  \
	X(cuStreamEndCapture, (void *, void **))                                                   \
	X(cuStreamWaitEvent, (void *, void *, unsigned))                                           \
	X(cuEventCreate, (void **, unsigned))                                                      \
	X(cuEventRecord, (void *, void *))                                                         \
	X(cuEventSynchronize, (void *))                                                            \
	X(cuEventQuery, (void *))                                                                  \
	X(cuGraphInstantiateWithFlags, (void **, void *, uint64_t))                                \
	X(cuGraphLaunch, (void *, void *))                                                         \
	X(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *))                              \
	X(cuEventDestroy_v2, (void *))                                                             \
	X(cuLaunchHostFunc, (void *, void (*)(void *), void *))                                    \
	X(cuLaunchKernelEx, (const void *, void *, void **, void **))                              \
	X(cuLaunchKernel_ptsz, (void *, unsigned, unsigned, unsigned, unsigned, unsigned,          \
				       unsigned, unsigned, void *, void **, void **))              \
	X(cuLaunchCooperativeKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned,    \
					     unsigned, unsigned, void *, void **))
MORE_FUNCTIONS(CU_DECLARE)

static struct share_file *shared; /* NULL: the program is alone */
static bool is_mps;
static _Atomic bool stop_peer;
static int bad;

#define CHECK(true_) check(true_, #true_, __LINE__)

static void check(bool right, const char *what, int line)
{
	if (right)
		return;
	bad++;
	printf("line %d: not so: %s\n", line, what);
}

static inline void open_shared(void)
{
	char directory[SHARE_PATH];
	const char *why = NULL;
	const char *words = getenv("WEIR"), *at = words ? strstr(words, "share=") : NULL;
	if (!at)
		return;
	snprintf(directory, sizeof directory, "%.*s", (int)strcspn(at + 6, ","), at + 6);
	is_mps = strstr(words, ",mps");
	shared = share_open(directory, &why);
	cu_need(!shared, why);
}

/* The slot of this process on a device; there is none before its first launch there. */
static inline struct share_slot *own_on(uint32_t device)
{
	static struct share_slot none;
	for (uint32_t i = 0; shared && i < SHARE_SLOTS; i++)
		if (shared->slots[i].who.state == SLOT_LIVE &&
			shared->slots[i].who.pid == (uint32_t)getpid() &&
			shared->slots[i].who.device == device && i != OTHER)
			return &shared->slots[i];
	return &none;
}

static inline struct share_slot *own(void)
{
	return own_on(0);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A latency program, inside a request or not, whose pid can't be asked after. */
static inline void other_comes(bool inside)
{
	if (!shared)
		return;
	struct share_slot *s = &shared->slots[OTHER];
	s->who.pid = 1;
	s->who.pid_space = 0;
	s->grant.class = CLASS_LATENCY;
	s->work.begun_ns = now_ns();
	atomic_store_explicit(&s->who.state, SLOT_LIVE, memory_order_release);
	share_bit_set(shared->devices[0].present, OTHER);
	if (inside)
		share_bit_set(shared->devices[0].active, OTHER);
}

static inline void *keep_inside(void *unused)
{
	while (!atomic_load_explicit(&stop_peer, memory_order_relaxed)) {
		atomic_store_explicit(
			&shared->slots[OTHER].work.begun_ns, now_ns(), memory_order_relaxed);
		atomic_store_explicit(
			&shared->arbiter.heartbeat_ns, now_ns(), memory_order_relaxed);
		usleep(1000);
	}
	return NULL;
}

/* Requests that never seem to be old. */
static inline pthread_t other_stays(void)
{
	pthread_t t = 0;
	other_comes(true);
	if (shared)
		pthread_create(&t, NULL, keep_inside, NULL);
	return t;
}

static inline void other_ends(pthread_t t)
{
	if (!shared)
		return;
	atomic_store_explicit(&stop_peer, true, memory_order_relaxed);
	pthread_join(t, NULL);
}

static inline void grant_caps(uint16_t sms, uint16_t ahead)
{
	struct share_slot *s = own();
	shared->arbiter.heartbeat_ns = now_ns() + 20000000000u; /* there is an arbiter */
	s->grant.cap_sms = sms;
	s->grant.cap_ahead_sms = ahead;
	s->grant.budget_ns = 1000000000;
	s->grant.mode = MODE_CAP;
}

static inline int launch_on(void *stream, unsigned blocks)
{
	return cuLaunchKernel(cu_kernel, blocks, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static inline void *stream_new(void)
{
	void *s = NULL;
	cu_need(cuStreamCreate(&s, 1), "cuStreamCreate");
	return s;
}

static atomic_int held, released;

static inline void hold(void *unused)
{
	atomic_store(&held, 1);
	while (!atomic_load(&released))
		usleep(100);
}

struct regulated_case {
	const char *name;
	void (*run)(void);
	bool by_itself; /* it makes its own context */
};

/* The exit status. */
static inline int run_case(const struct regulated_case *cases, const char *name)
{
	cu_open();
#define MORE_RESOLVE(name, parameters)                                                             \
	*(void **)&name = dlsym(cu_library, #name);                                                \
	cu_need(!name, #name);
	MORE_FUNCTIONS(MORE_RESOLVE)
	open_shared();
	for (; name && cases->name; cases++)
		if (!strcmp(name, cases->name)) {
			if (!cases->by_itself)
				cu_prepare();
			cases->run();
			return bad > 0;
		}
	return 2;
}
