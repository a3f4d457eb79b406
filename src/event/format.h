/*
 * The layout of the trace file. docs/reference/trace-format.md says how a reader puts it together.
 *
 * A raw trace is a header and a run of chunks, multiples of TRACE_GRAIN bytes, that the recorded
 * processes map and fill. A packed trace is the same header and a compressed block for each chunk.
 * Everything is little-endian and aligned to 8.
 *
 * src/record/writer.c (inside the recorded program) and src/trace write it. Each field's comment
 * says who may write it while a program runs.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#ifndef WEIR_EVENT_FORMAT_H
#define WEIR_EVENT_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC   "WEIRTRC\n"
#define TRACE_VERSION 1u
#define TRACE_GRAIN   65536u

enum trace_form { TRACE_RAW = 0, TRACE_PACKED = 1 };
enum trace_clock { CLOCK_IS_TSC = 0, CLOCK_IS_MONOTONIC = 1 };
enum trace_mode { TRACE_FILE = 0, TRACE_FLIGHT = 1 };
enum trace_stop { STOP_NOT = 0, STOP_SIZE = 1, STOP_DISK = 2, STOP_ASKED = 3, STOP_CUT = 4 };
enum trace_state { TRACE_RECORDING = 0, TRACE_FINISHED = 1 };

/* Bits of trace_header.optional. */
#define FEATURE_DEVICE    1u  /* chunks CHUNK_DEVICE, CHUNK_RANGES and CHUNK_LINKS may be here */
#define FEATURE_SANDBOXED 2u  /* a process got a system-call filter while it was recorded */
#define FEATURE_ACCOUNTS  4u  /* chunks have an identity, and CHUNK_ACCOUNTS may be here */
#define FEATURE_CAPTURE   8u  /* parts of the run were recorded: they are ranges RANGE_CAPTURE */
#define FEATURE_REBUILT   16u /* GPU activities are reconstructed from those in CHUNK_MEASURED */
#define FEATURE_STACKS    32u /* CHUNK_STACKS or CHUNK_CALLERS may be here; lost_stacks counts */
#define FEATURE_ENDS      64u /* the recording ends before `next` reaches the limit */

/* One reading of three clocks, taken together. */
struct clock_pair {
	uint64_t ticks;   /* the trace's clock */
	uint64_t mono_ns; /* CLOCK_MONOTONIC */
	uint64_t real_ns; /* CLOCK_REALTIME */
};

