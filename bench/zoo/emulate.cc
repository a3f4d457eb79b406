/* The coroutines behind emulate.h. */
#include "emulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

dim3 threadIdx, blockIdx, blockDim, gridDim;
int emulate_order;

enum { THREADS = 1024, STACK = 1 << 16 };
enum state { READY, IN_WARP, IN_BLOCK, DONE };

struct coroutine {
	ucontext_t context;
	enum state state;
	dim3 index;
	uint64_t slot;
};

static struct coroutine coroutines[THREADS];
static char stacks[THREADS][STACK];
static ucontext_t scheduler;
static struct coroutine *self;
static const std::function<void()> *body;

static void run(void)
{
	(*body)();
	self->state = DONE;
}

static void wait_as(enum state state)
{
	self->state = state;
	swapcontext(&self->context, &scheduler);
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
	struct coroutine *warp = coroutines + (self - coroutines) / 32 * 32;
	self->slot = v;
	__syncwarp();
	const uint64_t got = from >= 0 && from < 32 ? warp[from].slot : v;
	__syncwarp();
	return got;
}

static void resume(struct coroutine *c)
{
	self = c;
	threadIdx = c->index;
	swapcontext(&scheduler, &c->context);
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
static void run_block(int n)
{
	bool moved = true;
	while (moved) {
		moved = false;
		if (emulate_order > 1)
			run_ready(0, n);
		for (int i = 0; i < n; i += 32) {
			const int at = emulate_order == 1 ? (n - 1) / 32 * 32 - i : i;
			const int end = at + 32 < n ? at + 32 : n;
			if (emulate_order > 1)
				moved |= release(at, end, IN_WARP);
			else
				run_warp(at, end);
		}
		moved |= release(0, n, IN_BLOCK);
	}
	for (int i = 0; i < n; i++)
		if (coroutines[i].state != DONE) {
			fprintf(stderr, "emulate: thread %d of %d never ends\n", i, n);
			abort();
		}
}

void emulate(dim3 grid, dim3 block, const std::function<void()> &kernel)
{
	const int n = (int)(block.x * block.y * block.z);
	body = &kernel;
	gridDim = grid;
	blockDim = block;
	for (unsigned b = 0; b < grid.x * grid.y * grid.z; b++) {
		blockIdx = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
		for (int i = 0; i < n; i++) {
			struct coroutine *c = coroutines + i;
			getcontext(&c->context);
			c->context.uc_stack.ss_sp = stacks[i];
			c->context.uc_stack.ss_size = STACK;
			c->context.uc_link = &scheduler;
			c->state = READY;
			c->index = dim3((unsigned)i % block.x, (unsigned)i / block.x % block.y,
				(unsigned)i / block.x / block.y);
			makecontext(&c->context, run, 0);
		}
		run_block(n);
	}
}
