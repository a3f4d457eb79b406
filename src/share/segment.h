/*
 * The memory through which programs that share a GPU know of each other (docs/arbiter-protocol.md).
 *
 * It consists of plain words, each with one kind of writer. Words of different writers are on
 * different lines of 64 bytes. Other programs write here too, so every index is checked, nothing is
 * a pointer, and no date is believed beyond the reader's own patience. Host safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

#define SHARE_MAGIC   "WEIRSHR\n"
#define SHARE_VERSION 9u
#define SHARE_DEVICES 16u
#define SHARE_SLOTS   256u
#define SHARE_WORDS   (SHARE_SLOTS / 64)
#define SHARE_NAME    32u
#define SHARE_PATH    512u
#define SHARE_LINE    __attribute__((aligned(64)))

/* The work that best effort may have in flight while no latency program is there: one that comes is
 * served after so long, and the host may fall behind for as long without a pause on the device. */
#define SHARE_ALONE_NS 20000000u

enum share_class { CLASS_NONE, CLASS_LATENCY, CLASS_BEST_EFFORT };

/* A best-effort program does this while a latency program is inside a request. */
enum share_mode {
	MODE_OPEN,   /* nothing is asked */
	MODE_GATE,   /* wait */
	MODE_CAP,    /* go to cap_sms SMs what can, wait otherwise */
	MODE_BUDGET, /* go, as far as the budget allows */
	MODE_HOLD,   /* wait, whoever is active: it is others' turn */
};

/* A program's orders, as its reader has them. */
struct share_grant {
	uint32_t class, mode;   /* enum share_class, share_mode */
	uint16_t cap_sms;       /* 0: no caps; else also while none is active, for what takes longer
				   than full_below_ns */
	uint16_t cap_ahead_sms; /* the same, for what would only meet the begin of an expected
				   request */
	uint32_t rest;          /* latency programs rest as long as they have begun one request less
				   than this (rule.h) */
	uint64_t budget_ns;     /* most work in flight; one launch always may */
	uint64_t full_below_ns; /* t90 that may run at full width */
	uint64_t ahead_ns;      /* hold what would overlap the next request by so much; 0: don't */
	uint64_t max_wait_ns;
	uint64_t hold_ns;  /* launches go at once, and wait on the device in front of each so much
			      predicted work (hook/sched/hold.h); 0: they wait in their calls */
	uint64_t alone_ns; /* most work in flight while no latency program is there, or all rest */
} SHARE_LINE;

/* The same in the shared memory, written by the arbiter and by weir sched. */
struct share_slot_grant {
	_Atomic uint32_t class, mode;
	_Atomic uint16_t cap_sms, cap_ahead_sms;
	_Atomic uint32_t rest;
	_Atomic uint64_t budget_ns, full_below_ns, ahead_ns, max_wait_ns, hold_ns, alone_ns;
} SHARE_LINE;

/*
 * Pairs of stores and loads between the processes that share here.  who.state is stored last and
 * with release by share_claim(), loaded with acquire before anything else of a slot;
 * devices[].who.state likewise by share_device().  grant.mode is stored last by the arbiter's put()
 * and loaded first by share_grant(). work.inside and the bits of `active` are changed and looked at
 * again in the order seq_cst, by show_inside() and end_lingering(); work.inside and a stream's
 * count by go_outside() and streams_submit(), with full barriers.  memory.asked and memory.used are
 * of order seq_cst for the sum of quota.c.  So are memory.wanted_until_ns, memory.wanted and
 * wanted_hint: quota_want() stores the hint last, served_give_wanted() clears it and then looks at
 * the others.  All else are amounts that stand for themselves: relaxed, and whoever reads several
 * of them may see some of them older.
 */

/* Written by the program: amounts. */
#define SHARE_QUICK_NS 500000u /* a pause that belongs to one answer */
#define SHARE_PAUSES   4u      /* of these an answer has one for a request, at most */
struct share_work {
	_Atomic uint64_t submitted_ns, retired_ns; /* predicted device time, ever growing */
	_Atomic uint64_t requests;                 /* ever begun */
	_Atomic uint64_t begun_ns;                 /* CLOCK_MONOTONIC of the last request's begin */
	_Atomic uint64_t ended_ns;                 /* and of the end of the last that has ended */
	_Atomic uint64_t next_ns;                  /* when the next is expected; 0: can't be told */
	_Atomic uint64_t lasts_ns;                 /* how long requests last, in the mean */
	_Atomic uint32_t inside;
	_Atomic uint32_t widest; /* blocks of the widest launch, as SMs that it fills; 0: unknown */
} SHARE_LINE;

