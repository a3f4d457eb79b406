/* Opens the files of a repository, and nothing outside it. */
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/newfile.h"

#ifndef SYS_openat2
#define SYS_openat2 437 /* libc headers older than Linux 5.6 do not have it */
#endif
#define TRIES 64 /* the kernel asks for another try while somebody renames */

int store_open_beneath(int directory, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY | O_NONBLOCK),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;
	for (int i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

const char *store_open_reason(int e)
{
	return e == -EXDEV
		       ? "a symbolic link or .. leads out of the repository; put the files into it, or "
			 "bind-mount them there"
	       : e == -ELOOP ? "its symbolic links lead to no file"
			     : strerror(-e);
}

bool store_is_model_name(const char *name)
{
	static const char may[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	const size_t n = strlen(name);
	return n > 0 && n < TENSOR_NAME && *name != '.' && strspn(name, may) == n;
}

int store_open(const char *directory, struct store **ret, struct error *err)
{
	const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno, "%s can't be opened: %s", directory, strerror(errno));
	const int probe = store_open_beneath(fd, ".", O_PATH);
	if (probe < 0) {
		close(fd);
		return error_set(err, probe,
			"%s can't be opened safely: openat2() says %s, and it needs Linux 5.6",
			directory, strerror(-probe));
	}
	close(probe);
	struct store *s = xcalloc(1, sizeof *s);
	s->fd = fd;
	s->path = xstrdup(directory);
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->overrides.n; i++)
		store_free_override(&s->overrides.v[i]);
	array_free(&s->overrides);
	for (size_t i = 0; i < s->seen.n; i++)
		free(s->seen.v[i].name);
	array_free(&s->seen);
	free(s->path);
	close(s->fd);
	free(s);
}

/* Whether a path from a configuration or a request stays in its folder. */
static bool stays(const char *path)
{
	for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/')
		if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2]))
			return false;
	return *path && *path != '/';
}

static int open_file(struct store *s, const char *model, const char *folder, const char *filename,
	int *ret_fd, char **ret_path, struct error *err)
{
	if (!store_is_model_name(model))
		return error_set(err, -EINVAL, "%s is no name of a model", model);
	if (!stays(filename))
		return error_set(err, -EINVAL, "the file %s of model %s is not in its folder",
			filename, model);
	char *below = xasprintf("%s/%s%s", model, folder, filename);
	struct stat st;
	const int fd = store_open_beneath(s->fd, below, O_RDONLY);
	int e = fd < 0 ? fd : fstat(fd, &st) ? -errno : 0;
	if (!e && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		e = -EINVAL;
	if (e) {
		error_set(err, e, "%s/%s can't be opened: %s", s->path, below,
			fd < 0 ? store_open_reason(e) : "it is no file");
		if (fd >= 0)
			close(fd);
	} else {
		*ret_fd = fd;
		*ret_path = xasprintf("%s/%s", s->path, below);
	}
	free(below);
	return e;
}

/* A descriptor of its own, whose position nobody else moves. */
static int open_inline(const struct store_override *o, const struct store_file *f, int *ret_fd,
	char **ret_path, struct error *err)
{
	char self[40];
	snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
	const int fd = open(self, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno,
			"file %s of the load request of %s can't be opened: %s", f->name, o->model,
			strerror(errno));
	*ret_fd = fd;
	*ret_path =
		xasprintf("%s/%" PRIu64 "/%s of the load request", o->model, f->version, f->name);
	return 0;
}

int store_model_file(struct store *s, const char *model, uint64_t version, const char *filename,
	int *ret_fd, char **ret_path, struct error *err)
{
	const struct store_override *o = store_find_override(s, model);
	for (size_t i = 0; o && i < o->files.n; i++)
		if (o->files.v[i].version == version && !strcmp(o->files.v[i].name, filename))
			return open_inline(o, &o->files.v[i], ret_fd, ret_path, err);
	if (o && o->files.n)
		return error_set(err, -ENOENT, "the load request of %s has no file %" PRIu64 "/%s",
			model, version, filename);
	char folder[24];
	snprintf(folder, sizeof folder, "%" PRIu64 "/", version);
	return open_file(s, model, folder, filename, ret_fd, ret_path, err);
}

bool store_is_inline(const struct store *s, const char *model)
{
	const struct store_override *o = store_find_override(s, model);
	return o && o->files.n;
}

int store_side_file(struct store *s, const char *model, const char *filename, int *ret_fd,
	char **ret_path, struct error *err)
{
	return open_file(s, model, "", filename, ret_fd, ret_path, err);
}

/* The folder for what Weir keeps; it is no symbolic link. */
static int open_kept(struct store *s, bool make)
{
	if (make && mkdirat(s->fd, ".weir", 0700) && errno != EEXIST)
		return -errno;
	return store_open_beneath(s->fd, ".weir", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

FILE *store_kept_open(struct store *s, const char *what, const char *model, uint64_t version)
{
	const int folder = store_is_model_name(model) ? open_kept(s, false) : -EINVAL;
	if (folder < 0)
		return NULL;
	char *name = xasprintf("%s-%s-%" PRIu64, what, model, version);
	const int fd = store_open_beneath(folder, name, O_RDONLY | O_NOFOLLOW);
	struct stat st;
	FILE *in = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
	if (!in && fd >= 0)
		close(fd);
	free(name);
	close(folder);
	return in;
}

int store_kept_write(struct store *s, const char *what, const char *model, uint64_t version,
	const char *text, size_t n)
{
	const int folder = store_is_model_name(model) ? open_kept(s, true) : -EINVAL;
	if (folder < 0)
		return folder;
	struct newfile f;
	char *path = xasprintf("/proc/self/fd/%d/%s-%s-%" PRIu64, folder, what, model, version);
	int e = newfile_open(&f, path);
	if (!e && fwrite(text, 1, n, f.out) != n)
		e = -EIO;
	e = newfile_close(&f, e);
	free(path);
	close(folder);
	return e;
}
