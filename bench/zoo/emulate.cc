/* The coroutines behind emulate.h. */
#include "emulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <map>
#include <utility>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;
int emulate_order;
std::function<void()> emulate_begin = [] {};

enum { THREADS = 8192, STACK = 1 << 16 };
enum state { READY, IN_WARP, IN_BLOCK, WAITING, DONE };

struct coroutine {
	ucontext_t context; /* until it runs for the first time */
	void *left_at[5];   /* as __builtin_setjmp() has it */
	bool begun;
	enum state state;
	const std::function<bool()> *condition; /* that it waits for */
	dim3 index, block;
	unsigned rank, cluster_phase;
	uint64_t slot;
};

static struct coroutine coroutines[THREADS];
static char stacks[THREADS][STACK];
static void *scheduler[5];
static struct coroutine *self;
static const std::function<void()> *body;

/* The shared memory of the cluster that runs. */
static std::map<std::pair<unsigned, const void *>, std::vector<char>> shared;
static std::vector<std::function<void()>> later;
static unsigned cluster_threads, cluster_arrived, cluster_phase, happened;

/* These two make no system call, and swapcontext() makes two.  AddressSanitizer would also clear
 * what it knows of a stack at each swapcontext(). */
#define PLAIN __attribute__((noinline, no_sanitize("address", "undefined")))

PLAIN static void jump(void **to)
{
	__builtin_longjmp(to, 1);
}

/* Leaves this stack for another.  Returns when somebody switches back. */
PLAIN static void switch_to(void **from, void **to)
{
	if (!__builtin_setjmp(from))
		jump(to);
}

/* A coroutine stays, for the threads of all blocks that have its place. */
static void run(void)
{
	for (;;) {
		(*body)();
		self->state = DONE;
		switch_to(self->left_at, scheduler);
	}
}

static void wait_as(enum state state)
{
	self->state = state;
	switch_to(self->left_at, scheduler);
}

