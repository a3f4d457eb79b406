/* The present contents of a repository: models, their configurations and versions. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "store/files.h"

#define CONFIG_BYTES ((size_t)1 << 20)
#define DEPTH        6     /* of folders in a model's folder that a fingerprint covers */
#define FILES        10000 /* in a model's folder */

bool store_parse_version(struct slice name, uint64_t *ret)
{
	uint64_t n;
	if (!slice_u64(name, &n) || *name.at == '0' || n > INT64_MAX)
		return false;
	*ret = n;
	return true;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	return hash_mix(hash ^ hash_mix(word + 0x9e3779b97f4a7c15u));
}

static uint64_t fingerprint_of(const char *name, const struct stat *st)
{
	uint64_t h = hash_bytes(name, strlen(name));
	h = mix(h, st->st_mode);
	h = mix(h, st->st_ino);
	h = mix(h, st->st_dev);
	if (S_ISDIR(st->st_mode))
		return h; /* its entries have fingerprints of their own */
	h = mix(h, (uint64_t)st->st_size);
	h = mix(h, (uint64_t)st->st_mtim.tv_sec);
	h = mix(h, (uint64_t)st->st_mtim.tv_nsec);
	h = mix(h, (uint64_t)st->st_ctim.tv_sec);
	return mix(h, (uint64_t)st->st_ctim.tv_nsec);
}

/* Opens what an entry of the folder is, through links that stay in the repository. */
static int open_entry(struct store *s, const char *path, int flags, struct stat *ret_st)
{
	const int fd = store_open_beneath(s->fd, path, flags);
	if (fd >= 0 && fstat(fd, ret_st)) {
		const int e = -errno;
		close(fd);
		return e;
	}
	return fd;
}

