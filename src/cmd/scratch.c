/* See scratch.h. */
#include "scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

#include "base/banned.h"

#define LARGEST (1ull << 30)

static bool make_directory(struct scratch *s)
{
	static const char *const parents[] = { "/dev/shm", "/tmp" };
	for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
		snprintf(s->directory, sizeof s->directory, "%s/weir-XXXXXX", parents[i]);
		if (mkdtemp(s->directory))
			return true;
	}
	return false;
}

int scratch_make(struct scratch *s, struct launch *l, uint32_t control)
{
	struct error err;
	if (!make_directory(s))
		return complain(EXIT_ENVIRONMENT, "neither /dev/shm nor /tmp can be written: %s",
			strerror(errno));
	snprintf(s->path, sizeof s->path, "%s/trace", s->directory);
	if (!launch_trace(l, s->path, control, 0, &err)) {
		l->header->limit = LARGEST; /* whoever can't keep up loses calls, not the machine */
		return 0;
	}
	scratch_remove(s);
	return complain(EXIT_ENVIRONMENT, "%s", err.text);
}

void scratch_remove(const struct scratch *s)
{
	unlink(s->path);
	rmdir(s->directory);
}
