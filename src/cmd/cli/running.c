/* Finds the recording of a running process. */
#include "cmd/cli/running.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/input.h"

static int complain_of_process(const char *pid, int error)
{
	if (error == ENOENT || error == ESRCH)
		return complain(EXIT_USAGE, "there is no process %s", pid);
	if (error == EACCES || error == EPERM)
		return complain(EXIT_ENVIRONMENT,
			"this user may not look at process %s: /proc/%s/maps, which says whether it "
			"is being recorded, can't be read (%s). Ask as its user, or as root",
			pid, pid, strerror(error));
	return complain(EXIT_ENVIRONMENT, "/proc/%s/maps can't be read: %s", pid, strerror(error));
}

int running_trace_of(const char *pid, char *ret_path, size_t size)
{
	char maps_path[64], line[PATH_MAX + 128];
	snprintf(maps_path, sizeof maps_path, "/proc/%s/maps", pid);
	FILE *maps = fopen(maps_path, "re");
	if (!maps)
		return complain_of_process(pid, errno);
	bool found = false;
	while (!found && fgets(line, sizeof line, maps)) {
		char *path = strchr(line, '/');
		if (!path || !strstr(line, " rw-s"))
			continue;
		path[strcspn(path, "\n")] = 0;
		found = input_is_recording(path) && strlen(path) < size;
		if (found)
			memcpy(ret_path, path, strlen(path) + 1);
	}
	fclose(maps);
	return found ? 0
		     : complain(EXIT_NO,
			       "process %s is not being recorded (it has no trace open). One that is "
			       "started with `weir record` can be followed",
			       pid);
}
