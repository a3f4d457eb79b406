/*
 * A process's hold on the trace file: it opens or makes the file and says who the process is.
 *
 * The file is opened by path for each chunk and closed at once. The program could close a
 * descriptor that stays open, and reuse its number for a file of its own.
 */
#include "base/bounded.h"
#include "base/atomic.h"
#include "record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "event/schema.h"
#include "record/chunk.h"

uint64_t process_start_of(uint32_t pid)
{
	char path[32], text[512];
	struct bounded b = BOUNDED(path);
	bounded_put(&b, "/proc/");
	if (pid)
		bounded_decimal(&b, pid);
	else /* in a PID namespace with its parent's /proc, the number is another's there */
		bounded_put(&b, "self");
	bounded_put(&b, "/stat");
	const long fd = sys(openat, AT_FDCWD, bounded_end(&b), O_RDONLY | O_CLOEXEC);
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
long file_allocate(long fd, uint64_t offset, uint64_t bytes)
{
	if (writer_beyond_limit(offset + bytes))
		return -EFBIG;
	long done;
	do
		done = sys(fallocate, fd, 0, offset, bytes);
	while (done == -EINTR);
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

static long open_trace(const struct recorder *r, int flags)
{
	return sys(openat, AT_FDCWD, r->path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		0600);
}

long recorder_reopen(const struct recorder *r)
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

/* Whether a file is a regular one of this user's that nobody else may write to. */
static bool file_is_ours(long fd)
{
	struct stat st;
	return !sys(fstat, fd, &st) && S_ISREG(st.st_mode) && st.st_size >= TRACE_GRAIN &&
	       st.st_uid == sys(geteuid) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Is any process that has written here still running? */
static bool in_use(long fd, const struct trace_header *h)
{
	for (uint64_t at = h->header_bytes; at < load_relaxed(&h->next); at += TRACE_GRAIN) {
		struct chunk_header c;
		if (sys(pread64, fd, &c, sizeof c, at) != sizeof c)
			break;
		if (c.magic == CHUNK_MAGIC && c.pid && process_start_of(c.pid) == c.process_start)
			return true;
	}
	return false;
}

/* A file that a run still going on writes, or that weir record prepared; and nobody else's: who
 * can write to it could read what this program does, and change what it maps. */
static bool joinable(long fd)
{
	struct trace_header h;
	if (!file_is_ours(fd) || sys(pread64, fd, &h, sizeof h, 0) != sizeof h ||
		memcmp(h.magic, TRACE_MAGIC, 8))
		return false;
	if (h.version != TRACE_VERSION || h.required || h.form != TRACE_RAW ||
		h.state != TRACE_RECORDING)
		return false;
	return h.launched || process_start_of(h.root_pid) == h.root_start || in_use(fd, &h);
}

/* A new trace may replace this: an old one, or an empty file. */
static bool replaceable(long fd)
{
	struct stat st;
	char magic[8];
	if (sys(fstat, fd, &st) || !S_ISREG(st.st_mode))
		return false;
	if (st.st_uid != sys(geteuid))
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
		.optional = FEATURE_ACCOUNTS | FEATURE_STACKS,
		.form = TRACE_RAW,
		.clock = clock_best(),
		.control = control,
		.next = TRACE_GRAIN,
		.root_pid = (uint32_t)sys(getpid),
		.root_start = process_start_of(0),
	};
	memcpy(h->magic, TRACE_MAGIC, 8);
	h->start = clock_pair_now(h->clock);
	store_relaxed(&h->off_since_ns, control_is_off(control) ? h->start.mono_ns : 0);
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

static long write_whole(long fd, const void *from, size_t bytes, uint64_t at)
{
	for (const char *p = from; bytes;) {
		const long put = sys(pwrite64, fd, p, bytes, at);
		if (put <= 0)
			return put ? put : -ENOSPC;
		p += put, at += (uint64_t)put, bytes -= (size_t)put;
	}
	return 0;
}

/* From its first bytes on the file is one that a later trace may take the place of, however its
 * maker ends; the version, which says that more is there, comes with the header. */
static long begin_file(long fd, uint64_t bytes)
{
	static const struct trace_header begun = { .magic = { 'W', 'E', 'I', 'R', 'T', 'R', 'C',
							   '\n' } };
	const size_t n = sizeof begun;
	long done = writer_beyond_limit(bytes) ? -EFBIG : write_whole(fd, &begun, n, 0);
	if (!done)
		done = write_whole(fd, zeros, sizeof zeros - n, n);
	return done ? done : file_allocate(fd, sizeof zeros, bytes - sizeof zeros);
}

int trace_file_begin(int fd, struct trace_header *h)
{
	const uint32_t used = schema_text_bytes;
	const struct chunk_header c = {
		.magic = CHUNK_MAGIC,
		.kind = CHUNK_SCHEMA,
		.state = CHUNK_CLOSED,
		.bytes = (CHUNK_PAYLOAD + used + TRACE_GRAIN - 1) / TRACE_GRAIN * TRACE_GRAIN,
		.used = used,
		.open = h->start,
	};
	store_relaxed(&h->next, TRACE_GRAIN + c.bytes);
	long done = begin_file(fd, load_relaxed(&h->next));
	if (!done)
		done = write_whole(fd, schema_text, used, TRACE_GRAIN + CHUNK_PAYLOAD);
	if (!done)
		done = write_whole(fd, &c, sizeof c, TRACE_GRAIN);
	return (int)(done ? done : write_whole(fd, h, sizeof *h, 0));
}

/* Several processes that make the same file in place of an old one try in turn, at most so often.
 */
#define TRIES 16

/* Locks an old file, and says whether it still is the one to be replaced.  The lock lasts as long
 * as `old` is open.  If the file system has no locks, the last process wins. */
static bool lock_place(const struct recorder *r, long old)
{
	struct stat was, now;
	return sys(flock, old, LOCK_EX | LOCK_NB) != -EWOULDBLOCK && !sys(fstat, old, &was) &&
	       !sys(newfstatat, AT_FDCWD, r->path, &now, AT_SYMLINK_NOFOLLOW) &&
	       was.st_dev == now.st_dev && was.st_ino == now.st_ino;
}

/* Removes the file of a process that was killed between two system calls. */
static void remove_left(const char *name)
{
	const long fd = sys(openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && replaceable(fd))
		sys(unlinkat, AT_FDCWD, name, 0);
	if (fd >= 0)
		sys(close, fd);
}

/* No system call puts a file without a name in the place of another.  So the file first gets a name
 * beside the old one, which only the holder of the lock may use.  `name` is room for that. */
static long replace_by(const struct recorder *r, const char *self, char *name, size_t size)
{
	static const char suffix[] = ".new-by-weir";
	copy_text(name, size - sizeof suffix, r->path);
	memcpy(name + strlen(name), suffix, sizeof suffix);
	remove_left(name);
	long done = sys(linkat, AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
	if (done)
		return done == -EEXIST ? -EPERM : done;
	done = sys(renameat, AT_FDCWD, name, AT_FDCWD, r->path);
	if (done)
		sys(unlinkat, AT_FDCWD, name, 0);
	return done;
}

/* The file has no name before all of it is there, so that nobody sees half a header, and nothing is
 * left of whoever is killed.  -EEXIST: another process of the run was first. */
static long make_unnamed(const struct recorder *r, struct trace_header *h, long old)
{
	char name[RECORDER_PATH + 24], self[48];
	struct bounded b = BOUNDED(self);
	copy_text(name, sizeof name, r->path);
	char *slash = strrchr(name, '/');
	if (!slash)
		memcpy(name, ".", 2);
	else
		slash[slash == name] = 0;
	const long fd = sys(openat, AT_FDCWD, name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (sys_failed(fd))
		return fd;
	bounded_put(&b, "/proc/thread-self/fd/");
	bounded_decimal(&b, (uint64_t)fd);
	bounded_end(&b);
	long done = trace_file_begin((int)fd, h);
	if (!done && old < 0)
		done = sys(linkat, AT_FDCWD, self, AT_FDCWD, r->path, AT_SYMLINK_FOLLOW);
	else if (!done)
		done = lock_place(r, old) ? replace_by(r, self, name, sizeof name) : -EEXIST;
	sys(close, fd);
	return done;
}

/* The same with a name of its own, where files without one, or /proc, are not to be had. */
static long make_named(const struct recorder *r, struct trace_header *h, long old)
{
	char temp[RECORDER_PATH + 24];
	struct bounded b = BOUNDED(temp);
	bounded_put(&b, r->path);
	bounded_char(&b, '.');
	bounded_decimal(&b, r->pid);
	bounded_end(&b);
	const long fd = sys(
		openat, AT_FDCWD, temp, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (sys_failed(fd))
		return fd;
	long done = trace_file_begin((int)fd, h);
	sys(close, fd);
	if (!done && old < 0)
		done = sys(linkat, AT_FDCWD, temp, AT_FDCWD, r->path, 0);
	else if (!done)
		done = lock_place(r, old) ? sys(renameat, AT_FDCWD, temp, AT_FDCWD, r->path)
					  : -EEXIST;
	if (done || old < 0)
		sys(unlinkat, AT_FDCWD, temp, 0);
	return done;
}

/* In the place of `old`, an open trace, or of none (-1). */
static long make_file(const struct recorder *r, const struct trace_header *blank, long old)
{
	struct trace_header h = *blank;
	if (!h.program[0])
		read_command_line(h.program, sizeof h.program);
	const long done = make_unnamed(r, &h, old);
	return !done || done == -EEXIST ? done : make_named(r, &h, old);
}

static long open_or_make(struct recorder *r, const struct trace_header *blank)
{
	for (int tries = 0; tries < TRIES; tries++) {
		const long fd = open_trace(r, 0);
		if (fd >= 0 && joinable(fd))
			return fd;
		if (fd < 0 && fd != -ENOENT)
			return fd;
		const bool refused = r->join || (fd >= 0 && !replaceable(fd));
		const long made = refused ? -EEXIST : make_file(r, blank, fd);
		if (fd >= 0)
			sys(close, fd);
		if (refused || (made && made != -EEXIST))
			return made;
		if (made)
			sys(sched_yield);
	}
	return -EAGAIN;
}

/* A pid with its start may come again: in another PID namespace, or within one tick. */
static uint64_t draw_identity(uint32_t pid)
{
	uint64_t drawn = 0;
	if (sys(getrandom, &drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
		drawn = clock_pair_now(CLOCK_IS_MONOTONIC).mono_ns * 0x9e3779b97f4a7c15u ^ pid;
	return drawn ? drawn : 1;
}

void recorder_identify(struct recorder *r)
{
	r->pid = (uint32_t)sys(getpid);
	r->process_start = process_start_of(0);
	r->identity = draw_identity(r->pid);
}

int recorder_open(struct recorder *r, const struct trace_header *blank)
{
	recorder_identify(r);
	const long fd = open_or_make(r, blank);
	if (sys_failed(fd))
		return (int)fd;
	struct stat now = { 0 };
	const long unknown = sys(fstat, fd, &now);
	r->device = now.st_dev;
	r->inode = now.st_ino;
	const long at = unknown ? unknown : file_map(fd, 0, TRACE_GRAIN);
	sys(close, fd);
	if (sys_failed(at))
		return (int)at;
	store_release(shared(&r->header), (struct trace_header *)at);
	recorder_declare(r);
	atomic_fetch_add_explicit(&r->header->processes, 1, memory_order_acq_rel);
	return 0;
}