unsigned emulate_random(unsigned below)
{
	static unsigned seed = 1;
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

void emulate_wait(const std::function<bool()> &condition)
{
	self->condition = &condition;
	while (!condition())
		wait_as(WAITING);
}

void emulate_notify(void)
{
	happened++;
}

void emulate_later(const std::function<void()> &work)
{
	later.push_back(work);
}

void *emulate_shared(const void *tag, size_t bytes)
{
	std::vector<char> &memory = shared[{self->rank, tag}];
	if (memory.size() < bytes)
		memory.resize(bytes);
	return memory.data();
}

void *emulate_remote(const void *at, unsigned rank)
{
	for (auto &[key, memory] : shared)
		if (key.first == self->rank && at >= memory.data() && at < memory.data() + memory.size()) {
			const size_t bytes = memory.size(), offset = (size_t)((const char *)at - memory.data());
			std::vector<char> &other = shared[{rank, key.second}];
			other.resize(bytes);
			return other.data() + offset;
		}
	fprintf(stderr, "emulate: an address is not in shared memory\n");
	abort();
}

unsigned cluster_rank(void)
{
	return self->rank;
}

void cluster_arrive(void)
{
	self->cluster_phase = cluster_phase;
	if (++cluster_arrived == cluster_threads) {
		cluster_arrived = 0;
		cluster_phase++;
		emulate_notify();
	}
}

void cluster_wait(void)
{
	emulate_wait([] { return self->cluster_phase != cluster_phase; });
}

void __syncthreads(void)
{
	wait_as(IN_BLOCK);
}

void __syncwarp(void)
{
	wait_as(IN_WARP);
}

uint64_t emulate_exchange(uint64_t v, int from)
{
	const long thread = self - coroutines, block = thread - thread % (long)(blockDim.x * blockDim.y * blockDim.z);
	struct coroutine *warp = coroutines + block + (thread - block) / 32 * 32;
	self->slot = v;
	__syncwarp();
	const uint64_t got = from >= 0 && from < 32 ? warp[from].slot : v;
	__syncwarp();
	return got;
}

/* Runs it for the first time. */
PLAIN static void begin(struct coroutine *c)
{
	c->begun = true;
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = stacks[c - coroutines];
	c->context.uc_stack.ss_size = STACK;
	makecontext(&c->context, run, 0);
	if (!__builtin_setjmp(scheduler))
		setcontext(&c->context);
}

static void resume(struct coroutine *c)
{
	self = c;
	threadIdx = c->index;
	blockIdx = c->block;
	if (c->begun)
		switch_to(scheduler, c->left_at);
	else
		begin(c);
}

/* Lets those pass that wait for all of [first, end).  True if that moved anybody. */
static bool release(int first, int end, enum state state)
{
	int waiting = 0;
	for (int i = first; i < end; i++)
		waiting += coroutines[i].state == state;
	if (!waiting)
		return false;
	if (waiting < end - first) {
		bool done = false;
		for (int i = first; i < end; i++)
			done |= coroutines[i].state == DONE;
		if (!done)
			return false; /* the others are still on their way */
		fprintf(stderr,
			"emulate: %d of %d threads are at a barrier, and others have left\n",
			waiting, end - first);
		abort();
	}
	for (int i = first; i < end; i++)
		coroutines[i].state = READY;
	return true;
}

/* Runs those of [first, end) that can, in this run's order, until they are at a barrier. */
static void run_ready(int first, int end)
{
	const int n = end - first;
	for (int i = 0; i < n; i++) {
		const int k = emulate_order == 0   ? i
			      : emulate_order == 1 ? n - 1 - i
						   : (int)((i * 617L + emulate_order) % n);
		if (coroutines[first + k].state == READY)
			resume(coroutines + first + k);
	}
}

/* As far as a warp comes without the others. */
static void run_warp(int first, int end)
{
	do
		run_ready(first, end);
	while (release(first, end, IN_WARP));
}

/* Orders 0 and 1 run a warp up to a barrier of the block before the next warp begins; the others
 * let all warps go on together. */
static bool run_block(int first, int n)
{
	bool moved = false;
	if (emulate_order > 1)
		run_ready(first, first + n);
	for (int i = 0; i < n; i += 32) {
		const int at = first + (emulate_order == 1 ? (n - 1) / 32 * 32 - i : i);
		const int end = at + 32 < first + n ? at + 32 : first + n;
		if (emulate_order > 1)
			moved |= release(at, end, IN_WARP);
		else
			run_warp(at, end);
	}
	return moved | release(first, first + n, IN_BLOCK);
}

/* One of what may happen at any time.  False: there is nothing. */
static bool do_later(void)
{
	if (later.empty())
		return false;
	const size_t i = emulate_random((unsigned)later.size());
	const std::function<void()> work = std::move(later[i]);
	later[i] = std::move(later.back());
	later.pop_back();
	work();
	happened++;
	return true;
}

/* Those whose condition holds. */
static void wake(int threads)
{
	for (self = coroutines; self < coroutines + threads; self++)
		if (self->state == WAITING && (*self->condition)())
			self->state = READY;
}

static void run_cluster(unsigned blocks, int n)
{
	const int threads = (int)blocks * n;
	bool moved = true;
	while (moved) {
		moved = false;
		for (unsigned b = 0; b < blocks; b++)
			moved |= run_block((int)b * n, n);
		if (emulate_random(3) == 0)
			do_later();
		if (!happened && !moved)
			do_later();
		if (happened) {
			happened = 0;
			moved = true;
			wake(threads);
		}
	}
	while (do_later()) /* copies that nobody waits for */
		;
	happened = 0;
	for (int i = 0; i < threads; i++)
		if (coroutines[i].state != DONE) {
			fprintf(stderr, "emulate: thread %d of %d never ends\n", i, threads);
			abort();
		}
}

static void start(struct coroutine *c, int thread, dim3 block, dim3 at)
{
	c->state = READY;
	c->index = dim3((unsigned)thread % block.x, (unsigned)thread / block.x % block.y,
		(unsigned)thread / block.x / block.y);
	c->block = at;
}

void emulate(dim3 grid, dim3 block, const std::function<void()> &kernel, unsigned cluster)
{
	const int n = (int)(block.x * block.y * block.z);
	body = &kernel;
	gridDim = grid;
	blockDim = block;
	cluster_threads = cluster * (unsigned)n;
	for (unsigned first = 0; first < grid.x * grid.y * grid.z; first += cluster) {
		shared.clear();
		cluster_arrived = 0;
		emulate_begin();
		for (unsigned b = first; b < first + cluster; b++)
			for (int i = 0; i < n; i++) {
				struct coroutine *c = coroutines + (b - first) * (unsigned)n + i;
				start(c, i, block,
					dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y));
				c->rank = b - first;
			}
		run_cluster(cluster, n);
	}
}
