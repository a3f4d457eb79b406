/* Kernel names as people write them, by the C++ runtime's demangler (Itanium C++ ABI). */
#include "model/demangle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"

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
	return xstrdup(mangled);
}

void demangled_init(struct demangled *d, const struct meta *meta)
{
	*d = (struct demangled){ .meta = meta,
		.text = xcalloc(meta->names.n + 1, sizeof *d->text) };
}

void demangled_fini(struct demangled *d)
{
	for (size_t i = 0; d->text && i < d->meta->names.n; i++)
		free(d->text[i]);
	free(d->text);
	*d = (struct demangled){ 0 };
}

const char *demangled_name(struct demangled *d, uint32_t name, const char *otherwise)
{
	if (name == META_NONE)
		return otherwise;
	if (!expect(name < d->meta->names.n, "a name is one of the trace's"))
		return otherwise;
	if (!d->text[name])
		d->text[name] = demangle(d->meta->names.v[name].text);
	return d->text[name];
}
