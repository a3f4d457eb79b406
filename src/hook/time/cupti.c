/* Collects CUPTI's activity records. */
#include "hook/time/cupti.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/monotonic.h"
#include "base/sys.h"
#include "cupti_records.h"
#include "hook/core/strings.h"
#include "hook/core/lock.h"
#include "hook/core/process.h"
#include "hook/time/collector.h"
#include "hook/time/cupti_shared.h"

#define BUFFER_BYTES    (4u << 20)
#define CHUNK_BYTES     (16u * TRACE_GRAIN)
#define FLUSH_PERIOD_MS 500u

/* CUPTI hands a buffer back when it is full and its period is over, not before: what is in one is
 * seen by nobody meanwhile, and lost when the program is killed.  So they grow and shrink with what
 * comes, to what fills up in FILL_NS or a quarter of it; who learns while the program runs wants
 * them small.  QUICK_BYTES hold 75 kernels, SLOW_BYTES 1200. */
#define FILL_NS         1000000000u
#define QUICK_BYTES     (16u << 10)
#define SLOW_BYTES      (256u << 10)
#define QUICK_PERIOD_MS 10u

/* An activity that starts so long after the recording was stopped is ignored. */
#define QUEUED_NS 1000000000u

static struct {
	int (*register_callbacks)(void *request, void *complete);
	int (*register_timestamp)(uint64_t (*now)(void));
	int (*enable)(int kind);
	int (*disable)(int kind);
	int (*flush_all)(uint32_t forced);
	int (*flush_period)(uint32_t ms);
	int (*next_record)(uint8_t *buffer, size_t valid, void **record);
	int (*dropped)(void *context, uint32_t stream, size_t *ret_dropped);
	int (*finalize)(void); /* or NULL */
} cupti;

static struct recorder *trace;
static uint32_t started_by; /* the process that this is about: no child of it */

static bool is_here(void)
{
	return (uint32_t)sys(getpid) == started_by;
}

/* One open chunk, filled by whichever of CUPTI's threads hands a buffer back. */
static struct {
	struct chunk_header *chunk;
	uint32_t used;
	struct lock lock;
	uint64_t lost; /* pieces that no chunk says to be lost yet */
} out;

static _Atomic uint64_t lost_unlocked; /* by who did not get the lock */

static void store_lost(void)
{
	if (!out.chunk)
		return;
	out.chunk->lost +=
		out.lost + atomic_exchange_explicit(&lost_unlocked, 0, memory_order_relaxed);
	out.lost = 0;
}

static struct gpu_activity *take_slot(void)
{
	const uint32_t each = sizeof(struct gpu_activity);
	if (out.chunk && CHUNK_BYTES - CHUNK_PAYLOAD - out.used < each) {
		out.chunk->used = out.used;
		store_release(shared(&out.chunk->state), CHUNK_CLOSED);
		sys(munmap, out.chunk, CHUNK_BYTES);
		out.chunk = NULL;
	}
	if (!out.chunk) {
		out.chunk = recorder_chunk(trace, CHUNK_DEVICE, CHUNK_BYTES, 0);
		out.used = 0;
	}
	if (!out.chunk) {
		out.lost++;
		return NULL;
	}
	store_lost();
	struct gpu_activity *w =
		(struct gpu_activity *)((char *)out.chunk + CHUNK_PAYLOAD + out.used);
	out.used += each;
	return w;
}

static uint64_t first_correlation;

void cupti_number_apart(void)
{
	first_correlation = CUPTI_CORRELATIONS;
}

/* Work that was launched before may have waited: readers tell by its launch whether it belongs to
 * the recording. */
static bool is_after_stop(const struct gpu_activity *w)
{
	const struct trace_header *h = trace->header;
	const uint64_t since = load_relaxed(&h->off_since_ns);
	return load_acquire(&h->stopped) && since && w->start_ns > since + QUEUED_NS;
}

static void keep(const struct gpu_activity *activity)
{
	struct gpu_activity *to = is_after_stop(activity) ? NULL : take_slot();
	if (!to)
		return;
	struct gpu_activity unfinished = *activity;
	unfinished.kind = 0;
	unfinished.correlation += first_correlation;
	*to = unfinished;
	store_release(shared(&to->kind), activity->kind);
}