struct trace_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;     /* where the first chunk or block begins */
	uint64_t required;         /* feature bits without which the file can't be read */
	_Atomic uint64_t optional; /* feature bits that a reader may ignore */
	uint32_t form;             /* enum trace_form */
	uint32_t clock;            /* enum trace_clock */
	uint32_t mode;             /* enum trace_mode */
	uint32_t launched;         /* 1: weir record made the file and will finish it */

	/* The _Atomic members change while programs run, by any of them or by weir ctl.  `closed`
	 * is added to with release behind a chunk's state, and loaded with acquire by drain_step();
	 * `free`, newest_closed and first_closed are swapped acq_rel (record/chunk.c, flight.c).
	 * The others stand for themselves. */
	_Atomic uint32_t control;   /* CONTROL_…: what to record now */
	_Atomic uint32_t state;     /* enum trace_state */
	_Atomic uint64_t next;      /* raw: first byte that no chunk has */
	uint64_t limit;             /* next stays below this; 0: no limit */
	_Atomic uint64_t lost;      /* calls that no chunk could keep */
	_Atomic uint64_t reused;    /* flight: chunks overwritten */
	_Atomic uint32_t failures;  /* failing calls so far: a futex for flight recording */
	_Atomic uint32_t processes; /* processes that have written here */

	struct clock_pair start;
	struct clock_pair end;   /* zero until somebody reads the clocks again */
	uint32_t root_pid;       /* the process whose run this is */
	uint32_t exit_status;    /* of the root process, as wait() gives it; with state finished */
	_Atomic uint32_t closed; /* chunks closed so far: tells who drains them that there is one */
	_Atomic uint32_t unnamed;     /* names, graphs and notes that found no room */
	uint64_t root_start;          /* field 22 of /proc/root_pid/stat */
	_Atomic uint64_t lost_ranges; /* ranges that no chunk could keep */
	uint32_t sampled;             /* one launch in so many was timed; 0: all activities were */
	_Atomic uint32_t stopped;     /* enum trace_stop: nothing is begun any more */
	_Atomic uint64_t
		free; /* list of free chunks: granule of the first, 0 none; upper half: changes.
		       * Flight: of the oldest closed chunk, or 0 before there were two */
	_Atomic uint64_t stopped_ticks; /* when it was */
	_Atomic uint64_t off_ns;        /* how long nothing was recorded, before off_since_ns */
	_Atomic uint64_t
		off_since_ns; /* nothing is, since then (CLOCK_MONOTONIC); 0: it is recorded */
	char host[64];        /* NUL-terminated */
	char program[208];    /* the command line, spaces between, cut to fit, NUL-terminated */
	/* Raw: the file was at least so long, however short it is now; before, more of the command
	 * line. */
	_Atomic uint64_t grown;
	/* Flight: the queue of closed chunks (record/flight.h); before, more of the command line.
	 */
	_Atomic uint64_t newest_closed; /* granule of the newest; upper half: changes */
	_Atomic uint64_t first_closed;  /* of the chunk that was closed first, likewise */
	_Atomic uint64_t lost_stacks; /* with FEATURE_STACKS: call stacks that no chunk could keep;
				       * before, more of the command line */
	/* With FEATURE_ACCOUNTS; before, more of the command line. */
	_Atomic uint64_t overwritten; /* flight: calls that stood in chunks that were overwritten */
	_Atomic uint64_t
		unaccounted; /* calls entered by threads that had no struct thread_account */
};
static_assert(sizeof(struct trace_header) == 536, "on disk");
static_assert(offsetof(struct trace_header, control) == 48, "on disk");
static_assert(offsetof(struct trace_header, start) == 96, "on disk");

enum chunk_kind {
	CHUNK_EVENTS = 1,    /* records of one thread, in the order they ended */
	CHUNK_META = 2,      /* records of a process: names, graphs, notes */
	CHUNK_COUNTERS = 3,  /* struct counter per function id, of one thread */
	CHUNK_UNKNOWN = 4,   /* uint64_t per function that the tables do not know */
	CHUNK_SCHEMA = 5,    /* text: the functions that the ids stand for */
	CHUNK_PACKED = 6,    /* blocks, as in a packed trace: chunks that were drained */
	CHUNK_DEVICE = 7,    /* struct gpu_activity: what ran on the GPUs of a process */
	CHUNK_RANGES = 8,    /* struct range: operators, annotations, NVTX */
	CHUNK_LINKS = 9,     /* struct link: which call launched which activity */
	CHUNK_ACCOUNTS = 10, /* struct thread_account: what the threads of a process entered */
	CHUNK_SAMPLES = 11,  /* struct gpu_sample: what NVML said of the machine's GPUs; of no
			      * process, like the schema */
	CHUNK_MEASURED = 12, /* struct gpu_activity: what CHUNK_DEVICE is reconstructed from */
	CHUNK_STACKS = 13,   /* struct record with stack_word: pieces of the stack of one thread */
	CHUNK_CALLERS = 14,  /* what became of those: META_FRAME, META_STACK, and a record a call
			      * whose arg[0] is its stack */
	CHUNK_REQUESTS = 15, /* struct served_request: what a server of models was asked */
};

enum chunk_state {
	CHUNK_OPEN = 1,   /* its thread writes here */
	CHUNK_CLOSED = 2, /* full; its thread may still have it mapped, and hopes to reuse it */
	CHUNK_LEFT = 3,   /* full, and nobody will come back to it */
	CHUNK_FREE = 4,   /* drained: what it held stands in a CHUNK_PACKED; to be passed over */
};

#define CHUNK_MAGIC 0x4b484357u /* "WCHK" */

