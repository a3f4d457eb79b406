/*
 * libweirapi: talking to Weir's scheduler from a program.
 *
 * A program that runs under `weir run` shares a GPU with others; what this library adds is that the
 * program says what a request is, what it asks of the scheduler, and reads how it fares.  Link with
 * -lweirapi (pkg-config weirapi).  The library links neither to CUDA nor to libweir.so: both are
 * found in the running process.
 *
 * Without `weir run` around it everything can be called too: what needs the injected library or the
 * shared file returns WEIR_ERROR_NOT_SCHEDULED or WEIR_ERROR_NO_FILE and does nothing.  Nothing
 * here ends the program or raises a signal.
 *
 * All functions may be called from any thread at the same time, also on the same handle, and also
 * while another thread closes it.  None may be called from a signal handler but
 * weir_sched_request_begin() and weir_sched_request_end().  Texts are UTF-8 and end with NUL.
 *
 * In a forked child a handle is the child's own and is closed by it; requests and streams of the
 * parent are not the child's.
 *
 * Structures begin with their size: a program sets it to sizeof before each call, and is then
 * understood by older and newer libraries.
 */
#ifndef WEIR_SCHED_H
#define WEIR_SCHED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface that this header describes; weir_sched_version() says that of the library. */
#define WEIR_SCHED_VERSION 2

/* What functions return. */
enum weir_status {
	WEIR_OK = 0,
	WEIR_ERROR_ARGUMENT = 1, /* an argument is NULL, out of range, or contradicts another */
	WEIR_ERROR_HANDLE = 2,   /* the handle is closed, or never was one */
	WEIR_ERROR_SIZE = 3,     /* the structure's size is unknown to this library */
	WEIR_ERROR_NO_FILE = 4,  /* no program has shared a GPU in that directory */
	WEIR_ERROR_FILE = 5,     /* the shared file is another user's, or of another version */
	WEIR_ERROR_NOT_SCHEDULED = 6, /* the process does not run under `weir run`, or not there */
	WEIR_ERROR_NOT_JOINED = 7,    /* it does, but has not come to a GPU yet: call cuInit() */
	WEIR_ERROR_UNSUPPORTED = 8,   /* no part of Weir can do that */
	WEIR_ERROR_NOT_FOUND = 9,     /* no such policy, or no such process */
	WEIR_ERROR_LIMIT = 10,        /* too many handles, requests or streams at once */
	WEIR_ERROR_NOT_RECORDED = 11, /* calls of this process are not recorded */
	WEIR_ERROR_RECORDING_ENDED = 12, /* they were: there was no room for more */
	WEIR_ERROR_NO_DRIVER = 13,       /* libcuda.so.1 is missing, or lacks a function */
	WEIR_ERROR_NO_CONTEXT = 14,      /* no CUDA context is current to the thread */
	WEIR_ERROR_DRIVER = 15           /* the CUDA driver refused */
};

/* Classes of programs, and of streams. */
enum weir_class {
	WEIR_CLASS_LATENCY = 1,    /* its requests are to be answered quickly */
	WEIR_CLASS_BEST_EFFORT = 2 /* uses what the others leave */
};

/* A handle, as weir_sched_open() gives it; 0 never is one.  A closed one stays invalid. */
typedef uint64_t weir_sched;

/*
 * What a status means, in a sentence.  Never NULL; of an unknown number a sentence that says so.
 * The text is static.
 */
const char *weir_sched_strerror(int status);

/* WEIR_SCHED_VERSION of the library that is loaded. */
uint32_t weir_sched_version(void);

/*
 * Opens a handle.
 *   directory   where the programs that share find each other, as `weir run --share`; NULL: where
 *               this process shares, or when it doesn't, $XDG_RUNTIME_DIR/weir, else
 *               /dev/shm/weir-UID
 *   ret_handle  the handle, to be closed by weir_sched_close()
 * Neither the directory nor a file is made, and neither needs to be there yet.
 * Errors: WEIR_ERROR_ARGUMENT (also: the name is too long), WEIR_ERROR_LIMIT (16 handles).
 */
int weir_sched_open(const char *directory, weir_sched *ret_handle);

/*
 * Closes a handle.  Streams that were returned to it are destroyed when their context is the
 * thread's current one (others go with their context); streams that were not returned stay the
 * caller's.  When it was the last handle of the process, requests are again what the streams say:
 * those that are open end.
 * Errors: WEIR_ERROR_HANDLE.
 */
