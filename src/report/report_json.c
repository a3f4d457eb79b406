/*
 * The report as JSON: all sections of its facets that are not made on request, in their order.
 * Times are nanoseconds, sizes are bytes, and rows are never left out.
 */
#include "report/report_make.h"
#include "report/sections.h"

void report_print_json(const struct report *r, FILE *out, bool compact)
{
	struct json j;
	(compact ? json_begin_compact : json_begin_document)(&j, out);
	for (size_t i = 0; section_at(i); i++)
		if (!section_at(i)->asked && !section_at(i)->nested &&
			!(section_facets(section_at(i)) & ~r->facets))
			section_put_json(&j, section_at(i), r);
	json_end_object(&j);
}

void hints_print_json(const struct report *r, FILE *out)
{
	static const struct section *const sections[] = { &section_summary, &section_hints,
		&section_hints_sum, &section_hints_window, &section_hints_idle_gaps };
	struct json j;
	json_begin_document(&j, out);
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		section_put_json(&j, sections[i], r);
	json_end_object(&j);
}