struct chunk_header {
	uint32_t magic;
	uint16_t kind;  /* enum chunk_kind */
	uint16_t state; /* enum chunk_state; while OPEN readers scan for the end.  Stored with
			 * release behind all else, by begin() and chunk_close(); drain.c and
			 * chunk_recycle() look at it first */
	uint32_t bytes; /* the whole chunk; a multiple of TRACE_GRAIN */
	uint32_t used;  /* payload bytes; valid when closed */
	uint32_t pid;
	uint32_t tid;
	uint32_t seq;       /* counts the chunks of this thread from 0 */
	uint32_t next_free; /* CHUNK_FREE: granule of the next in the list, 0 none.  Without
			     * FEATURE_ACCOUNTS: the call that had not returned, or 0 */
	uint64_t identity;  /* of the process, drawn by lot.  Without FEATURE_ACCOUNTS: when that
			     * call began */
	uint64_t process_start; /* field 22 of /proc/pid/stat: tells a reused pid */
	uint64_t lost; /* calls (ranges) of this thread lost before this chunk began; CHUNK_DEVICE:
			* GPU activities lost while it was open */
	struct clock_pair
		open; /* when the chunk was begun.  chunk_wipe() stores 0 before it wipes the
		       * payload; check_same() in trace/load.c compares behind its copy */
	struct clock_pair last; /* a later reading, or zeros */
	char thread[16];        /* the thread's name, NUL-terminated */
};
static_assert(sizeof(struct chunk_header) == 120, "on disk");

/* Calls, ranges, stacks and requests come without end: their chunks are drained while a program
 * runs, and in flight the oldest are overwritten. */
static inline bool chunk_is_drained(uint16_t kind)
{
	return kind == CHUNK_EVENTS || kind == CHUNK_RANGES || kind == CHUNK_STACKS ||
	       kind == CHUNK_REQUESTS;
}

#define CHUNK_PAYLOAD 128u /* offset of the payload in a chunk */

/*
 * One call.  The word that holds dur, fn and words is written last: fn 0 with words set is
 * a record that was begun and not finished, all zero is the end.
 */
struct record {
	uint64_t ticks; /* when the call began */
	uint32_t dur;   /* ticks it took; in units of 1024 with RECORD_LONG */
	uint16_t fn;    /* function id of the schema, or META_… */
	uint16_t words; /* whole record, in words of 8 bytes */
	uint32_t aux;   /* launch layout: shared memory bytes; others: bit i set = argument i
			 * is an output that has no value (NULL, or the call failed) */
	uint16_t result;
	uint16_t flags; /* RECORD_… */
	uint64_t arg[];
};
static_assert(sizeof(struct record) == 24, "on disk");

#define RECORD_WORDS 3u /* words before arg[] */

enum record_flags {
	RECORD_CAPTURED = 1,   /* went into a graph being captured, did not run */
	RECORD_LONG = 2,       /* dur counts 1024 ticks */
	RECORD_CUT = 4,        /* a string was longer than what is kept */
	RECORD_CLUSTER = 8,    /* launch layout: arg[5] present */
	RECORD_ARGS = 16,      /* launch layout: what the kernel was given stands behind */
	RECORD_PREDICTED = 32, /* launch layout, or the launch of a graph: the last word is a time
				* that was predicted */
};

/* The launch layout: arg[] of functions whose record column says launch or rtlaunch. */
enum launch_word {
	LAUNCH_FUNCTION = 0,
	LAUNCH_STREAM = 1,
	LAUNCH_GRID_XY = 2,        /* x in the low half */
	LAUNCH_GRID_Z_BLOCK_X = 3, /* grid z in the low half */
	LAUNCH_BLOCK_YZ = 4,       /* block y in the low half */
	LAUNCH_CLUSTER = 5,        /* x, y, z of 16 bits; bit 48 cooperative; bit 49 programmatic
				    * stream serialization; bits 56.. number of attributes */
	LAUNCH_WORDS = 5,
	GRAPH_LAUNCH_WORDS = 2, /* executable graph, stream */
};

/* With RECORD_ARGS, behind the words of the launch. */
enum args_word {
	ARGS_KEY = 0,    /* the same for equal scalars: args.h */
	ARGS_COUNTS = 1, /* bits 0..7 values kept, 8..31 scalars in all, 32.. bytes read */
	ARGS_VALUES = 2, /* the values kept */
};
#define ARGS_KEPT 8u

/*
 * A piece of CHUNK_STACKS: a record with the fn, ticks and dur of the call whose stack it is, so
 * that the thread and ticks join it with the call's own record.  Registers as they were in the
 * injected library, then Python's frames, innermost first, then aux bytes of the stack from the
 * stack pointer on.
 */