int weir_sched_close(weir_sched handle);

/* What there is around a process: bits of weir_sched_get_state(). */
enum weir_state {
	WEIR_STATE_FILE = 1,     /* the shared file is there */
	WEIR_STATE_ARBITER = 2,  /* and an arbiter keeps its numbers up to date */
	WEIR_STATE_INJECTED = 4, /* this process runs under `weir run`, in the handle's directory */
	WEIR_STATE_JOINED = 8,   /* and has a place in the file */
	WEIR_STATE_TRACED = 16,  /* calls of this process can be recorded */
	WEIR_STATE_RECORDING = 32 /* and are */
};

/*
 * Which of the other functions can do something here.
 *   ret_state   bits of enum weir_state
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_HANDLE.
 */
int weir_sched_get_state(weir_sched handle, uint32_t *ret_state);

/* Which members of struct weir_sched_config are meant: bits of its member set. */
enum weir_config_set {
	WEIR_SET_CLASS = 1,
	WEIR_SET_LATENCY_THRESHOLD = 2,
	WEIR_SET_DEADLINE = 4,
	WEIR_SET_THROUGHPUT = 8,
	WEIR_SET_PREEMPTION = 16,
	WEIR_SET_BUDGET = 32
};

/* Where a latency program may come before a best-effort one. */
enum weir_preemption {
	WEIR_PREEMPTION_OFF = 0,      /* nowhere: all gates are open, nobody waits */
	WEIR_PREEMPTION_LAUNCHES = 1, /* before its next launch: launches wait (the default) */
	WEIR_PREEMPTION_KERNELS = 2   /* within a running kernel: WEIR_ERROR_UNSUPPORTED */
};

/* What a program asks of the scheduler. */
struct weir_sched_config {
	size_t size;          /* sizeof(struct weir_sched_config) */
	uint32_t set;         /* bits of enum weir_config_set: which of these are meant */
	uint32_t sched_class; /* this process: enum weir_class */
	uint64_t
		latency_threshold_us; /* this process: what 99 of 100 of its requests are to take
					 at most, in microseconds, as `weir run --target-p99`;
					 policies that hold others back go by it; 0: no threshold */
	uint64_t deadline_us;         /* this process: from the begin of a request to when it is to
					 be done, in microseconds, as `weir run --deadline`, for
					 requests without one of their own; 0: none */
	uint32_t throughput;          /* this process: 1: class best-effort, without threshold and
					 deadline; 0: class latency */
	uint32_t preemption;          /* all programs: enum weir_preemption */
	uint64_t budget_us;           /* all programs: how much predicted work a best-effort
					 program may have in flight, in microseconds, as
					 `weir sched policy NAME budget=`; 0: as the policy has it */
};

/*
 * Changes what `set` names; all of it or, with an error, nothing.  Takes effect with the next
 * launches.  What is of all programs holds until somebody changes it again.
 * Errors: WEIR_ERROR_ARGUMENT (also: throughput and class contradict each other, throughput with a
 * threshold or deadline), WEIR_ERROR_SIZE, WEIR_ERROR_HANDLE, WEIR_ERROR_UNSUPPORTED
 * (WEIR_PREEMPTION_KERNELS), WEIR_ERROR_NOT_SCHEDULED and WEIR_ERROR_NOT_JOINED (what is of this
 * process), WEIR_ERROR_NO_FILE and WEIR_ERROR_FILE (what is of all).
 */
int weir_sched_configure(weir_sched handle, const struct weir_sched_config *config);

/*
 * What holds now: `set` says which members could be told; those of this process only when it has
 * joined.  Of a process on several GPUs that of the first.
 *   ret_config  its size is read, the rest written
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_SIZE, WEIR_ERROR_HANDLE, WEIR_ERROR_NO_FILE,
 * WEIR_ERROR_FILE.
 */
int weir_sched_get_config(weir_sched handle, struct weir_sched_config *ret_config);

/*
 * Chooses the policy by which all programs share: a name that `weir sched policy` lists.  The
 * arbiter takes it up within 100 ms.
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_NOT_FOUND, WEIR_ERROR_HANDLE, WEIR_ERROR_NO_FILE,
 * WEIR_ERROR_FILE.
 */
int weir_sched_set_policy(weir_sched handle, const char *name);

