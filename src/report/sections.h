/*
 * Sections of the report and lists, by their names: what their figures are, and why one is empty,
 * that is what the program did not do, or what was not recorded and which option records it.  For
 * weir report --only and weir flame.
 */
#ifndef WEIR_REPORT_SECTIONS_H
#define WEIR_REPORT_SECTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "report/section.h"

extern const struct section section_calls, section_kernels, section_threads;

/* The section of that name, of so many bytes; NULL: it has no table of columns. */
const struct section *section_find(const char *name, size_t bytes);

/* Sentences for below a table, in lines of that width; NULL: there are none. */
void section_put_note(FILE *out, const char *note, size_t width);
const char *section_note(const char *section);

/* The columns, with commas between, whose sum over all its rows means something; or "". */
const char *section_sums(const char *section);

/* Whether names of kernels are in that column. */
bool section_names_kernels(const char *section, const char *column);

/* A clause without a full stop.  NULL: nothing is known. */
const char *section_why_empty(const struct report *r, const char *section);

#endif