/* The members that all records of work have. */
#define WORK(record)                                                                               \
	.start_ns = share_to_monotonic((record)->start),                                           \
	.end_ns = share_to_monotonic((record)->end), .correlation = (record)->correlation,         \
	.device = (record)->device, .context = (record)->context, .stream = (record)->stream,      \
	.graph = (record)->graph, .graph_node = (record)->graph_node
#define WORK_VALID(record)                                                                         \
	(GPU_HAS_CORRELATION | GPU_HAS_DEVICE | GPU_HAS_CONTEXT | GPU_HAS_STREAM |                 \
		((record)->graph_node ? GPU_HAS_GRAPH : 0))

static void keep_kernel(const struct cupti_kernel *k)
{
	struct gpu_activity w = {
		WORK(k),
		.name = string_of(k->name),
		.shared_static = k->shared_static,
		.shared_dynamic = k->shared_dynamic,
		.registers = k->registers,
		.kind = GPU_KERNEL,
		.valid = WORK_VALID(k) | GPU_HAS_SHAPE | GPU_HAS_SHARED | GPU_HAS_REGISTERS,
	};
	memcpy(w.grid, k->grid, sizeof w.grid);
	memcpy(w.block, k->block, sizeof w.block);
	keep(&w);
	completions_publish(&w, k->name);
}

static const char *memory_kind_name(unsigned kind)
{
	static const char *const names[] = { "Unknown", "Pageable", "Pinned", "Device", "Array",
		"Managed", "Device Static", "Managed Static" };
	return names[kind < sizeof names / sizeof *names ? kind : 0];
}

/* As torch.profiler writes them: "Memcpy HtoD (Pageable -> Device)". */
static uint32_t memcpy_name(const struct cupti_memcpy *c)
{
	static const char *const directions[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
		"AtoD", "DtoA", "DtoD", "HtoH", "PtoP" };
	const size_t known = sizeof directions / sizeof *directions;
	char text[64];
	struct bounded b = BOUNDED(text);
	bounded_put(&b, "Memcpy ");
	bounded_put(&b, directions[c->direction < known ? c->direction : 0]);
	bounded_put(&b, " (");
	bounded_put(&b, memory_kind_name(c->from));
	bounded_put(&b, " -> ");
	bounded_put(&b, memory_kind_name(c->to));
	bounded_put(&b, ")");
	return string_id(text, b.used);
}

/* "Memset (Device)" */
static uint32_t memset_name(const struct cupti_memset *s)
{
	char text[32];
	struct bounded b = BOUNDED(text);
	bounded_put(&b, "Memset (");
	bounded_put(&b, memory_kind_name(s->memory_kind));
	bounded_put(&b, ")");
	return string_id(text, b.used);
}

static void keep_memcpy(const struct cupti_memcpy *c)
{
	keep(&(struct gpu_activity){
		.name = memcpy_name(c),
		WORK(c),
		.bytes = c->bytes,
		.what = c->direction,
		.from = c->from,
		.to = c->to,
		.kind = GPU_MEMCPY,
		.valid = WORK_VALID(c) | GPU_HAS_BYTES | GPU_HAS_WHAT | GPU_HAS_MEMORY_KINDS,
	});
}

static void keep_memset(const struct cupti_memset *s)
{
	keep(&(struct gpu_activity){
		.name = memset_name(s),
		WORK(s),
		.bytes = s->bytes,
		.from = (uint8_t)s->memory_kind,
		.kind = GPU_MEMSET,
		.valid = WORK_VALID(s) | GPU_HAS_BYTES | GPU_HAS_MEMORY_KINDS,
	});
}

static void keep_sync(const struct cupti_sync *s)
{
	keep(&(struct gpu_activity){
		.start_ns = share_to_monotonic(s->start),
		.end_ns = share_to_monotonic(s->end),
		.correlation = s->correlation,
		.context = s->context,
		.stream = s->stream,
		.what = (uint8_t)s->type,
		.kind = GPU_SYNC,
		.valid = GPU_HAS_CORRELATION | GPU_HAS_CONTEXT | GPU_HAS_WHAT |
			 (s->stream != UINT32_MAX ? GPU_HAS_STREAM : 0),
	});
}

