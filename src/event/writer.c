/*
 * The slow half of writing events: getting hold of the trace file, and of chunks in it.
 *
 * The file is opened by its path for each chunk and closed again at once.  A descriptor that
 * stayed open would be one that the program can close, and whose number it can then give to
 * a file of its own.
 */
#include "event/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "event/sandbox.h"
#include "event/schema_text.h"

#define CHUNK_FIRST        (1u * TRACE_GRAIN)
#define CHUNK_LATER        (4u * TRACE_GRAIN)
#define SKIP_AFTER_REFUSAL 1024u

struct chunk_header writer_nowhere;

/*
 * Chunks of threads that are gone.  There is no hook on the end of a thread: pthread keys
 * allocate, and a destructor of the program may call CUDA after ours.  Instead each refill
 * looks at a few other threads' chunks and unmaps those whose thread is no more.
 */
#define REGISTRY 4096u
static struct {
	_Atomic uint32_t tid; /* 0: free; TAKEN: somebody is at it */
	struct chunk_header *chunk;
} registry[REGISTRY];
#define TAKEN UINT32_MAX
static _Atomic uint32_t registry_hand;

/* --- processes ----------------------------------------------------------------------- */

/* Field 22 of /proc/PID/stat: when the process started.  0 when there is no such process. */
static uint64_t start_of_process(uint32_t pid)
{
	char path[32] = "/proc/";
	char digits[10], text[512];
	int n = 0, at = 6;
	for (uint32_t p = pid; p || !n; p /= 10)
		digits[n++] = (char)('0' + p % 10);
	while (n)
		path[at++] = digits[--n];
	memcpy(path + at, "/stat", 6);
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return 0;
	const long got = sys(read, fd, text, sizeof text - 1);
	sys(close, fd);
	if (got <= 0)
		return 0;
	text[got] = 0;
	const char *p = strrchr(text, ')'); /* the name before it may hold anything */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	uint64_t start = 0;
	for (p = p ? p + 1 : ""; *p >= '0' && *p <= '9'; p++)
		start = start * 10 + (uint64_t)(*p - '0');
	return start;
}

/* --- the file ------------------------------------------------------------------------ */

