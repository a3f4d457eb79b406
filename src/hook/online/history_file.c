/* Reads and writes the files of learnt launches and of the model. */
#include "hook/online/history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/bounded.h"
#include "base/error.h"
#include "base/sys.h"
#include "hook/time/cupti.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "predict/model.h"
#include "predict/tables.h"

#define FILE_MOST (256u << 20)
#define MODELS    64u /* that a process takes: none is ever unmapped, somebody may be asking it */

static struct {
	struct predict *predict;
	struct predict_config config;
	struct stat seen; /* the model's file, as it was when it was last read */
	struct predict_model models[MODELS];
	uint32_t taken;
	size_t bytes;              /* of those, FILE_MOST at most */
	char found[RECORDER_PATH]; /* among those that came with Weir */
} files;

static void message(const char *what, const char *path, const char *why)
{
	struct error e;
	error_set(&e, 0, "%s%s: %s", what, path, why);
	meta_message(e.text);
}

static bool fill(long fd, char *to, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		const long got = sys(read, fd, to + at, bytes - at);
		if (sys_failed(got) || !got)
			return false;
		at += (size_t)got;
	}
	return true;
}

/* A whole file in memory of its own, so that nobody who writes to it disturbs us.  NULL with the
 * reason. */
static void *read_file(const char *path, size_t *ret_bytes, const char **ret_why)
{
	struct stat st;
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	void *memory = NULL;
	*ret_why = "it can't be read";
	if (sys_failed(fd))
		return NULL;
	if (!sys_failed(sys(fstat, fd, &st)) && S_ISREG(st.st_mode) && st.st_size > 0 &&
		st.st_size <= FILE_MOST) {
		*ret_bytes = (size_t)st.st_size;
		const long at = sys(mmap, NULL, *ret_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memory = sys_failed(at) ? NULL : (void *)at;
	}
	if (memory && !fill(fd, memory, *ret_bytes)) {
		sys(munmap, memory, *ret_bytes);
		memory = NULL;
	}
	sys(close, fd);
	return memory;
}

static const char *why_not(int e)
{
	return e == -ENODEV
		       ? "it was learnt on another kind of device. This run begins with nothing"
	       : e == -EBADMSG ? "it is damaged. This run begins with nothing"
			       : "it is empty. This run begins with nothing";
}

/* The tables are taken as they are, when they have the room that ours have. */
static void begin_with(struct predict *p, const char *path, const struct predict_device *d)
{
	struct predict other;
	const char *why;
	size_t bytes = 0;
	void *memory = read_file(path, &bytes, &why);
	if (!memory) {
		message("nothing is known of earlier runs, ", path, why);
		return;
	}
	int e = predict_attach(&other, memory, bytes, d);
	const bool transferred = e == -EXDEV;
	if (transferred)
		e = predict_attach(&other, memory, bytes, NULL);
	if (!e && other.tables->bytes != p->tables->bytes)
		e = -EINVAL;
	if (!e)
		memcpy(p->tables, memory, p->tables->bytes);
	else
		message("nothing is taken from ", path, why_not(e));
	if (!e && transferred) {
		predict_transfer(p, d);
		message("what is taken are first guesses, ", path,
			"it was learnt on another device of this kind");
	}
	sys(munmap, memory, bytes);
}

static bool write_whole(long fd, const char *from, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		const long put = sys(write, fd, from + at, bytes - at);
		if (sys_failed(put))
			return false;
		at += (size_t)put;
	}
	return true;
}

/* An earlier run's file, or no file: all else is somebody's. */
static bool is_replaceable(const char *path)
{
	struct stat st;
	uint64_t magic = 0;
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (sys_failed(fd))
		return fd == -ENOENT;
	const bool regular = !sys_failed(sys(fstat, fd, &st)) && S_ISREG(st.st_mode);
	const bool ours =
		regular && (!st.st_size || (sys(read, fd, &magic, sizeof magic) == sizeof magic &&
						   magic == TABLES_MAGIC));
	sys(close, fd);
	return ours;
}

/* PATH.PID.new: two processes of a run may end at once.  False: it is too long. */
static bool name_new(const char *path, char to[RECORDER_PATH])
{
	struct bounded b = { .to = to, .size = RECORDER_PATH };
	bounded_put(&b, path);
	bounded_char(&b, '.');
	bounded_decimal(&b, (uint64_t)sys(getpid));
	bounded_put(&b, ".new");
	bounded_end(&b);
	return !b.cut;
}

