/* Which format a file has, and the new trace beside where it will stand.  See import.h. */
#include "import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"
#include "import/import_source.h"

static int check_input(
	const char *path, uint8_t *head, size_t *ret_head, uint64_t *ret_bytes, struct error *err)
{
	struct stat st;
	int e = 0;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_set(err, -errno, "%s can't be read: %s", path, strerror(errno));
	if (fstat(fd, &st))
		e = error_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		e = error_set(
			err, -EISDIR, "%s is a directory, not a trace: name the file in it", path);
	else if (!S_ISREG(st.st_mode))
		e = error_set(err, -EINVAL,
			"%s is not a regular file, so not a trace: save it as a file first", path);
	else if (!st.st_size)
		e = error_set(err, -EINVAL, "%s is empty: did the profiler run to its end?", path);
	const ssize_t n = e ? 0 : pread(fd, head, *ret_head, 0);
	if (n < 0)
		e = error_set(err, -errno, "%s can't be read: %s", path, strerror(errno));
	close(fd);
	*ret_head = n > 0 ? (size_t)n : 0;
	*ret_bytes = e ? 0 : (uint64_t)st.st_size;
	return e;
}

static bool begins_with(const uint8_t *head, size_t bytes, const char *magic, size_t length)
{
	return bytes >= length && !memcmp(head, magic, length);
}

static int read_source(
	const char *path, struct store *s, struct import_stats *st, struct error *err)
{
	uint8_t head[64];
	size_t n = sizeof head;
	const int e = check_input(path, head, &n, &st->bytes, err);
	if (e)
		return e;
	if (begins_with(head, n, "WEIRTRC\n", 8))
		return error_set(err, -EINVAL,
			"%s is a trace of Weir's already: weir report reads it as it is", path);
	if (begins_with(head, n, "SQLite format 3", 15))
		return import_nsys(path, s, st, err);
	if (begins_with(head, n, "PK\3\4", 4))
		return error_set(err, -EINVAL, "%s is a zip file: unpack it first", path);
	if (import_is_alloc(path))
		return import_alloc(path, s, st, err);
	size_t i = begins_with(head, n, "\xef\xbb\xbf", 3) ? 3 : 0;
	while (i < n && (head[i] == ' ' || (head[i] >= '\t' && head[i] <= '\r')))
		i++;
	const bool gzip = begins_with(head, n, "\x1f\x8b", 2);
	if (!gzip && i < n && head[i] != '{' && head[i] != '[')
		return error_set(err, -EINVAL,
			"%s is neither JSON, nor an SQLite export of Nsight Systems (nsys export "
			"--type sqlite makes one of a .nsys-rep), nor a table of allocations "
			"with the columns action, pointer and size",
			path);
	return import_kineto(path, s, st, err);
}

static void describe(struct store *s, const char *path, const struct import_stats *st)
{
	snprintf(s->program, sizeof s->program, "%s", basename(path));
	if (*st->partial)
		snprintf(s->message, sizeof s->message, "the imported file was not read whole: %s",
			st->partial);
}

int import_stream(const char *path, FILE *out, struct import_stats *ret_stats, struct error *err)
{
	struct store s;
	*ret_stats = (struct import_stats){ .format = "unknown" };
	int e = store_init(&s);
	if (e)
		error_set(err, e, "no memory to import %s", path);
	if (!e)
		e = read_source(path, &s, ret_stats, err);
	if (!e && s.overflown)
		e = error_set(err, -EOVERFLOW, "%s has too many allocations", path);
	if (!e) {
		describe(&s, path, ret_stats);
		e = store_write(&s, out, &ret_stats->bytes);
		ret_stats->unjoined = s.unjoined;
		if (e)
			error_set(err, e, "the trace can't be written: %s", strerror(-e));
	}
	store_fini(&s);
	return e;
}

int import_file(const char *path, const char *to, struct import_stats *ret_stats, struct error *err)
{
	struct newfile f;
	const int cant = newfile_open(&f, to);
	const int e = cant ? cant : import_stream(path, f.out, ret_stats, err);
	const int done = newfile_close(&f, e);
	return done && (cant || !e)
		       ? error_set(err, done, "%s can't be written: %s", to, strerror(-done))
		       : done;
}
