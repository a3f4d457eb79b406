/*
 * FOLDER/HASH-OF-THE-KEY.cubin: a head, the key, the content.
 */
#include "kernels/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/newfile.h"

#define CACHE_MOST (64u << 20) /* bytes of a file */

struct head {
	char magic[8];
	uint64_t key_bytes, content_bytes;
	uint64_t checksum; /* of what follows */
};

static const char magic[8] = "weirkrn1";

char *cache_folder(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (cache && *cache == '/')
		return xasprintf("%s/weir/kernels", cache);
	return home && *home == '/' ? xasprintf("%s/.cache/weir/kernels", home) : NULL;
}

static char *path_of(const char *folder, const char *key)
{
	return xasprintf("%s/%016" PRIx64 ".cubin", folder, hash_bytes(key, strlen(key)));
}

/* A file of this user that no other may change. */
static bool read_own(const char *path, struct buf *ret)
{
	struct stat s;
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool whole = !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
		     !(s.st_mode & 022) && s.st_size >= 0 && s.st_size <= CACHE_MOST;
	ret->n = 0;
	while (whole && ret->n < (size_t)s.st_size) {
		const size_t left = (size_t)s.st_size - ret->n;
		const ssize_t n = read(fd, buf_more(ret, left), left);
		whole = n > 0;
		ret->n += whole ? (size_t)n : 0;
	}
	close(fd);
	return whole;
}

static bool is_whole(const struct buf *file, const char *key, struct head *ret)
{
	const size_t key_bytes = strlen(key), room = file->n - sizeof *ret;
	if (file->n < sizeof *ret)
		return false;
	memcpy(ret, file->v, sizeof *ret);
	const char *behind = file->v + sizeof *ret;
	return memcmp(ret->magic, magic, sizeof magic) == 0 && ret->key_bytes == key_bytes &&
	       ret->content_bytes <= room && key_bytes == room - ret->content_bytes &&
	       memcmp(behind, key, key_bytes) == 0 && hash_bytes(behind, room) == ret->checksum;
}

bool cache_get(const char *folder, const char *key, struct buf *ret)
{
	struct head head;
	char *path = path_of(folder, key);
	const bool found = read_own(path, ret) && is_whole(ret, key, &head);
	free(path);
	if (found) {
		ret->n = head.content_bytes;
		memmove(ret->v, ret->v + sizeof head + head.key_bytes, ret->n);
	}
	return found;
}

/* The folder and those above it that are not there. */
static void make_folder(const char *folder)
{
	char *path = xstrdup(folder);
	for (char *at = path; (at = strchr(at + 1, '/'));) {
		*at = 0;
		mkdir(path, 0700);
		*at = '/';
	}
	mkdir(path, 0700);
	free(path);
}

void cache_put(const char *folder, const char *key, const struct buf *content)
{
	struct newfile f;
	struct buf file = { 0 };
	struct head head = { .key_bytes = strlen(key), .content_bytes = content->n };
	memcpy(head.magic, magic, sizeof magic);
	buf_put(&file, &head, sizeof head);
	buf_put_text(&file, key);
	buf_put_slice(&file, buf_slice(content));
	head.checksum = hash_bytes(file.v + sizeof head, file.n - sizeof head);
	memcpy(file.v, &head, sizeof head);

	char *path = path_of(folder, key);
	make_folder(folder);
	int e = newfile_open(&f, path);
	if (!e)
		e = fwrite(file.v, 1, file.n, f.out) == file.n ? 0 : -errno;
	newfile_close(&f, e);
	free(path);
	buf_free(&file);
}
