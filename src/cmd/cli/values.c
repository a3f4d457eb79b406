/* Parses times, sizes and numbers of options. */
#include "cmd/cli/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool size_parse(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	if (errno || (*end && (!unit || end[1])))
		return false;
	if (unit && __builtin_mul_overflow(value, 1ull << 10 * (unit - units + 1), &value))
		return false;
	*ret_bytes = value;
	return true;
}

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

bool pause_parse(const char *text, uint64_t *ret_ns)
{
	if (strcmp(text, "0") != 0)
		return duration_parse(text, ret_ns);
	*ret_ns = 0;
	return true;
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

bool slowdown_parse(const char *text, uint32_t *ret_thousandths)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	const double value = strtod(text, &end);
	*ret_thousandths = (uint32_t)(value * 1000 + 0.5);
	return !*end && value >= 1.01 && value <= 100;
}

static bool number(const char **text, uint32_t *ret_number)
{
	char *end;
	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	const unsigned long long value = strtoull(*text, &end, 10);
	*text = end;
	*ret_number = (uint32_t)value;
	return !errno && value < UINT32_MAX;
}

bool step_numbers_parse(const char *text, struct step_numbers *ret_numbers)
{
	struct step_numbers s;
	if (!number(&text, &s.first))
		return false;
	s.last = s.first;
	if (*text == '-' && (text++, !number(&text, &s.last)))
		return false;
	*ret_numbers = s;
	return !*text && s.first <= s.last;
}