struct share_who {
	uint32_t pid;
	_Atomic uint32_t state; /* enum share_state */
	uint64_t start_time;    /* of /proc/PID/stat */
	uint64_t pid_space;     /* inode of its name space of process ids */
	uint32_t device;        /* index of devices[] */
	uint32_t weight;
	_Atomic uint64_t deadline_ns, target_p99_ns;
	uint32_t sms; /* most that it may use; 0: all */
	uint32_t under_mps;
	char name[SHARE_NAME];  /* of the program, ends with NUL */
	_Atomic uint64_t stack; /* where its program's begins, of the same file; 0: not told */
	uint64_t command;       /* key of what weir run was given; 0: not told */
	uint32_t slowdown; /* thousandths of alone that its requests may take; 0: as the policy has
			      it */
} SHARE_LINE;

/* A request or a wait took so long: four buckets an octave, as share_bucket() has it. */
#define SHARE_BUCKETS 160u
struct share_counts {
	_Atomic uint64_t waits, waited_ns; /* launches that waited */
	_Atomic uint64_t expired;          /* whose patience ended */
	_Atomic uint64_t capped;
	_Atomic uint64_t predicted_ns, measured_ns,
		off_ns;              /* of work that was predicted and measured */
	_Atomic uint64_t contended;  /* measured in company: taught nothing */
	_Atomic uint64_t unmarked;   /* launches that could not be marked */
	_Atomic uint64_t request_ns; /* sum of what is in request[] */
	_Atomic uint64_t launches;   /* of kernels and graphs, ever */
	uint32_t request[SHARE_BUCKETS];
	uint32_t wait[SHARE_BUCKETS];
} SHARE_LINE;

/* Written by a latency program: how long its newest requests took. */
#define SHARE_RECENT  64u
#define SHARE_RUN     1000u /* requests in quick succession that are told together, at most */
#define SHARE_ALONE   1u    /* best effort had no work meanwhile */
#define SHARE_REGULAR 2u    /* such requests come when they are expected: they don't queue */
#define SHARE_PART    4u    /* of a run that has no end */
struct share_recent {
	_Atomic uint64_t count; /* ever; the newest is at (count - 1) % SHARE_RECENT */
	_Atomic uint64_t request[SHARE_RECENT]; /* share_packed() */
} SHARE_LINE;

/* Why the budget of best effort is what it is. */
enum share_steering {
	STEER_NONE,        /* it does not follow requests */
	STEER_NO_BASELINE, /* how long requests take alone is not known yet */
	STEER_FEW,         /* too few requests yet */
	STEER_IDLE,        /* best effort has hardly any work beside them */
	STEER_HOLDS,       /* the target is met */
	STEER_MORE,        /* they were quicker than they need to be */
	STEER_LESS,        /* they were slower */
	STEER_LEAST,       /* slower, with the least budget */
	STEER_MOST,        /* quicker, with all that there is */
	STEER_FIXED,       /* a person has set it */
	STEER_RESTS,       /* they rest */
	STEER_COUNT
};

/* Written by the arbiter, of a latency program: how its requests fare. */
struct share_steer {
	uint32_t target, p50, p90, p99; /* thousandths of alone; 0: not known */
	uint64_t alone_p50_ns;          /* 0: not known */
	uint32_t alone_requests;        /* that say so */
	uint32_t reason;                /* enum share_steering */
	uint64_t budget_ns;             /* of best effort */
	uint64_t windows_ns, passed_ns; /* in which best effort was held to see that */
} SHARE_LINE;

/* Written by the program: device memory that it holds, and what it may.  Bytes (quota.h). */
struct share_memory {
	_Atomic uint64_t used;   /* what it has allocated */
	_Atomic uint64_t asked;  /* what it is about to have */
	_Atomic uint64_t lazy;   /* of used: may not be on the device (managed memory) */
	_Atomic uint64_t idle;   /* beside used: what its pools keep, and could give back */
	_Atomic uint64_t spare;  /* of used: handles of the library's pool that others could have */
	_Atomic uint64_t wanted; /* what it waits for that others could give back; 0: nothing */
	_Atomic uint64_t wanted_until_ns;  /* CLOCK_MONOTONIC: then nobody needs to give any more */
	uint64_t quota;                    /* what its group may have on this device; 0: no quota */
	uint64_t group;                    /* whose quota it is; 0: nobody's */
	uint64_t outer_quota, outer_group; /* that it is in as well; 0: none */
	_Atomic uint64_t peak;             /* most that the group had when this program allocated */
	_Atomic uint64_t given;            /* ever given back because another wanted it */
	_Atomic uint32_t contexts;
	_Atomic uint32_t refused;  /* allocations */
	_Atomic uint32_t changing; /* calls under way that change what is used */
	_Atomic uint64_t hits;     /* allocations of the pool that needed no call of the driver */
	uint32_t took[SHARE_BUCKETS]; /* the others that had memory in the end, waits included */
} SHARE_LINE;

