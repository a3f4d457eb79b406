/* Kernel names as people write them, by the C++ runtime's demangler (Itanium C++ ABI). */
#include "model/tally.h"

#include <string.h>

#include "base/banned.h"

#define LONGEST 8192u /* longer names stay as they are: demangling may take exponential room */

char *__cxa_demangle(const char *mangled, char *buf, size_t *length, int *status);

char *demangle(const char *mangled)
{
	int status = -1;
	char *name = NULL;
	if (!strncmp(mangled, "_Z", 2) && strlen(mangled) < LONGEST)
		name = __cxa_demangle(mangled, NULL, NULL, &status);
	if (name && status == 0)
		return name;
	free(name);
	return strdup(mangled);
}