enum stack_word {
	STACK_PC = 0,
	STACK_SP = 1,
	STACK_FP = 2,     /* rbp; arm64: x29 */
	STACK_SAVED = 3,  /* rbx, r12 to r15; arm64: x30, x19 to x22 */
	STACK_COUNTS = 8, /* bits 0..15 frames of Python kept; bit 16: there are more of them;
			   * bit 17: the registers are those of arm64 */
	STACK_WORDS = 9,
};
#define STACK_PYTHON_MORE (1u << 16)
#define STACK_AARCH64     (1u << 17)

/* A frame of Python: the code's number (META_CODE) in the low half, what follows in the high one.
 */
#define STACK_PYTHON_ENTRY                                                                         \
	(1ull << 63)                /* C called it: the frame below is the caller's of that C      \
				     */
#define STACK_PYTHON_AT 0x7fffffffu /* bits 32..62: bytes into its instructions */

enum meta_id {
	META_PROCESS = 0xff01,    /* arg[0] parent pid; text: exe NUL arguments, NUL between */
	META_KERNEL = 0xff02,     /* arg[0] function or kernel handle, arg[1] its module or library;
				   * text: mangled name */
	META_ALIAS = 0xff03,      /* arg[0] a second handle of arg[1]'s kernel */
	META_GRAPH = 0xff04,      /* arg[0] executable graph, arg[1] its node count, arg[2] index of
				   * the first node here; then aux × struct graph_node */
	META_NODE = 0xff05,       /* arg[0] executable graph; then one struct graph_node: replaces
				   * the node of that handle */
	META_UNKNOWN = 0xff06,    /* arg[0] index in the process's CHUNK_UNKNOWN; text: name */
	META_MESSAGE = 0xff07,    /* text: something the reader should be told */
	META_STRING = 0xff08,     /* arg[0] id; text: what it stands for in this process */
	META_DEVICE = 0xff09,     /* arg[0] device, arg[1] bytes of memory, arg[2] multiprocessors,
				   * arg[3] compute capability, major << 16 | minor; text: name */
	META_ATTRIBUTES = 0xff0a, /* arg[0] function or kernel handle, arg[1] which are known
				   * (bit i: attribute i), then two attributes a word, the first
				   * in the low half: enum kernel_attribute */
	META_UUID = 0xff0b,       /* arg[0] device, arg[1] and arg[2] its UUID, bytes as they are */
	META_FACT = 0xff0c,       /* text: a key, a space, a value: what it was recorded with */
	META_CLOCKS = 0xff0d,     /* arg[0] device, arg[1] and arg[2] the highest clocks of its
				   * multiprocessors and its memory, kHz */
	META_MAPPING =
		0xff0e,     /* code of a file: arg[0] first address, arg[1] end, arg[2] offset in
			     * the file, arg[3] bytes of its build-id; text: that, then the path */
	META_CODE = 0xff0f, /* code of Python: arg[0] number, arg[1] first line, and from bit 32 and
			     * 40 on bytes of a character of the file's name and of the
			     * function's, arg[2] bytes of the one, in the upper half of the
			     * other; text: both, then the table of lines (co_linetable) */
	META_FRAME = 0xff10, /* of CHUNK_CALLERS: arg[0] number, arg[1] line, 0 unknown; in the
			      * upper half enum caller_kind; text: function NUL module NUL file */
	META_STACK = 0xff11, /* of CHUNK_CALLERS: arg[0] number, arg[1] how many frames, in the
			      * upper half enum stack_end; text: their numbers, of 4 bytes */
};

enum caller_kind {
	CALLER_NATIVE = 0,
	CALLER_PYTHON = 1,
	CALLER_WEIR = 2 /* of the injected library */
};
enum stack_end {
	STACK_WHOLE = 0, /* to the beginning of the thread */
	STACK_CUT = 1,   /* the piece that was kept ends before */
	STACK_UNKNOWN =
		2, /* whose caller is not known: no unwind information, or code without a file */
};

