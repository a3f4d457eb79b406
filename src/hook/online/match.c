/* Matches kernels that ran with their launches. */
#include "hook/online/match.h"

#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "base/sys.h"
#include "hook/core/process.h"
#include "predict/key.h"
#include "predict/tables.h"

#define RING         (1u << 16)
#define SIGNATURES   (1u << 13)
#define QUEUE_WINDOW 16u
#define SLACK_NS     20000 /* clocks of host and device agree no better */

struct pending {
	_Atomic uint64_t turn; /* of the ring, from 1; stored last */
	uint64_t signature;
	uint64_t ticks;
	uint64_t key;
	const struct predict_kernel *kernel;
	uint32_t args, reserved;
	uint64_t arg[PREDICT_ARGS];
	uint64_t padding[2];
};
static_assert(sizeof(struct pending) == 128, "two lines");

/* Launches of one signature that wait for their kernels: turns of the first and the last. */
struct queue {
	uint64_t signature;
	uint64_t first, last;
};

static struct {
	struct pending *ring;
	uint64_t *behind; /* by turn modulo RING: the next turn of the same signature */
	struct queue *queues;
	_Atomic uint64_t given; /* turns that writers have taken */
	uint64_t taken;         /* that have been looked at */
	struct clock_pair now;  /* with the header's: what a tick is */
} m;

bool match_start(void)
{
	const size_t bytes = RING * (sizeof(struct pending) + sizeof(uint64_t)) +
			     SIGNATURES * sizeof(struct queue);
	const long at =
		sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return false;
	m.ring = (struct pending *)at;
	m.behind = (uint64_t *)(m.ring + RING);
	m.queues = (struct queue *)(m.behind + RING);
	store_relaxed(&m.given, 0);
	m.taken = 0;
	return true;
}

uint64_t match_signature(
	uint64_t kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
	uint64_t h = hash_mix(kernel ^ shared);
	for (int i = 0; i < 3; i++)
		h = hash_mix(h ^ (grid[i] | (uint64_t)block[i] << 32));
	return h | 1;
}

uint64_t match_name(
	const char *name, const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
	return match_signature(predict_kernel_id(name, strlen(name), 0), grid, block, shared);
}

/* A reader that sees a word of this sees turn 0 as well, or a later one: copy_turn(). */
void match_push(uint64_t signature, uint64_t ticks, const struct predict_launch *l)
{
	const uint64_t turn = add_relaxed(&m.given, 1) + 1;
	const size_t behind = offsetof(struct pending, signature);
	const uint32_t args = l->args < PREDICT_ARGS ? l->args : PREDICT_ARGS;
	struct pending *to = &m.ring[turn % RING], a;
	a.signature = signature;
	a.ticks = ticks;
	a.key = l->key;
	a.kernel = l->kernel;
	a.args = args;
	a.reserved = 0;
	memcpy(a.arg, l->arg, args * sizeof a.arg[0]);
	store_relaxed(&to->turn, 0);
	store_words(&to->signature, &a.signature, offsetof(struct pending, arg[args]) - behind);
	store_release(&to->turn, turn); /* pairs with copy_turn() */
}

static bool copy_turn(uint64_t turn, struct pending *ret_a)
{
	const struct pending *a = &m.ring[turn % RING];
	if (load_acquire(&a->turn) != turn)
		return false;
	copy_words(ret_a, a, offsetof(struct pending, padding));
	return load_relaxed(&a->turn) == turn;
}

static void give_up(void)
{
	memset(m.queues, 0, SIGNATURES * sizeof *m.queues);
	m.taken = load_acquire(&m.given);
}

/* The signature's queue, a free one made its own, or NULL in a full window. */
static struct queue *queue_of(uint64_t signature, bool make)
{
	for (uint32_t i = 0; i < QUEUE_WINDOW; i++) {
		struct queue *q = &m.queues[((signature >> 20) + i) & (SIGNATURES - 1)];
		if (q->signature == signature)
			return q;
		if (make && (!q->signature || !q->first)) {
			*q = (struct queue){ .signature = signature };
			return q;
		}
	}
	return NULL;
}

static void append(uint64_t turn, uint64_t signature)
{
	struct queue *q = queue_of(signature, false);
	if (!q)
		q = queue_of(signature, true);
	if (!q)
		return;
	m.behind[turn % RING] = 0;
	if (q->first)
		m.behind[q->last % RING] = turn;
	else
		q->first = turn;
	q->last = turn;
}

void match_take(void)
{
	struct pending a;
	const uint64_t given = load_acquire(&m.given);
	m.now = clock_pair_now(hook_recorder.header->clock);
	if (given - m.taken > RING / 2)
		give_up();
	for (; m.taken < given; m.taken++) {
		if (copy_turn(m.taken + 1, &a))
			append(m.taken + 1, a.signature);
		else if (given - m.taken < 64)
			return; /* somebody is at it */
	}
}

static uint64_t ns_of(uint64_t ticks)
{
	const struct clock_pair *from = &hook_recorder.header->start;
	const double span = (double)(m.now.ticks - from->ticks);
	const double slope = span > 0 ? (double)(m.now.mono_ns - from->mono_ns) / span : 1;
	return from->mono_ns + (uint64_t)((double)(ticks - from->ticks) * slope);
}

bool match_waits(uint64_t signature)
{
	const struct queue *q = queue_of(signature, false);
	return q && q->first;
}

bool match_pop(uint64_t signature, uint64_t start_ns, struct predict_launch *ret_l)
{
	struct queue *q = queue_of(signature, false);
	struct pending a;
	if (!q || !q->first)
		return false;
	if (!copy_turn(q->first, &a) || a.signature != signature) {
		q->first = q->last = 0;
		return false;
	}
	if (ns_of(a.ticks) > start_ns + SLACK_NS) /* one whose launch was not seen */
		return false;
	q->first = q->first == q->last ? 0 : m.behind[q->first % RING];
	ret_l->kernel = a.kernel;
	ret_l->key = a.key;
	ret_l->args = a.args;
	memcpy(ret_l->arg, a.arg, a.args * sizeof a.arg[0]);
	return true;
}
