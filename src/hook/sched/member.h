/* This process on one device: its slot of the shared file, and what the gate keeps beside it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook/sched/hold.h"
#include "hook/sched/marks.h"
#include "share/arrival.h"
#include "share/segment.h"

#define MEMBERS 8u /* devices of one process */

enum member_state { MEMBER_NONE, MEMBER_JOINING, MEMBER_JOINED, MEMBER_OUTSIDE };

struct member {
	_Atomic uint32_t
		state; /* enum member_state; above it the thread that joins (join_word()) */
	_Atomic uint32_t abandoned; /* a thread has waited in vain for the one that joins */
	int ordinal;                /* CUdevice */
	struct share_file *file;
	struct share_device *device;
	struct share_slot *slot;
	uint32_t index, device_index; /* of the file */
	uint32_t sms;
	uint64_t max_wait_ns; /* not from the file, which anybody of this user may write */
	struct marks marks;
	struct hold hold;
	struct arrival arrival; /* of requests; whoever begins or ends one keeps it */
	struct arrival_run run; /* of those in quick succession */
	uint64_t quiet;         /* best effort's work when the request began; 0: there was some */
};

/*
 * The member of the current context's device, joined with the first launch there; NULL: none.  A
 * thread that finds another one joining waits for it, since what it does meanwhile would pass
 * neither gate nor quota: two seconds at most.  Then its calls pass, and the recording and weir run
 * say so.
 */
struct member *member_current(void);

/* That of a device by its number, joined the same way. */
struct member *member_of(int ordinal);

/* Whether the program sees one device, so that it is always the current one. */
bool member_is_only(void);

/* One that has joined, or NULL, by number. */
struct member *member_at(uint32_t i);

/* All that have joined.  No break. */
#define each_member(m)                                                                             \
	for (uint32_t i_ = 0; i_ < MEMBERS; i_++)                                                  \
		for (struct member *m = member_at(i_); m; m = NULL)

bool member_is_latency(const struct member *m);

/* The other programs that may have its device. */
static inline struct others member_others(const struct member *m)
{
	return (struct others){ m->file, m->device, m->index };
}

/* Its launches wait for this if they wait on the device. */
static inline struct hold_of member_hold(const struct member *m)
{
	return (struct hold_of){ m->file, m->device, m->slot, m->max_wait_ns };
}

/* The process ends: it gives its slots back.  Threads that wait may still be looking at them. */
void members_leave(void);

/* They are of the process that this one was forked from. */
void members_forget(void);
