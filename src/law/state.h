/*
 * The parts of a struct law, for the files of this module.
 *
 *	works    a pool; each is WAITING for others, in LEAD until its date, READY for SMs or an
 *	         engine, RUNNING, DONE until it is fetched
 *	timers   a heap of dates: ends of leads, ends of copies
 *	fields   the SMs as a client sees them: one for all under LAW_MPS, else one a client, of
 *	         which one at a time is on the device and the others stand still
 *	sets     SMs of a field in the same state, computed once
 *
 * A field begins as one set. A kernel that reaches only some of its SMs splits the set, and equal
 * sets merge again. Lists are indices with NONE at their end.
 */
#pragma once

#include "base/check.h"
#include "law/law.h"

#define NONE UINT32_MAX

enum {
	ONE = 1 << LAW_UNIT_BITS, /* the rate of a block that is alone on its SM */
	ROOM = 1 << 16,           /* what blocks take shares of */
	PROBE_NS = 1 << 24,
};

enum state { FREE, WAITING, LEAD, READY, RUNNING, DONE };

struct work {
	uint32_t generation;
	uint8_t state, kind, client, engine;
	int16_t priority;
	uint16_t first_sm, end_sm, warps;
	uint32_t share; /* of ROOM, one block */
	uint32_t left, resident;
	uint32_t waits; /* for so many others */
	uint32_t edges; /* who waits for it */
	uint32_t next;  /* in the one list that it is in */
	uint64_t units; /* of one block; of a copy: ns */
	uint64_t lead_ns, seq, tag, start_ns, end_ns;
};

struct edge {
	uint32_t to, next;
};

struct timer {
	uint64_t at_ns, seq;
	uint32_t work;
};

struct block {
	uint64_t units; /* left to do */
	uint32_t rate;  /* units a nanosecond, at most ONE */
	uint16_t work;
	uint8_t warps, client;
};

struct set {
	uint64_t sms[LAW_SM_WORDS];
	uint64_t at_ns, next_ns; /* blocks are as of at_ns; the first ends at next_ns */
	uint32_t next;           /* in its field, or among those not in use */
	uint32_t used;           /* of ROOM */
	uint16_t count;          /* of SMs */
	uint16_t warps, blocks;
	bool stale; /* its rates and next_ns are those of before the last change */
	struct block block[LAW_SM_BLOCKS]; /* the oldest first */
};

struct field {
	uint32_t sets, ready; /* ready: kernels with blocks left, in the order of placing */
	bool dirty;           /* there is something new to place, or room */
};

struct list {
	uint32_t first, last;
};

struct client {
	bool open;
	int8_t priority;
	uint16_t sms;
	uint32_t kernels; /* that want SMs, or soon will */
	struct list done;
};

struct stream {
	uint64_t key; /* of its client and number, 0 while it is not in use */
	uint64_t last;
};

struct shape {
	uint32_t key;
	uint64_t time_ns;
};

struct law {
	struct law_device device;
	uint64_t now, sm_next, next_seq;
	struct law_totals totals;
	uint32_t work_count, free_works, free_edges, edge_count, free_sets, timer_count;
	struct list ended; /* works whose ends are yet to be told to those that wait */
	struct list queue[LAW_ENGINES];
	bool engine_busy[LAW_ENGINES];
	/* LAW_SLICES: the client whose context is on the device. */
	uint32_t loaded, target, wanting;
	bool running, switching;
	uint64_t slice_end, switch_at;
	struct client clients[LAW_CLIENTS];
	struct field fields[LAW_CLIENTS];
	struct shape shapes[LAW_SHAPES];
	struct set probe; /* one SM to compute on */
	struct stream streams[LAW_STREAMS];
	struct set sets[LAW_SETS];
	struct work works[LAW_WORKS];
	struct timer timers[LAW_WORKS];
	struct edge edges[LAW_EDGES];
};

/* law.c: the work has ended now. */
void work_ended(struct law *law, uint32_t work);

/* sm.c */
struct field *field_of(struct law *law, unsigned client);
void field_init(struct law *law, struct field *field);
/* Gives blocks to SMs as long as some fit. */
void field_place(struct law *law, struct field *field);
/* Ends the blocks that are due. */
void field_finish(struct law *law, struct field *field);
/* When the next of its blocks ends. */
uint64_t field_next(struct law *law, const struct field *field);
void field_ready(struct law *law, struct field *field, uint32_t work);
/* The field leaves the device, and comes back. */
void field_freeze(struct law *law, struct field *field);
void field_thaw(struct law *law, struct field *field);
void field_drop(struct law *law, struct field *field, unsigned client);
/* How long `blocks`, which alone would take PROBE_NS each, take on one SM. */
uint64_t sm_probe(struct law *law, unsigned blocks, unsigned warps, unsigned per_sm);

/* turn.c: whose turn it is under LAW_SLICES. */
void turn_take(struct law *law);
uint64_t turn_next(const struct law *law);
/* The field whose blocks run now, or NULL. */
struct field *turn_field(struct law *law);
void turn_drop(struct law *law, unsigned client);
