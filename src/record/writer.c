/*
 * The slow half of a thread's writing: it keeps or leaves a full chunk and begins another. Signals
 * are blocked meanwhile, so nothing else runs on this thread.
 */
#include "record/writer.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/expect.h"
#include "base/sys.h"
#include "record/chunk.h"
#include "record/lane.h"
#include "record/sandbox.h"
#include "fn_ids.h"

#define SKIP_AFTER_REFUSAL 1024u
#define ACCOUNT_PAGE       4096u
static_assert(ACCOUNT_PAGE % sizeof(struct thread_account) == 0, "an account lies in one page");

static uint64_t block_signals(void)
{
	uint64_t all = ~0ull, mask = 0;
	sys(rt_sigprocmask, SIG_BLOCK, &all, &mask, 8);
	return mask;
}

static void restore_signals(uint64_t mask)
{
	sys(rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
}

static void add(_Atomic uint64_t *counter, uint64_t by)
{
	if (by)
		add_relaxed(counter, by);
}

void recorder_declare(struct recorder *r)
{
	add(&r->header->lost, atomic_exchange_explicit(&r->early_lost, 0, memory_order_relaxed));
	add(&r->header->unaccounted,
		atomic_exchange_explicit(&r->early_unaccounted, 0, memory_order_relaxed));
}

/* Takes the calls that this thread entered without an account. */
static uint64_t take_early(struct writer *w)
{
	const uint64_t n = w->early + (w->parted ? w->parted->entered : 0);
	if (w->parted)
		w->parted->entered = 0;
	w->early = 0;
	return n;
}

/* … is said by the process. */
static void declare_early(struct recorder *r, struct writer *w)
{
	if (w->account)
		return;
	add(r->header ? &r->header->unaccounted : &r->early_unaccounted, take_early(w));
}

void writer_lose(struct recorder *r, struct writer *w)
{
	add(r->header ? &r->header->lost : &r->early_lost, 1);
	declare_early(r, w);
}

static bool refused(struct recorder *r, struct writer *w)
{
	w->lost++;
	if (w->kind == CHUNK_EVENTS)
		writer_lose(r, w);
	else if (r->header)
		add(w->kind == CHUNK_STACKS ? &r->header->lost_stacks : &r->header->lost_ranges, 1);
	return false;
}

/* The thread's lane; with it what was entered before there was one has an account. */
static bool has_lane(struct recorder *r, struct writer *w)
{
	if (w->lane)
		return true;
	if (!w->tid)
		w->tid = (uint32_t)sys(gettid);
	w->lane = lane_take(r, w->tid);
	if (!w->lane || w->kind != CHUNK_EVENTS)
		return w->lane;
	w->account = load_relaxed(&w->lane->account);
	if (!expect_inside(w->account, "a lane has an account"))
		return false;
	add(shared(&w->account->entered), take_early(w));
	add(shared(&w->account->returned), -w->settled);
	w->settled = 0;
	return true;
}

static struct counter *make_counters(struct recorder *r, struct writer *w)
{
	const uint32_t bytes = CHUNK_PAYLOAD + FN_COUNT * sizeof(struct counter);
	const struct mapped m = chunk_new(r, CHUNK_COUNTERS, bytes, w->tid, NULL);
	if (!m.chunk)
		return NULL;
	if (!expect_inside(m.bytes >= bytes, "a chunk is as large as was asked"))
		return NULL;
	m.chunk->used = FN_COUNT * sizeof(struct counter);
	w->lane->counters = (struct counter *)((char *)m.chunk + CHUNK_PAYLOAD);
	return w->lane->counters;
}

struct counter *writer_counters(struct recorder *r, struct writer *w)
{
	if (!r->header)
		return NULL;
	if (w->counters_skip || sandbox_is_closed(r->header)) {
		w->counters_skip -= w->counters_skip > 0;
		return NULL;
	}
	const uint64_t mask = block_signals();
	struct counter *c = NULL;
	if (has_lane(r, w))
		c = w->lane->counters ? w->lane->counters : make_counters(r, w);
	w->counters_skip = c ? 0 : SKIP_AFTER_REFUSAL;
	w->counters = c;
	restore_signals(mask);
	return c;
}

struct writer *writer_of_requests(struct recorder *r)
{
	if (!r->header)
		return NULL;
	struct lane *lane = lane_own();
	if (lane)
		return &lane->served;
	const uint64_t mask = block_signals();
	lane = lane_take(r, (uint32_t)sys(gettid));
	restore_signals(mask);
	if (!lane)
		add(&r->header->lost_ranges, 1);
	return lane ? &lane->served : NULL;
}

static bool is_inside(const struct mapped *m, const char *at)
{
	const char *const from = (const char *)m->chunk + CHUNK_PAYLOAD;
	return m->chunk && at >= from && at < from + slots_room(m->bytes, CHUNK_RANGES) &&
	       (at - from) % (long)sizeof(struct range) == 0;
}

struct range *writer_range(const struct writer *w, const char *at)
{
	if (!at || !w->lane)
		return NULL;
	const struct track *t = &w->lane->ranges;
	bool found = is_inside(&t->open, at);
	for (int i = 0; !found && i < LANE_MOST && t->kept[i].chunk; i++)
		found = is_inside(&t->kept[i], at);
	for (const struct parked *p = t->parked; !found && p; p = p->before)
		for (uint64_t i = 0; !found && i < p->count; i++)
			found = is_inside(&p->chunks[i], at);
	return found ? (struct range *)(uintptr_t)at : NULL;
}

#define CHAIN_MOST (1 << 16) /* a file that others write to may hold a circle */

/*
 * Whether a range that has not ended is in the chunk.  A closed chunk may be drained, and what is
 * written into it later is lost: such a one stays open.  (range.c, finish)
 */
static bool holds_open(const struct writer *w, const struct mapped *m)
{
	const char *at = w->open;
	for (int i = 0; at && !is_inside(m, at) && i < CHAIN_MOST; i++) {
		const struct range *g = (const struct range *)at;
		const bool later = g->valid & RANGE_OPEN && g->ticks >= m->chunk->open.ticks;
		/* one around began before */
		at = later ? (const char *)writer_range(w, (const char *)g->dur) : NULL;
	}
	return at && is_inside(m, at);
}

static void close_ended(const struct recorder *r, struct writer *w)
{
	struct track *t = lane_track(w->lane, w->kind);
	for (int i = 0; i < LANE_MOST && t->unclosed >> i; i++) {
		if (!(t->unclosed >> i & 1) || holds_open(w, &t->kept[i]))
			continue;
		chunk_close(r, &t->kept[i], slots_room(t->kept[i].bytes, CHUNK_RANGES));
		t->unclosed &= ~(1u << i);
	}
}

static void take_out(struct track *t, int i)
{
	if (!expect_inside(i >= 0 && i < LANE_MOST, "the chunk taken out is among the kept"))
		return;
	const uint32_t below = t->unclosed & ((1u << i) - 1);
	t->unclosed = below | (t->unclosed >> (i + 1) << i);
	memmove(t->kept + i, t->kept + i + 1, (size_t)(LANE_MOST - 1 - i) * sizeof *t->kept);
	t->kept[LANE_MOST - 1] = (struct mapped){ 0 };
}

/* Whether this thread, or a handler that interrupted it, is writing there.  The file is not asked:
 * somebody may have changed it. */
static bool is_marked(const struct writer *w, const struct mapped *m)
{
	const uint32_t marks = w->marks;
	for (uint32_t i = 1; i <= WRITER_MARKS && i <= marks; i++) {
		const char *const at = w->mark[(marks - i) % WRITER_MARKS];
		if (at >= (const char *)m->chunk && at < (const char *)m->chunk + m->bytes)
			return true;
	}
	return false;
}

static bool is_needed(const struct writer *w, const struct track *t, int i)
{
	const struct mapped *m = &t->kept[i];
	return t->unclosed >> i & 1 || is_inside(m, w->open) || is_marked(w, m);
}

static int count_kept(const struct track *t)
{
	int n = 0;
	while (n < LANE_MOST && t->kept[n].chunk)
		n++;
	return n;
}

/* Leaves the oldest that can be, once there are as many as are worth keeping. */
static int drop_oldest(const struct recorder *r, struct writer *w, struct track *t)
{
	int n = count_kept(t);
	for (int i = 0; n >= LANE_KEPT && i < n; i++) {
		if (is_needed(w, t, i))
			continue;
		chunk_leave(r, &t->kept[i]);
		take_out(t, i);
		n--;
		break;
	}
	return n;
}

/* Puts the open chunk, now full, behind the others. */
static bool keep_chunk(struct recorder *r, struct writer *w, struct track *t)
{
	if (!t->open.chunk)
		return true;
	const uint64_t used = (uint64_t)(w->pos - (char *)w->chunk) - CHUNK_PAYLOAD;
	if (!expect_inside(w->chunk == t->open.chunk && used <= t->open.bytes - CHUNK_PAYLOAD,
		    "what is written stands in the open chunk"))
		return false;
	int last = drop_oldest(r, w, t);
	if (!expect_inside(last <= LANE_MOST, "no more are kept than there is room for"))
		return false;
	if (last == LANE_MOST) { /* each holds a range that has not ended */
		if (!track_park(t, &t->kept[0]))
			return false;
		take_out(t, 0);
		last--;
	}
	w->chunk->last = clock_pair_now(r->header->clock);
	t->kept[last] = t->open;
	if (w->kind == CHUNK_RANGES && holds_open(w, &t->open))
		t->unclosed |= 1u << last;
	else
		chunk_close(r, &t->kept[last], (uint32_t)used);
	t->open = (struct mapped){ 0 };
	return true;
}

static uint32_t next_chunk_bytes(const struct recorder *r, const struct writer *w)
{
	const uint64_t limit = r->header->limit;
	if (limit) {
		uint64_t share = limit / 64 / TRACE_GRAIN * TRACE_GRAIN;
		share = share < TRACE_GRAIN ? TRACE_GRAIN : share;
		return share > CHUNK_LATER ? CHUNK_LATER : (uint32_t)share;
	}
	/* Small while it may do to go round in the kept ones; larger when nobody drains them. */
	return w->seq <= LANE_KEPT ? CHUNK_FIRST : CHUNK_LATER;
}

/* A kept chunk that has been drained, begun anew; or none. */
static struct mapped take_drained(const struct recorder *r, struct writer *w, struct track *t,
	const struct chunk_birth *birth)
{
	for (int i = 0; r->header->mode == TRACE_FILE && i < LANE_MOST && t->kept[i].chunk; i++) {
		struct mapped m = t->kept[i];
		if (!chunk_recycle(r, &m, w->kind, birth))
			continue;
		take_out(t, i);
		return m;
	}
	return (struct mapped){ 0 };
}

static bool open_chunk(struct recorder *r, struct writer *w)
{
	if (!has_lane(r, w))
		return false;
	struct track *t = lane_track(w->lane, w->kind);
	const struct chunk_birth birth = { w->tid, w->seq, w->lost };
	close_ended(r, w);
	struct mapped m = take_drained(r, w, t, &birth);
	if (!m.chunk) {
		m = chunk_new(r, w->kind, next_chunk_bytes(r, w), w->tid, &birth);
		if (!m.chunk)
			return false;
		lanes_sweep(r);
	}
	if (!keep_chunk(r, w, t)) {
		chunk_close(r, &m, 0);
		chunk_leave(r, &m);
		return false;
	}
	t->open = m;
	w->seq++;
	w->lost = 0;
	w->chunk = m.chunk;
	w->end = (char *)m.chunk + m.bytes;
	w->pos = (char *)m.chunk + CHUNK_PAYLOAD;
	return true;
}

bool writer_refill(struct recorder *r, struct writer *w, uint32_t bytes)
{
	if (w->skip || sandbox_is_closed(r->header)) {
		w->skip -= w->skip > 0;
		return refused(r, w);
	}
	if (!w->tid)
		w->tid = (uint32_t)sys(gettid);
	if (!r->header || bytes > CHUNK_FIRST - CHUNK_PAYLOAD)
		return refused(r, w);
	const uint64_t mask = block_signals();
	bool ok = w->end - w->pos >= (long)bytes;
	if (!ok) {
		ok = open_chunk(r, w) &&
		     expect_inside(w->end - w->pos >= (long)bytes, "a new chunk has the room");
		w->skip = ok ? 0 : SKIP_AFTER_REFUSAL;
	}
	restore_signals(mask);
	return ok ? true : refused(r, w);
}

/* Puts private memory in the place of what is the parent's. */
static bool part_at(void *at, uint32_t bytes)
{
	return !sys_failed(sys(mmap, at, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

static void part_from(const struct mapped *m)
{
	if (m->chunk)
		part_at(m->chunk, m->bytes);
}

/* A call that has looked for its account and not yet counted itself would do so in its parent's. */
static struct thread_account *part_from_account(const struct writer *w)
{
	if (!w->account)
		return w->parted;
	char *const page = (char *)w->account - (uintptr_t)w->account % ACCOUNT_PAGE;
	return part_at(page, ACCOUNT_PAGE) ? w->account : NULL; /* still the parent's */
}

/* Records that child and parent both finish, and the child where nobody sees it. */
static uint32_t unfinished(const struct writer *w, const struct track *t)
{
	uint32_t n = 0;
	for (int i = 0; w->kind == CHUNK_EVENTS && i < LANE_MOST && t->kept[i].chunk; i++)
		n += chunk_unfinished(t->kept[i].chunk, t->kept[i].bytes);
	const char *at = w->chunk ? (const char *)w->chunk + CHUNK_PAYLOAD : w->pos;
	while (w->kind == CHUNK_EVENTS && w->pos - at >= (long)sizeof(struct record)) {
		const struct record *rec = (const struct record *)at;
		if (rec->words < RECORD_WORDS)
			return n + 1;
		n += !rec->fn;
		at += rec->words * 8u;
	}
	return n;
}

/* Says of n calls that they are lost, and that they were entered: the child may make no other call,
 * and so never have an account to say it. */
static void settle(struct recorder *r, uint64_t n)
{
	add(&r->early_lost, n);
	add(&r->early_unaccounted, n);
}

/* A call that the fork was in the middle of is the child's as well as the parent's. */
void writer_forked(struct recorder *r, struct writer *w)
{
	const uint64_t inside = w->before_fork, early = w->account ? 0 : take_early(w);
	struct thread_account *const parted = part_from_account(w);
	uint64_t settled = 0;
	if (w->lane) {
		struct track *t = lane_track(w->lane, w->kind);
		if (inside)
			settled = unfinished(w, t);
		settled = settled < inside ? settled : inside;
		settle(r, settled);
		part_from(&t->open);
		for (int i = 0; i < LANE_MOST; i++)
			part_from(&t->kept[i]);
	}
	*w = (struct writer){ .kind = w->kind,
		.early = inside - settled + early,
		.settled = settled,
		.parted = parted,
		.marks = w->marks };
}

void recorder_forked(struct recorder *r)
{
	recorder_identify(r);
	lanes_forget();
	shared_forget();
	if (!r->header)
		return;
	atomic_fetch_add_explicit(&r->header->processes, 1, memory_order_acq_rel);
	recorder_declare(r);
}