enum kernel_attribute {
	ATTRIBUTE_REGISTERS, /* a thread */
	ATTRIBUTE_MAX_THREADS,
	ATTRIBUTE_STATIC_SHARED, /* bytes a block */
	ATTRIBUTE_MAX_DYNAMIC_SHARED,
	ATTRIBUTE_LOCAL,          /* bytes a thread */
	ATTRIBUTE_CONST,          /* bytes */
	ATTRIBUTE_BINARY_VERSION, /* 90 is 9.0 */
	ATTRIBUTE_PTX_VERSION,
	ATTRIBUTES,
};

/* "text" is aux bytes after the args named, padded with NULs to a word. */

struct graph_node {        /* of META_GRAPH and META_NODE */
	uint32_t type;     /* CUgraphNodeType; bit 31: disabled */
	uint32_t shared;   /* kernel nodes: dynamic shared memory, bytes */
	uint64_t function; /* kernel nodes: function or kernel handle */
	uint32_t grid[3], block[3];
	uint64_t node; /* CUgraphNode of the graph it was instantiated from */
};
static_assert(sizeof(struct graph_node) == 48, "on disk");

struct counter { /* of CHUNK_COUNTERS, indexed by function id */
	uint64_t count;
	uint64_t errors;
	uint64_t ticks; /* 0 for calls that were counted, not timed */
	uint64_t bytes; /* allocated, copied or set; of launches: how many were captured */
};

/*
 * A record of CHUNK_ACCOUNTS: what the wrappers count of a thread, apart from everything that
 * records.  A thread goes on where one that has ended stopped, so only the sums say something.
 */
struct thread_account {
	uint64_t entered;  /* calls that began while they were to be recorded or counted */
	uint64_t returned; /* … and came back */
	uint64_t inflight_ticks;
	uint32_t inflight_fn; /* the innermost long call that has not returned, or 0 */
	uint32_t tid;         /* of the thread that counts here now, or did last */
	uint64_t reserved[4]; /* a cache line each */
};
static_assert(sizeof(struct thread_account) == 64, "on disk");

/*
 * Activities of a device, ranges of a program and the links between calls and activities: arrays of
 * chunks CHUNK_DEVICE, CHUNK_RANGES and CHUNK_LINKS.  `kind` (link: correlation) is stored
 * last; zero is a slot that holds nothing.  name, args, scope: ids of META_STRING, 0 none.
 */
struct gpu_activity {
	uint64_t start_ns; /* of CLOCK_MONOTONIC, not ticks */
	uint64_t end_ns;
	uint64_t correlation; /* of the call that asked for it */
	uint64_t external;    /* of the range that asked for it, if the source says so */
	uint64_t bytes;       /* copied or set */
	uint64_t graph_node;
	uint32_t graph; /* the executable graph whose node it was */
	uint32_t name;  /* of the kernel, mangled or not, or of the copy */
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t grid[3], block[3];
	uint32_t shared_static, shared_dynamic; /* bytes a block */
	uint16_t registers;                     /* a thread */
	uint8_t what;                           /* enum copy_direction or enum wait_kind */
	uint8_t from, to;                       /* enum activity_memory_kind; sets: from */
	uint8_t reserved_byte;
	uint16_t kind;           /* enum gpu_activity_kind */
	uint32_t valid;          /* enum gpu_activity_valid */
	uint32_t uncertainty_ns; /* GPU_RECONSTRUCTED: standard deviation of where it lies */
	uint32_t pair_ns; /* by events: how long two of them took with nothing in between, nearby */
	uint64_t host_ns; /* by events: how long the stream waited for the host between them, and in
			   * the upper half from the launch's return until the one behind was
			   * recorded */
};
static_assert(sizeof(struct gpu_activity) == 128, "on disk");
static_assert(offsetof(struct gpu_activity, kind) == 106, "on disk");

enum gpu_activity_kind {
	GPU_KERNEL = 1,
	GPU_MEMCPY = 2,
	GPU_MEMSET = 3,
	GPU_SYNC = 4,
	GPU_SPAN = 5, /* from the first to the last activity that a range asked for */
	GPU_GRAPH = 6,
	GPU_OTHER = 7,
};

