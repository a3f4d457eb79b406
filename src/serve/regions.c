/*
 * System shared memory: regions that clients made with shm_open(), and registered by name, so that
 * tensors need not go through the socket.
 *
 * A client can shrink its memory at any time, and reading behind the end of a mapping would end the
 * server.  So nothing is mapped: bytes are copied by the descriptor, which fails with a short
 * count.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "serve/internal.h"

#define REGIONS_MOST 1024

struct region {
	char *name, *key;
	uint64_t offset, bytes;
	int fd;
};

struct regions {
	pthread_mutex_t lock; /* also while bytes are copied: regions don't go meanwhile */
	ARRAY(struct region) list;
};

struct regions *regions_new(void)
{
	struct regions *r = xcalloc(1, sizeof *r);
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

static void forget(struct regions *r, size_t i)
{
	close(r->list.v[i].fd);
	free_all(r->list.v[i].name, r->list.v[i].key);
	r->list.v[i] = r->list.v[--r->list.n];
}

void regions_free(struct regions *r)
{
	regions_unregister(r, NULL);
	array_free(&r->list);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void regions_unregister(struct regions *r, const char *name)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = r->list.n; i-- > 0;)
		if (!name || strcmp(r->list.v[i].name, name) == 0)
			forget(r, i);
	pthread_mutex_unlock(&r->lock);
}

static const struct region *find(const struct regions *r, struct slice name)
{
	for (size_t i = 0; i < r->list.n; i++)
		if (slice_is(name, r->list.v[i].name))
			return &r->list.v[i];
	return NULL;
}

/* The place of the bytes in the file, which the region has to have. */
static int place(const struct regions *r, struct slice name, uint64_t offset, uint64_t bytes,
	int *ret_fd, off_t *ret_at, struct error *err)
{
	const struct region *found = find(r, name);
	if (!found)
		return error_set(err, -ENOENT, "Unable to find shared memory region: '%.*s'",
			SLICE_ARG(name));
	if (offset > found->bytes || bytes > found->bytes - offset)
		return error_set(err, -EINVAL,
			"Invalid offset for shared memory region: '%s' has %" PRIu64
			" bytes, and the request "
			"needs %" PRIu64 " from %" PRIu64,
			found->name, found->bytes, bytes, offset);
	*ret_fd = found->fd;
	*ret_at = (off_t)(found->offset + offset);
	return 0;
}

static int short_count(struct slice name, struct error *err)
{
	return error_set(err, -EINVAL,
		"the memory of region '%.*s' is smaller than it was when it was registered",
		SLICE_ARG(name));
}

int regions_read(struct regions *r, struct slice name, uint64_t offset, void *to, uint64_t bytes,
	struct error *err)
{
	int fd;
	off_t at;
	pthread_mutex_lock(&r->lock);
	int e = place(r, name, offset, bytes, &fd, &at, err);
	if (!e && pread(fd, to, bytes, at) != (ssize_t)bytes)
		e = short_count(name, err);
	pthread_mutex_unlock(&r->lock);
	return e;
}

int regions_write(struct regions *r, struct slice name, uint64_t offset, const void *from,
	uint64_t bytes, struct error *err)
{
	int fd;
	off_t at;
	pthread_mutex_lock(&r->lock);
	int e = place(r, name, offset, bytes, &fd, &at, err);
	/* pwrite() would make a file that was cut grow again. */
	const off_t end = e ? 0 : lseek(fd, 0, SEEK_END);
	if (!e && (end < at || (uint64_t)(end - at) < bytes ||
			  pwrite(fd, from, bytes, at) != (ssize_t)bytes))
		e = short_count(name, err);
	pthread_mutex_unlock(&r->lock);
	return e;
}

/* A name of shm_open(), which has one slash, at the front: anything else is another file. */
static int open_key(
	const char *key, uint64_t offset, uint64_t bytes, int *ret_fd, struct error *err)
{
	char *name = xasprintf("/%s", key + (*key == '/'));
	const int fd =
		strchr(name + 1, '/') || !name[1] ? -1 : shm_open(name, O_RDWR | O_CLOEXEC, 0);
	free(name);
	if (fd < 0)
		return error_set(err, -EINVAL, "Unable to open shared memory region: '%s'", key);
	const off_t end = lseek(fd, 0, SEEK_END);
	if (end < 0 || offset > (uint64_t)end || bytes > (uint64_t)end - offset) {
		close(fd);
		return error_set(err, -EINVAL,
			"shared memory '%s' has %lld bytes, and the region needs %" PRIu64
			" from %" PRIu64,
			key, (long long)end, bytes, offset);
	}
	*ret_fd = fd;
	return 0;
}

int regions_register(struct regions *r, const char *name, const char *key, uint64_t offset,
	uint64_t bytes, struct error *err)
{
	int fd = -1;
	int e = open_key(key, offset, bytes, &fd, err);
	if (e)
		return e;
	pthread_mutex_lock(&r->lock);
	if (find(r, slice_of(name)))
		e = error_set(err, -EEXIST, "shared memory region '%s' already in manager", name);
	else if (r->list.n >= REGIONS_MOST)
		e = error_set(err, -ENOBUFS, "%d regions are registered, which is the most",
			REGIONS_MOST);
	else
		*array_push(&r->list) =
			(struct region){ xstrdup(name), xstrdup(key), offset, bytes, fd };
	pthread_mutex_unlock(&r->lock);
	if (e)
		close(fd);
	return e;
}

int regions_json(struct regions *r, const char *name, json_t **ret, struct error *err)
{
	json_t *all = json_object();
	pthread_mutex_lock(&r->lock);
	array_each(const struct region, g, r->list)
		if (!name || strcmp(g->name, name) == 0)
			json_object_set_new(all, g->name,
				json_pack("{s:s, s:s, s:I, s:I}", "name", g->name, "key", g->key,
					"offset", (json_int_t)g->offset, "byte_size",
					(json_int_t)g->bytes));
	pthread_mutex_unlock(&r->lock);
	if (name && !json_object_size(all)) {
		json_decref(all);
		return error_set(
			err, -ENOENT, "Unable to find system shared memory region: '%s'", name);
	}
	*ret = all;
	return 0;
}
