/*
 * Holds a report in JSON against the Kineto trace that it was imported from, and against
 * torch's own table where there is one:
 *
 *	compare-kineto REPORT.json TRACE.json[.gz] [EXPECTED.json]
 *
 * From the trace: for each name of GPU activities, how often and how long; for each operator, how
 * many kernels, memcpys and memsets name it by their External id.  From torch's table: the rows of
 * the device.  Times agree to a microsecond; operators to one launch in a thousand.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/banned.h"

static int differences;

static size_t read_gz(void *buffer, size_t bytes, void *file)
{
	const int n = gzread(file, buffer, (unsigned)bytes);
	return n < 0 ? (size_t)-1 : (size_t)n;
}

static json_t *load(const char *path)
{
	json_error_t err;
	gzFile file = gzopen(path, "rb");
	json_t *j = file ? json_load_callback(read_gz, file, 0, &err) : NULL;
	if (!j) {
		fprintf(stderr, "%s: %s\n", path, file ? err.text : "can't be read");
		exit(2);
	}
	gzclose(file);
	return j;
}

static const char *text(json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	return s ? s : "";
}

static double number(json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* The row of a name, and of a kind if one is asked for. */
static json_t *row_of(json_t *rows, const char *name, const char *kind)
{
	size_t i;
	json_t *row;
	json_array_foreach(
		rows, i, row) if (!strcmp(text(row, "name"), name) &&
				  (!kind || !strcmp(text(row, "kind"), kind))) return row;
	return NULL;
}

static void compare(const char *what, const char *name, json_t *row, double count, double us)
{
	const double got = row ? number(row, "count") : 0;
	const double got_us = row ? number(row, "device_total_ns") / 1000 : 0;
	if (got == count && fabs(got_us - us) <= 1)
		return;
	printf("%s %.80s: %.0f times, %.3f us; the report says %.0f, %.3f\n", what, name, count, us,
		got, got_us);
	differences++;
}

static const char *kind_of(json_t *event)
{
	static const char *const kinds[][2] = { { "kernel", "kernel" }, { "gpu_memcpy", "memcpy" },
		{ "gpu_memset", "memset" }, { "gpu_user_annotation", "span" } };
	for (size_t i = 0; i < 4; i++)
		if (!strcmp(text(event, "cat"), kinds[i][0]))
			return kinds[i][1];
	return NULL;
}

static void add(json_t *sums, const char *key, double us)
{
	json_t *sum = json_object_get(sums, key);
	if (!sum) {
		sum = json_pack("[f, f]", 0.0, 0.0);
		json_object_set_new(sums, key, sum);
	}
	json_array_set_new(sum, 0, json_real(json_number_value(json_array_get(sum, 0)) + 1));
	json_array_set_new(sum, 1, json_real(json_number_value(json_array_get(sum, 1)) + us));
}

static void sum_activity(json_t *events, json_t *sums)
{
	size_t i;
	json_t *event;
	char key[16384];
	json_array_foreach(events, i, event)
	{
		const char *kind = kind_of(event);
		if (!kind)
			continue;
		snprintf(key, sizeof key, "%s %s", kind, text(event, "name"));
		add(sums, key, number(event, "dur"));
	}
}

static void compare_activity(json_t *report, json_t *sums)
{
	const char *key;
	json_t *sum;
	json_object_foreach(sums, key, sum)
	{
		const char *name = strchr(key, ' ') + 1;
		char kind[16];
		snprintf(kind, sizeof kind, "%.*s", (int)(name - 1 - key), key);
		const double count = json_number_value(json_array_get(sum, 0));
		const double us = json_number_value(json_array_get(sum, 1));
		compare(kind, name,
			row_of(json_object_get(report, "device_activities"), name, kind), count,
			us);
		if (!strcmp(kind, "kernel"))
			compare("kernels", name,
				row_of(json_object_get(report, "kernels"), name, NULL), count, us);
	}
}

static void id_of(json_t *event, char *id, size_t bytes)
{
	json_t *value = json_object_get(json_object_get(event, "args"), "External id");
	snprintf(id, bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

/* How many GPU activities name each operator; returns how many there are. */
static size_t sum_operators(json_t *events, json_t *sums)
{
	json_t *names = json_object(), *event;
	size_t i, launches = 0;
	char id[32];
	json_array_foreach(events, i, event)
	{
		id_of(event, id, sizeof id);
		if (!strcmp(text(event, "cat"), "cpu_op"))
			json_object_set(names, id, json_object_get(event, "name"));
	}
	json_array_foreach(events, i, event)
	{
		const char *kind = kind_of(event);
		id_of(event, id, sizeof id);
		json_t *name = json_object_get(names, id);
		if (!kind || !strcmp(kind, "span") || !name)
			continue;
		add(sums, json_string_value(name), number(event, "dur"));
		launches++;
	}
	json_decref(names);
	return launches;
}

static void compare_operators(json_t *report, json_t *sums, size_t launches)
{
	const char *name;
	json_t *sum;
	double wrong = 0;
	json_object_foreach(sums, name, sum)
	{
		json_t *row = row_of(json_object_get(report, "operators"), name, "operator");
		const double off = fabs(json_number_value(json_array_get(sum, 0)) -
					(row ? number(row, "device_count") : 0));
		if (off)
			printf("operator %s: %.0f launches are elsewhere\n", name, off);
		wrong += off;
	}
	if (wrong > (double)launches / 1000)
		differences++;
	printf("%zu launches belong to %zu operators, %.0f to another one than in the trace\n",
		launches, json_object_size(sums), wrong);
}

static void compare_expected(json_t *report, json_t *expected)
{
	size_t i, rows = 0;
	json_t *row;
	json_array_foreach(json_object_get(expected, "rows"), i, row)
	{
		const char *name = text(row, "key"), *kind = strrchr(text(row, "device"), '.');
		/* Older versions say DeviceType.CUDA.  ProfilerStep* is all steps in one. */
		if (strcmp(kind ? kind + 1 : text(row, "device"), "CUDA") != 0 ||
			strchr(name, '*') == name + strlen(name) - 1)
			continue;
		compare("torch", name,
			row_of(json_object_get(report, "device_activities"), name, NULL),
			number(row, "count"), number(row, "self_device_us"));
		rows++;
	}
	printf("%zu rows of torch's table\n", rows);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	json_t *report = load(argv[1]), *trace = load(argv[2]);
	json_t *events = json_object_get(trace, "traceEvents");
	json_t *activity = json_object(), *operators = json_object();
	sum_activity(events, activity);
	compare_activity(report, activity);
	const size_t launches = sum_operators(events, operators);
	compare_operators(report, operators, launches);
	if (argc > 3) {
		json_t *expected = load(argv[3]);
		compare_expected(report, expected);
		json_decref(expected);
	}
	printf("%zu names of device work, %d differences\n", json_object_size(activity),
		differences);
	json_decref(activity);
	json_decref(operators);
	json_decref(trace);
	json_decref(report);
	return differences != 0;
}
