/*
 * Collects an importer's calls, ranges and GPU activities in any order. store_write() joins
 * activities to calls, sorts everything and writes a packed trace. Call store_init() first, and
 * store_fini() after any failure.
 *
 * It takes about forty bytes a call, sixty a range, 130 a GPU activity, and each text once.
 * Internal to src/import.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/map.h"
#include "event/format.h"
#include "event/schema.h"

#define STORE_NONE UINT32_MAX

/* Times are nanoseconds since whatever the source counts from. */
struct store_call {
	uint64_t start_ns;
	uint64_t dur_ns;
	uint64_t correlation; /* 0: none */
	uint32_t thread;
	uint16_t fn;
	uint16_t result;
	bool linked;
	uint8_t aux;       /* of the record: which outputs have no value */
	uint8_t arg_count; /* into store.args; most importers know none */
	uint32_t first_arg;
};

struct store_thread {
	uint32_t process;
	uint32_t tid;
	char name[16];
};

struct store_process {
	uint32_t pid;
	uint32_t name;      /* a string */
	uint32_t arguments; /* a string */
	bool named;
};

struct store_string {
	char *text;
	uint32_t bytes;
};

/* A call that an activity was joined to, as it will be written. */
struct store_link {
	struct link link;
	uint32_t process;
};

struct store_device {
	uint32_t name;    /* a string */
	uint64_t args[4]; /* as META_DEVICE has them */
};

struct store {
	ARRAY(struct store_call) calls;
	ARRAY(uint64_t) args;
	ARRAY(struct range) ranges;            /* tid: index of a thread, or STORE_NONE */
	ARRAY(struct gpu_activity) activities; /* host_ns: index of a process + 1, or 0 */
	ARRAY(struct store_link) links;
	ARRAY(struct store_thread) threads;
	ARRAY(struct store_process) processes;
	ARRAY(struct store_string) strings; /* id - 1 */
	ARRAY(struct store_device) devices;
	ARRAY(char) schema_text;
	struct map process_map, thread_map, string_map, function_map;

	struct schema schema;
	void *schema_memory;
	uint32_t next_fn; /* for functions that the tables lack */
	uint64_t string_bytes;
	uint64_t unjoined;
	bool overflown; /* there are more arguments than can be numbered */

	uint64_t real_ns; /* CLOCK_REALTIME at time 0 of the source; 0: not known */
	char program[256];
	char host[64];
	unsigned cuda_version; /* 13010 is 13.1; 0: not known */
	char message[400];     /* what a reader of the trace should be told, or "" */
};

int store_init(struct store *s);
void store_fini(struct store *s);

/* The process or thread of a key that is the source's own; made when new. */
uint32_t store_process(struct store *s, uint64_t key, uint32_t pid);
uint32_t store_thread(struct store *s, uint32_t process, uint64_t key, uint32_t tid);

/* The id of a text, from 1; long ones are cut. */
uint32_t store_string(struct store *s, const char *text, size_t bytes);

/* Whether the tables have a function of that name. */
bool store_knows_function(const struct store *s, const char *name, size_t bytes);

/* The id of a function by name; one that the tables lack gets a line in the schema. */
uint16_t store_function(struct store *s, const char *name, size_t bytes);

/* A new function, as the schema has it behind the id: "driver memory call f(int x)". */
uint16_t store_declare(struct store *s, const char *line);

/* Adds a call with arguments; more than can be numbered make the store overflown. */
void store_call_with(
	struct store *s, const struct store_call *call, const uint64_t *args, uint8_t count);

/* Writes the trace from where out stands.  0 or -errno. */
int store_write(struct store *s, FILE *out, uint64_t *ret_bytes);
