/*
 * libweirapi lets a program talk to Weir's scheduler.
 *
 * A program under `weir run` shares a GPU with others.  With this library it can say what a request
 * is, ask things of the scheduler, and read how it fares.  Link with -lweirapi (pkg-config
 * weirapi). The library finds CUDA and libweir.so in the running process, and links to neither.
 *
 * Without `weir run` every call is safe too: calls that need it return WEIR_ERROR_NOT_SCHEDULED or
 * WEIR_ERROR_NO_FILE and do nothing.  No call ends the program or raises a signal.
 *
 * Any thread may call any function at any time, even while another thread closes the handle.  In a
 * signal handler only weir_sched_request_begin() and weir_sched_request_end() are allowed.  Texts
 * are UTF-8 and end with NUL.
 *
 * A forked child closes its own copy of a handle.  It has none of its parent's requests and
 * streams.
 *
 * Structures begin with their size.  Set it to sizeof before each call, so that older and newer
 * libraries understand the program.
 *
 * Every call with a handle returns WEIR_ERROR_HANDLE for a bad handle, WEIR_ERROR_ARGUMENT for a
 * bad argument and WEIR_ERROR_SIZE for an unknown size.  Calls about programs, policy and
 * configuration return WEIR_ERROR_NO_FILE or WEIR_ERROR_FILE if there is no shared file to use.
 * Other errors stand at each function.
 */
#ifndef WEIR_SCHED_H
#define WEIR_SCHED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define WEIR_SCHED_VERSION 2

/* Return values. */
enum weir_status {
	WEIR_OK = 0,
	WEIR_ERROR_ARGUMENT = 1, /* an argument is NULL, out of range, or contradicts another */
	WEIR_ERROR_HANDLE = 2,   /* the handle is closed, or never was one */
	WEIR_ERROR_SIZE = 3,     /* the library does not know this size of the structure */
	WEIR_ERROR_NO_FILE = 4,  /* no program has shared a GPU in that directory */
	WEIR_ERROR_FILE = 5,     /* the file belongs to another user, or has another version */
	WEIR_ERROR_NOT_SCHEDULED =
		6,                  /* no `weir run` around the process, or in another directory */
	WEIR_ERROR_NOT_JOINED = 7,  /* the process has not used a GPU yet: call cuInit() */
	WEIR_ERROR_UNSUPPORTED = 8, /* Weir cannot do that */
	WEIR_ERROR_NOT_FOUND = 9,   /* no such policy, process or GPU */
	WEIR_ERROR_LIMIT = 10,      /* too many handles, requests or streams */
	WEIR_ERROR_NOT_RECORDED = 11,    /* calls of this process are not recorded */
	WEIR_ERROR_RECORDING_ENDED = 12, /* the recording had no room for more */
	WEIR_ERROR_NO_DRIVER = 13,       /* libcuda.so.1 is missing, or lacks a function */
	WEIR_ERROR_NO_CONTEXT = 14,      /* the thread has no current CUDA context */
	WEIR_ERROR_DRIVER = 15           /* the CUDA driver refused */
};

/* Classes of programs, and of streams. */
enum weir_class {
	WEIR_CLASS_LATENCY = 1,    /* answers requests quickly */
	WEIR_CLASS_BEST_EFFORT = 2 /* uses what others leave */
};

/* A handle of weir_sched_open(), never 0.  After its closing it stays invalid. */
typedef uint64_t weir_sched;

/* A sentence for a status, in static memory.  Never NULL, also for unknown numbers. */
const char *weir_sched_strerror(int status);

/* WEIR_SCHED_VERSION of the loaded library. */
uint32_t weir_sched_version(void);

/*
 * Opens a handle.
 *   directory   as in `weir run --share`.  NULL: that of this process, else $XDG_RUNTIME_DIR/weir,
 *               else /dev/shm/weir-UID
 *   ret_handle  close it with weir_sched_close()
 * The call creates nothing, and the directory need not exist yet.
 * Errors: WEIR_ERROR_ARGUMENT (also: the name is too long), WEIR_ERROR_LIMIT (16 handles).
 */
int weir_sched_open(const char *directory, weir_sched *ret_handle);

/*
 * Closes a handle.  Streams that were returned to it are destroyed if their context is current
 * (otherwise with their context).  Other streams stay the caller's.  The last handle of a process
 * ends its open requests: from then on streams say what a request is.
 */
int weir_sched_close(weir_sched handle);

/* Bits of weir_sched_get_state(). */
enum weir_state {
	WEIR_STATE_FILE = 1,     /* the shared file exists */
	WEIR_STATE_ARBITER = 2,  /* an arbiter updates it */
	WEIR_STATE_INJECTED = 4, /* this process runs under `weir run`, in the handle's directory */
	WEIR_STATE_JOINED = 8,   /* and has a slot */
	WEIR_STATE_TRACED = 16,  /* its calls can be recorded */
	WEIR_STATE_RECORDING = 32 /* and are */
};

/*
 * Says which functions can do something here.
 *   ret_state   bits of enum weir_state
 */
int weir_sched_get_state(weir_sched handle, uint32_t *ret_state);

