/* Call stacks in reports: as text, and as arrays of frames in JSON. */
#ifndef WEIR_REPORT_CALLERS_PRINT_H
#define WEIR_REPORT_CALLERS_PRINT_H

#include "memory/memory.h"
#include "stack/stacks.h"

struct json;
struct table;
struct text_page;

/* "frames" of a stack, innermost first, and "called_by", the same in a line; null for STACK_NONE.
 */
void callers_put_frames(struct json *j, const struct stacks *s, uint32_t stack);

/* The report's section and its JSON: calls by stack. */
void callers_put_text(const struct report *r, const struct text_page *p);
void callers_put_json(struct json *j, const struct report *r);

/* The same of allocations. */
void callers_put_memory(const struct report *r, const struct text_page *p);
void callers_put_memory_json(struct json *j, const struct report *r);

/* A cell: the function, and the first frames of its caller's. */
void callers_cell(struct table *t, const struct stacks *s, const char *function, uint32_t stack,
	uint32_t frames);

/* A line of a stack, innermost first, with the middle left out where it is long: who called in the
 * program stands at its other end. */
void callers_cell_line(struct table *t, const char *text);

#endif
