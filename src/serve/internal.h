/* The files of this folder share this. */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/array.h"
#include "base/atomic.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/map.h"
#include "base/monotonic.h"
#include "batch/batch.h"
#include "engine/engine.h"
#include "serve/model_server.h"
#include "serve/tokens.h"
#include "store/model_config.h"
#include "store/store.h"
#include "tensor/tensor.h"
#include "wire/http1.h"
#include "wire/infer.h"
#include "wire/message.h"
#include "wire/route.h"
#include "wire/status.h"

struct conn;
struct injected;
struct stream;
struct loop;
struct device;
struct version;
struct batch;

enum exchange_state { EXCHANGE_OWN, EXCHANGE_QUEUED, EXCHANGE_RUNNING };

struct exchange {
	struct batch_item item;
	struct exchange *next; /* in the loop's inbox, or its free list */
	struct loop *loop;
	struct conn *conn;      /* NULL: the client is gone */
	struct stream *stream;  /* HTTP/2: of that connection */
	struct token *token;    /* whose rates hold; or NULL */
	struct exchange *after; /* of a stream of requests: the next one, which is answered later */
	enum exchange_state state; /* under the device's lock while it is away */
	bool away;                 /* the device or the keeper has it */
	bool grpc, streamed, answered;
	bool only_head; /* HEAD: the answer has no body */
	struct route_match match;
	/* The values of headers. */
	bool has_infer_length, wants_time;
	uint64_t infer_length;
	uint64_t timeout_ns;      /* of Weir-Deadline-Us or grpc-timeout; 0: none */
	char traceparent[56];     /* "": none */
	char encoding;            /* of the body: 0, 'g'zip or 'd'eflate */
	size_t body_at;           /* where it begins, so that binary data is aligned */
	uint64_t held;            /* bytes that count against the server's memory */
	struct buf *classes;      /* by output, where classes were asked for; or NULL */
	bool may_stage;           /* the device ran another batch when this was queued */
	struct map_key group_key; /* of the shapes */
	struct version *version;  /* a reference */
	struct batch *batch;      /* a reference, when it ran */
	uint32_t first_row;
	/* Times: enum request_stamp of event/format.h explains them. */
	uint64_t began_ns, read_ns, queued_ns, taken_ns, ran_ns, ended_ns, sent_ns;
	uint64_t number; /* in a recording; 0: nobody records */
	bool recorded;
	uint32_t batch_rows;
	/* The answer. */
	int status; /* 0 or -errno; then err says why */
	uint64_t retry_ns;
	size_t answer_json; /* Inference-Header-Content-Length; 0: none */
	const char *content_type;

	/* All before this is zero for a new request. */
	struct buf body;
	struct buf answer; /* body, or message without its prefix */
	struct error err;
	char names[600]; /* what match has slices of */
	struct infer_request infer;
	uint8_t order[INFER_TENSORS]; /* by the model's input: 1 + that of the request; 0: left out
				       */
	struct buf scratch;           /* copies of data that is not aligned */
	void *shared[INFER_TENSORS];  /* by the request's input: what was in shared memory */
	/* By the request's input, while the device runs others.  The device reads `at`. */
	struct exchange_staged {
		struct engine_staged copy;
		_Atomic(const void *) at;
	} staged[INFER_TENSORS];
};

