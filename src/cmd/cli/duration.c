/* See duration.h. */
#include "cmd/cli/duration.h"

#include <stdlib.h>
#include <string.h>

bool duration_parse(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 6e10 } };
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	const double value = strtod(text, &end);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(end, units[i].name) && value * units[i].ns >= 1 &&
			value * units[i].ns < 9e18) {
			*ret_ns = (uint64_t)(value * units[i].ns + 0.5);
			return true;
		}
	return false;
}

bool percent_parse(const char *text, double *ret_share)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	const double value = strtod(text, &end);
	*ret_share = value / 100;
	return value >= 0 && value <= 100 && (!*end || !strcmp(end, "%"));
}