/*
 * The name of the policy.
 *   ret_name    the caller's, of `room` bytes; 17 are always enough
 * Errors: WEIR_ERROR_ARGUMENT (also: it doesn't fit), WEIR_ERROR_HANDLE, WEIR_ERROR_NO_FILE,
 * WEIR_ERROR_FILE.
 */
int weir_sched_get_policy(weir_sched handle, char *ret_name, size_t room);

/*
 * A request begins: until its end this process is inside a request, whatever its streams say.
 * From the first one on, launches outside of requests begin none.  Requests may overlap, within a
 * thread and among threads.  Others believe a request for as long as their --max-wait says (500 ms
 * unless told otherwise): one whose end never comes is harmless.
 *   deadline_us   from now, in microseconds; 0: the program's
 *   ret_request   the request, for its end, in any thread of this process
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_HANDLE, WEIR_ERROR_NOT_SCHEDULED, WEIR_ERROR_LIMIT (64
 * are open).
 */
int weir_sched_request_begin(weir_sched handle, uint64_t deadline_us, uint64_t *ret_request);

/*
 * It has ended: call this when its results are there.  How long it took is counted, when the
 * process is of class latency.
 * Errors: WEIR_ERROR_ARGUMENT (it has ended already, or is none of this process),
 * WEIR_ERROR_HANDLE, WEIR_ERROR_NOT_SCHEDULED.
 */
int weir_sched_request_end(weir_sched handle, uint64_t request);

/* Which members of struct weir_sched_metrics could be told: bits of its member valid. */
enum weir_metrics_valid {
	WEIR_VALID_QUEUE_WAIT = 1, /* a launch has waited */
	WEIR_VALID_RESIDENCY = 2,  /* work of a best-effort program has been predicted */
	WEIR_VALID_PREDICTION = 4, /* work was predicted and measured */
	WEIR_VALID_REQUESTS = 8    /* a request of a latency program has ended */
};

/*
 * How a process fares, since it has joined, over all its GPUs.  Percentiles are of a histogram of
 * four buckets an octave: at most 13 % off.  Members that could not be told are 0.
 */
struct weir_sched_metrics {
	size_t size;                      /* sizeof(struct weir_sched_metrics) */
	uint32_t valid;                   /* bits of enum weir_metrics_valid */
	uint32_t sched_class;             /* enum weir_class */
	uint64_t queue_wait_count;        /* launches that waited for their turn */
	uint64_t queue_wait_mean_ns;      /* of those that waited, in nanoseconds */
	uint64_t queue_wait_p95_ns;       /* 95th percentile of the same */
	uint64_t queue_wait_p99_ns;       /* 99th percentile of the same */
	uint64_t queue_wait_expired;      /* launches that went because --max-wait was over */
	uint64_t capped_count;            /* launches that went to a part of the SMs */
	double predicted_residency_share; /* SM share by predicted residency: the predicted device
					     time of its completed work, divided by that of all
					     programs on its GPUs; 0 to 1.  Not a measurement, and
					     work of latency programs is not predicted */
	double prediction_error;          /* sum of |predicted - measured| device time, divided by
					     the sum of measured; 0 is perfect */
	uint64_t prediction_measured_ns;  /* that sum of measured device time */
	uint64_t request_count;           /* requests that have ended */
	uint64_t request_p50_ns;          /* how long they took: median */
	uint64_t request_p95_ns;          /* 95th percentile */
	uint64_t request_p99_ns;          /* 99th percentile */
};

/*
 * Reads the metrics of a process that shares.
 *   pid          the process, as this one sees it; 0: this process
 *   ret_metrics  its size is read, the rest written
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_SIZE, WEIR_ERROR_HANDLE, WEIR_ERROR_NO_FILE,
 * WEIR_ERROR_FILE, WEIR_ERROR_NOT_FOUND; for 0 WEIR_ERROR_NOT_SCHEDULED, WEIR_ERROR_NOT_JOINED.
 */
int weir_sched_get_metrics(weir_sched handle, uint32_t pid, struct weir_sched_metrics *ret_metrics);

/*
 * The device memory of a process on one GPU, in bytes.  A quota is that of `weir run --memory`,
 * which a program and its children have together: their group.  Memory is counted in programs that
 * have one; in others all but gpu_uuid is 0.
 */