/* The connection to tell that the exchange is answered. */
void conn_answered(struct exchange *x);
/* Begins what a complete request asks for: answers at once, or later by conn_answered(). */
void exchange_start(struct exchange *x);
/* An answer of a status alone. */
void exchange_fail(struct exchange *x, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* From the device or the keeper: the loop gets it back. */
void exchange_return(struct exchange *x);
/* The client is gone. */
void exchange_abandon(struct exchange *x);
/* The encoding of a body: none for an empty name.  -EOPNOTSUPP. */
int exchange_encoding(struct slice name, char *ret, struct error *err);
void exchange_set_trace(struct exchange *x, struct slice traceparent);
struct exchange *exchange_new(struct loop *l, struct conn *c);
void exchange_free(struct exchange *x);
/* Releases a spare exchange: its memory too. */
void exchange_release(struct exchange *x);
/* Lines for the head of an answer over HTTP, "Name: value\r\n". */
void exchange_put_lines(const struct exchange *x, struct buf *lines);

/* inference.c */
void infer_start(struct exchange *x);
void infer_unstage(struct exchange *x);
/* After its batch, on the loop's thread: writes the answer. */
void infer_finish(struct exchange *x);

/* methods.c */
/* After it, on the loop's thread. */
void control_finish(struct exchange *x);
void settings_init(struct server *s);
int settings_trace(struct server *s, const json_t *change, json_t **ret, struct error *err);
int settings_log(struct server *s, const json_t *change, json_t **ret, struct error *err);
/* live_settings.c: changes and answers how the scheduler works. */
int settings_live(struct server *s, const json_t *change, json_t **ret, struct error *err);
void control_start(struct exchange *x);
/* On the keeper's thread. */
void control_run(struct exchange *x);

/* Connections are in conn.c, http1_conn.c and http2_conn.c. */

/* ENDING: answered, and what still comes is thrown away until the client closes. */
enum conn_kind { CONN_NEW, CONN_HTTP1, CONN_HTTP2, CONN_ENDING };

struct conn {
	struct loop *loop;
	struct conn *prev, *next;
	int fd;
	enum conn_kind kind;
	bool trusted;    /* it came by the socket of this user, and needs no token */
	bool closing;    /* after what is in out */
	uint32_t events; /* what epoll is asked for */
	bool dead;       /* freed at the end of the loop's turn */
	struct buf in;
	size_t in_at;
	struct buf out;
	size_t out_at;
	uint64_t until_ns; /* when a slow client is cut; UINT64_MAX: not now */
	uint64_t began_ns; /* first byte of the request */
	/* HTTP/1.1 */
	enum { READ_HEAD, READ_BODY, READ_CHUNKS, AWAIT_ANSWER } state;
	size_t scanned;
	uint64_t body_left;
	struct http_chunks chunks;
	bool keep_alive;
	bool old;    /* HTTP/1.0: the client has to be told that the connection stays */
	bool paused; /* the next request waits until the client has read its answers */
	struct exchange *exchange;
	/* HTTP/2 */
	void *session;
	struct stream *streams;
	unsigned drained;        /* how often the client was told */
	struct conn *next_later; /* of those that are flushed at the end of the loop's turn */
	bool later;
};

void conn_new(struct loop *l, int fd, bool trusted);
void conn_ready(struct conn *c, uint32_t events);
void conn_flush(struct conn *c); /* writes what there is */
void conn_close(struct conn *c);
/* So many bytes wait for the socket that the connection takes no request meanwhile. */
bool conn_is_full(const struct conn *c);
/* Flushes it at the end of the loop's turn: several answers go out in one write. */
void conn_later(struct conn *c);
/* Whether the client has said a word of the server's; *ret: which; NULL: it needs none. */
int find_token(const struct conn *c, struct slice said, struct token **ret, struct error *err);
/* Counts bytes that the request has more: -ENOBUFS. */
int exchange_count(struct exchange *x, uint64_t bytes, struct error *err);
/* The same; false: the request has failed. */
bool exchange_hold(struct exchange *x, uint64_t bytes);

void http1_read(struct conn *c);
void http1_answered(struct exchange *x);
void http1_closed(struct conn *c);

bool http2_begin(struct conn *c);
void http2_read(struct conn *c);
void http2_answered(struct exchange *x);
bool http2_pump(struct conn *c);
void http2_sweep(struct conn *c);
/* Says that it takes no more streams, and ends: for a connection without streams. */
void http2_end(struct conn *c);
/* Says that the connection will end; `last`: and that it takes no more streams. */
void http2_drain(struct conn *c, bool last);
void http2_closed(struct conn *c);

struct loop {
	struct server *server;
	pthread_t thread;
	int epoll, wake, kept;
	_Atomic(struct exchange *) inbox;
	atomic_bool asleep;
	struct conn *conns, *later;
	bool any_dead;
	bool admitted; /* what the device does not know of yet */
	struct exchange *spare;
	unsigned spares;
	atomic_uint connections;
	uint64_t now;        /* at the begin of its turn */
	uint64_t ended_ns;   /* its last turn */
	uint64_t last;       /* the socket that it read then; 0: several */
	uint64_t stopped_ns; /* since when it takes no connections; 0: it does */
	struct buf log;      /* lines of this turn */
	_Atomic uint64_t busy_ns;
};

int loop_start(struct loop *l, struct server *s, struct error *err);
void loop_wake(struct loop *l);
void loop_join(struct loop *l);
void loop_fini(struct loop *l);

struct duration {
	_Atomic uint64_t count, ns;
};

static inline uint64_t get(const _Atomic uint64_t *n)
{
	return load_relaxed(n);
}

#define ERROR_RATIOS 7
extern const double error_ratios[ERROR_RATIOS]; /* where the buckets end */

#define LATENCY_BOUNDS 20
/* 8 an octave, from 1 us (all that is shorter) to 2 minutes (all that is longer). */
#define LATENCY_BUCKETS 224

struct version_stats {
	struct duration success, fail, queue, input, infer, output;
	_Atomic uint64_t inferences, executions, replays, cold_loads, last_ms;
	_Atomic uint64_t met, late, shed, refused, cancelled, rejected;
	struct duration sizes[BATCH_MOST + 1];            /* batches by rows */
	_Atomic uint64_t error_buckets[ERROR_RATIOS + 1]; /* measured / predicted */
	_Atomic uint64_t error_sum_ppm;
	_Atomic uint64_t bounds[LATENCY_BOUNDS + 1]; /* latency, by /metrics' buckets */
	_Atomic uint64_t latency[LATENCY_BUCKETS];   /* finer, for quantiles */
};

struct model;

/* The clients' view of an input or output, in the model's order. */
struct version_tensor {
	struct tensor_spec spec; /* the name is the config's */
	bool has_reshape;
	struct shape reshape; /* what the model itself has, with the batch dimension */
	char **labels;        /* of classes */
	size_t nlabels;
};

/* The limits that can change while it runs. */
struct version_limits {
	struct batch_model_config queue;
	uint64_t deadline_us; /* of a request that says none; 0: none */
};

/* One version that is loaded.  Requests hold references, and the last one to go gives it to the
 * keeper. */
struct version {
	atomic_uint refs;
	struct model *model;
	uint64_t number;
	char text[24]; /* the number */
	uint64_t fingerprint;
	struct model_config *config;
	const struct engine *engine;
	struct engine_model *loaded;
	struct version_tensor *in, *out; /* as many as loaded has */
	struct device *device;
	struct batch_model *queue;
	struct version_limits limits; /* under the device's lock */
	uint32_t queue_most;          /* the most that max_queue can be */
	_Atomic uint64_t deadline_us; /* that of limits */
	bool batched;                 /* the first dimension is rows */
	bool shapes_vary;             /* beside the rows: requests of equal shapes run together */
	struct map groups;            /* under the device's lock */
	uint32_t next_group;
	_Atomic uint64_t load_ns;
	struct version_stats stats;
	struct version *next_dead;
};

enum model_state { MODEL_UNAVAILABLE, MODEL_LOADING, MODEL_READY, MODEL_UNLOADING };

typedef ARRAY(struct version *) version_list;

struct model {
	char *name;
	enum model_state state;
	char *reason;          /* why its last load failed, or NULL */
	version_list versions; /* ready, ascending; references */
	uint64_t fingerprint;  /* of what was loaded, or failed to */
	uint64_t config_fingerprint;
	bool wanted; /* CONTROL_EXPLICIT: somebody asked for it */
};

struct models {
	pthread_rwlock_t lock;      /* for the list and what each model has */
	ARRAY(struct model *) list; /* models are never freed before the end */
	struct store *store;        /* the keeper's */
};

/* A reference to the version, or the latest; -ENOENT, -EAGAIN and a sentence. */
int models_find(struct models *m, struct slice model, struct slice version, struct version **ret,
	struct error *err);
/* With the lock for reading; NULL: there is none. */
struct model *models_by_name(struct models *m, struct slice name);
void version_ref(struct version *v);
void version_unref(struct version *v);
/* The first scan, before there is a keeper. */
int models_open(struct server *s, struct error *err);
/* The functions below are for the keeper's thread.  Compares the repository with what is loaded. */
int models_scan(struct server *s, bool settled, struct error *err);
int models_load(struct server *s, const char *name, const json_t *parameters, struct error *err);
int models_unload(struct server *s, const char *name, struct error *err);
void models_close(struct server *s);

/* version.c: loads, teaches the batcher what it takes, and frees. */
int version_load(struct server *s, const struct store_model *from,
	const struct store_version *which, struct version **ret, struct error *err);
void version_free(struct server *s, struct version *v);
/* A dimension beside the rows is the client's to choose. */
bool version_has_free_size(const struct version *v);
/* warm_up.c: runs the samples of the configuration, and batches of each size. */
int warm_up(struct server *s, const char *model, struct version *v, struct error *err);

struct batch {
	atomic_uint refs;
	struct batch *next;
	struct version *version;
	struct engine_run run;
	uint32_t rows, items;
	uint64_t number; /* in a recording */
	uint64_t urgent; /* its request of the scheduler; 0: it has no deadline */
	bool failed;     /* the engine has no outputs */
	ARRAY(struct engine_piece) pieces;
};

/* The state of the device's thread; BORROWED: it sleeps, and a loop runs batches meanwhile. */
enum device_state { DEVICE_AWAKE, DEVICE_ASLEEP, DEVICE_BORROWED };

struct device {
	struct server *server;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	enum device_state state; /* under the lock, as all that follows */
	bool runs, stopping;     /* runs: there is a thread */
	struct batcher *batcher;
	enum batch_policy policy; /* the batcher's, and its weights: under the lock */
	float class_weights[BATCH_CLASSES];
	struct batch_run run;
	bool runs_batch;
	struct batch *spare;              /* under the lock */
	ARRAY(struct version *) versions; /* of whose models it runs batches */
	unsigned moves;                   /* of memory of models, as far as the batcher knows */
};

int device_start(struct device *d, struct server *s, struct error *err);
/* Ends when its queues are empty. */
void device_stop(struct device *d);
/* When no exchange and no version is left, which give their batches and queues back. */
void device_close(struct device *d);
/* The version has a queue from then on, which is empty again when it is dropped. */
void device_add(struct device *d, struct version *v);
void device_drop(struct device *d, struct version *v);
/* Queues it, or sets its status.  The device looks at what is queued once the loop wakes it, after
 * all that it read in one turn: that is one wake, and one batch.  If all that is queued
 * typically takes no longer than most_ns, the loop runs it itself: true, and the requests are in
 * their loops' inboxes. */
bool device_admit(struct device *d, struct exchange *x);
bool device_wake(struct device *d, uint64_t most_ns);
/* Out of the queue; false: it runs. */
bool device_cancel(struct device *d, struct exchange *x);
void batch_unref(struct device *d, struct batch *b);

/* recorded.c tells the recording and the scheduler of batches and requests. */
void recorded_begin(struct server *s);
/* Around a batch, on the thread that runs it. */
void recorded_batch(struct batch *b, const struct batch_run *r, uint64_t now);
void recorded_batch_end(struct batch *b);
/* A request for a model begins, and is answered or gone. */
void recorded_number(struct exchange *x);
void recorded_request(struct exchange *x);

struct regions;
struct regions *regions_new(void);
void regions_free(struct regions *r);
/* Copies bytes out of or into a region: -EINVAL when it has not that many. */
int regions_read(struct regions *r, struct slice name, uint64_t offset, void *to, uint64_t bytes,
	struct error *err);
int regions_write(struct regions *r, struct slice name, uint64_t offset, const void *from,
	uint64_t bytes, struct error *err);
int regions_register(struct regions *r, const char *name, const char *key, uint64_t offset,
	uint64_t bytes, struct error *err);
void regions_unregister(struct regions *r, const char *name); /* NULL: all */
/* By name, one or all: -ENOENT. */
int regions_json(struct regions *r, const char *name, json_t **ret, struct error *err);

struct listener {
	int fd;
	unsigned port;
	char *path;   /* of a Unix socket */
	bool trusted; /* only this user can reach it */
};

#define EXCHANGES_MOST 16384

struct server {
	struct serve_options o;
	struct tokens *tokens; /* or NULL */
	struct listener listeners[5];
	unsigned nlisteners;
	struct loop *loops;
	unsigned nloops;
	struct device device;
	struct models models;
	struct regions *regions;
	/* The keeper, and what it is asked. */
	pthread_t keeper;
	pthread_mutex_t keeper_lock;
	pthread_cond_t keeper_work;
	struct exchange *asked, **asked_end;
	struct version *dead;
	bool keeper_stops, reread, keeper_runs;
	atomic_bool ready, draining, stopping, ends;
	_Atomic uint64_t held_bytes, exchanges;
	const struct injected *injected;    /* the library that records and shares; or NULL */
	_Atomic uint64_t requests, batches; /* numbers in a recording */
	_Atomic uint64_t refused_bytes, refused_rate;
	struct request_log *log; /* or NULL */
	uint64_t began_ns;
	json_t *trace, *logging; /* settings, under the keeper's lock */
};

bool server_is_ready(const struct server *s);
void keeper_ask(struct server *s, struct exchange *x);
void keeper_bury(struct server *s, struct version *v);
int keeper_start(struct server *s, struct error *err);
void keeper_stop(struct server *s);
/* Frees what has died since. */
void keeper_bury_all(struct server *s);

/* exposition.c: everything, as Prometheus reads it. */
void metrics_put(struct server *s, struct buf *b);
/* The first bucket of /metrics that has it. */
unsigned latency_bound(uint64_t ns);
/* stats.c: a version's numbers as the statistics extension has them. */
json_t *stats_json(const struct version *v);
/* A successful request took so long. */
void stats_add_latency(struct version_stats *s, uint64_t ns);
/* weir top reads this. */
json_t *watch_json(const struct version *v);

/* classes.c */
/* Bytes of so many elements of BYTES, which have been checked. */
size_t bytes_skip(const void *data, uint64_t elements);

/* Replaces the tensor by its classes, whose text is in `memory`.  -EINVAL: its values have no
 * order. */
int classes_put(struct tensor *t, bool batched, uint32_t classes, char *const *labels,
	size_t nlabels, struct buf *memory, struct error *err);

/* request_log.c */
#define LOG_ROOM ((size_t)1 << 18)

struct request_log;
int log_open(const char *path, struct request_log **ret, struct error *err);
/* Any thread. Takes whole lines, and leaves `lines` empty. */
void log_put(struct request_log *log, struct buf *lines);
/* Lines that were dropped; of no log: 0. */
uint64_t log_lost(const struct request_log *log);
/*
 * Writes what waits, and closes the file. If that takes more than five seconds, the file hangs: the
 * thread keeps it, and ends with the process. NULL is no log.
 */
void log_close(struct request_log *log);
