/* Opens the file that a reading command is given. */
#include "cmd/cli/input.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cli/part_options.h"
#include "import/import.h"
#include "trace/merge.h"

#define COPY_BYTES (1u << 20)

/* A file that has no name, and is gone with its last descriptor: on a disk, else in memory. */
static int open_unnamed(void)
{
	const char *place = getenv("TMPDIR");
	const int fd = open(place && *place ? place : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : memfd_create("weir", MFD_CLOEXEC);
}

struct fd_path {
	char text[32];
};

static const char *path_of(int fd, struct fd_path *room)
{
	snprintf(room->text, sizeof room->text, "/proc/self/fd/%d", fd);
	return room->text;
}

#define MAGIC_BYTES (sizeof TRACE_MAGIC - 1)

/* How many bytes of the magic a file begins with: 0 where it is empty, no plain file or can't be
 * read; -1: it begins with something else. */
static ssize_t magic_bytes(const char *path)
{
	char magic[MAGIC_BYTES];
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const bool plain = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
	const ssize_t n = plain ? pread(fd, magic, sizeof magic, 0) : 0;
	if (fd >= 0)
		close(fd);
	if (!plain || n <= 0)
		return 0;
	return memcmp(magic, TRACE_MAGIC, (size_t)n) ? -1 : n;
}

/* Also a file that ends in the middle of the magic is one of ours, and one that can't be read:
 * whoever opens it says so. */
static bool is_trace(const char *path)
{
	return magic_bytes(path) >= 0;
}

bool input_is_recording(const char *path)
{
	return magic_bytes(path) == (ssize_t)MAGIC_BYTES;
}

static int open_trace(const char *path, struct trace **ret_t)
{
	struct error err;
	return trace_open(path, ret_t, &err) ? complain(EXIT_USAGE, "%s", err.text) : 0;
}

static int import_to(int fd, const char *path, struct trace **ret_t)
{
	struct import_stats stats;
	struct error err;
	struct fd_path room;
	FILE *out = fdopen(fd, "w+");
	if (!out) {
		close(fd);
		return complain(EXIT_ENVIRONMENT, "no memory to import %s", path);
	}
	const int e = import_stream(path, out, &stats, &err);
	int code = e == -ENOSPC || e == -EIO ? EXIT_ENVIRONMENT : EXIT_USAGE;
	if (e)
		code = complain(code, "%s", err.text);
	else if (fflush(out))
		code = complain(
			EXIT_ENVIRONMENT, "%s can't be imported: %s", path, strerror(errno));
	else
		code = open_trace(path_of(fd, &room), ret_t);
	fclose(out);
	return code;
}

static int open_any(const char *path, struct trace **ret_t)
{
	if (is_trace(path))
		return open_trace(path, ret_t);
	const int fd = open_unnamed();
	if (fd < 0)
		return complain(EXIT_ENVIRONMENT,
			"%s has to be imported, and no file can be written in TMPDIR: %s", path,
			strerror(errno));
	return import_to(fd, path, ret_t);
}

static int copy(int from, int to)
{
	char *buffer = xmalloc(COPY_BYTES);
	ssize_t n = 1, put = 0;
	while (n > 0 && put >= 0) {
		n = read(from, buffer, COPY_BYTES);
		if (n < 0 && errno == EINTR)
			n = 1;
		else
			for (ssize_t at = 0; at < n && put >= 0; at += put)
				put = write(to, buffer + at, (size_t)(n - at));
	}
	free(buffer);
	return n < 0 || put < 0 ? -errno : 0;
}

static int open_standard_input(struct trace **ret_t)
{
	struct fd_path room;
	struct stat st;
	if (isatty(STDIN_FILENO))
		return complain(EXIT_USAGE,
			"standard input is a terminal. Give it a trace: weir report - <FILE");
	if (!fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode))
		return open_any(path_of(STDIN_FILENO, &room), ret_t);
	const int fd = open_unnamed();
	const int e = fd < 0 ? -errno : copy(STDIN_FILENO, fd);
	int code;
	if (e)
		code = complain(EXIT_ENVIRONMENT, "standard input can't be kept: %s", strerror(-e));
	else if (!lseek(fd, 0, SEEK_CUR))
		code = complain(EXIT_USAGE, "standard input is empty");
	else
		code = open_any(path_of(fd, &room), ret_t);
	if (fd >= 0)
		close(fd);
	return code;
}

int input_open_file(const char *path, struct trace **ret_t)
{
	if (strcmp(path, "-") != 0)
		return open_any(path, ret_t);
	const int code = open_standard_input(ret_t);
	if (!code && !(*ret_t)->header.launched)
		snprintf(
			(*ret_t)->header.program, sizeof(*ret_t)->header.program, "standard input");
	return code;
}

static int take_in(struct trace *t, const char *path)
{
	struct trace *other;
	struct error err;
	const int code = input_open_file(path, &other);
	if (code || !trace_take_in(t, other, path, &err))
		return code;
	trace_close(other);
	return complain(EXIT_USAGE, "%s", err.text);
}

struct input_files input_files(const struct options *o)
{
	static char *unnamed[1];
	unnamed[0] = (char *)opt_default("record", "output");
	return opt_argc(o) ? (struct input_files){ opt_argv(o), opt_argc(o) }
			   : (struct input_files){ unnamed, 1 };
}

/* Says which file is read when none is named. */
static int say_unnamed(const char *path)
{
	if (access(path, F_OK))
		return complain(EXIT_USAGE,
			"FILE is missing, and there is no %s here, which weir record writes: name a "
			"recording, or make one with `weir record --gpu -- ./program`",
			path);
	remark("no file is named: reading %s", path);
	return 0;
}

int input_open(const struct options *o, struct trace **ret_t)
{
	const struct input_files f = input_files(o);
	return input_open_files(o, f.v, f.count, ret_t);
}

int input_open_files(const struct options *o, char *const *files, int count, struct trace **ret_t)
{
	struct trace *t;
	int code = opt_argc(o) ? 0 : say_unnamed(files[0]);
	code = code ? code : input_open_file(files[0], &t);
	if (code)
		return code;
	for (int i = 1; !code && i < count; i++)
		code = take_in(t, files[i]);
	code = code ? code : part_options_cut(o, t, files[0]);
	if (code)
		trace_close(t);
	else
		*ret_t = t;
	return code;
}