bool writer_beyond_limit(uint64_t end)
{
	struct rlimit limit;
	if (sys_failed(sys(prlimit64, 0, RLIMIT_FSIZE, NULL, &limit)))
		return false;
	return limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

static const char zeros[4096];

/*
 * Blocks for [offset, offset + bytes), now: a mapped page without one would be SIGBUS when
 * the disk is full.  Growing past RLIMIT_FSIZE would be SIGXFSZ, so that is asked first.
 */
static long allocate(long fd, uint64_t offset, uint64_t bytes)
{
	if (writer_beyond_limit(offset + bytes))
		return -EFBIG;
	const long done = sys(fallocate, fd, 0, offset, bytes);
	if (done != -EOPNOTSUPP && done != -ENOSYS)
		return done;
	for (uint64_t at = 0; at < bytes;) {
		const long put = sys(pwrite64, fd, zeros, sizeof zeros, offset + at);
		if (put <= 0)
			return put ? put : -ENOSPC;
		at += (uint64_t)put;
	}
	return 0;
}

static long map_shared(long fd, uint64_t offset, uint64_t bytes)
{
	return sys(
		mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
}

static long open_trace(const struct recorder *r, int flags)
{
	return sys(openat, AT_FDCWD, r->path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		0600);
}

/* The file of recorder_open(), or -ESTALE when its name has come to mean another. */
static long open_same(const struct recorder *r)
{
	struct stat now;
	const long fd = open_trace(r, 0);
	if (sys_failed(fd))
		return fd;
	if (!sys(fstat, fd, &now) && now.st_dev == r->device && now.st_ino == r->inode)
		return fd;
	sys(close, fd);
	return -ESTALE;
}

/* Is any process that has written here still running? */
static bool in_use(long fd, const struct trace_header *h)
{
	for (uint64_t at = h->header_bytes; at < h->next; at += TRACE_GRAIN) {
		struct chunk_header c;
		if (sys(pread64, fd, &c, sizeof c, at) != sizeof c)
			break;
		if (c.magic == CHUNK_MAGIC && c.pid && start_of_process(c.pid) == c.process_start)
			return true;
	}
	return false;
}

/* A file that a run still going on writes, or that weir record prepared. */
static bool joinable(long fd)
{
	struct trace_header h;
	if (sys(pread64, fd, &h, sizeof h, 0) != sizeof h || memcmp(h.magic, TRACE_MAGIC, 8))
		return false;
	if (h.version != TRACE_VERSION || h.required || h.form != TRACE_RAW ||
		h.state != TRACE_RECORDING)
		return false;
	return h.launched || start_of_process(h.root_pid) == h.root_start || in_use(fd, &h);
}

/* What a new trace may take the place of: an old one, or an empty file. */
static bool replaceable(long fd)
{
	struct stat st;
	char magic[8];
	if (sys(fstat, fd, &st) || !S_ISREG(st.st_mode))
		return false;
	return st.st_size == 0 || (sys(pread64, fd, magic, sizeof magic, 0) == sizeof magic &&
					  !memcmp(magic, TRACE_MAGIC, sizeof magic));
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = 0;
	while (n < size - 1 && from[n])
		n++;
	memcpy(to, from, n);
	memset(to + n, 0, size - n);
}

void header_blank(struct trace_header *h, uint32_t control)
{
	*h = (struct trace_header){
		.version = TRACE_VERSION,
		.header_bytes = TRACE_GRAIN,
		.form = TRACE_RAW,
		.clock = clock_best(),
		.control = control,
		.next = TRACE_GRAIN,
		.root_pid = (uint32_t)sys(getpid),
		.root_start = start_of_process((uint32_t)sys(getpid)),
	};
	memcpy(h->magic, TRACE_MAGIC, 8);
	h->start = clock_pair_now(h->clock);
	h->off_since_ns = control_is_off(control) ? h->start.mono_ns : 0;
	const long fd = sys(openat, AT_FDCWD, "/proc/sys/kernel/hostname", O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return;
	long got = sys(read, fd, h->host, sizeof h->host - 1);
	sys(close, fd);
	while (got > 0 && h->host[got - 1] == '\n')
		h->host[--got] = 0;
}

/* /proc/self/cmdline, with spaces for the NULs between arguments. */
static void read_command_line(char *text, size_t size)
{
	const long fd = sys(openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return;
	long got = sys(read, fd, text, size - 1);
	sys(close, fd);
	text[got > 0 ? got : 0] = 0;
	for (long i = 0; i + 1 < got; i++)
		if (!text[i])
			text[i] = ' ';
}

/*
 * Writes a fresh file under a temporary name and links it to its own, so that nobody ever
 * sees half a header.  -EEXIST: another process of the run was first.
 */
static long make_file(struct recorder *r, const struct trace_header *blank, bool replace)
{
	char temp[RECORDER_PATH + 24];
	copy_text(temp, sizeof temp, r->path);
	size_t n = strlen(temp);
	temp[n++] = '.';
	for (uint32_t p = r->pid; p; p /= 10)
		temp[n++] = (char)('0' + p % 10);
	temp[n] = 0;
	const long fd = sys(
		openat, AT_FDCWD, temp, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (sys_failed(fd))
		return fd;
	struct trace_header h = *blank;
	if (!h.program[0])
		read_command_line(h.program, sizeof h.program);
	long done = allocate(fd, 0, TRACE_GRAIN);
	if (!done && sys(pwrite64, fd, &h, sizeof h, 0) != sizeof h)
		done = -ENOSPC;
	sys(close, fd);
	if (!done)
		done = replace ? sys(rename, temp, r->path) : sys(link, temp, r->path);
	if (done || !replace)
		sys(unlink, temp);
	return done;
}

static long open_or_make(struct recorder *r, const struct trace_header *blank)
{
	for (int tries = 0; tries < 4; tries++) {
		const long fd = open_trace(r, 0);
		if (fd >= 0 && joinable(fd))
			return fd;
		if (fd < 0 && fd != -ENOENT)
			return fd;
		const bool refused = r->join || (fd >= 0 && !replaceable(fd));
		if (fd >= 0)
			sys(close, fd);
		if (refused)
			return -EEXIST;
		const long made = make_file(r, blank, fd >= 0);
		if (made && made != -EEXIST)
			return made;
	}
	return -EAGAIN;
}

static void identify(struct recorder *r)
{
	r->pid = (uint32_t)sys(getpid);
	r->process_start = start_of_process(r->pid);
}

static void write_schema(struct recorder *r)
{
	const uint32_t bytes = CHUNK_PAYLOAD + schema_text_bytes;
	struct chunk_header *c = recorder_chunk(r, CHUNK_SCHEMA, bytes, 0);
	if (!c)
		return;
	memcpy((char *)c + CHUNK_PAYLOAD, schema_text, schema_text_bytes);
	c->used = schema_text_bytes;
	__atomic_store_n(&c->state, CHUNK_CLOSED, __ATOMIC_RELEASE);
	sys(munmap, c, c->bytes);
}

int recorder_open(struct recorder *r, const struct trace_header *blank)
{
	identify(r);
	const long fd = open_or_make(r, blank);
	if (sys_failed(fd))
		return (int)fd;
	struct stat now = { 0 };
	sys(fstat, fd, &now);
	r->device = now.st_dev;
	r->inode = now.st_ino;
	const long at = map_shared(fd, 0, TRACE_GRAIN);
	sys(close, fd);
	if (sys_failed(at))
		return (int)at;
	r->header = (struct trace_header *)at;
	/* The first process that comes brings the schema. */
	if (__atomic_fetch_add(&r->header->processes, 1, __ATOMIC_ACQ_REL) == 0)
		write_schema(r);
	return 0;
}

/* Puts private memory in the place of a chunk. */
static void part_from(struct chunk_header *c)
{
	const uint32_t bytes = c->bytes;
	sys(mmap, c, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	c->bytes = bytes;
}

void writer_forked(const struct recorder *r, struct writer *w)
{
	if (w->chunk != &writer_nowhere && !r->scratch)
		part_from(w->chunk);
	for (int i = 0; i < WRITER_KEPT && w->kept[i]; i++)
		part_from(w->kept[i]);
	*w = (struct writer){ .chunk = &writer_nowhere, .kind = w->kind };
}

void recorder_forked(struct recorder *r)
{
	identify(r);
	memset(registry, 0, sizeof registry);
	shared_forget();
	if (r->header)
		__atomic_fetch_add(&r->header->processes, 1, __ATOMIC_ACQ_REL);
}

/* --- chunks -------------------------------------------------------------------------- */

static void begin_chunk(const struct recorder *r, struct chunk_header *c, enum chunk_kind kind,
	uint32_t bytes, uint32_t tid, const struct writer *w)
{
	c->inflight_fn = 0;
	c->seq = w ? w->seq : 0;
	c->lost = w ? w->lost : 0;
	c->kind = (uint16_t)kind;
	c->bytes = bytes;
	c->pid = r->pid;
	c->tid = tid;
	c->process_start = r->process_start;
	c->open = clock_pair_now(r->header->clock);
	sys(prctl, PR_GET_NAME, c->thread);
	c->state = CHUNK_OPEN;
	/* The magic last: until then readers pass the chunk over. */
	__atomic_store_n(&c->magic, CHUNK_MAGIC, __ATOMIC_RELEASE);
}

/* Calls and ranges come without end; what else there is has a bound of its own. */
static bool is_endless(uint16_t kind)
{
	return kind == CHUNK_EVENTS || kind == CHUNK_RANGES;
}

static bool has_unfinished_range(const char *at, const char *end)
{
	for (; end - at >= (long)sizeof(struct range); at += sizeof(struct range)) {
		const struct range *g = (const struct range *)at;
		const uint32_t word = __atomic_load_n((const uint32_t *)&g->kind, __ATOMIC_ACQUIRE);
		if (!(word & UINT16_MAX) || word >> 16 & RANGE_OPEN)
			return true;
	}
	return false;
}

bool chunk_is_unfinished(const struct chunk_header *c)
{
	const uint32_t room = c->bytes - CHUNK_PAYLOAD;
	const char *at = (const char *)c + CHUNK_PAYLOAD, *const end =
								  at +
								  (c->used < room ? c->used : room);
	if (c->kind == CHUNK_RANGES)
		return has_unfinished_range(at, end);
	while (end - at >= (long)sizeof(struct record)) {
		const struct record *r = (const struct record *)at;
		if (!__atomic_load_n(&r->fn, __ATOMIC_ACQUIRE) || r->words < RECORD_WORDS)
			return true;
		at += r->words * 8u;
	}
	return false;
}

/* The closed chunk of calls or ranges that was begun first after `after`: its offset, or 0. */
static uint64_t find_oldest(const struct recorder *r, long fd, uint32_t bytes, uint64_t after,
	struct chunk_header *ret_chunk)
{
	uint64_t best = 0, oldest = UINT64_MAX;
	const uint64_t end = __atomic_load_n(&r->header->next, __ATOMIC_ACQUIRE);
	for (uint64_t at = TRACE_GRAIN; at < end;) {
		struct chunk_header c;
		if (sys(pread64, fd, &c, sizeof c, at) != sizeof c)
			break;
		const bool sane = c.magic == CHUNK_MAGIC && c.bytes && c.bytes % TRACE_GRAIN == 0;
		const bool full = c.state == CHUNK_CLOSED || c.state == CHUNK_LEFT;
		if (sane && full && is_endless(c.kind) && c.bytes == bytes &&
			c.open.ticks < oldest && c.open.ticks > after) {
			oldest = c.open.ticks;
			*ret_chunk = c;
			best = at;
		}
		at += sane ? c.bytes : TRACE_GRAIN;
	}
	return best;
}

#define UNFINISHED_MOST                                                                            \
	4 /* chunks that are passed over because somebody is in the middle of them */

/* Flight recorder: takes over the oldest chunk of calls or ranges. */
static long reuse_oldest(const struct recorder *r, long fd, uint32_t bytes)
{
	struct chunk_header was = { 0 };
	for (int i = 0; i < UNFINISHED_MOST; i++) {
		const uint64_t at = find_oldest(r, fd, bytes, was.open.ticks, &was);
		const long map = at ? map_shared(fd, at, bytes) : -ENOSPC;
		if (sys_failed(map))
			return map;
		struct chunk_header *c = (struct chunk_header *)map;
		const bool busy = was.state == CHUNK_CLOSED && chunk_is_unfinished(c);
		if (!busy && __atomic_compare_exchange_n(&c->state, &was.state, CHUNK_OPEN, false,
				     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(&c->magic, 0, __ATOMIC_RELEASE);
			memset((char *)c + CHUNK_PAYLOAD, 0, bytes - CHUNK_PAYLOAD);
			atomic_signal_fence(
				memory_order_seq_cst); /* killed here: its size is known */
			memset(c, 0, CHUNK_PAYLOAD);
			__atomic_fetch_add(&r->header->reused, 1, __ATOMIC_RELAXED);
			return map;
		}
		sys(munmap, map, bytes);
		if (!busy)
			return -EAGAIN;
	}
	return -ENOSPC;
}

static long extend(const struct recorder *r, long fd, uint32_t bytes)
{
	const uint64_t at = __atomic_fetch_add(&r->header->next, bytes, __ATOMIC_ACQ_REL);
	const long done = allocate(fd, at, bytes);
	if (!done)
		return map_shared(fd, at, bytes);
	/* Given back when nobody has taken more meanwhile: next is where the file ends. */
	uint64_t taken = at + bytes;
	__atomic_compare_exchange_n(
		&r->header->next, &taken, at, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	return done;
}

/* Takes the first chunk of the list: its offset, or 0.  The upper half of the word that it begins
 * with is another after each change, so what was read of a chunk that went meanwhile is not
 * believed. */
static uint64_t pop_free(const struct recorder *r, long fd, uint32_t *ret_bytes)
{
	uint64_t head = __atomic_load_n(&r->header->free, __ATOMIC_ACQUIRE);
	for (int tries = 0; (uint32_t)head && tries < 16; tries++) {
		const uint64_t at = (head & UINT32_MAX) * TRACE_GRAIN;
		struct chunk_header c;
		if (sys(pread64, fd, &c, sizeof c, at) != sizeof c)
			return 0;
		const uint64_t rest = ((head >> 32) + 1) << 32 | (uint32_t)c.inflight_ticks;
		if (!__atomic_compare_exchange_n(&r->header->free, &head, rest, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		*ret_bytes = c.bytes;
		return c.magic == CHUNK_MAGIC && c.state == CHUNK_FREE && c.bytes ? at : 0;
	}
	return 0;
}

/* The payload of a drained chunk as it was when it was new, but for its header. */
static void wipe_chunk(struct chunk_header *c)
{
	const uint32_t room = c->bytes - CHUNK_PAYLOAD;
	__atomic_store_n(&c->magic, 0, __ATOMIC_RELEASE);
	memset((char *)c + CHUNK_PAYLOAD, 0, c->used < room ? c->used : room);
	memset(&c->last, 0, sizeof c->last);
	c->used = 0;
}

/* A chunk that was drained and that nobody has; or -EAGAIN. */
static long take_free(const struct recorder *r, long fd, uint32_t *ret_bytes)
{
	uint32_t bytes;
	const uint64_t at = pop_free(r, fd, &bytes);
	const long map = at ? map_shared(fd, at, bytes) : -EAGAIN;
	if (sys_failed(map))
		return -EAGAIN;
	wipe_chunk((struct chunk_header *)map);
	*ret_bytes = bytes;
	return map;
}

void recorder_free(struct trace_header *h, struct chunk_header *c, uint64_t offset)
{
	/* Only now may its thread write over it.  (take_drained, leave_chunk) */
	const uint16_t was = __atomic_exchange_n(&c->state, CHUNK_FREE, __ATOMIC_ACQ_REL);
	const uint64_t granule = offset / TRACE_GRAIN;
	if (was != CHUNK_LEFT || granule > UINT32_MAX)
		return;
	uint64_t head = __atomic_load_n(&h->free, __ATOMIC_RELAXED), with;
	do {
		c->inflight_ticks = (uint32_t)head;
		with = ((head >> 32) + 1) << 32 | granule;
	} while (!__atomic_compare_exchange_n(
		&h->free, &head, with, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* New room, as the header's limit has it. */
static long more_room(const struct recorder *r, long fd, enum chunk_kind kind, uint32_t bytes)
{
	const uint64_t limit = r->header->limit;
	const bool full = is_endless(kind) && limit &&
			  __atomic_load_n(&r->header->next, __ATOMIC_ACQUIRE) + bytes > limit;
	long map = full && r->header->mode == TRACE_FILE ? -ENOSPC : -EAGAIN;
	for (int tries = 0; full && tries < 4 && map == -EAGAIN; tries++)
		map = reuse_oldest(r, fd, bytes);
	if (map == -EAGAIN || (full && r->header->mode == TRACE_FLIGHT && sys_failed(map)))
		map = extend(r, fd, bytes); /* flight: nothing to reuse yet, all are in use */
	return map;
}

static struct chunk_header *new_chunk(struct recorder *r, enum chunk_kind kind, uint32_t bytes,
	uint32_t tid, const struct writer *w)
{
	if (!r->header || __atomic_load_n(&r->header->stopped, __ATOMIC_RELAXED) ||
		sandbox_is_closed(r->header))
		return NULL;
	bytes = (bytes + TRACE_GRAIN - 1) / TRACE_GRAIN * TRACE_GRAIN;
	const long fd = open_same(r);
	if (sys_failed(fd))
		return NULL;
	long map = is_endless(kind) && w ? take_free(r, fd, &bytes) : -EAGAIN;
	if (sys_failed(map))
		map = more_room(r, fd, kind, bytes);
	sys(close, fd);
	if (sys_failed(map))
		return NULL;
	begin_chunk(r, (struct chunk_header *)map, kind, bytes, tid, w);
	return (struct chunk_header *)map;
}

struct chunk_header *recorder_chunk(
	struct recorder *r, enum chunk_kind kind, uint32_t bytes, uint32_t tid)
{
	return new_chunk(r, kind, bytes, tid, NULL);
}

static void close_chunk(const struct recorder *r, struct chunk_header *c, char *end)
{
	c->used = (uint32_t)(end - (char *)c) - CHUNK_PAYLOAD;
	__atomic_store_n(&c->state, CHUNK_CLOSED, __ATOMIC_RELEASE);
	__atomic_fetch_add(&r->header->closed, 1, __ATOMIC_RELEASE);
}

/* Unmaps a full chunk for good.  Whoever drains the file need not keep it for us; one that was
 * drained a moment ago is handed back with nothing in it. */
static void leave_chunk(const struct recorder *r, struct chunk_header *c)
{
	uint16_t was = CHUNK_CLOSED;
	if (!__atomic_compare_exchange_n(
		    &c->state, &was, CHUNK_LEFT, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE) &&
		was == CHUNK_FREE) {
		wipe_chunk(c);
		c->lost = 0;                                /* the block says it */
		c->open = clock_pair_now(r->header->clock); /* not what readers knew */
		c->state = CHUNK_LEFT;
		__atomic_store_n(&c->magic, CHUNK_MAGIC, __ATOMIC_RELEASE);
		__atomic_fetch_add(&r->header->closed, 1, __ATOMIC_RELEASE);
	}
	sys(munmap, c, c->bytes);
}

static void register_chunk(struct chunk_header *c)
{
	for (uint32_t i = 0; i < REGISTRY; i++) {
		const uint32_t at = (c->tid + i) % REGISTRY;
		uint32_t none = 0;
		if (!atomic_compare_exchange_strong(&registry[at].tid, &none, TAKEN))
			continue;
		registry[at].chunk = c;
		atomic_store_explicit(&registry[at].tid, c->tid, memory_order_release);
		return;
	} /* full: the chunk stays mapped, which only costs address space */
}

static void forget_chunk(const struct chunk_header *c)
{
	for (uint32_t i = 0; i < REGISTRY; i++) {
		const uint32_t at = (c->tid + i) % REGISTRY;
		uint32_t tid = c->tid;
		if (atomic_load(&registry[at].tid) != tid)
			continue;
		if (!atomic_compare_exchange_strong(&registry[at].tid, &tid, TAKEN))
			continue;
		const bool found = registry[at].chunk == c;
		atomic_store_explicit(&registry[at].tid, found ? 0 : c->tid, memory_order_release);
		if (found)
			return;
	}
}

/* Where the whole ranges of a chunk end: slots that nobody took are zeros. */
static char *end_of_ranges(struct chunk_header *c)
{
	const uint32_t room = c->bytes - CHUNK_PAYLOAD;
	return (char *)c + CHUNK_PAYLOAD + room / sizeof(struct range) * sizeof(struct range);
}

/* The open chunk of a thread that is gone: closed where its last record ends. */
static void close_for_dead(const struct recorder *r, struct chunk_header *c)
{
	const char *const end = (char *)c + c->bytes;
	char *at = (char *)c + CHUNK_PAYLOAD;
	if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != CHUNK_OPEN)
		return;
	if (c->kind == CHUNK_RANGES) {
		close_chunk(r, c, end_of_ranges(c));
		return;
	}
	while (end - at >= (long)sizeof(struct record)) {
		const uint32_t bytes = ((const struct record *)at)->words * 8u;
		if (bytes < sizeof(struct record) || end - at < (long)bytes)
			break;
		at += bytes;
	}
	close_chunk(r, c, at);
}

static void sweep_dead_threads(const struct recorder *r)
{
	for (int i = 0; i < 4; i++) {
		const uint32_t at = atomic_fetch_add(&registry_hand, 1) % REGISTRY;
		uint32_t tid = atomic_load(&registry[at].tid);
		if (!tid || tid == TAKEN || sys(tgkill, r->pid, tid, 0) != -ESRCH)
			continue;
		if (!atomic_compare_exchange_strong(&registry[at].tid, &tid, TAKEN))
			continue;
		struct chunk_header *c = registry[at].chunk;
		atomic_store_explicit(&registry[at].tid, 0, memory_order_release);
		close_for_dead(r, c);
		leave_chunk(r, c);
	}
}

static uint32_t next_chunk_bytes(const struct recorder *r, const struct writer *w)
{
	const uint64_t limit = r->header->limit;
	if (limit) {
		uint64_t share = limit / 64 / TRACE_GRAIN * TRACE_GRAIN;
		share = share < TRACE_GRAIN ? TRACE_GRAIN : share;
		return share > CHUNK_LATER ? CHUNK_LATER : (uint32_t)share;
	}
	/* Small while it may do to go round in the kept ones; larger when nobody drains them. */
	return w->seq <= WRITER_KEPT ? CHUNK_FIRST : CHUNK_LATER;
}

/*
 * Whether a range that has not ended is in the chunk.  A closed chunk may be drained, and what is
 * written into it later is lost: such a one stays open.  (range.c, finish)
 */
static bool holds_open(const struct writer *w, const struct chunk_header *c)
{
	const char *at = w->open;
	while (at && (at < (const char *)c || at >= (const char *)c + c->bytes)) {
		const struct range *g = (const struct range *)at;
		const bool later = g->valid & RANGE_OPEN && g->ticks >= c->open.ticks;
		at = later ? (const char *)g->dur : NULL; /* one around began before */
	}
	return at;
}

static void close_ended(const struct recorder *r, struct writer *w)
{
	for (int i = 0; w->unclosed >> i; i++) {
		if (!(w->unclosed >> i & 1) || holds_open(w, w->kept[i]))
			continue;
		close_chunk(r, w->kept[i], end_of_ranges(w->kept[i]));
		w->unclosed &= ~(1u << i);
	}
}

static void take_out(struct writer *w, int i)
{
	const uint32_t below = w->unclosed & ((1u << i) - 1);
	w->unclosed = below | (w->unclosed >> (i + 1) << i);
	memmove(w->kept + i, w->kept + i + 1, (size_t)(WRITER_KEPT - 1 - i) * sizeof *w->kept);
	w->kept[WRITER_KEPT - 1] = NULL;
}

/* One that holds an open range stays mapped, and open until its thread is gone; so does one with a
 * record that a signal handler interrupted, though it is closed. */
static void drop_oldest(const struct recorder *r, struct writer *w)
{
	struct chunk_header *c = w->kept[0];
	if (!(w->unclosed & 1) && !chunk_is_unfinished(c)) {
		forget_chunk(c);
		leave_chunk(r, c);
	}
	take_out(w, 0);
}

/* Puts the open chunk, now full, behind the others; the oldest goes. */
static void keep_chunk(struct recorder *r, struct writer *w)
{
	if (w->chunk == &writer_nowhere)
		return;
	w->chunk->last = clock_pair_now(r->header->clock);
	if (w->kept[WRITER_KEPT - 1])
		drop_oldest(r, w);
	int last = 0;
	while (w->kept[last])
		last++;
	w->kept[last] = w->chunk;
	if (holds_open(w, w->chunk))
		w->unclosed |= 1u << last;
	else
		close_chunk(r, w->chunk, w->pos);
}

/* A kept chunk that has been drained, wiped as far as it was used; or NULL. */
static struct chunk_header *take_drained(const struct recorder *r, struct writer *w)
{
	for (int i = 0; i < WRITER_KEPT && w->kept[i]; i++) {
		struct chunk_header *c = w->kept[i];
		if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != CHUNK_FREE)
			continue;
		take_out(w, i);
		wipe_chunk(c);
		begin_chunk(r, c, w->kind, c->bytes, w->tid, w);
		return c;
	}
	return NULL;
}

static bool open_chunk(struct recorder *r, struct writer *w)
{
	close_ended(r, w);
	struct chunk_header *c = take_drained(r, w);
	if (!c) {
		c = new_chunk(r, w->kind, next_chunk_bytes(r, w), w->tid, w);
		if (!c)
			return false;
		register_chunk(c);
		sweep_dead_threads(r);
	}
	keep_chunk(r, w);
	w->seq++;
	w->lost = 0;
	w->chunk = c;
	w->end = (char *)c + c->bytes;
	w->pos = (char *)c + CHUNK_PAYLOAD;
	return true;
}

static bool refused(struct recorder *r, struct writer *w)
{
	w->lost++;
	if (r->header)
		__atomic_fetch_add(
			w->kind == CHUNK_RANGES ? &r->header->lost_ranges : &r->header->lost, 1,
			__ATOMIC_RELAXED);
	return false;
}

/* A thread's buffer when there is no file: round and round. */
static bool rewind_scratch(struct writer *w)
{
	if (w->chunk == &writer_nowhere) {
		const long at = sys(mmap, NULL, CHUNK_FIRST, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_failed(at))
			return false;
		w->chunk = (struct chunk_header *)at;
		w->chunk->tid = w->tid;
		w->end = (char *)at + CHUNK_FIRST;
	}
	w->pos = (char *)w->chunk + CHUNK_PAYLOAD;
	return true;
}

bool writer_refill(struct recorder *r, struct writer *w, uint32_t bytes)
{
	if (w->skip || sandbox_is_closed(r->header)) {
		w->skip -= w->skip > 0;
		return refused(r, w);
	}
	if (!w->tid)
		w->tid = (uint32_t)sys(gettid);
	if (r->scratch)
		return rewind_scratch(w);
	if (!r->header || bytes > CHUNK_FIRST - CHUNK_PAYLOAD)
		return refused(r, w);
	/* With signals blocked nothing on this thread can come between. */
	uint64_t all = ~0ull, mask = 0;
	sys(rt_sigprocmask, SIG_BLOCK, &all, &mask, 8);
	bool ok = w->end - w->pos >= (long)bytes;
	if (!ok) {
		ok = open_chunk(r, w);
		w->skip = ok ? 0 : SKIP_AFTER_REFUSAL;
	}
	sys(rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	return ok ? true : refused(r, w);
}

/* --- what the threads of a process share ---------------------------------------------- */

#define SHARED_FIRST (1u * TRACE_GRAIN)
#define SHARED_NEXT  (4u * TRACE_GRAIN)
#define SHARED_MOST  64u
#define SCARCE_BYTES (256u << 20) /* of what 64 chunks hold: the rest is for names of kernels */

/*
 * Chunks of a process that all its threads write to: room is taken by a locked add on `taken`.
 * A chunk that is full is left open and mapped (somebody may still be filling his record);
 * its successor replaces it in `now`.
 */
struct shared {
	const enum chunk_kind kind;
	_Atomic uint32_t now;   /* index + 1 of the current one; 0: none yet */
	_Atomic uint64_t bytes; /* of all of them */
	struct {
		struct chunk_header *chunk;
		_Atomic uint64_t taken;
	} chunks[SHARED_MOST];
};
static struct shared metas = { .kind = CHUNK_META };
static struct shared spans = { .kind = CHUNK_RANGES };
static struct shared works = { .kind = CHUNK_DEVICE };
static struct shared links = { .kind = CHUNK_LINKS };

static void forget(struct shared *s)
{
	atomic_store(&s->now, 0);
	atomic_store(&s->bytes, 0);
	memset(s->chunks, 0, sizeof s->chunks);
}

static atomic_bool clock_is_read; /* by one thread at a time */

void shared_forget(void)
{
	atomic_store(&clock_is_read, false);
	forget(&metas);
	forget(&spans);
	forget(&works);
	forget(&links);
}

/* Appends a chunk after chunks[now - 1].  False: there is no room. */
static bool grow(struct recorder *r, struct shared *s, uint32_t now, uint32_t bytes)
{
	if (now >= SHARED_MOST)
		return false;
	/* Twice as large every eight, so that 64 will do for whoever has a great many names. */
	const uint32_t doublings = now / 8 < 6 ? now / 8 : 6;
	uint32_t want = now ? SHARED_NEXT << doublings : SHARED_FIRST;
	want = bytes + CHUNK_PAYLOAD > want ? bytes + CHUNK_PAYLOAD : want;
	struct chunk_header *c = recorder_chunk(r, s->kind, want, 0);
	if (!c)
		return false;
	struct chunk_header *none = NULL;
	atomic_fetch_add(
		&s->bytes, c->bytes); /* one that another was faster with is in the file, too */
	if (!__atomic_compare_exchange_n(
		    &s->chunks[now].chunk, &none, c, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		close_chunk(r, c, (char *)c + CHUNK_PAYLOAD); /* another thread was first */
		sys(munmap, c, c->bytes);
	}
	uint32_t expected = now;
	atomic_compare_exchange_strong(&s->now, &expected, now + 1);
	return true;
}

/* Room in the chunk of index *ret_chunk, at *ret_offset of its payload; or NULL. */
static void *share(struct recorder *r, struct shared *s, uint32_t bytes, uint32_t *ret_chunk,
	uint32_t *ret_offset)
{
	for (;;) {
		const uint32_t now = atomic_load(&s->now);
		if (now) {
			char *c = (char *)s->chunks[now - 1].chunk;
			const uint64_t at = atomic_fetch_add(&s->chunks[now - 1].taken, bytes);
			*ret_chunk = now - 1;
			*ret_offset = (uint32_t)at;
			if (at + bytes <= ((struct chunk_header *)c)->bytes - CHUNK_PAYLOAD)
				return c + CHUNK_PAYLOAD + at;
		}
		if (!grow(r, s, now, bytes))
			return NULL;
	}
}

void recorder_read_clock(struct recorder *r)
{
	const uint32_t now = atomic_load(&metas.now);
	if (!r->header || !now || atomic_exchange(&clock_is_read, true))
		return;
	metas.chunks[now - 1].chunk->last = clock_pair_now(r->header->clock);
	atomic_store(&clock_is_read, false);
}

struct record *meta_reserve(struct recorder *r, uint32_t words)
{
	uint32_t chunk, offset;
	struct record *to = r->header ? share(r, &metas, words * 8, &chunk, &offset) : NULL;
	if (!to && r->header)
		__atomic_fetch_add(&r->header->unnamed, 1, __ATOMIC_RELAXED);
	recorder_read_clock(r);
	return to;
}

bool meta_is_scarce(const struct recorder *r)
{
	const uint64_t limit = r->header ? r->header->limit / 4 : 0;
	const uint64_t most = !limit ? SCARCE_BYTES : limit > SHARED_NEXT ? limit : SHARED_NEXT;
	return atomic_load_explicit(&metas.bytes, memory_order_relaxed) > most;
}

struct range *span_reserve(struct recorder *r, uint64_t *ret_id)
{
	uint32_t chunk, offset;
	struct range *to =
		r->header ? share(r, &spans, sizeof(struct range), &chunk, &offset) : NULL;
	if (!to && r->header)
		__atomic_fetch_add(&r->header->lost_ranges, 1, __ATOMIC_RELAXED);
	if (to)
		*ret_id = ((uint64_t)chunk << 32 | offset / sizeof(struct range)) + 1;
	return to;
}

struct device_work *work_reserve(struct recorder *r)
{
	uint32_t chunk, offset;
	return r->header ? share(r, &works, sizeof(struct device_work), &chunk, &offset) : NULL;
}

struct link *link_reserve(struct recorder *r)
{
	uint32_t chunk, offset;
	return r->header ? share(r, &links, sizeof(struct link), &chunk, &offset) : NULL;
}

void work_lose(struct recorder *r, uint64_t count)
{
	if (!r->header || !count || (!atomic_load(&works.now) && !grow(r, &works, 0, 0)))
		return;
	struct chunk_header *c = works.chunks[atomic_load(&works.now) - 1].chunk;
	__atomic_fetch_add(&c->lost, count, __ATOMIC_RELAXED);
}

struct range *span_find(uint64_t id)
{
	const uint64_t chunk = (id - 1) >> 32,
		       offset = ((id - 1) & UINT32_MAX) * sizeof(struct range);
	if (!id || chunk >= atomic_load(&spans.now))
		return NULL;
	char *c = (char *)spans.chunks[chunk].chunk;
	if (offset + sizeof(struct range) > ((struct chunk_header *)c)->bytes - CHUNK_PAYLOAD)
		return NULL;
	return (struct range *)(c + CHUNK_PAYLOAD + offset);
}
