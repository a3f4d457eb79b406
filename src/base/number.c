/* Numbers for people: see number.h. */
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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

/* Three significant digits: 1.23, 12.3, 123. */
static const char *scaled(struct number *n, double value, const char *unit)
{
	const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	snprintf(n->text, sizeof n->text, "%.*f %s", decimals, value, unit);
	return n->text;
}

const char *number_bytes(struct number *n, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	if (bytes < 1024) {
		snprintf(n->text, sizeof n->text, "%" PRIu64 " B", bytes);
		return n->text;
	}
	double value = (double)bytes / 1024;
	int unit = 0;
	while (value >= 999.5 && unit < 5)
		value /= 1024, unit++;
	return scaled(n, value, units[unit]);
}

const char *number_ns(struct number *n, uint64_t ns)
{
	static const char *const units[] = { "us", "ms", "s" };
	if (ns < 1000) {
		snprintf(n->text, sizeof n->text, "%" PRIu64 " ns", ns);
		return n->text;
	}
	double value = (double)ns / 1000;
	int unit = 0;
	while (value >= 999.5 && unit < 2)
		value /= 1000, unit++;
	return scaled(n, value, units[unit]);
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
