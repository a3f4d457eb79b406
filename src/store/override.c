/* A load request's files, which replace the model's folder. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/files.h"

#include "base/base64.h"

struct store_override *store_find_override(const struct store *s, const char *model)
{
	for (size_t i = 0; i < s->overrides.n; i++)
		if (!strcmp(s->overrides.v[i].model, model))
			return &s->overrides.v[i];
	return NULL;
}

void store_free_override(struct store_override *o)
{
	for (size_t i = 0; i < o->files.n; i++) {
		free(o->files.v[i].name);
		close(o->files.v[i].fd);
	}
	array_free(&o->files);
	json_decref(o->config);
	free(o->model);
}

/* A file in memory that nobody changes any more; an fd or -errno. */
static int make_file(struct slice base64)
{
	const size_t most = BASE64_BYTES(base64.n);
	const int fd = memfd_create("weir-model", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	size_t n = 0;
	int e = ftruncate(fd, (off_t)most) ? -errno : 0;
	char *to = e ? MAP_FAILED : mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!e && to == MAP_FAILED)
		e = -errno;
	if (!e) {
		e = base64_read(base64, to, &n);
		munmap(to, most);
	}
	if (!e && (ftruncate(fd, (off_t)n) ||
			  fcntl(fd, F_ADD_SEALS,
				  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)))
		e = -errno;
	if (!e)
		return fd;
	close(fd);
	return e;
}

static int add_file(struct store_override *o, const char *where, const json_t *value, size_t *left,
	struct error *err)
{
	const char *slash = strchr(where, '/');
	struct store_file f = { 0 };
	if (!slash ||
		!store_parse_version(
			(struct slice){ where, (size_t)(slash - where) }, &f.version) ||
		!slash[1] || slash[1] == '.' || strchr(slash + 1, '/'))
		return error_set(err, -EINVAL,
			"the load request of %s has file:%s; it is file:VERSION/NAME", o->model,
			where);
	const struct slice text = { json_string_value(value), json_string_length(value) };
	if (!text.at)
		return error_set(err, -EINVAL, "file:%s of the load request of %s is no string",
			where, o->model);
	if (text.n / 4 * 3 > *left)
		return error_set(err, -EMSGSIZE,
			"the files of the load request of %s have more than %zu bytes", o->model,
			STORE_FILE_BYTES);
	*left -= text.n / 4 * 3;
	f.fd = make_file(text);
	if (f.fd == -EINVAL)
		return error_set(err, f.fd, "file:%s of the load request of %s is no base64", where,
			o->model);
	if (f.fd < 0)
		return error_set(err, f.fd, "file:%s of the load request of %s can't be kept: %s",
			where, o->model, strerror(-f.fd));
	f.name = xstrdup(slash + 1);
	*array_push(&o->files) = f;
	return 0;
}

static int add_config(struct store_override *o, const json_t *value, struct error *err)
{
	json_error_t why;
	struct model_config *c = NULL;
	char *file = xasprintf("config of the load request of %s", o->model);
	o->config = json_is_string(value)
			    ? json_loadb(json_string_value(value), json_string_length(value),
				      JSON_REJECT_DUPLICATES, &why)
			    : json_incref((json_t *)value);
	int e = 0;
	if (!o->config)
		e = error_set(err, -EINVAL, "%s: %s in line %d", file, why.text, why.line);
	else /* what is wrong is said at once, and changes nothing */
		e = config_from_json(o->config, file, &c, NULL, err);
	config_free(c);
	free(file);
	return e;
}

int store_override(struct store *s, const char *model, const json_t *parameters, struct error *err)
{
	struct store_override o = { .model = xstrdup(model), .fingerprint = ++s->count };
	size_t left = STORE_FILE_BYTES;
	const char *key;
	json_t *value;
	int e = store_is_model_name(model)
			? 0
			: error_set(err, -EINVAL, "%s is no name of a model", model);
	json_object_foreach((json_t *)parameters, key, value)
	{
		if (!e && !strcmp(key, "config"))
			e = add_config(&o, value, err);
		else if (!e && !strncmp(key, "file:", 5))
			e = add_file(&o, key + 5, value, &left, err);
		else if (!e)
			e = error_set(err, -EINVAL,
				"a load request has the parameters config and file:VERSION/NAME, and not '%s'",
				key);
	}
	if (!e && o.files.n && !o.config)
		e = error_set(
			err, -EINVAL, "the load request of %s has files and no config", model);
	struct store_override *old = e ? NULL : store_find_override(s, model);
	if (old) {
		store_free_override(old);
		*old = s->overrides.v[--s->overrides.n];
	}
	if (!e && o.config)
		*array_push(&s->overrides) = o;
	else
		store_free_override(&o);
	return e;
}
