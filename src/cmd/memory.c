/* weir memory FILE: says what was live in memory when, what made the peak, and what leaks. */
#include "cmd/cli/command.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/cli/report_input.h"
#include "report/memory_print.h"

#include "base/banned.h"

/* What the environment says of the terminal's characters: the first of these that is set. */
static bool wants_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *v = getenv(names[i]);
		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
}

static int show(const struct options *o, struct report *r, unsigned rows)
{
	if (opt_flag(o, "json"))
		(rows ? memory_print_json : memory_print_json_all)(r, stdout);
	else
		memory_print_text(r, stdout, rows, report_input_colour(), wants_utf8());
	return EXIT_YES;
}

int cmd_memory(const struct options *o)
{
	return report_input_show(o, show);
}
