/*
 * Between reading Kineto's JSON (import_kineto.c) and making calls, activities and ranges of its
 * events (kineto_event.c, import_xla.c).  Internal to src/import.
 */
#pragma once

#include "base/progress.h"
#include "import/json_reader.h"
#include "import/import_memory.h"
#include "import/import_source.h"

#define TEXT_ID (1ull << 63)

/* A number, or a text where a number was to be expected. */
struct field {
	bool there;
	bool text; /* value is the id of a string */
	bool bad;  /* something stands there, but no number that fits */
	int64_t value;
};

enum known {
	NOTHING,
	K_PH,
	K_CAT,
	K_NAME,
	K_PID,
	K_TID,
	K_TS,
	K_DUR,
	K_ARGS,
	K_ID,
	A_EXTERNAL,
	A_CORRELATION,
	A_DEVICE,
	A_CONTEXT,
	A_STREAM,
	A_BYTES,
	A_REGISTERS,
	A_SHARED,
	A_GRAPH,
	A_GRAPH_NODE,
	A_SEQUENCE,
	A_GRID,
	A_BLOCK,
	A_NAME,
	A_DETAILS,
	A_ADDRESS, /* of allocations, and the next four */
	A_TOTAL,
	A_RESERVED,
	A_DEVICE_TYPE,
	A_DEVICE_ID,
	A_FORWARD, /* of a backward pass: the thread of the forward one */
	A_DROPPED, /* differs from event to event and says nothing */
	KNOWN_COUNT,
};

/* What an event becomes: one of these, or a bit with the kind of the range or activity. */
enum category {
	C_UNKNOWN = 1,
	C_NONE, /* says nothing about the program */
	C_CALL,
	C_RANGE = 0x40,    /* | enum range_kind */
	C_ACTIVITY = 0x80, /* | enum gpu_activity_kind */
	C_KIND = 0x3f
};

struct event {
	char phase;
	uint32_t category, name; /* strings, 0 when missing */
	struct field pid, tid;
	struct field id;      /* numbers only */
	struct field ts, dur; /* nanoseconds */
	struct field arg[KNOWN_COUNT];
	uint32_t grid[3], block[3];
	bool has_grid, has_block;
	uint32_t label;      /* args.name */
	uint32_t details;    /* what XLA says of a kernel or a copy */
	struct bounded args; /* what nothing else takes, as JSON without its end */
};

/* A begin event that waits for its end. */
struct open_range {
	uint32_t thread;
	uint32_t below; /* of the same thread: index, or STORE_NONE */
	struct range range;
};

struct named {
	uint64_t pid, tid; /* keys */
	uint32_t name;
	bool thread;
};

struct kineto {
	struct store *s;
	struct import_stats *st;
	struct json_reader r;
	struct event event;
	char args[16384]; /* of the event */
	uint64_t events;
	struct map keys;      /* hash of a key: enum known */
	ARRAY(uint8_t) kinds; /* by string: enum category, or 0 */
	ARRAY(uint16_t) fns;  /* by string: function, or 0 */
	ARRAY(struct named) names;
	ARRAY(struct open_range) open;
	struct memory_import memory;
	struct map top;                        /* thread: index into open */
	struct map crossing;                   /* process and id: into the store's ranges */
	struct map xla_processes, xla_streams; /* see import_xla.c */
	uint64_t no_time;
	uint64_t base_ns;
	struct progress progress;
	uint64_t file_bytes;
	bool saw_events;
};

struct word {
	const char *word;
	uint8_t meaning;
};

#define COUNT(a) (sizeof a / sizeof((a)[0]))

/* The meaning of a word, written in any case; 0 for one that is not known. */
uint8_t kineto_meaning(const struct word *words, size_t count, const char *text, size_t bytes);

/* Takes what k->event is. */
void kineto_event(struct kineto *k);

/* Whether the event has the name of a function of CUDA's. */
bool kineto_is_call(const struct kineto *k);

/* A pid or tid as a key of maps: 0 when there is none. */
static inline uint64_t kineto_key(const struct field *f)
{
	return f->there ? (uint64_t)f->value | (f->text ? TEXT_ID : 0) : 0;
}

/* Notes what the name of a process or thread says of its events. */
void xla_name(struct kineto *k, const struct named *n);

/* The category of k->event, which has none, by its process and thread; sets its device and stream.
 */
uint8_t xla_category(struct kineto *k);

/* "regs:32 static_shared:0 dynamic_shared:1024 grid:64,2,1 block:128,1,1", "… size:4096 …" */
void xla_details(const char *text, struct gpu_activity *w);

/* After the last event: gives processes and threads the names that metadata said. */
void kineto_names(struct kineto *k);
