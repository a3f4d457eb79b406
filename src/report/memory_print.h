/* `weir memory`, as text and as JSON, and the lines that a report has of the same.  One
 * owner thread. */
#pragma once

#include "memory/memory.h"

/* `weir memory`; utf8: the terminal knows block characters; compact: for a page. */
void memory_print_text(const struct report *r, FILE *out, unsigned rows, bool colour, bool utf8);
void memory_print_json(const struct report *r, FILE *out, bool compact);

/* Parts of the text: memory_text.c, memory_time_text.c. */
struct text_page;
const char *memory_block_keys(const struct report *r); /* the columns of blocks */
void memory_put_times(const struct report *r, const struct text_page *p, bool utf8);

/* A chart of so many columns and lines over the recording's time.  A glyph is what a column has in
 * a line, counted from below, where `most` is as high as the chart. */
#define MEMORY_COLUMNS 60u
#define MEMORY_LINES   8u
typedef const char *memory_glyph(
	const void *columns, unsigned i, uint64_t most, unsigned line, bool utf8);
void memory_put_lines(const struct report *r, const struct text_page *p, bool utf8, uint64_t most,
	memory_glyph *glyph, const void *columns);

/* "  growth  …", where iterations are known. */
void memory_put_growth(const struct report *r, const struct text_page *p);

/* Whether the blocks are what PyTorch's allocator has from the driver, and cuts up itself. */
bool memory_is_of_segments(const struct report *r);
void memory_put_unused(const struct report *r, const struct text_page *p, bool utf8);

/* The report's part of the text. */
void memory_put_short(const struct report *r, const struct text_page *p);

/* Other tools' traces need not have the memory of a program, or of one kind. */