enum gpu_activity_valid {
	GPU_HAS_CORRELATION = 1 << 0,
	GPU_HAS_EXTERNAL = 1 << 1,
	GPU_HAS_BYTES = 1 << 2,
	GPU_HAS_GRAPH = 1 << 3,
	GPU_HAS_DEVICE = 1 << 4,
	GPU_HAS_CONTEXT = 1 << 5,
	GPU_HAS_STREAM = 1 << 6,
	GPU_HAS_SHAPE = 1 << 7,
	GPU_HAS_SHARED = 1 << 8,
	GPU_HAS_REGISTERS = 1 << 9,
	GPU_HAS_WHAT = 1 << 10,
	GPU_HAS_MEMORY_KINDS = 1 << 11,
	GPU_RECONSTRUCTED = 1 << 12, /* not measured: learnt from others, and uncertainty_ns */
	GPU_HAS_PAIR = 1 << 13,
	GPU_STREAM_BUSY = 1 << 14, /* by events: it had not come to the one in front when the one
				    * behind was recorded, so it did not wait for the host … */
	GPU_STREAM_IDLE = 1 << 15, /* … it had: host_ns says how long it waited; neither: unknown */
};

/* If the host takes longer for a launch or an event, it loads a module or has lost its processor.
 * A pair of events around that says little of the work between them. */
#define SLOW_HOST_NS 30000u

/* In traces where some launches are timed with events and others by CUPTI, which counts from 1: the
 * correlations of CUPTI begin behind this. */
#define CUPTI_CORRELATIONS (1ull << 39)

enum copy_direction { /* CUpti_ActivityMemcpyKind */
	COPY_HTOD = 1,
	COPY_DTOH = 2,
	COPY_HTOA = 3,
	COPY_ATOH = 4,
	COPY_ATOA = 5,
	COPY_ATOD = 6,
	COPY_DTOA = 7,
	COPY_DTOD = 8,
	COPY_HTOH = 9,
	COPY_PTOP = 10,
	COPY_DIRECTIONS,
};

enum activity_memory_kind { /* CUpti_ActivityMemoryKind */
	MEMORY_KIND_PAGEABLE = 1,
	MEMORY_KIND_PINNED = 2,
	MEMORY_KIND_DEVICE = 3,
	MEMORY_KIND_ARRAY = 4,
	MEMORY_KIND_MANAGED = 5,
	MEMORY_KIND_DEVICE_STATIC = 6,
	MEMORY_KIND_MANAGED_STATIC = 7,
	ACTIVITY_MEMORY_KINDS,
};

struct range {
	uint64_t ticks; /* when it began */
	uint64_t dur;
	uint64_t external; /* its id in the source */
	uint64_t sequence; /* pairs a forward with its backward operator */
	uint32_t tid;
	uint32_t name;
	uint32_t args;  /* a JSON object: shapes, types, values */
	uint32_t scope; /* NVTX domain, library, or kind of annotation */
	uint16_t kind;  /* enum range_kind */
	uint16_t valid; /* enum range_valid */
	uint32_t reserved;
};
static_assert(sizeof(struct range) == 56, "on disk");

enum range_kind {
	RANGE_OPERATOR = 1,
	RANGE_ANNOTATION = 2,
	RANGE_PYTHON = 3,
	RANGE_NVTX = 4,      /* push/pop: nests with the first two */
	RANGE_NVTX_SPAN = 5, /* start/end: may cross others; a mark has no length */
	RANGE_OVERHEAD = 6,
	RANGE_OTHER = 7,
	RANGE_CAPTURE = 8, /* a part of the run: what of its process is outside was not recorded */
	RANGE_KINDS,
};

enum range_valid {
	RANGE_HAS_EXTERNAL = 1,
	RANGE_HAS_SEQUENCE = 2,
	RANGE_OPEN = 4, /* has not ended: dur and reserved are the writer's */
};

struct link {
	uint64_t correlation;
	uint64_t ticks; /* when the call began */
	uint64_t dur;   /* 0: not known */
	uint32_t tid;
	uint16_t fn;
	uint16_t reserved;
};
static_assert(sizeof(struct link) == 32, "on disk");

/*
 * A record of CHUNK_REQUESTS: one request to a server of models.  Its batch is the range of that
 * sequence with the scope SERVED_SCOPE, in the same process.  `outcome` is stored last; zero is a
 * slot that holds nothing.
 */