struct weir_sched_memory {
	size_t size;          /* sizeof(struct weir_sched_memory) */
	uint8_t gpu_uuid[16]; /* of the GPU, as cuDeviceGetUuid() has it */
	uint64_t used;        /* what it has allocated, pool_spare included */
	uint64_t contexts;    /* what its contexts take beside that, as measured on this GPU */
	uint64_t idle;        /* beside used: what pools of the driver keep for it unused */
	uint64_t pool_spare;  /* of used: what the pool of `weir run --pool` keeps unused */
	uint64_t given_away;  /* what that pool has ever given back because another wanted it */
	uint64_t wanted;      /* what it waits for that others could give back; 0: nothing */
	uint64_t quota;       /* what its group may have on this GPU; 0: there is no quota */
	uint64_t quota_left; /* of it; where a quota is within another, of the one with less left */
	uint64_t group_used; /* what the group has, with its contexts */
	uint64_t group_peak; /* the most that the group has had when this process allocated */
	uint64_t refused_count;  /* allocations that the quota refused */
	uint64_t pool_hit_count; /* allocations that the pool served without a call of the driver */
	/* Other allocations that were granted: how many, and how long they took, waits included. */
	uint64_t driver_alloc_count, driver_alloc_p50_ns, driver_alloc_p99_ns;
};

/*
 * Reads what a process that shares has of a GPU's memory.  Since version 2.
 *   pid         the process, as this one sees it; 0: this process
 *   gpu         which of the GPUs that it has come to: from 0 on, until WEIR_ERROR_NOT_FOUND
 *   ret_memory  its size is read, the rest written
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_SIZE, WEIR_ERROR_HANDLE, WEIR_ERROR_NO_FILE,
 * WEIR_ERROR_FILE, WEIR_ERROR_NOT_FOUND (no such process, or it has no such GPU); for 0
 * WEIR_ERROR_NOT_SCHEDULED, WEIR_ERROR_NOT_JOINED.
 */
int weir_sched_get_memory(
	weir_sched handle, uint32_t pid, uint32_t gpu, struct weir_sched_memory *ret_memory);

/*
 * The processes that share, each once, in no order.
 *   ret_pids    the caller's, of `room` numbers; may be NULL when room is 0
 *   ret_count   how many there are, also when that is more than room
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_HANDLE, WEIR_ERROR_NO_FILE, WEIR_ERROR_FILE.
 */
int weir_sched_get_processes(weir_sched handle, uint32_t *ret_pids, size_t room, size_t *ret_count);

/* What this library writes on standard error, one line each. */
enum weir_log_level {
	WEIR_LOG_OFF = 0,    /* nothing: the default */
	WEIR_LOG_ERRORS = 1, /* calls that failed, and why */
	WEIR_LOG_CHANGES = 2 /* and changes that were made */
};

/*
 * Sets how much is written about calls with this handle; weir_sched_request_begin() and
 * weir_sched_request_end() never write.  The injected library never writes at all: what it does is
 * in a recording.
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_HANDLE.
 */
int weir_sched_set_log_level(weir_sched handle, int level);

/*
 * Switches the recording of this process and of those that record into the same file (`weir run
 * -o FILE`, `weir record`), as `weir ctl` does.
 *   what        on, off, args, no-args, or a level: stat, work, full, all
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_HANDLE, WEIR_ERROR_NOT_RECORDED (also: not yet, before
 * the first call to CUDA), WEIR_ERROR_RECORDING_ENDED.
 */
int weir_sched_record(weir_sched handle, const char *what);

/*
 * A CUDA stream in the current context, which does not wait for the default stream: of the highest
 * priority that the GPU has for WEIR_CLASS_LATENCY, of the lowest for WEIR_CLASS_BEST_EFFORT.  One
 * that was returned is given out again, whatever is still queued in it.  Works without `weir run`.
 *   ret_stream  a CUstream (cudaStream_t), until weir_sched_stream_return()
 * Errors: WEIR_ERROR_ARGUMENT, WEIR_ERROR_HANDLE, WEIR_ERROR_NO_DRIVER, WEIR_ERROR_NO_CONTEXT,
 * WEIR_ERROR_DRIVER, WEIR_ERROR_LIMIT (64 streams a handle).
 */
int weir_sched_stream_get(weir_sched handle, int sched_class, void **ret_stream);

/*
 * Gives a stream back, which is the handle's from now on; it is neither waited for nor destroyed.
 * Errors: WEIR_ERROR_ARGUMENT (it is none of this handle, or was returned), WEIR_ERROR_HANDLE.
 */
int weir_sched_stream_return(weir_sched handle, void *stream);

#ifdef __cplusplus
}
#endif

#endif