/* NULL, or why not.  Whole or not at all. */
static const char *write_tables(const struct predict_tables *t, const char *to)
{
	char path[RECORDER_PATH];
	if (!is_replaceable(to))
		return "it is no file that an earlier run has left";
	if (writer_beyond_limit(t->bytes))
		return "the program may write no file of that size";
	if (!name_new(to, path))
		return "its name is too long";
	sys(unlinkat, AT_FDCWD, path, 0);
	const long fd = sys(
		openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (sys_failed(fd))
		return "the file can't be made";
	const bool whole = write_whole(fd, (const char *)t, t->bytes);
	sys(close, fd);
	if (whole && !sys_failed(sys(renameat, AT_FDCWD, path, AT_FDCWD, to)))
		return NULL;
	sys(unlinkat, AT_FDCWD, path, 0);
	return "the disk refuses";
}

/* Other threads go on, and so would the learning: a table that changes while its checksum is taken,
 * or while it is written, is damaged. */
void history_file_at_exit(void)
{
	const char *to = files.config.history, *why;
	if (!files.predict || !to || !*to ||
		!process_is_started()) /* a child's: it has learnt nothing */
		return;
	if (cupti_end_learning()) {
		predict_seal(files.predict);
		why = write_tables(files.predict->tables, to);
	} else {
		why = "the program ended in the middle of learning";
	}
	if (why)
		message("what was learnt can't be written to ", to, why);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int take_model(struct predict *p, const void *memory, size_t bytes,
	const struct predict_sample *recent, size_t n, struct error *err)
{
	const struct predict_model *old;
	struct predict_model *m = &files.models[files.taken];
	int e = model_open(memory, bytes, m, err);
	if (!e)
		e = predict_offer(p, m, recent, n, &old, err);
	if (e)
		return e;
	files.taken++;
	files.bytes += bytes;
	return 0;
}

static void offer(struct predict *p, const struct predict_sample *recent, size_t n)
{
	const char *path = files.config.model, *why;
	struct error err = { "" };
	size_t bytes = 0;
	void *memory = read_file(path, &bytes, &why);
	if (!memory) {
		message("no model is taken from ", path, why);
		return;
	}
	int e = -ENOSPC;
	if (files.taken == MODELS || bytes > FILE_MOST - files.bytes)
		error_set(&err, e, "this process has taken as many as it has room for");
	else
		e = take_model(p, memory, bytes, recent, n, &err);
	if (e)
		sys(munmap, memory, bytes);
	message(e ? "the model is refused, " : "the model is in use, ", path,
		e ? err.text : "it fits");
}

void history_file_look(struct predict *p, const struct predict_sample *recent, size_t n)
{
	struct stat now;
	if (!files.config.model || !*files.config.model ||
		sys_failed(sys(newfstatat, AT_FDCWD, files.config.model, &now, 0)) ||
		same_file(&now, &files.seen))
		return;
	files.seen = now;
	offer(p, recent, n);
}

#define SUFFIX ".weir-model"

/* As the system call has it. */
struct directory_entry {
	uint64_t inode, next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static bool is_model_for(const char *path, const struct predict_device *d)
{
	struct predict_model m;
	struct error err;
	const char *why;
	size_t bytes;
	void *memory = read_file(path, &bytes, &why);
	if (!memory)
		return false;
	const bool fits = !model_open(memory, bytes, &m, &err) && !model_fits_device(&m, d, &err);
	sys(munmap, memory, bytes);
	return fits;
}

/* DIRECTORY/NAME; false: it is too long, or no model's. */
static bool join(const char *directory, const char *name, char to[RECORDER_PATH])
{
	const size_t d = strlen(directory), n = strlen(name), s = sizeof SUFFIX - 1;
	if (n <= s || strcmp(name + n - s, SUFFIX) != 0 || d + 1 + n >= RECORDER_PATH)
		return false;
	memcpy(to, directory, d);
	to[d] = '/';
	memcpy(to + d + 1, name, n + 1);
	return true;
}

/* The fitting file whose name is first, whatever order the directory has. */
static void look_at(const char *from, long bytes, const struct predict_device *d)
{
	static char path[RECORDER_PATH];
	const char *directory = files.config.models;
	for (long at = 0; at < bytes;) {
		const struct directory_entry *e = (const void *)(from + at);
		at += e->bytes;
		if (join(directory, e->name, path) &&
			(!*files.found || strcmp(path, files.found) < 0) && is_model_for(path, d))
			memcpy(files.found, path, strlen(path) + 1);
	}
}

static void find_model(const struct predict_device *d)
{
	static char entries[4096] __attribute__((aligned(8)));
	const char *directory = files.config.models;
	const long fd = sys(openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long got = 0;
	*files.found = 0;
	while (!sys_failed(fd) && (got = sys(getdents64, fd, entries, sizeof entries)) > 0)
		look_at(entries, got, d);
	if (!sys_failed(fd))
		sys(close, fd);
	if (*files.found)
		files.config.model = files.found;
	else
		message("no model is in use: none is for this device in ", directory,
			"kernels that have not run yet are predicted from their siblings alone");
}

void history_file_start(
	struct predict *p, const struct predict_config *o, const struct predict_device *d)
{
	files.config = *o;
	files.predict = p;
	if (o->warm && *o->warm)
		begin_with(p, o->warm, d);
	struct stat st;
	if (o->history && *o->history &&
		!sys_failed(sys(newfstatat, AT_FDCWD, o->history, &st, 0)) && st.st_size)
		begin_with(p, o->history, d);
	if (o->models && *o->models && !(o->model && *o->model))
		find_model(d);
	if (files.config.model && *files.config.model) {
		history_file_look(p, NULL, 0);
		if (!files.taken && !files.seen.st_ino)
			message("no model is taken from ", files.config.model,
				"there is no such file");
	}
}

void history_file_forget(void)
{
	files.predict = NULL;
}