#define SERVED_SCOPE "weir serve"

enum request_stamp {
	REQUEST_BEGAN,      /* its first byte was there */
	REQUEST_READ,       /* … and its last one */
	REQUEST_QUEUED,     /* its tensors were parsed and checked, and its model admitted it */
	REQUEST_TAKEN,      /* into a batch, whose inputs were gathered from here on */
	REQUEST_ON_DEVICE,  /* the engine began with the batch */
	REQUEST_OFF_DEVICE, /* … and ended */
	REQUEST_SENT,       /* its answer was given to the connection */
	REQUEST_STAMPS
};

enum request_outcome {
	REQUEST_ANSWERED = 1, /* it had no deadline */
	REQUEST_MET = 2,
	REQUEST_LATE = 3,
	REQUEST_SHED = 4,      /* from the queue, when it could not be in time any more */
	REQUEST_REFUSED = 5,   /* at admission */
	REQUEST_CANCELLED = 6, /* the client was gone */
	REQUEST_FAILED = 7,
	REQUEST_OUTCOMES
};

struct served_request {
	uint64_t id;                 /* counted from 1 */
	uint64_t ns[REQUEST_STAMPS]; /* of CLOCK_MONOTONIC; 0: it did not come so far */
	uint64_t deadline_ns;        /* of CLOCK_MONOTONIC; 0: none */
	uint64_t batch;              /* sequence of the batch's range; 0: it ran in none */
	uint64_t version;            /* of the model */
	uint8_t trace_id[16];        /* of the client's trace (W3C Trace Context); zeros: none */
	uint8_t span_id[8];          /* … and of its span there */
	uint32_t model;              /* its name; 0: unknown */
	uint32_t rows;
	uint32_t batch_rows;
	uint16_t class;   /* of its priority; 0 is the highest */
	uint16_t outcome; /* enum request_outcome */
};
static_assert(sizeof(struct served_request) == 128, "on disk");

/*
 * A record of CHUNK_SAMPLES: the state of one GPU at one moment, as NVML had it.  `valid` is stored
 * last; zero is a slot that holds nothing.
 */
struct gpu_sample {
	uint64_t ns; /* CLOCK_MONOTONIC */
	uint8_t uuid[16];
	uint64_t memory_used, memory_total;      /* bytes */
	uint64_t energy_mj;                      /* since the driver was loaded */
	uint64_t pcie_tx, pcie_rx;               /* bytes a second, over the last 20 ms */
	uint64_t nvlink_tx, nvlink_rx;           /* bytes ever, all links together */
	uint64_t ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
	uint32_t power_mw, power_limit_mw;
	uint16_t sm_mhz, sm_mhz_most, memory_mhz;
	uint16_t reasons; /* enum throttle_reason: why the clock is what it is */
	uint16_t celsius;
	uint16_t device;                   /* NVML's index of it */
	uint8_t busy_pct, memory_busy_pct; /* of the last time in which NVML looked */
	uint16_t reserved;
	uint32_t valid; /* enum gpu_sample_valid */
	uint32_t reserved_word;
};
static_assert(sizeof(struct gpu_sample) == 128, "on disk");
static_assert(offsetof(struct gpu_sample, valid) == 120, "on disk");

enum gpu_sample_valid {
	SAMPLE_TAKEN = 1 << 0,
	SAMPLE_HAS_BUSY = 1 << 1, /* busy_pct and memory_busy_pct */
	SAMPLE_HAS_MEMORY = 1 << 2,
	SAMPLE_HAS_POWER = 1 << 3,
	SAMPLE_HAS_POWER_LIMIT = 1 << 4,
	SAMPLE_HAS_ENERGY = 1 << 5,
	SAMPLE_HAS_CELSIUS = 1 << 6,
	SAMPLE_HAS_SM_CLOCK = 1 << 7,
	SAMPLE_HAS_MEMORY_CLOCK = 1 << 8,
	SAMPLE_HAS_REASONS = 1 << 9,
	SAMPLE_HAS_PCIE = 1 << 10,
	SAMPLE_HAS_NVLINK = 1 << 11,
	SAMPLE_HAS_ECC = 1 << 12,
	SAMPLE_HAS_SM_CLOCK_MOST = 1 << 13,
	SAMPLE_HAS_GPU_BUSY = 1 << 14, /* busy_pct alone */
	SAMPLE_BUSY = SAMPLE_HAS_BUSY | SAMPLE_HAS_GPU_BUSY,
};

