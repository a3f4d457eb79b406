/*
 * Field numbers of Perfetto's messages (protos/perfetto/trace), named by message and field. Only
 * export_perfetto.c, perfetto_counters.c and perfetto_requests.c use them.
 */
#pragma once

#include <stdint.h>

#include "export/protobuf.h"

struct export;
struct proto;

#define SEQUENCE 1 /* of all packets */

/* Writes the state of the GPUs as counters, on tracks whose numbers are above `tracks`; p is empty.
 * 0 or -errno. */
int perfetto_counters(struct export *x, struct proto *p, uint32_t tracks);

/* Writes requests to servers of models, their batches and the arrows between them, on tracks whose
 * numbers are above *tracks, which becomes the last; p is empty.  0 or -errno. */
int perfetto_requests(struct export *x, struct proto *p, uint32_t *tracks);

enum { TRACE_PACKET = 1 };
enum {
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_STAGE = 53,
	PACKET_TRACK = 60,
	PACKET_GPUS = 128
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8
};
enum { COUNTER_UNIT = 6 };
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_COUNTER = 44,
	EVENT_FLOWS = 47,
	EVENT_ENDING_FLOWS = 48,
	EVENT_GPU_CORRELATION = 3000
};
enum { CORRELATION_SUBMITTED = 1 };
enum {
	STAGE_EVENT = 1,
	STAGE_DURATION = 2,
	STAGE_CONTEXT = 5,
	STAGE_EXTRA = 6,
	STAGE_GPU = 11,
	STAGE_QUEUE_IID = 13,
	STAGE_IID = 14,
	STAGE_NAME_IID = 20,
	STAGE_LAUNCH = 21
};
enum { LAUNCH_GRID = 1, LAUNCH_WORKGROUP = 2 };
enum { EXTRA_NAME = 1, EXTRA_VALUE = 2 };
enum { GPUS_GPU = 1, GPU_NAME = 1 };
enum { CONTEXT_IID = 1, CONTEXT_PID = 2, CONTEXT_API = 3, API_CUDA = 4 };
enum { SPECIFICATION_IID = 1, SPECIFICATION_NAME = 2, SPECIFICATION_CATEGORY = 4 };
enum { CATEGORY_OTHER = 0, CATEGORY_COMPUTE = 2 };
enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum {
	INTERNED_CATEGORY = 1,
	INTERNED_EVENT = 2,
	INTERNED_ANNOTATION = 3,
	INTERNED_CONTEXT = 23,
	INTERNED_SPECIFICATION = 24,
	INTERNED_STRING = 29
};
enum { IID = 1, IID_TEXT = 2 };
enum {
	ANNOTATION_NAME_IID = 1,
	ANNOTATION_UINT = 3,
	ANNOTATION_STRING = 6,
	ANNOTATION_POINTER = 7,
	ANNOTATION_NAME = 10,
	ANNOTATION_STRING_IID = 17
};

/* Opens a packet of this sequence. */
static inline void perfetto_packet(struct proto *p)
{
	proto_open(p, TRACE_PACKET);
	proto_uint(p, PACKET_SEQUENCE, SEQUENCE);
}

/* Opens the event of the packet. */
static inline void perfetto_event(
	struct proto *p, uint64_t ns, enum event_type type, uint64_t track)
{
	proto_uint(p, PACKET_TIMESTAMP, ns);
	proto_open(p, PACKET_EVENT);
	proto_uint(p, EVENT_TYPE, type);
	proto_uint(p, EVENT_TRACK, track);
}

/* Opens the track of the packet. */
static inline void perfetto_track(struct proto *p, uint64_t number, uint64_t parent)
{
	proto_open(p, PACKET_TRACK);
	proto_uint(p, TRACK_UUID, number);
	if (parent)
		proto_uint(p, TRACK_PARENT, parent);
}
