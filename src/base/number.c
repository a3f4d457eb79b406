/* Numbers for people: see number.h. */
#include "base/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *number_count(struct number *n, uint64_t value)
{
	char *p = n->text + sizeof n->text;
	*--p = '\0';
	int digits = 0;
	do {
		if (digits && digits % 3 == 0)
			*--p = ',';
		*--p = (char)('0' + value % 10);
		digits++;
	} while (value /= 10);
	return p;
}

const char *number_of(struct number *n, uint64_t value, const char *one)
{
	const size_t length = strlen(one);
	const char *ending = value == 1                                             ? ""
			     : length > 2 && !strcmp(one + length - 2, "ch")        ? "es"
			     : length >= 8 && !strcmp(one + length - 8, "activity") ? "ies"
										    : "s";
	struct number count;
	snprintf(n->text, sizeof n->text, "%s %.*s%s", number_count(&count, value),
		(int)(length - (*ending == 'i')), one, ending);
	return n->text;
}

/* In the first unit that has fewer than four digits before the point, or in the last. Three
 * significant digits, 1.23, 12.3, 123, but a number below `step` is whole. */
static const char *scaled(struct number *n, uint64_t whole, unsigned step, const char *const *unit)
{
	double value = (double)whole;
	bool first = true;
	for (; (first ? whole >= step : value >= 999.5) && unit[1]; unit++, first = false)
		value /= step;
	const int decimals = first || value >= 99.95 ? 0 : value < 9.995 ? 2 : 1;
	snprintf(n->text, sizeof n->text, "%.*f %s", decimals, value, *unit);
	return n->text;
}

const char *number_bytes(struct number *n, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL };
	return scaled(n, bytes, 1024, units);
}

const char *number_ns(struct number *n, uint64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s", NULL };
	return scaled(n, ns, 1000, units);
}

const char *number_change(struct number *n, double pct)
{
	struct number factor;
	if (pct >= 99900)
		snprintf(n->text, sizeof n->text, "x %s",
			number_count(&factor, (uint64_t)fmin(1.5 + pct / 100, 1e18)));
	else if (pct > 999.95)
		snprintf(n->text, sizeof n->text, "x %.3g", 1 + pct / 100);
	else
		snprintf(n->text, sizeof n->text, "%+.1f %%", pct == 0 ? 0 : pct);
	return n->text;
}
