/* The shared file of programs that share a GPU, for the commands that look at it. */
#pragma once

#include <stdbool.h>

#include "share/segment.h"

struct sharing {
	struct share_file *file;
	char directory[SHARE_PATH];
};

/* directory: NULL for the default.  make: when there is none yet.  0, or an exit code after
 * complaining; without `make`, no file is no error: then file is NULL. */
int sharing_open(struct sharing *s, const char *directory, bool make);

void sharing_close(struct sharing *s);
