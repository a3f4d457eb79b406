/* Lanes of threads, and what becomes of them: see lane.h. */
#include "record/lane.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/expect.h"
#include "base/sys.h"
#include "base/tsan.h"
#include "record/chunk.h"

#define SEGMENTS 256u /* of the table, mapped as they are needed */
#define SEGMENT  64u  /* lanes a segment */
#define LOOK     4    /* lanes looked at each time */

static struct {
	_Atomic(struct lane *) segments[SEGMENTS];
	_Atomic uint32_t count; /* lanes that were ever made */
	_Atomic uint32_t hand;  /* the next that is looked at */
} table;

/* This thread's lane: its writers share it. */
static __thread struct lane *own;

void lanes_forget(void)
{
	own = NULL;
	for (uint32_t i = 0; i < SEGMENTS && load_relaxed(&table.segments[i]); i++)
		store_relaxed(&table.segments[i], NULL);
	atomic_store_explicit(&table.count, 0, memory_order_seq_cst);
	atomic_store_explicit(&table.hand, 0, memory_order_seq_cst);
}

/* NULL while another thread is about to make it. */
static struct lane *lane_at(uint32_t i)
{
	struct lane *s = load_acquire(&table.segments[i / SEGMENT]);
	return s ? s + i % SEGMENT : NULL;
}

uint32_t slots_room(uint32_t bytes, uint32_t kind)
{
	const uint32_t each =
		kind == CHUNK_RANGES ? sizeof(struct range) : sizeof(struct served_request);
	return (bytes - CHUNK_PAYLOAD) / each * each;
}

/* The end of the last record of an open chunk. */
static uint32_t end_of_records(const struct mapped *m)
{
	const uint32_t room = m->bytes - CHUNK_PAYLOAD;
	const char *const from = (const char *)m->chunk + CHUNK_PAYLOAD;
	uint32_t at = 0;
	while (room - at >= sizeof(struct record)) {
		const struct record *rec = (const struct record *)(from + at);
		const uint32_t bytes = load_relaxed(shared(&rec->words)) * 8u;
		if (bytes < sizeof(struct record) || room - at < bytes)
			break;
		at += bytes;
	}
	return expect_inside(at <= room, "records end inside their chunk") ? at : 0;
}

static void close_for_dead(const struct recorder *r, const struct mapped *m, uint32_t kind)
{
	const bool records = kind == CHUNK_EVENTS || kind == CHUNK_STACKS;
	if (load_acquire(shared(&m->chunk->state)) == CHUNK_OPEN)
		chunk_close(r, m, records ? end_of_records(m) : slots_room(m->bytes, kind));
}

bool track_park(struct track *t, const struct mapped *m)
{
	if (!t->parked || t->parked->count == PARKED) {
		const long at = sys(mmap, NULL, sizeof(struct parked), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_failed(at))
			return false;
		((struct parked *)at)->before = t->parked;
		t->parked = (struct parked *)at;
	}
	if (!expect_inside(t->parked->count < PARKED, "a page of parked chunks has room"))
		return false;
	t->parked->chunks[t->parked->count++] = *m;
	return true;
}

static void clear_parked(const struct recorder *r, struct parked *p)
{
	while (p) {
		struct parked *const before = p->before;
		for (uint64_t i = 0; i < p->count; i++) {
			close_for_dead(r, &p->chunks[i], CHUNK_RANGES);
			chunk_leave(r, &p->chunks[i]);
		}
		sys(munmap, p, sizeof *p);
		p = before;
	}
}

static void clear_track(const struct recorder *r, struct lane *lane, uint32_t kind)
{
	struct track *t = lane_track(lane, kind);
	for (int i = 0; i < LANE_MOST && t->kept[i].chunk; i++) {
		if (t->unclosed >> i & 1)
			close_for_dead(r, &t->kept[i], kind);
		chunk_leave(r, &t->kept[i]);
	}
	if (t->open.chunk) {
		close_for_dead(r, &t->open, kind);
		chunk_leave(r, &t->open);
	}
	clear_parked(r, t->parked);
	*t = (struct track){ 0 };
}

static uint64_t next_owner(uint64_t was, uint32_t tid)
{
	return ((was >> 32) + 1) << 32 | tid;
}

