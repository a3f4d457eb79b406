/* Each way of installing leaves a file of its own beside the program: see installation.h. */
#include "cmd/cli/installation.h"

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/library_path.h"

/* Below the folder that has bin/weir; the first that is there tells. */
static const struct {
	const char *pattern, *way;
} signs[] = {
	{ "CMakeCache.txt", "the build folder" },
	{ "pyproject.toml", "the portable tree" },
	{ "lib/python3*/*-packages/weir-*.dist-info", "a wheel, by pip" },
	{ "share/doc/weir/copyright", "Debian's packages" },
	{ "share/licenses/weir", "an RPM" },
};

static bool is_there(const char *prefix, const char *pattern)
{
	char path[PATH_MAX];
	glob_t found;
	if (snprintf(path, sizeof path, "%s/%s", prefix, pattern) >= (int)sizeof path ||
		glob(path, GLOB_NOSORT, NULL, &found))
		return false;
	globfree(&found);
	return true;
}

static const char *way_of(const char *prefix)
{
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (is_there(prefix, signs[i].pattern))
			return signs[i].way;
	return "make install";
}

static bool in_container(void)
{
	return !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) ||
	       getenv("KUBERNETES_SERVICE_HOST");
}

void installation_describe(char *ret_text, size_t size)
{
	static const char below[] = "/lib/weir/libweir.so";
	char prefix[PATH_MAX] = "";
	library_path("libweir.so", prefix, sizeof prefix);
	const size_t n = strlen(prefix);
	if (n > sizeof below - 1)
		prefix[n - (sizeof below - 1)] = 0;
	snprintf(ret_text, size, "%s, %s%s", way_of(prefix), prefix,
		in_container() ? ", in a container" : "");
}
