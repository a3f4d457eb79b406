/*
 * Finds routes. Paths are few and short, so each is compared segment by segment, in the order of
 * the table.
 */
#include "wire/route.h"

#include <errno.h>
#include <string.h>

#include "base/digit.h"
#include "base/text.h"
#include "wire/message.h"

#include "route_rows.h"

const size_t route_row_count = sizeof route_rows / sizeof route_rows[0];

#define SEGMENTS      (sizeof rest_paths[0].segment / sizeof rest_paths[0].segment[0])
#define NAME_MOST     255
#define COUNT(a)      (sizeof a / sizeof((a)[0]))
#define PATH_SHOWN(p) (int)((p).n < 200 ? (p).n : 200), (p).at

/* How many segments; 0: it does not begin with a slash, or there are too many. */
static unsigned split(struct slice path, struct slice segment[static SEGMENTS])
{
	unsigned n = 0;
	if (!path.n || *path.at != '/')
		return 0;
	while (path.n) {
		const char *end = memchr(path.at + 1, '/', path.n - 1);
		const size_t bytes = end ? (size_t)(end - path.at) : path.n;
		if (n == SEGMENTS)
			return 0;
		segment[n++] = (struct slice){ path.at + 1, bytes - 1 };
		path.at += bytes;
		path.n -= bytes;
	}
	return n;
}

static bool segment_fits(struct slice s, const char *pattern)
{
	uint64_t version;
	if (*pattern != '{')
		return slice_is(s, pattern);
	return pattern[1] == 'v' ? slice_u64(s, &version) : s.n > 0;
}

static bool path_fits(unsigned row, const struct slice *segment, unsigned n)
{
	if (rest_paths[row].n != n)
		return false;
	for (unsigned i = n; i-- > 0;) /* the last tells most apart */
		if (!segment_fits(segment[i], rest_paths[row].segment[i]))
			return false;
	return true;
}

/* Percent-decodes s to *at and moves it. */
static int decode(struct slice s, char **at, struct slice *ret, struct error *err)
{
	*ret = (struct slice){ *at, 0 };
	for (size_t i = 0; i < s.n; i++) {
		int c = (unsigned char)s.at[i];
		if (c == '%') {
			const int high = i + 2 < s.n ? hex_digit(s.at[i + 1]) : -1,
				  low = i + 2 < s.n ? hex_digit(s.at[i + 2]) : -1;
			if (high < 0 || low < 0)
				return error_set(
					err, -EINVAL, "the path has a malformed %%-escape");
			c = high << 4 | low;
			i += 2;
		}
		if (c < 32 || c == 127)
			return error_set(
				err, -EINVAL, "a name in the path has a control character");
		if (ret->n == NAME_MOST)
			return error_set(err, -EINVAL, "a name in the path has more than %d bytes",
				NAME_MOST);
		*(*at)++ = (char)c;
		ret->n++;
	}
	return 0;
}

static int take_names(unsigned row, const struct slice *segment, char *names,
	struct route_match *ret, struct error *err)
{
	for (unsigned i = 0; i < rest_paths[row].n; i++) {
		const char *pattern = rest_paths[row].segment[i];
		struct slice *to = pattern[1] == 'm'   ? &ret->model
				   : pattern[1] == 'v' ? &ret->version
						       : &ret->region;
		int rc = *pattern == '{' ? decode(segment[i], &names, to, err) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* Whether the word is in the list, blanks between.  HEAD is a GET whose answer has no body. */
static bool has_verb(const char *verbs, struct slice verb)
{
	if (slice_is(verb, "HEAD"))
		verb = SLICE("GET");
	while (*verbs) {
		const size_t n = strcspn(verbs, " ");
		if (slice_equal((struct slice){ verbs, n }, verb))
			return true;
		verbs += n + (verbs[n] == ' ');
	}
	return false;
}

static int find_rest(struct slice verb, struct slice path, char *names, struct route_match *ret,
	struct error *err)
{
	struct slice segment[SEGMENTS];
	struct route_match match = { 0 };
	const unsigned n = split(path, segment);
	unsigned i = 0;
	int rc;
	while (i < COUNT(rest_paths) && !path_fits(i, segment, n))
		i++;
	if (i == COUNT(rest_paths))
		return error_set(err, -ENOENT, "there is no path '%.*s' here", PATH_SHOWN(path));
	match.row = &route_rows[rest_paths[i].row];
	match.route = match.row->route;
	if (!has_verb(match.row->verbs, verb))
		return error_set(
			err, -ENOSYS, "'%.*s' takes %s", PATH_SHOWN(path), match.row->verbs);
	if (match.route == ROUTE_NONE)
		return error_set(err, -EOPNOTSUPP, "%s", match.row->meaning);
	rc = take_names(i, segment, names, &match, err);
	if (!rc)
		*ret = match;
	return rc;
}

int route_find_rest(struct slice verb, struct slice path, char names[static ROUTE_NAMES],
	struct route_match *ret, struct error *err)
{
	const int rc = find_rest(verb, path, names, ret, err);
	if (rc && err)
		text_make_safe(err->text); /* the path is the client's */
	return rc;
}

int route_find_grpc(struct slice path, struct route_match *ret, struct error *err)
{
	for (size_t i = 0; i < COUNT(route_rows); i++) {
		if (!route_rows[i].method || !slice_is(path, route_rows[i].method))
			continue;
		if (route_rows[i].route == ROUTE_NONE)
			return error_set(err, -EOPNOTSUPP, "%s", route_rows[i].meaning);
		*ret = (struct route_match){ .route = route_rows[i].route, .row = &route_rows[i] };
		return 0;
	}
	error_set(err, -EOPNOTSUPP, "there is no method '%.*s' here", PATH_SHOWN(path));
	if (err)
		text_make_safe(err->text);
	return -EOPNOTSUPP;
}

static int set_name(json_t *object, const char *key, struct slice name, struct error *err)
{
	json_t *value;
	if (!name.at)
		return 0;
	value = json_stringn(name.at, name.n);
	if (!value)
		return error_set(err, -EINVAL, "a name in the path is not UTF-8");
	return json_object_set_new(object, key, value);
}

int route_request(const struct route_match *m, json_t *body, json_t **ret, struct error *err)
{
	const char *message = m->row->request;
	json_t *object = body ? body : json_object();
	int rc;
	if (!json_is_object(object)) {
		json_decref(object);
		return error_set(err, -EINVAL, "the body is no JSON object");
	}
	if (m->row->rest_key && message_has(message, m->row->rest_key))
		object = json_pack("{s:o}", m->row->rest_key, object);
	rc = set_name(object, message && message_has(message, "model_name") ? "model_name" : "name",
		m->model, err);
	if (!rc && message && message_has(message, "version"))
		rc = set_name(object, "version", m->version, err);
	if (!rc)
		rc = set_name(object, "name", m->region, err);
	if (rc)
		json_decref(object);
	else
		*ret = object;
	return rc;
}

json_t *route_answer(const struct route_row *row, json_t *answer)
{
	const size_t n = row->rest_key ? strcspn(row->rest_key, "[") : 0;
	json_t *value, *array;
	const char *name;
	if (!n)
		return answer;
	value = json_incref(json_object_getn(answer, row->rest_key, n));
	json_decref(answer);
	if (!row->rest_key[n])
		return value;
	array = json_array();
	json_t *each;
	json_object_foreach(value, name, each) json_array_append(array, each);
	json_decref(value);
	return array;
}
