/* See step_numbers.h. */
#include "cmd/cli/step_numbers.h"

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
