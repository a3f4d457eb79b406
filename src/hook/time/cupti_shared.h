/*
 * Serves another client of CUPTI in the same program, such as PyTorch's profiler. CUPTI has one
 * pair of buffer callbacks and one clock a process.
 *
 * CUPTI fills our buffers. Records of kinds and times that the other client enabled are copied into
 * its own buffers through its own callbacks. It chooses the clock, and we convert our dates with
 * pairs of readings. It is called from its first enabling to the flush after its last disabling,
 * and not after exit.
 *
 * Its calls may come from any thread, and buffers from any of CUPTI's. Nothing here allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_KINDS 64 /* more than there are kinds of activity */

typedef void share_request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records);
typedef void share_complete(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
typedef int share_next(uint8_t *buffer, size_t valid, void **record);

/* The client's requests to CUPTI, whether or not we collect yet. */
void share_callbacks(share_request *request, share_complete *complete);
void share_clock(uint64_t (*now)(void), bool collecting);
void share_enable(int kind, bool on);
bool share_is_enabled(int kind);
bool share_is_clock(uint64_t (*now)(void));
bool share_has_client(void);
bool share_has_clock(void);

/* It has ended CUPTI, and is gone. */
void share_forget(void);

/* A pair of readings of both clocks; now and then. */
void share_read_clocks(void);

/* A date of the client's clock, or one from before there was a client, in CLOCK_MONOTONIC. */
uint64_t share_to_monotonic(uint64_t date);

/* Whether that can be one: work in flight while the clock was changed has none. */
bool share_is_date(uint64_t monotonic_ns);

/* Gives the client what is its in a buffer of ours. */
void share_copy(share_next *next, void *context, uint32_t stream, uint8_t *buffer, size_t valid);

/* Asks the client for a buffer ahead, when it has enabled something. */
void share_prepare(void);

/* Around its own flush.  One after it has ended everything is the last that it hears of us. */
void share_begin_flush(void);
void share_end_flush(void);

/*
 * At exit.  Its variables may be destroyed already: from then on it is shut, and called from
 * within its own flush alone.
 */
void share_leave(void);
bool share_is_shut(void);

/* Gives the client a buffer of its own. */
void share_pass(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

/* Records that CUPTI dropped: added by whoever asks CUPTI, taken for the client. */
void share_add_dropped(size_t count);
size_t share_take_dropped(void);

/* In the child of a fork: threads that held a lock are not there to release it. */
void share_forked(void);
