/*
 * Reads the data for unwinding from a trace: mappings of code and Python's code objects, for all
 * processes. Senseless records are left out.
 */
#pragma once

#include "stack/stacks.h"

#define BUILD_ID_MOST 64u

struct code_mapping {
	uint32_t process;
	uint64_t from, end, offset, ticks;
	uint8_t build_id[BUILD_ID_MOST];
	uint32_t build_id_bytes;
	char *path;
};

struct python_code {
	uint32_t process, number;
	uint32_t first_line;
	char *file, *name; /* UTF-8 */
	uint8_t *table;    /* co_linetable */
	uint32_t table_bytes;
};

struct pieces {
	ARRAY(struct code_mapping) mappings; /* by process, then as they were noted */
	ARRAY(struct python_code) codes;
	struct map code_map;
};

int pieces_load(const struct trace *t, struct pieces *p);
void pieces_fini(struct pieces *p);

/* The code object of that number, or NULL. */
const struct python_code *pieces_code(const struct pieces *p, uint32_t process, uint32_t number);

/* The line of the instruction at that offset; its first line where the table does not say. */
uint32_t python_line(const struct python_code *c, uint32_t at);