enum throttle_reason { /* nvmlClocksEventReason… */
	THROTTLE_IDLE = 0x1,
	THROTTLE_APPLICATION_CLOCKS = 0x2,
	THROTTLE_POWER_CAP = 0x4,
	THROTTLE_HARDWARE = 0x8,
	THROTTLE_SYNC_BOOST = 0x10,
	THROTTLE_THERMAL = 0x20,
	THROTTLE_HARDWARE_THERMAL = 0x40,
	THROTTLE_POWER_BRAKE = 0x80,
	THROTTLE_DISPLAY = 0x100,
};
#define THROTTLE_REASONS 9u

/*
 * The control word: bit c (enum fn_class) records driver functions of class c,
 * CONTROL_RUNTIME those of the runtime library.
 */
#define CONTROL_RUNTIME     (1u << 16)
#define CONTROL_COUNT       (1u << 17) /* keep counters of every call */
#define CONTROL_QUERY_COUNT (1u << 18) /* queries that succeed: counters instead of records */
#define CONTROL_ARGS        (1u << 19) /* launches that are recorded keep their arguments */
#define CONTROL_PREDICT     (1u << 20) /* and the time that was predicted */
#define CONTROL_SAMPLE      (1u << 21) /* one launch in header.sampled is timed by events */
#define CONTROL_STACK(group)                                                                       \
	(1u << (22 + (group))) /* calls of that enum stack_group keep their stack */
#define CONTROL_STACKS (0xffu << 22)

/* Bits that say what is kept of a call that is recorded, whatever the level. */
#define CONTROL_MORE (CONTROL_ARGS | CONTROL_PREDICT | CONTROL_SAMPLE | CONTROL_STACKS)

/* The groups of calls for which stacks may be asked: event/level.h. */
enum stack_group {
	STACK_ALLOC,
	STACK_FREE,
	STACK_SYNC,
	STACK_LAUNCH,
	STACK_COPY,
	STACK_SET,
	STACK_GRAPH,
	STACK_MODULE,
	STACK_GROUPS
};
static_assert(STACK_GROUPS == 8, "as many as CONTROL_STACKS has bits");

#define SAMPLE_DEFAULT      64u /* header.sampled when nobody says how many */
#define SAMPLE_MOST         (1u << 24)
#define RECONSTRUCT_DEFAULT 32u /* the same where all others are reconstructed */

/* A block of a packed trace: one chunk.  The payload follows, padded to 8 bytes. */
#define BLOCK_MAGIC 0x4b4c4257u /* "WBLK" */

struct block_header {
	uint32_t magic;
	uint32_t check;     /* FNV-1a of the rest of this header */
	uint32_t bytes;     /* compressed payload, without padding */
	uint32_t raw_bytes; /* payload once decompressed, before the columns are joined */
	uint32_t encoding;  /* enum block_encoding */
	uint32_t records;   /* ENCODING_COLUMNS: how many */
	struct chunk_header chunk;
};
static_assert(sizeof(struct block_header) == 144, "on disk");

enum block_encoding {
	ENCODING_ZSTD = 0,    /* the chunk's payload as it was */
	ENCODING_COLUMNS = 1, /* records split into columns, then zstd */
	ENCODING_WORDS = 2,   /* records of one size, word by word, then zstd */
};

#endif

/*
 * The times at which a recording was switched off, behind the header, in the room that header_bytes
 * leaves. The switch (record/control.c) writes them, and trace_open() reads them. If there are too
 * many, the last entries become one.
 */
#define OFF_TIMES 60u

struct off_time {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC; the last may still be without an end: it is
				  * off_since_ns of the header, and not here */
};

struct off_times {
	uint32_t count; /* of v */
	uint32_t reserved;
	struct off_time v[OFF_TIMES];
};
static_assert(sizeof(struct off_times) == 968, "on disk");

#define HEADER_WITH_OFF_TIMES (sizeof(struct trace_header) + sizeof(struct off_times))