/* Bits of the member set of struct weir_sched_config: which members count. */
enum weir_config_set {
	WEIR_SET_CLASS = 1,
	WEIR_SET_LATENCY_THRESHOLD = 2,
	WEIR_SET_DEADLINE = 4,
	WEIR_SET_THROUGHPUT = 8,
	WEIR_SET_PREEMPTION = 16,
	WEIR_SET_BUDGET = 32
};

/* How a latency program may go before a best-effort one. */
enum weir_preemption {
	WEIR_PREEMPTION_OFF = 0,      /* nowhere: all gates are open */
	WEIR_PREEMPTION_LAUNCHES = 1, /* before its next launch (the default) */
	WEIR_PREEMPTION_KERNELS = 2   /* within a running kernel: WEIR_ERROR_UNSUPPORTED */
};

/*
 * The settings that a program asks for.  The last two members are of all programs, the others of
 * this process.
 */
struct weir_sched_config {
	size_t size;                   /* sizeof(struct weir_sched_config) */
	uint32_t set;                  /* bits of enum weir_config_set */
	uint32_t sched_class;          /* enum weir_class */
	uint64_t latency_threshold_us; /* target for the p99 of requests, as `weir run
					  --target-p99`; 0: none */
	uint64_t deadline_us; /* of requests without their own, from their begin, as `weir run
				 --deadline`; 0: none */
	uint32_t throughput;  /* 1: best-effort, without threshold and deadline; 0: latency */
	uint32_t preemption;  /* enum weir_preemption */
	uint64_t budget_us;   /* predicted work in flight of a best-effort program, as `weir sched
				 policy NAME budget=`; 0: as the policy has it */
};

/*
 * Changes the members that `set` names: all of them or, with an error, none.  Takes effect with the
 * next launches.  Members of all programs hold until somebody changes them.
 * Errors: WEIR_ERROR_ARGUMENT (also: throughput contradicts class, threshold or deadline),
 * WEIR_ERROR_UNSUPPORTED (WEIR_PREEMPTION_KERNELS), WEIR_ERROR_NOT_SCHEDULED and
 * WEIR_ERROR_NOT_JOINED (members of this process).
 */
int weir_sched_configure(weir_sched handle, const struct weir_sched_config *config);

/*
 * Reads what holds now.  `set` says which members are known: those of this process only after it
 * has joined.  On several GPUs they are those of the first.
 *   ret_config  set its size
 */
int weir_sched_get_config(weir_sched handle, struct weir_sched_config *ret_config);

/*
 * Chooses the policy of all programs, by a name that `weir sched policy` lists.  It holds within
 * 100 ms.
 * Errors: WEIR_ERROR_NOT_FOUND.
 */
int weir_sched_set_policy(weir_sched handle, const char *name);

/*
 * Reads the name of the policy.
 *   ret_name    of `room` bytes, of which 17 are always enough (WEIR_ERROR_ARGUMENT: too few)
 */
int weir_sched_get_policy(weir_sched handle, char *ret_name, size_t room);

/*
 * Begins a request.  Until its end this process is inside a request, whatever its streams say.
 * After the first one, launches outside of requests begin none.  Requests may overlap, also among
 * threads.  Others wait for a request for their --max-wait at most (500 ms by default), so one that
 * never ends does no harm.
 *   deadline_us   microseconds from now, or 0: that of the program
 *   ret_request   end it in any thread of this process
 * Errors: WEIR_ERROR_NOT_SCHEDULED, WEIR_ERROR_LIMIT (64 are open).
 */
int weir_sched_request_begin(weir_sched handle, uint64_t deadline_us, uint64_t *ret_request);

/*
 * Ends a request: call it when the results are there.  For class latency its duration counts.
 * Errors: WEIR_ERROR_ARGUMENT (it has ended, or is not of this process), WEIR_ERROR_NOT_SCHEDULED.
 */
int weir_sched_request_end(weir_sched handle, uint64_t request);

/* Bits of the member valid of struct weir_sched_metrics: which members are known. */
enum weir_metrics_valid {
	WEIR_VALID_QUEUE_WAIT = 1, /* a launch waited */
	WEIR_VALID_RESIDENCY = 2,  /* best-effort work was predicted */
	WEIR_VALID_PREDICTION = 4, /* work was predicted and measured */
	WEIR_VALID_REQUESTS = 8    /* a latency program's request ended */
};

/*
 * How a process fares since it joined, over all its GPUs.  Percentiles are at most 13 % off.
 * Unknown members are 0.
 */
struct weir_sched_metrics {
	size_t size;                 /* sizeof(struct weir_sched_metrics) */
	uint32_t valid;              /* bits of enum weir_metrics_valid */
	uint32_t sched_class;        /* enum weir_class */
	uint64_t queue_wait_count;   /* launches that waited */
	uint64_t queue_wait_mean_ns; /* how long they waited: mean */
	uint64_t queue_wait_p95_ns;
	uint64_t queue_wait_p99_ns;
	uint64_t queue_wait_expired;      /* launches that went after --max-wait */
	uint64_t capped_count;            /* launches on a part of the SMs */
	double predicted_residency_share; /* predicted device time of its completed work, divided
					     by that of all programs on its GPUs.  Not measured;
					     work of latency programs is not predicted */
	double prediction_error;          /* sum of |predicted - measured| / sum of measured */
	uint64_t prediction_measured_ns;  /* that sum of measured device time */
	uint64_t request_count;           /* requests that ended */
	uint64_t request_p50_ns;          /* how long they took: median */
	uint64_t request_p95_ns;
	uint64_t request_p99_ns;
};