struct share_slot {
	struct share_work work;
	struct share_slot_grant grant;
	struct share_memory memory;
	struct share_who who;
	struct share_counts counts;
	struct share_recent recent;
	struct share_steer steer;
};

/* One that is claimed has above these the name space of the process that is at it. */
enum share_state { SLOT_FREE, SLOT_CLAIMED, SLOT_LIVE };
#define SLOT_STATE_BITS 8

struct share_device {
	_Atomic uint64_t present[SHARE_WORDS] SHARE_LINE; /* latency programs */
	_Atomic uint64_t active[SHARE_WORDS];             /* inside a request */
	_Atomic uint64_t requests SHARE_LINE;             /* of latency programs, ever begun */
	_Atomic uint64_t members[SHARE_WORDS];            /* programs of all classes */
	struct {
		_Atomic uint32_t state; /* enum share_state */
		uint32_t sms;           /* of one that is claimed, the process that makes it */
		uint8_t uuid[16];
		_Atomic uint64_t context_bytes; /* that a context takes, as measured; 0: not yet */
		_Atomic uint64_t wanted_hint;   /* somebody waits for memory, or has */
	} who SHARE_LINE;
};

/* Which segment it is (attach.c). */
struct share_identity {
	uint64_t key;       /* drawn by lot */
	uint64_t ipc_space; /* inode of the name space in which its id counts; 0: unknown */
	uint64_t id;
};

struct share_file {
	char magic[8];
	uint32_t version, size; /* size: of all of it */
	struct share_identity identity;
	struct {
		_Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC */
		uint32_t pid;
		_Atomic uint32_t open;   /* all gates */
		_Atomic uint32_t server; /* process of the weir sched start that runs; 0: it ends */
		uint32_t min_share; /* millionths of the device time; 0: as the policy has it */
		char policy[16];
		_Atomic uint64_t joined;  /* slots ever claimed */
		_Atomic uint64_t refused; /* programs for which there was none */
		_Atomic uint64_t passed; /* programs of which calls passed before they had joined */
		_Atomic uint64_t
			unpooled; /* pools that the library did not make, where one was wanted */
	} arbiter SHARE_LINE;
	/* A person's wishes to the policy; 0: as it is by default. */
	struct share_tuning {
		uint64_t budget_ns, full_below_ns;
		uint32_t cap_sms;
		uint32_t min_share; /* millionths of the device time */
		uint64_t hold_ns, alone_ns;
		uint32_t slowdown; /* thousandths of alone */
	} tuning SHARE_LINE;
	struct share_device devices[SHARE_DEVICES];
	struct share_slot slots[SHARE_SLOTS];
};

/* The one that DIR/sched names, attached, or a new one.  NULL, and *ret_why says why not, and what
 * to do. */
struct share_file *share_open(const char *directory, const char **ret_why);
void share_close(struct share_file *f);

/* Puts into DIR/sched which segment this is, unless that names another that is there, and what a
 * person has set: the next one begins with it. */
void share_keep(const struct share_file *f, const char *directory);

/* The inode of a name space; 0: unknown. */
uint64_t share_space(const char *path);

/* Bytes of a segment, in whole pages. */
size_t share_mapped_bytes(void);

/* The directory where none is given: "" when its name is too long. */
void share_directory(char ret[SHARE_PATH], const char *runtime_directory);

/* A program's words of itself. */
struct share_self {
	struct share_who who; /* what share_claim() can't know */
	uint32_t class;
	uint64_t deadline_ns, target_p99_ns, max_wait_ns;
	const _Atomic uint32_t *held; /* bits of the devices where it has slots, which others of its
				 threads may just be claiming; NULL: none */
	uint64_t quota, group;        /* bytes of device memory, and whose they are; 0: no quota */
	uint64_t outer_quota, outer_group;
};

/* The entry of a device, made when it is new; SHARE_DEVICES: there is no room. */
uint32_t share_device(struct share_file *f, const uint8_t uuid[16], uint32_t sms);

/* A slot of the calling process: SHARE_SLOTS when there is none left.  It gives back what it does
 * not hold: exec() keeps the process. */
uint32_t share_claim(struct share_file *f, uint32_t device, const struct share_self *self);

/* One that the calling process has. */
void share_release(struct share_file *f, uint32_t slot);

/* A slot's present orders.  Each word is right, though the arbiter may be changing them. */
struct share_grant share_grant(const struct share_slot *s);

/* The class of a slot changes: its bits with it. */
void share_set_class(struct share_file *f, uint32_t slot, enum share_class class);

/* Whether a program has it, which may be dead. */
static inline bool share_is_joined(const struct share_slot *s)
{
	return load_acquire(&s->who.state) == SLOT_LIVE;
}

/* Whether its process is known to be gone, or has become another program: of another name space of
 * process ids nobody knows. */
bool share_is_dead(const struct share_slot *s);

