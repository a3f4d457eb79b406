/* See output.h. */
#include "cmd/cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/newfile.h"

#include "base/banned.h"

const char *output_path(const struct options *o)
{
	const char *path = opt_str(o, "output");
	return path && strcmp(path, "-") ? path : NULL;
}

static int put_stream(FILE *out, int (*put)(void *context, FILE *out), void *context)
{
	if (!out)
		return errno ? -errno : -EIO;
	errno = 0;
	const int e = put(context, out);
	if (!e && (fflush(out) || ferror(out)))
		return errno ? -errno : -EIO;
	return e;
}

int output_write(const char *path, int (*put)(void *context, FILE *out), void *context)
{
	struct stat st;
	struct newfile f;
	if (!path)
		return put_stream(stdout, put, context);
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) { /* a pipe, a terminal */
		FILE *out = fopen(path, "we");
		const int e = put_stream(out, put, context);
		return out && fclose(out) && !e ? -errno : e;
	}
	const int e = newfile_open(&f, path);
	return newfile_close(&f, e ? e : put_stream(f.out, put, context));
}
