/* Nsight Systems' SQLite exports. */
#include "report/import_source.h"

#include <errno.h>

#include "base/banned.h"

int import_nsys(const char *path, struct store *s, struct import_stats *st, struct error *err)
{
	(void)s;
	(void)st;
	return error_set(err, -ENOTSUP, "%s is an SQLite file, which is not read yet", path);
}