static inline bool share_is_live(const struct share_slot *s)
{
	return share_is_joined(s) && !share_is_dead(s);
}

/* Whether there was a sign of one in the last second. */
static inline bool share_has_arbiter(const struct share_file *f, uint64_t now)
{
	const uint64_t beat = load_relaxed(&f->arbiter.heartbeat_ns);
	return beat && (beat > now || now - beat < 1000000000u);
}

/* Predicted device time of all that live there. */
uint64_t share_retired(const struct share_file *f, uint32_t device);

/* If requests follow each other soon, beside what they take, one that has ended counts as active
 * until the next, for twice as long as that is expected to take: until when; 0: it does not. */
static inline uint64_t share_lingers_until(const struct share_work *w)
{
	const uint64_t ended = load_relaxed(&w->ended_ns), next = load_relaxed(&w->next_ns);
	const uint64_t pause = next > ended ? next - ended : 0;
	const bool lingers = pause && pause <= SHARE_QUICK_NS &&
			     SHARE_PAUSES * pause < load_relaxed(&w->lasts_ns);
	return lingers ? next + pause : 0;
}

/* Clears the bits in `active` of those that have lingered for long enough.  True: some still do. */
bool share_end_lingering(struct share_file *f, uint32_t device, uint64_t now);

/* Frees it if its process is dead, or was killed while it claimed or freed it. */
bool share_bury_slot(struct share_file *f, uint32_t slot);

/* Frees the slots of the dead; how many. */
uint32_t share_bury(struct share_file *f);

static inline bool share_bit(const _Atomic uint64_t bits[SHARE_WORDS], uint32_t slot)
{
	return load_relaxed(&bits[slot / 64]) >> slot % 64 & 1;
}

static inline void share_bit_set(_Atomic uint64_t bits[SHARE_WORDS], uint32_t slot)
{
	atomic_fetch_or_explicit(&bits[slot / 64], 1ull << slot % 64, memory_order_seq_cst);
}

static inline void share_bit_clear(_Atomic uint64_t bits[SHARE_WORDS], uint32_t slot)
{
	atomic_fetch_and_explicit(&bits[slot / 64], ~(1ull << slot % 64), memory_order_seq_cst);
}

/* Each bit that is set in SHARE_WORDS words: i is its number, and `bits` is word w.  No break. */
#define each_bit(i, w, bits)                                                                       \
	for (uint32_t w = 0; w < SHARE_WORDS; w++)                                                 \
		for (uint64_t left_ = (bits); left_; left_ &= left_ - 1)                           \
			for (uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(left_), once_ = 1;    \
				once_; once_ = 0)

/* Whether any is set. */
static inline bool share_any(const _Atomic uint64_t bits[SHARE_WORDS])
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < SHARE_WORDS; i++)
		all |= load_relaxed(&bits[i]);
	return all;
}

/* Four buckets an octave: bucket i holds [share_bucket_ns(i), share_bucket_ns(i + 1)). */
static inline uint32_t share_bucket(uint64_t ns)
{
	if (ns < 4)
		return (uint32_t)ns;
	const uint32_t octave = 63 - (uint32_t)__builtin_clzll(ns);
	const uint32_t at = 4 * (octave - 1) + (uint32_t)(ns >> (octave - 2) & 3);
	return at < SHARE_BUCKETS ? at : SHARE_BUCKETS - 1;
}

static inline uint64_t share_bucket_ns(uint32_t i)
{
	return i < 4 ? i : (4ull + i % 4) << (i / 4 - 1);
}

/* The smallest duration, in ns, that the fraction p of all in the buckets does not exceed: the
 * middle of its bucket, 0 when all are empty. */
uint64_t share_percentile(const uint32_t bucket[SHARE_BUCKETS], double p);

static inline void share_count(uint32_t bucket[SHARE_BUCKETS], uint64_t ns)
{
	add_relaxed(shared(&bucket[share_bucket(ns)]), 1);
}

static inline void share_count_request(struct share_counts *c, uint64_t ns)
{
	share_count(c->request, ns);
	add_relaxed(&c->request_ns, ns);
}

static inline void share_count_wait(struct share_counts *c, uint64_t ns, bool expired)
{
	add_relaxed(&c->waits, 1);
	add_relaxed(&c->waited_ns, ns);
	if (expired)
		add_relaxed(&c->expired, 1);
	share_count(c->wait, ns);
}

/* So many requests in quick succession took ns each, in the mean. */
static inline uint64_t share_packed(uint64_t ns, uint32_t count, uint32_t bits)
{
	return ns << 13 | (uint64_t)count << 3 | bits;
}

static inline void share_tell_request(struct share_recent *r, uint64_t request)
{
	const uint64_t at = add_relaxed(&r->count, 1);
	store_release(&r->request[at % SHARE_RECENT], request);
}