/* Gives a lane that was taken to a thread, or to nobody. */
static void release(struct lane *lane, uint32_t tid)
{
	const uint64_t was = atomic_load_explicit(&lane->owner, memory_order_seq_cst);
	if (!expect_inside((uint32_t)was == LANE_TAKEN, "a lane that is given was taken"))
		return;
	store_release(&lane->owner, next_owner(was, tid));
}

/* Takes a lane whose thread is no more, cleared; tid: of who asks, which may have a dead one's. */
static bool claim(const struct recorder *r, struct lane *lane, uint32_t tid)
{
	uint64_t was = atomic_load_explicit(&lane->owner, memory_order_seq_cst);
	const uint32_t of = (uint32_t)was;
	if (of == LANE_TAKEN || (of && of != tid && sys(tgkill, r->pid, of, 0) != -ESRCH) ||
		!replace_if(&lane->owner, &was, next_owner(was, LANE_TAKEN), seq_cst, seq_cst))
		return false;
	if (load_relaxed(&lane->account))
		tsan_is_gone(load_relaxed(&lane->account));
	if (of) {
		clear_track(r, lane, CHUNK_EVENTS);
		clear_track(r, lane, CHUNK_RANGES);
		clear_track(r, lane, CHUNK_STACKS);
		clear_track(r, lane, CHUNK_REQUESTS);
	}
	return true;
}

void lanes_sweep(struct recorder *r)
{
	const uint32_t count = atomic_load_explicit(&table.count, memory_order_seq_cst);
	for (int i = 0; count && i < LOOK; i++) {
		struct lane *lane = lane_at(
			atomic_fetch_add_explicit(&table.hand, 1, memory_order_seq_cst) % count);
		if (lane && (uint32_t)atomic_load_explicit(&lane->owner, memory_order_seq_cst) &&
			claim(r, lane, 0))
			release(lane, 0);
	}
}

static bool make_segment(uint32_t s)
{
	struct lane *none = NULL;
	if (load_acquire(&table.segments[s]))
		return true;
	const size_t bytes = SEGMENT * sizeof(struct lane);
	const long at =
		sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return false;
	if (!replace_if(&table.segments[s], &none, (struct lane *)at, acq_rel, acquire))
		sys(munmap, at, bytes); /* another thread was first */
	return true;
}

/* One that is there and free, or whose thread is gone. */
static struct lane *take_over(const struct recorder *r, uint32_t tid)
{
	const uint32_t count = atomic_load_explicit(&table.count, memory_order_seq_cst);
	for (int i = 0; count && i < LOOK * 2; i++) {
		struct lane *lane = lane_at(
			atomic_fetch_add_explicit(&table.hand, 1, memory_order_seq_cst) % count);
		if (lane && load_relaxed(&lane->account) && claim(r, lane, tid))
			return lane;
	}
	return NULL;
}

/* The number of a lane that nobody had, or UINT32_MAX. */
static uint32_t new_number(void)
{
	uint32_t count = atomic_load_explicit(&table.count, memory_order_seq_cst);
	do {
		if (count == SEGMENTS * SEGMENT || !make_segment(count / SEGMENT))
			return UINT32_MAX;
	} while (!atomic_compare_exchange_weak_explicit(
		&table.count, &count, count + 1, memory_order_seq_cst, memory_order_seq_cst));
	return count;
}

/* The account first: a lane without one is of no use, and would be there for good. */
static struct lane *make_lane(struct recorder *r)
{
	struct thread_account *account = account_reserve(r);
	const uint32_t number = account ? new_number() : UINT32_MAX;
	if (number == UINT32_MAX)
		return NULL;
	struct lane *lane = lane_at(number);
	if (!lane)
		return NULL;
	atomic_store_explicit(&lane->owner, LANE_TAKEN, memory_order_seq_cst);
	store_release(&lane->account, account);
	return lane;
}

struct lane *lane_own(void)
{
	return own;
}

struct lane *lane_take(struct recorder *r, uint32_t tid)
{
	if (own)
		return own;
	struct lane *lane = take_over(r, tid);
	if (!lane)
		lane = make_lane(r);
	if (!lane)
		return NULL;
	if (!expect_inside(load_relaxed(&lane->account), "a lane has an account"))
		return NULL;
	load_relaxed(&lane->account)->tid = tid;
	load_relaxed(&lane->account)->inflight_fn = 0;
	release(lane, tid);
	lane->served = (struct writer){ .kind = CHUNK_REQUESTS };
	own = lane;
	return lane;
}
