/* weir record, for another command that records beside what it does. */
#pragma once

#include "cmd/cli/command.h"

struct record_beside {
	const char *sched;       /* as in struct child */
	int (*turn)(void *data); /* called now and then: milliseconds until it wants to be again */
	void *data;
};

/* Records as the options say; the exit code. */
int record_program(const struct options *o, const struct record_beside *beside);
