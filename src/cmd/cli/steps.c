/* See steps.h. */
#include "cmd/cli/steps.h"

#include <errno.h>
#include <stdlib.h>

static bool number(const char **text, uint32_t *ret_number)
{
	char *end;
	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	const unsigned long long value = strtoull(*text, &end, 10);
	*text = end;
	*ret_number = (uint32_t)value;
	return !errno && value && value < UINT32_MAX;
}

bool steps_parse(const char *text, struct steps *ret_steps)
{
	struct steps s;
	if (!number(&text, &s.first))
		return false;
	s.last = s.first;
	if (*text == '-' && (text++, !number(&text, &s.last)))
		return false;
	*ret_steps = s;
	return !*text && s.first <= s.last;
}
