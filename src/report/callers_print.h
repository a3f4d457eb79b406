/* Call stacks in reports, as text. */
#pragma once

#include "memory/memory.h"
#include "stack/stacks.h"

struct text_page;

/* The report's section: calls by stack. */
void callers_put_text(const struct report *r, const struct text_page *p);

/* The same of allocations. */
void callers_put_memory(const struct report *r, const struct text_page *p);
