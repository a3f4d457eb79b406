/* In the archive, NAME/data/aotinductor/MODEL/ has the shared object, the images of its kernels and
 * an object of JSON that says the device. */
#include "engine/torch_package.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/archive.h"

#define MODELS   "data/aotinductor/"
#define METADATA "_metadata.json"
#define DEVICE   "\"AOTI_DEVICE_KEY\""

static bool ends(struct slice s, const char *with)
{
	const size_t n = strlen(with);
	return s.n >= n && memcmp(s.at + s.n - n, with, n) == 0;
}

/* The last part, if the file is in the folder of a model; else nothing. */
static struct slice name_in_model(struct slice path)
{
	const char *at = memmem(path.at, path.n, MODELS, strlen(MODELS));
	if (!at || memchr(path.at, 0, path.n))
		return (struct slice){ NULL, 0 };
	const char *end = path.at + path.n;
	at += strlen(MODELS);
	const char *slash = memchr(at, '/', (size_t)(end - at));
	if (!slash || memchr(slash + 1, '/', (size_t)(end - slash - 1)) || slash + 1 == end)
		return (struct slice){ NULL, 0 };
	return (struct slice){ slash + 1, (size_t)(end - slash - 1) };
}

static int make_folder(struct torch_package *p, struct error *err)
{
	const char *at = getenv("TMPDIR");
	p->folder = xasprintf("%s/weir-torch-XXXXXX", at && *at ? at : "/tmp");
	if (mkdtemp(p->folder))
		return 0;
	const int e = -errno;
	error_set(err, e, "%s can't be made: %s", p->folder, strerror(-e));
	free(p->folder);
	p->folder = NULL;
	return e;
}

static int write_file(
	struct torch_package *p, struct slice name, const struct buf *b, struct error *err)
{
	char *path = xasprintf("%s/%.*s", p->folder, (int)name.n, name.at);
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int e = fd < 0 ? -errno : 0;
	for (size_t done = 0; !e && done < b->n;) {
		const ssize_t n = write(fd, b->v + done, b->n - done);
		if (n < 0 && errno != EINTR)
			e = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (e)
		error_set(err, e, "%s can't be written: %s", path, strerror(-e));
	if (fd >= 0)
		*array_push(&p->file) = path;
	else
		free(path);
	return e;
}

/* {"AOTI_DEVICE_KEY": "cuda", ...} */
static int check_device(const struct archive *a, const struct archive_file *f, struct error *err)
{
	struct buf b = { 0 };
	int e = archive_unpack(a, f, &b, err);
	const char *key = e ? NULL : memmem(b.v, b.n, DEVICE, strlen(DEVICE));
	const char *value = key ? key + strlen(DEVICE) : NULL;
	while (value && value < b.v + b.n && strchr(": \t\n", *value))
		value++;
	const size_t left = value ? (size_t)(b.v + b.n - value) : 0;
	if (value && (left < 6 || memcmp(value, "\"cuda\"", 6)))
		e = error_set(err, -EINVAL,
			"it was compiled for another device than cuda, and Weir runs it on a GPU alone");
	buf_free(&b);
	return e;
}

/* Sources and what tells of the model stay in the archive. */
static bool is_needed(struct slice name)
{
	return !ends(name, ".cpp") && !ends(name, ".json") && !ends(name, ".o") &&
	       !ends(name, ".txt") && name.n < 200;
}

static int unpack_file(struct torch_package *p, const struct archive *a,
	const struct archive_file *f, struct error *err)
{
	const struct slice name = name_in_model(f->name);
	if (!name.n)
		return 0;
	if (ends(name, METADATA))
		return check_device(a, f, err);
	if (ends(name, ".so"))
		return p->object.n ? error_set(err, -EINVAL, "it has several shared objects")
				   : archive_unpack(a, f, &p->object, err);
	if (!is_needed(name))
		return 0;
	struct buf b = { 0 };
	int e = archive_unpack(a, f, &b, err);
	e = e ? e : write_file(p, name, &b, err);
	buf_free(&b);
	return e;
}

static int unpack(struct torch_package *p, struct slice bytes, struct error *err)
{
	struct archive a;
	int e = archive_read(&a, bytes, err);
	for (size_t i = 0; i < a.file.n && !e; i++)
		e = unpack_file(p, &a, &a.file.v[i], err);
	archive_free(&a);
	if (!e && !p->object.n)
		e = error_set(err, -EINVAL, "it has no shared object in " MODELS);
	p->kernels = p->folder;
	return e;
}

int torch_package_open(
	struct torch_package *p, const struct buf *file, const char *path, struct error *err)
{
	*p = (struct torch_package){ 0 };
	const int e = make_folder(p, err);
	if (e)
		return e;
	if (file->n < 4 || memcmp(file->v, "\177ELF", 4) != 0)
		return unpack(p, buf_slice(file), err);
	buf_put(&p->object, file->v, file->n);
	const char *slash = strrchr(path, '/');
	p->kernels = p->beside =
		xstrndup(slash ? path : ".", slash && slash > path ? (size_t)(slash - path) : 1);
	return 0;
}

int torch_package_write_object(
	struct torch_package *p, const char *name, const char **ret, struct error *err)
{
	const int e = write_file(p, (struct slice){ name, strlen(name) }, &p->object, err);
	*ret = e ? NULL : p->file.v[p->file.n - 1];
	return e;
}

void torch_package_close(struct torch_package *p)
{
	for (size_t i = 0; i < p->file.n; i++) {
		unlink(p->file.v[i]);
		free(p->file.v[i]);
	}
	array_free(&p->file);
	if (p->folder)
		rmdir(p->folder);
	free(p->folder);
	free(p->beside);
	buf_free(&p->object);
	*p = (struct torch_package){ 0 };
}
