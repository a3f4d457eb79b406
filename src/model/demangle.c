/* Kernel names as people write them. */
#include "model/demangle.h"

#include <string.h>

#include "base/cxx_name.h"
#include "base/expect.h"

char *demangle(const char *mangled)
{
	char *name = cxx_name(mangled);
	return name ? name : xstrdup(mangled);
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
