/*
 * Settings of traces and of the log, which clients read and change.  They are kept and answered as
 * Triton does; what a request ran is seen by Weir-Time and by weir serve --log.
 */
#include <errno.h>

#include "serve/internal.h"

/* Before a client changes any, and of those that one clears. */
static json_t *trace_defaults(void)
{
	return json_pack("{s:[s], s:s, s:s, s:s, s:s, s:s}", "trace_level", "OFF", "trace_rate",
		"1000", "trace_count", "-1", "log_frequency", "0", "trace_file", "", "trace_mode",
		"triton");
}

void settings_init(struct server *s)
{
	s->trace = trace_defaults();
	s->logging = json_pack("{s:s, s:b, s:b, s:b, s:i, s:s}", "log_file", "", "log_info", 1,
		"log_warning", 1, "log_error", 1, "log_verbose_level", 0, "log_format", "default");
}

static bool is_number(const char *text)
{
	char *end;
	strtoll(text, &end, 10);
	return *text && !*end;
}

/* A value may come as a text, or as a list of texts. */
static const char *text_in(const json_t *value)
{
	if (json_is_array(value) && json_array_size(value) == 1)
		value = json_array_get(value, 0);
	return json_is_string(value) ? json_string_value(value) : NULL;
}

static int trace_level(json_t *to, const json_t *value, struct error *err)
{
	json_t *levels =
		json_is_array(value) ? json_copy((json_t *)value) : json_pack("[O]", value);
	size_t i;
	json_t *level;
	json_array_foreach(levels, i, level)
	{
		const char *text = json_is_string(level) ? json_string_value(level) : "";
		if (strcmp(text, "OFF") == 0 && json_array_size(levels) == 1)
			continue;
		if (strcmp(text, "TIMESTAMPS") == 0 || strcmp(text, "TENSORS") == 0)
			continue;
		json_decref(levels);
		return error_set(err, -EINVAL,
			"trace_level: '%s' is none of OFF (alone), TIMESTAMPS and TENSORS", text);
	}
	json_object_set_new(to, "trace_level", levels);
	return 0;
}

static void clear_trace(json_t *to, const char *key)
{
	json_t *defaults = trace_defaults();
	json_object_set(to, key, json_object_get(defaults, key));
	json_decref(defaults);
}

static int trace_one(json_t *to, const char *key, json_t *value, struct error *err)
{
	if (!json_object_get(to, key))
		return error_set(err, -EINVAL, "there is no trace setting '%s'", key);
	/* Null, or nothing, clears it. */
	if (json_is_null(value) || (json_is_array(value) && !json_array_size(value))) {
		clear_trace(to, key);
		return 0;
	}
	if (strcmp(key, "trace_file") == 0)
		return error_set(err, -EOPNOTSUPP, "trace_file can't be changed by a request");
	if (strcmp(key, "trace_level") == 0)
		return trace_level(to, value, err);
	const char *text = text_in(value);
	if (!text || (strcmp(key, "trace_mode") != 0 && !is_number(text)))
		return error_set(err, -EINVAL, "Unable to parse '%s', got: %s", key,
			text ? text : "no text");
	json_object_set_new(to, key, json_string(text));
	return 0;
}

/* The singular is what is answered. */
static const char *log_key(const char *key)
{
	return strcmp(key, "log_warnings") == 0 ? "log_warning"
	       : strcmp(key, "log_errors") == 0 ? "log_error"
						: key;
}

static int log_one(json_t *to, const char *key, json_t *value, struct error *err)
{
	const json_t *old = json_object_get(to, log_key(key));
	if (!old)
		return error_set(err, -EINVAL, "there is no log setting '%s'", key);
	if (strcmp(key, "log_file") == 0)
		return error_set(err, -EOPNOTSUPP,
			"log_file can't be changed by a request: start weir serve with --log=FILE");
	const bool kinds = json_is_boolean(old) ? json_is_boolean(value)
						: json_typeof(old) == json_typeof(value);
	if (!kinds || (json_is_integer(value) && json_integer_value(value) < 0))
		return error_set(
			err, -EINVAL, "the value of log setting '%s' has the wrong type", key);
	if (strcmp(key, "log_format") == 0 && strcmp(json_string_value(value), "default") != 0 &&
		strcmp(json_string_value(value), "ISO8601") != 0)
		return error_set(err, -EINVAL, "log_format is 'default' or 'ISO8601', not '%s'",
			json_string_value(value));
	json_object_set(to, log_key(key), value);
	return 0;
}

/* Nothing is changed unless all of it can be. */
static int change_all(struct server *s, json_t **settings, const json_t *change,
	int (*one)(json_t *to, const char *key, json_t *value, struct error *err), json_t **ret,
	struct error *err)
{
	const char *key;
	json_t *value;
	int e = 0;
	pthread_mutex_lock(&s->keeper_lock);
	json_t *now = json_deep_copy(*settings);
	json_object_foreach((json_t *)change, key, value)
	{
		e = one(now, key, value, err);
		if (e)
			break;
	}
	if (!e) {
		json_decref(*settings);
		*settings = json_incref(now);
	}
	pthread_mutex_unlock(&s->keeper_lock);
	if (!e)
		*ret = json_pack("{s:O}", "settings", now);
	json_decref(now);
	return e;
}

int settings_trace(struct server *s, const json_t *change, json_t **ret, struct error *err)
{
	return change_all(s, &s->trace, change, trace_one, ret, err);
}

int settings_log(struct server *s, const json_t *change, json_t **ret, struct error *err)
{
	return change_all(s, &s->logging, change, log_one, ret, err);
}