/*
 * Reads the metrics of a process that shares.
 *   pid          as this process sees it, or 0: this process
 *   ret_metrics  set its size
 * Errors: WEIR_ERROR_NOT_FOUND, and for pid 0 WEIR_ERROR_NOT_SCHEDULED, WEIR_ERROR_NOT_JOINED.
 */
int weir_sched_get_metrics(weir_sched handle, uint32_t pid, struct weir_sched_metrics *ret_metrics);

/*
 * The device memory of a process on one GPU, in bytes.  Its group is a program and its children,
 * which share the quota of `weir run --memory`.  Without a quota all but gpu_uuid is 0.
 */
struct weir_sched_memory {
	size_t size;             /* sizeof(struct weir_sched_memory) */
	uint8_t gpu_uuid[16];    /* as cuDeviceGetUuid() gives it */
	uint64_t used;           /* allocated, pool_spare included */
	uint64_t contexts;       /* its contexts, beside used, as measured on this GPU */
	uint64_t idle;           /* beside used: unused in pools of the driver */
	uint64_t pool_spare;     /* of used: unused in the pool of `weir run --pool` */
	uint64_t given_away;     /* what that pool ever gave back to others */
	uint64_t wanted;         /* what it waits for that others could give back */
	uint64_t quota;          /* of its group on this GPU; 0: none */
	uint64_t quota_left;     /* of two quotas, of the one with less left */
	uint64_t group_used;     /* of the group, with contexts */
	uint64_t group_peak;     /* the group's most at an allocation of this process */
	uint64_t refused_count;  /* allocations that the quota refused */
	uint64_t pool_hit_count; /* allocations from the pool without a call of the driver */
	/* Other granted allocations: how many, and how long they took with their waits. */
	uint64_t driver_alloc_count, driver_alloc_p50_ns, driver_alloc_p99_ns;
};

/*
 * Reads the memory of a process that shares a GPU.  Since version 2.
 *   pid         as this process sees it, or 0: this process
 *   gpu         from 0 on, until WEIR_ERROR_NOT_FOUND: the GPUs that it has used
 *   ret_memory  set its size
 * Errors: WEIR_ERROR_NOT_FOUND, and for pid 0 WEIR_ERROR_NOT_SCHEDULED, WEIR_ERROR_NOT_JOINED.
 */
int weir_sched_get_memory(
	weir_sched handle, uint32_t pid, uint32_t gpu, struct weir_sched_memory *ret_memory);

/*
 * Lists the processes that share, each once, in no order.
 *   ret_pids    of `room` numbers, or NULL if room is 0
 *   ret_count   how many there are, even if that is more than room
 */
int weir_sched_get_processes(weir_sched handle, uint32_t *ret_pids, size_t room, size_t *ret_count);

/* How much this library writes on standard error. */
enum weir_log_level {
	WEIR_LOG_OFF = 0,    /* nothing: the default */
	WEIR_LOG_ERRORS = 1, /* calls that failed, and why */
	WEIR_LOG_CHANGES = 2 /* and changes that were made */
};

/*
 * Sets how much the library writes about calls with this handle.  Begin and end of requests, and
 * the injected library, never write.
 */
int weir_sched_set_log_level(weir_sched handle, int level);

/*
 * Switches the recording of this process, and of all that record into the same file, as `weir ctl`
 * does.
 *   what        on, off, args, no-args, or a level: stat, work, full, all
 * Errors: WEIR_ERROR_NOT_RECORDED (also: before the first call to CUDA),
 * WEIR_ERROR_RECORDING_ENDED.
 */
int weir_sched_record(weir_sched handle, const char *what);

/*
 * Gives a CUDA stream of the current context that does not wait for the default stream.  It has the
 * GPU's highest priority for WEIR_CLASS_LATENCY, the lowest for WEIR_CLASS_BEST_EFFORT.  A returned
 * stream is given out again, whatever is queued in it.  Works without `weir run`.
 *   ret_stream  a CUstream (cudaStream_t), until weir_sched_stream_return()
 * Errors: WEIR_ERROR_NO_DRIVER, WEIR_ERROR_NO_CONTEXT, WEIR_ERROR_DRIVER, WEIR_ERROR_LIMIT (64
 * streams a handle).
 */
int weir_sched_stream_get(weir_sched handle, int sched_class, void **ret_stream);

/*
 * Returns a stream to the handle, without waiting for it or destroying it.
 * Errors: WEIR_ERROR_ARGUMENT (it is not of this handle, or was returned).
 */
int weir_sched_stream_return(weir_sched handle, void *stream);

#ifdef __cplusplus
}
#endif

#endif