struct names {
	ARRAY(char *) v;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(struct names *n)
{
	for (size_t i = 0; i < n->v.n; i++)
		free(n->v.v[i]);
	array_free(&n->v);
}

/* The entries of a folder, sorted, without those that begin with a dot. */
static int list(struct store *s, const char *path, struct names *ret)
{
	const int fd = store_open_beneath(s->fd, path, O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return fd < 0 ? fd : -errno;
	const struct dirent *entry;
	errno = 0;
	while (ret->v.n < FILES && (entry = readdir(d)))
		if (*entry->d_name != '.')
			*array_push(&ret->v) = xstrdup(entry->d_name);
	const int e = -errno;
	closedir(d);
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof *ret->v.v, compare_names);
	return e;
}

/* The fingerprint of everything in the folder. A file that can't be opened counts with the reason.
 * */
static uint64_t fingerprint_folder(struct store *s, const char *path, int depth, size_t *left)
{
	struct names names = { 0 };
	uint64_t h = mix(0, (uint64_t)-list(s, path, &names));
	for (size_t i = 0; i < names.v.n && *left; i++, --*left) {
		struct stat st;
		char *below = xasprintf("%s/%s", path, names.v.v[i]);
		const int fd = open_entry(s, below, O_PATH, &st);
		h = mix(h, fd < 0 ? (uint64_t)-fd : fingerprint_of(names.v.v[i], &st));
		if (fd >= 0 && S_ISDIR(st.st_mode) && depth)
			h = mix(h, fingerprint_folder(s, below, depth - 1, left));
		if (fd >= 0)
			close(fd);
		free(below);
	}
	free_names(&names);
	return h;
}

static void fail(struct store_model *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first problem is the one that is told. */
static void fail(struct store_model *m, const char *format, ...)
{
	char text[sizeof((struct error *)0)->text];
	va_list ap;
	if (m->problem)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	text_make_safe(text);
	m->problem = xstrdup(text);
}

static int read_all(int fd, struct buf *b)
{
	for (;;) {
		const ssize_t n = read(fd, buf_more(b, 65536), 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		b->n += (size_t)n;
		if (b->n > CONFIG_BYTES)
			return -EFBIG;
	}
}

static void read_config(struct store *s, struct store_model *m, const struct store_override *o,
	struct buf *warnings)
{
	struct error err;
	struct stat st;
	struct buf text = { 0 };
	char *below = xasprintf("%s/config.pbtxt", m->name);
	char *path = o && o->config ? xasprintf("config of the load request of %s", m->name)
				    : xasprintf("%s/%s", s->path, below);
	const int fd = o && o->config ? -ENOENT : open_entry(s, below, O_RDONLY, &st);
	int e = fd < 0 ? fd : !S_ISREG(st.st_mode) ? -EINVAL : read_all(fd, &text);
	if (e && e != -ENOENT)
		fail(m, "%s can't be read: %s", path,
			e == -EFBIG ? "it has more than 1 MiB" : store_open_reason(e));
	else if (o && o->config)
		e = config_from_json(o->config, path, &m->config, warnings, &err);
	else
		e = config_read(text.v ? text.v : "", text.n, path, &m->config, warnings, &err);
	if (e && !m->problem)
		fail(m, "%s", err.text);
	if (fd >= 0)
		close(fd);
	buf_free(&text);
	free_all(below, path);
}

static void add_version(struct store_model *m, uint64_t number, uint64_t fingerprint)
{
	for (size_t i = 0; i < m->versions.n; i++)
		if (m->versions.v[i].number == number) {
			m->versions.v[i].fingerprint =
				mix(m->versions.v[i].fingerprint, fingerprint);
			return;
		}
	*array_push(&m->versions) =
		(struct store_version){ .number = number, .fingerprint = fingerprint };
}

static int compare_versions(const void *a, const void *b)
{
	const struct store_version *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

/* The folder's entries: versions, and the rest, which belongs to the configuration. */
static void read_folder(struct store *s, struct store_model *m)
{
	struct names names = { 0 };
	size_t left = FILES;
	const int e = list(s, m->name, &names);
	if (e)
		fail(m, "%s/%s can't be read: %s", s->path, m->name, store_open_reason(e));
	for (size_t i = 0; i < names.v.n; i++) {
		uint64_t number;
		struct stat st;
		char *below = xasprintf("%s/%s", m->name, names.v.v[i]);
		const bool is_version = store_parse_version(slice_of(names.v.v[i]), &number);
		const int fd =
			open_entry(s, below, is_version ? O_RDONLY | O_DIRECTORY : O_PATH, &st);
		uint64_t h = fd < 0 ? (uint64_t)-fd : fingerprint_of(names.v.v[i], &st);
		if (fd >= 0 && S_ISDIR(st.st_mode))
			h = mix(h, fingerprint_folder(s, below, DEPTH, &left));
		if (is_version && fd >= 0)
			add_version(m, number, h);
		else if (is_version && fd != -ENOTDIR)
			fail(m, "%s/%s can't be opened: %s", s->path, below, store_open_reason(fd));
		else
			m->config_fingerprint = mix(m->config_fingerprint, h);
		if (fd >= 0)
			close(fd);
		free(below);
	}
	free_names(&names);
}

static bool is_selected(const struct store_model *m, size_t i)
{
	const struct config_version_policy *p = &m->config->version_policy;
	for (unsigned k = 0; k < p->specifics; k++)
		if ((uint64_t)p->specific[k] == m->versions.v[i].number)
			return true;
	return !p->has_specific && (p->all || m->versions.n - i <= (p->has_latest ? p->latest : 1));
}

static void select_versions(struct store *s, struct store_model *m, struct buf *warnings)
{
	size_t selected = 0;
	if (m->versions.n)
		qsort(m->versions.v, m->versions.n, sizeof *m->versions.v, compare_versions);
	for (size_t i = 0; m->config && i < m->versions.n; i++)
		selected += m->versions.v[i].selected = is_selected(m, i);
	if (!m->versions.n)
		fail(m,
			"%s/%s has no version: put the model's file into a folder with a number, for "
			"example 1",
			s->path, m->name);
	else if (!selected)
		fail(m, "%s/%s has none of the versions that its version_policy lists", s->path,
			m->name);
	else if (selected < m->config->version_policy.specifics)
		buf_printf(warnings, "%s/%s has not all versions that its version_policy lists\n",
			s->path, m->name);
}

/* A version without the file that the configuration names, or without any. */
static void check_files(struct store *s, struct store_model *m)
{
	const char *file = m->config ? m->config->default_model_filename : "";
	for (size_t i = 0; i < m->versions.n && !m->problem && !m->is_inline; i++) {
		char *below = xasprintf("%s/%" PRIu64 "%s%s", m->name, m->versions.v[i].number,
			*file ? "/" : "", file);
		struct stat st;
		struct names names = { 0 };
		const int fd = open_entry(s, below, O_RDONLY, &st);
		if (!m->versions.v[i].selected)
			;
		else if (fd < 0)
			fail(m, "the model's file %s/%s can't be opened: %s", s->path, below,
				store_open_reason(fd));
		else if (!*file && !list(s, below, &names) && !names.v.n)
			fail(m, "%s/%s has no model file", s->path, below);
		free_names(&names);
		if (fd >= 0)
			close(fd);
		free(below);
	}
}

static struct store_model read_model(struct store *s, const char *name)
{
	struct store_model m = { .name = xstrdup(name) };
	struct buf warnings = { 0 };
	const struct store_override *o = store_find_override(s, name);
	m.is_inline = o && o->files.n;
	if (m.is_inline)
		for (size_t i = 0; i < o->files.n; i++)
			add_version(&m, o->files.v[i].version, o->fingerprint);
	else
		read_folder(s, &m);
	if (o)
		m.config_fingerprint = mix(m.config_fingerprint, o->fingerprint);
	read_config(s, &m, o, &warnings);
	if (m.config && *m.config->name && strcmp(m.config->name, name) != 0)
		fail(&m, "%s says that the model's name is %s, and its folder is %s",
			m.config->file, m.config->name, name);
	select_versions(s, &m, &warnings);
	check_files(s, &m);
	m.fingerprint = m.config_fingerprint;
	for (size_t i = 0; i < m.versions.n; i++)
		m.fingerprint = mix(
			mix(m.fingerprint, m.versions.v[i].number), m.versions.v[i].fingerprint);
	if (m.config)
		config_set_name(m.config, name);
	if (m.problem) {
		config_free(m.config);
		m.config = NULL;
	}
	m.warnings = xstrdup(buf_text(&warnings));
	buf_free(&warnings);
	return m;
}

/* Compares with the scan before, and remembers this one. */
static void settle(struct store *s, struct store_models *models)
{
	array_each(struct store_model, m, models->models) {
		m->settled = !s->scanned || m->is_inline;
		for (size_t k = 0; k < s->seen.n; k++)
			m->settled |= !strcmp(s->seen.v[k].name, m->name) &&
				      s->seen.v[k].fingerprint == m->fingerprint;
	}
	for (size_t k = 0; k < s->seen.n; k++)
		free(s->seen.v[k].name);
	s->seen.n = 0;
	for (size_t i = 0; i < models->models.n; i++)
		*array_push(&s->seen) = (struct store_seen){ xstrdup(models->models.v[i].name),
			models->models.v[i].fingerprint };
	s->scanned = true;
}

/* A folder, or a link that could be one. */
static bool is_model(struct store *s, const char *name)
{
	struct stat st;
	const int fd = open_entry(s, name, O_PATH, &st);
	if (fd < 0)
		return fd == -EXDEV || fd == -ELOOP;
	close(fd);
	return S_ISDIR(st.st_mode);
}

int store_scan(struct store *s, struct store_models *ret, struct error *err)
{
	struct names names = { 0 };
	struct store_models models = { 0 };
	const int e = list(s, ".", &names);
	if (e) {
		free_names(&names);
		return error_set(err, e, "%s can't be read: %s", s->path, strerror(-e));
	}
	for (size_t i = 0; i < s->overrides.n; i++)
		if (s->overrides.v[i].files.n)
			*array_push(&names.v) = xstrdup(s->overrides.v[i].model);
	if (names.v.n)
		qsort(names.v.v, names.v.n, sizeof *names.v.v, compare_names);
	for (size_t i = 0; i < names.v.n; i++) {
		const char *name = names.v.v[i];
		const struct store_override *o = store_find_override(s, name);
		if ((i && !strcmp(name, names.v.v[i - 1])) ||
			(!(o && o->files.n) && !is_model(s, name)))
			continue;
		struct store_model m = { .name = xstrdup(name), .warnings = xstrdup("") };
		if (store_is_model_name(name)) {
			free_all(m.name, m.warnings);
			m = read_model(s, name);
		} else {
			fail(&m,
				"the folder %s/%s is no model: a name has letters, digits, ., _ and -",
				s->path, name);
		}
		*array_push(&models.models) = m;
	}
	free_names(&names);
	settle(s, &models);
	*ret = models;
	return 0;
}

void store_models_free(struct store_models *models)
{
	array_each(struct store_model, m, models->models) {
		free_all(m->name, m->problem, m->warnings);
		config_free(m->config);
		array_free(&m->versions);
	}
	array_free(&models->models);
}