/* A forced flush hands out activities that have not ended, with no end: that is no time. */
static bool has_time(const void *record)
{
	uint64_t start, end;
	if (!cupti_span(record, &start, &end))
		return true;
	return start && end >= start && share_is_date(share_to_monotonic(start));
}

static void keep_record(const void *record)
{
	if (!has_time(record)) {
		out.lost++;
		return;
	}
	switch (*(const uint32_t *)record) {
	case CUPTI_KERNEL:
		keep_kernel(record);
		break;
	case CUPTI_MEMCPY:
		keep_memcpy(record);
		break;
	case CUPTI_MEMSET:
		keep_memset(record);
		break;
	case CUPTI_SYNC:
		keep_sync(record);
		break;
	default:
		break;
	}
}

/* The buffers that are ours: whatever else comes back is another client's. */
#define BUFFERS 256u
static _Atomic(uint8_t *) buffers[BUFFERS];

static bool swap_buffer(uint8_t *old, uint8_t *new)
{
	for (uint32_t i = 0; i < BUFFERS; i++) {
		uint8_t *seen = old;
		if (replace_if(&buffers[i], &seen, new, acq_rel, relaxed))
			return true;
	}
	return false;
}

static _Atomic uint32_t next_bytes = QUICK_BYTES; /* of the next one */
static _Atomic uint32_t given;                    /* that are with CUPTI */
static uint64_t last_ns;                          /* when one came back last */

static uint32_t bytes_of_next(void)
{
	return load_relaxed(&next_bytes);
}

static void set_next(uint32_t bytes)
{
	store_relaxed(&next_bytes, bytes);
}

/* As long as there is news the next is to come soon, then ever later. */
static void set_pace_of_learner(bool news)
{
	const uint32_t now = bytes_of_next();
	set_next(news ? QUICK_BYTES : now < SLOW_BYTES ? 2 * now : SLOW_BYTES);
}

/* One came back.  Buffers of several contexts come back before each is full: then they are larger
 * than they need be. */
static void set_pace(uint64_t now)
{
	uint64_t took = now - last_ns;
	uint32_t bytes = bytes_of_next();
	last_ns = now;
	if (took < FILL_NS / 4 && bytes < BUFFER_BYTES)
		bytes *= 2;
	for (; took > FILL_NS && bytes > QUICK_BYTES; took /= 2)
		bytes /= 2;
	set_next(bytes);
}

/* The part of the BUFFER_BYTES that CUPTI learns of.  Behind a kernel that runs for long many small
 * ones would wait, and there are only so many. */
static size_t room_of_next(void)
{
	if (load_relaxed(&given) < BUFFERS / 4)
		return bytes_of_next();
	return completions_are_wanted() ? SLOW_BYTES : BUFFER_BYTES;
}

static void give_buffer(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	const long at = sys(mmap, NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *buffer = sys_failed(at) ? NULL : (uint8_t *)at;
	if (buffer && !swap_buffer(NULL, buffer)) {
		sys(munmap, buffer, BUFFER_BYTES);
		buffer = NULL;
	}
	if (buffer)
		add_relaxed(&given, 1);
	*ret_buffer = buffer;
	*ret_bytes = buffer ? room_of_next() : 0;
	*ret_records = 0;
}

static void lose_records(uint8_t *buffer, size_t valid)
{
	void *record = NULL;
	while (valid && !cupti.next_record(buffer, valid, &record))
		add_relaxed(&lost_unlocked, 1);
}

static void keep_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t valid)
{
	void *record = NULL;
	size_t dropped = 0;
	if (!lock_take(&out.lock, LOCK_NAPS)) {
		lose_records(buffer, valid);
		return;
	}
	share_read_clocks();
	while (valid && !cupti.next_record(buffer, valid, &record))
		keep_record(record);
	if (!cupti.dropped(context, stream, &dropped)) {
		out.lost += dropped;
		share_add_dropped(dropped);
		store_lost();
	}
	if (completions_are_wanted())
		set_pace_of_learner(completions_publish(NULL, NULL));
	else
		set_pace(monotonic_ns());
	lock_give(&out.lock);
}

