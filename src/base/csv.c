/* Splits lines of CSV. */
#include "base/csv.h"

#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The field at *at, which goes behind its comma, or to NULL after the last. */
static const char *take_field(char **at, char **ret_field)
{
	char *p = *at + strspn(*at, " \t"), *end = p;
	*ret_field = p;
	if (*p == '"') {
		for (p++; *p != '"' || p[1] == '"'; *end++ = *p++) {
			if (!*p)
				return "a quote is not closed on its line";
			p += *p == '"'; /* a doubled one stands for itself */
		}
		for (p++; is_blank(*p);)
			p++;
		if (*p && *p != ',')
			return "a comma should follow a closing quote";
	} else {
		p += strcspn(p, ",");
		end = p;
	}
	*at = *p ? p + 1 : NULL;
	while (end > *ret_field && is_blank(end[-1]))
		end--;
	*end = '\0';
	return NULL;
}

const char *csv_split(char *line, struct csv_row *ret_row)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *wrong = NULL;
	char *at = line + (strncmp(line, mark, strlen(mark)) ? 0 : strlen(mark));
	ret_row->n = 0;
	while (at && !wrong && ret_row->n < CSV_FIELDS)
		wrong = take_field(&at, &ret_row->field[ret_row->n++]);
	return wrong ? wrong : at ? "it has more than 256 fields" : NULL;
}
