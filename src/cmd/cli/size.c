/* See size.h. */
#include "cmd/cli/size.h"

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