struct returned {
	void *context;
	uint32_t stream;
	uint8_t *buffer;
	size_t bytes, valid;
};

static void hand_on(const struct returned *b)
{
	if (!swap_buffer(b->buffer, NULL)) {
		share_pass(b->context, b->stream, b->buffer, b->bytes, b->valid);
		return;
	}
	sub_relaxed(&given, 1);
	share_copy(cupti.next_record, b->context, b->stream, b->buffer, b->valid);
	sys(munmap, b->buffer, BUFFER_BYTES);
}

/* Buffers that came back at exit, until the other client flushes or the process is gone. */
static struct returned waiting[BUFFERS];
static uint32_t waiting_count;

static void wait_for_flush(const struct returned *b)
{
	if (!lock_take(&out.lock, LOCK_NAPS))
		return;
	if (waiting_count < BUFFERS)
		waiting[waiting_count++] = *b;
	lock_give(&out.lock);
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	const struct returned b = { context, stream, buffer, bytes, valid };
	if (!buffer)
		return;
	if (is_here())
		keep_buffer(context, stream, buffer, valid);
	if (share_has_client() && share_is_shut())
		wait_for_flush(&b);
	else
		hand_on(&b);
}

/* Takes the rest of the buffers when the program ends in order; else half a second is missing.  A
 * forked child has its parent's buffers, and CUPTI's locks as they happened to be. */
void cupti_at_exit(void)
{
	if (!is_here() || !cupti_is_collecting())
		return;
	share_leave();
	cupti.flush_all(0);
	cupti.flush_all(1);
}

/* The last word of who learns is the first thing that may be written down.  An exit() from a
 * handler that has interrupted this very thread at it would wait for itself. */
bool cupti_end_learning(void)
{
	if (!lock_take(&out.lock, LOCK_NAPS))
		return false;
	completions_stop();
	lock_give(&out.lock);
	return true;
}

static uint64_t realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* A client that names no clock counts on CUPTI's own. */
static int use_default_clock(void)
{
	const int result = cupti.register_timestamp(realtime_ns);
	if (!result)
		share_clock(realtime_ns, true);
	return result;
}

static _Atomic bool collecting;

bool cupti_is_collecting(void)
{
	return load_acquire(&collecting);
}

/* Not CUPTI_SYNC: the calls say when a host waited, and that kind makes each launch more expensive
 * for good. */
static const int kinds[] = { CUPTI_KERNEL, CUPTI_MEMCPY, CUPTI_MEMSET };
#define KINDS (sizeof kinds / sizeof *kinds)

static _Atomic bool paused;
static _Atomic bool left; /* CUPTI has been ended */

bool cupti_records(int kind)
{
	bool ours = false;
	for (size_t i = 0; i < KINDS; i++)
		ours |= kind == kinds[i];
	return ours && !load_acquire(&paused);
}

static const char *attach(void)
{
	share_read_clocks();
	if ((!share_has_client() && !share_has_clock() && cupti.register_timestamp(monotonic_ns)) ||
		(share_has_client() && !share_has_clock() && use_default_clock()) ||
		cupti.register_callbacks((void *)give_buffer, (void *)take_buffer))
		return "no device times: another tool in this program holds CUPTI";
	for (size_t i = 0; i < KINDS; i++)
		if (cupti.enable(kinds[i]) && kinds[i] == CUPTI_KERNEL)
			return "no device times: CUPTI refuses to record kernels here";
	last_ns = monotonic_ns();
	cupti.flush_period(completions_are_wanted() ? QUICK_PERIOD_MS : FLUSH_PERIOD_MS);
	store_release(&collecting, true);
	share_prepare();
	return NULL;
}

