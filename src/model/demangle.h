/* Kernel names as people write them. */
#pragma once

#include "trace/meta.h"

/* free() it. */
char *demangle(const char *mangled);

/* The names of a trace, each demangled when it is asked for first.  One owner thread; meta outlives
 * it. */
struct demangled {
	const struct meta *meta;
	char **text; /* by index into meta->names; NULL: not yet */
};

void demangled_init(struct demangled *d, const struct meta *meta);
void demangled_fini(struct demangled *d); /* also when zeroed */

/* `otherwise` for META_NONE. */
const char *demangled_name(struct demangled *d, uint32_t name, const char *otherwise);
