/* Parses times, sizes and numbers of options. */
#include "cmd/cli/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/slice.h"

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

struct kind {
	bool (*parse)(const char *text, uint64_t *ret);
	const char *(*put)(struct number *n, uint64_t value);
	const char *what, *example;
};

static int take(const struct options *o, const char *name, const struct kind *k, uint64_t least,
	uint64_t most, uint64_t *io_value)
{
	uint64_t value = 0;
	struct number from, to;
	const char *text = opt_str(o, name);
	if (!text)
		return 0;
	if ((k->parse(text, &value) || !strcmp(text, "0")) && value >= least && value <= most) {
		*io_value = value;
		return 0;
	}
	if (most < UINT64_MAX)
		return complain(EXIT_USAGE, "--%s=%s: give %s from %s to %s", name, text, k->what,
			k->put(&from, least), k->put(&to, most));
	return complain(EXIT_USAGE, "--%s=%s: give %s%s%s, %s for example", name, text, k->what,
		least > 1 ? " of at least " : "", least > 1 ? k->put(&from, least) : "",
		k->example);
}

int take_time(const struct options *o, const char *name, uint64_t least_ns, uint64_t most_ns,
	uint64_t *io_ns)
{
	static const struct kind kind = { duration_parse, number_ns, "a time", "500ms" };
	return take(o, name, &kind, least_ns, most_ns, io_ns);
}

int take_size(const struct options *o, const char *name, uint64_t least, uint64_t most,
	uint64_t *io_bytes)
{
	static const struct kind kind = { size_parse, number_bytes, "a size", "64M" };
	return take(o, name, &kind, least, most, io_bytes);
}

static bool number_parse(const char *text, uint64_t *ret)
{
	return slice_u64(slice_of(text), ret);
}

int take_number(const struct options *o, const char *name, uint64_t least, uint64_t most,
	uint64_t *io_number)
{
	static const struct kind kind = { number_parse, number_count, "a whole number", "10" };
	return take(o, name, &kind, least, most, io_number);
}
