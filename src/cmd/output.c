/* See output.h. */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

static int put_stream(FILE *out, int (*put)(void *context, FILE *out), void *context)
{
	if (!out)
		return errno ? -errno : -EIO;
	errno = 0;
	int e = put(context, out);
	if (!e && (fflush(out) || ferror(out)))
		e = errno ? -errno : -EIO;
	if (out == stdout)
		return e;
	return fclose(out) && !e ? -errno : e;
}

int output_write(const char *path, int (*put)(void *context, FILE *out), void *context)
{
	struct stat st;
	char *temp;
	if (!path)
		return put_stream(stdout, put, context);
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) /* a pipe, a terminal */
		return put_stream(fopen(path, "we"), put, context);
	if (asprintf(&temp, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	const int fd = mkstemp(temp); /* of mode 0600 */
	int e = fd < 0 ? -errno : put_stream(fdopen(fd, "w"), put, context);
	if (!e && rename(temp, path))
		e = -errno;
	if (e && fd >= 0)
		unlink(temp);
	free(temp);
	return e;
}
