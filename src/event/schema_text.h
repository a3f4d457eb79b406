/*
 * The tables of api/ as constant data: the schema for every trace, and the names of enumeration
 * values. api/lists.awk makes both at build time.
 */
#pragma once

#include <stdint.h>

extern const char schema_text[]; /* as docs/reference/trace-format.md describes it */
extern const unsigned schema_text_bytes;

struct enum_name {
	const char *type;
	int64_t value;
	const char *name;
};
extern const struct enum_name enum_names[]; /* sorted by type, then value */
extern const unsigned enum_names_count;