/* A kind that another client has enabled stays so. */
void cupti_pause(bool pause)
{
	if (atomic_exchange_explicit(&paused, pause, memory_order_acq_rel) == pause || !is_here())
		return;
	if (!pause && atomic_exchange_explicit(&left, false, memory_order_acq_rel)) {
		/* It may count from the beginning, and calls since have no number. */
		first_correlation += 1ull << 32;
		attach();
		return;
	}
	for (size_t i = 0; cupti_is_collecting() && i < KINDS; i++)
		if (!pause)
			cupti.enable(kinds[i]);
		else if (cupti.disable && !share_is_enabled(kinds[i]))
			cupti.disable(kinds[i]);
}

bool cupti_leave(void)
{
	if (!cupti.finalize || share_has_client() || !is_here() || !cupti_is_collecting())
		return false;
	cupti.flush_all(0);
	cupti.flush_all(1);
	store_release(&collecting, false);
	if (cupti.finalize()) {
		store_release(&collecting, true);
		return false;
	}
	store_release(&left, true);
	return true;
}

void cupti_flush(void)
{
	cupti.flush_all(0);
}

void cupti_hand_out(void)
{
	if (is_here() && cupti_is_collecting())
		cupti_flush();
}

int cupti_share(void)
{
	if (share_has_clock())
		return 0;
	cupti_flush();
	return use_default_clock();
}

static bool take_waiting(struct returned *ret_b)
{
	if (!lock_take(&out.lock, LOCK_NAPS))
		return false;
	const bool any = waiting_count > 0;
	if (any) {
		*ret_b = waiting[0];
		memmove(waiting, waiting + 1, --waiting_count * sizeof *waiting);
	}
	lock_give(&out.lock);
	return any;
}

void cupti_hand_on_waiting(void)
{
	struct returned b;
	while (take_waiting(&b))
		hand_on(&b);
}

/* A thread's work may be half done.  Nothing else is written: a page that a child writes to is
 * copied. */
void cupti_forked(void)
{
	if (lock_forked(&out.lock))
		waiting_count = 0;
	share_forked();
}

static void *open_library(void)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so",
		"/usr/local/cuda/lib64/libcupti.so",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", CPU_CUPTI };
	void *library = NULL;
	/* One that the program has already, else the first to be found. */
	for (int flag = RTLD_NOLOAD; !library && flag >= 0; flag = flag ? 0 : -1)
		for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
			library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | flag);
	return library;
}

static bool find_functions(void *library)
{
	const struct {
		const char *name;
		void *to;
	} all[] = {
		{ "cuptiActivityRegisterCallbacks", &cupti.register_callbacks },
		{ "cuptiActivityRegisterTimestampCallback", &cupti.register_timestamp },
		{ "cuptiActivityEnable", &cupti.enable },
		{ "cuptiActivityFlushAll", &cupti.flush_all },
		{ "cuptiActivityFlushPeriod", &cupti.flush_period },
		{ "cuptiActivityGetNextRecord", &cupti.next_record },
		{ "cuptiActivityGetNumDroppedRecords", &cupti.dropped },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		void *f = dlsym(library, all[i].name);
		if (!f)
			return false;
		memcpy(all[i].to, &f, sizeof f);
	}
	void *disable = dlsym(library, "cuptiActivityDisable");
	void *finalize = dlsym(library, "cuptiFinalize");
	memcpy(&cupti.disable, &disable, sizeof disable);
	memcpy(&cupti.finalize, &finalize, sizeof finalize);
	return true;
}

static const char *start(uint32_t rate)
{
	void *library = open_library();
	if (!library)
		return "no device times: libcupti.so can't be found; put its directory into "
		       "LD_LIBRARY_PATH";
	if (!find_functions(library))
		return "no device times: libcupti.so is too old";
	struct recorder *const r = trace = &hook_recorder;
	started_by = (uint32_t)sys(getpid);
	const char *why = attach();
	if (why)
		return why;
	atomic_fetch_or_explicit(&r->header->optional, FEATURE_DEVICE, memory_order_relaxed);
	if (atomic_exchange_explicit(&paused, false, memory_order_acq_rel))
		cupti_pause(true);
	return NULL;
}

const struct collector cupti_collector = { .name = "CUPTI", .start = start };
