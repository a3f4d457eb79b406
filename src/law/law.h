/*
 * A model of a GPU that programs share: when kernels and copies of several programs run. It has no
 * I/O, clock or allocation, and the caller passes the time in nanoseconds from 0. The state is
 * plain data without pointers, so a struct law may lie in shared memory.
 *
 *	law_reset(law, &device);
 *	law_client_open(law, 0, 0);
 *	law_submit(law, &(struct law_work){ .blocks = 264, .warps = 8, .per_sm = 8,
 *		.alone_ns = 566000 }, &id);
 *	while (law_next(law) != LAW_NEVER) {
 *		law_advance(law, law_next(law));
 *		while (law_pop(law, 0, &done))
 *			...
 *	}
 *
 * One caller at a time. All arithmetic is on integers, so equal calls give equal answers
 * everywhere.
 *
 * A kernel's blocks go to the emptiest SMs with room. On an SM the oldest block is served first,
 * and the capacity to issue instructions grows with the warps (sm.c, measured on an H200). With
 * LAW_MPS blocks of all clients share the SMs, higher priority first. With LAW_SLICES one client
 * has the device for a slice, gives it up when idle, and a switch takes time. Copies have engines
 * of their own. The memory system is not modelled, so kernels that share no SM do not slow each
 * other down.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LAW_SMS = 256,
	LAW_SM_WORDS = LAW_SMS / 64,
	LAW_SM_BLOCKS = 32, /* resident at once */
	LAW_SM_WARPS = 64,
	LAW_CLIENTS = 64,
	LAW_WORKS = 16384, /* in all, those included whose end nobody has fetched */
	LAW_EDGES = 65536,
	LAW_STREAMS = 4096,
	LAW_SETS = 2048,
	LAW_SHAPES = 256,
	LAW_MAX_AFTER = 4096,
};

#define LAW_NEVER  UINT64_MAX
#define LAW_MAX_NS ((uint64_t)1 << 46) /* 19 hours */

enum law_sharing { LAW_SLICES, LAW_MPS };

/* Copies to, from and within the device; sets of memory are LAW_WITHIN. */
enum law_engine { LAW_TO_DEVICE, LAW_FROM_DEVICE, LAW_WITHIN, LAW_ENGINES };

struct law_device {
	enum law_sharing sharing;
	unsigned sms;       /* at most LAW_SMS */
	uint64_t slice_ns;  /* LAW_SLICES */
	uint64_t switch_ns; /* from one client to another */
};

/*
 * An H200 with its default slice.  The time of a switch was not measured by itself: of 65 to 130
 * us, which waits and shares ask for, it is what tests/unit/test_law.c fits best.
 */
#define LAW_H200 ((struct law_device){ .sms = 132, .slice_ns = 2000000, .switch_ns = 100000 })

/* A mark takes no time: it ends when what it is behind has ended. */
enum law_kind { LAW_MARK, LAW_KERNEL, LAW_COPY };

struct law_work {
	enum law_kind kind;
	unsigned client;
	uint64_t stream; /* behind what this stream of the client was given before; 0: no stream */
	/* Behind these works of the same client, too. */
	const uint64_t *after;
	size_t after_count;
	uint64_t lead_ns;  /* of all kinds: between being due and asking for SMs or an engine */
	uint64_t alone_ns; /* without lead_ns, with the whole device; a mark needs none */
	enum law_engine engine;
	/* Kernels: */
	uint64_t blocks;
	unsigned warps;    /* of a block */
	unsigned per_sm;   /* blocks that fit an SM at once */
	unsigned first_sm; /* the SMs that it may use: [first_sm, end_sm), */
	unsigned end_sm;   /* or all of the client's where this is 0 */
	uint64_t block_ns; /* in place of alone_ns: what one block takes on an empty SM */
	int priority;      /* of the stream, -8 to 7: higher is placed first */
	uint64_t tag;      /* the caller's own */
};

struct law_done {
	uint64_t id, tag;
	uint64_t start_ns; /* first on an SM or engine */
	uint64_t end_ns;
};

struct law;
size_t law_size(void);

/* -EINVAL for a device that can't be. */
int law_reset(struct law *law, const struct law_device *device);

/*
 * A client, 0 to LAW_CLIENTS - 1, is there from now on; one of higher priority (-8 to 7) has its
 * blocks placed first.  sms, where it is not 0, is how many SMs its kernels may use at most.
 */
int law_client_open(struct law *law, unsigned client, int priority, unsigned sms);
/* The process is gone: so is its work, at once, and ends that nobody has fetched. */
void law_client_close(struct law *law, unsigned client);

/*
 * Work is handed over now.  0; -EINVAL where it makes no sense; -EAGAIN while there are too many
 * works or too many that wait for each other.  Ids are never 0.
 */
int law_submit(struct law *law, const struct law_work *work, uint64_t *ret_id);

uint64_t law_now(const struct law *law);
/* When something changes next if nothing is submitted; LAW_NEVER. */
uint64_t law_next(const struct law *law);
/*
 * No work of the client that has not ended by now ends before that, whatever is submitted meanwhile
 * by others; LAW_NEVER when it has none.  Now where there is an end to fetch.
 */
uint64_t law_soonest(struct law *law, unsigned client);
/* Time passes, up to and including t. */
void law_advance(struct law *law, uint64_t t);

/* The next work of a client that has ended and was not fetched, in the order of ends. */
bool law_pop(struct law *law, unsigned client, struct law_done *ret_done);

/* Time of blocks on SMs, as if each were alone there: of all that clients have run so far. */
struct law_totals {
	uint64_t submitted, done, lost, waiting; /* block-nanoseconds << LAW_UNIT_BITS */
	uint64_t works, ended, cancelled;
	uint64_t switches;
};
enum { LAW_UNIT_BITS = 12 };
struct law_totals law_totals(const struct law *law);
