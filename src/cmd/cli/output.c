/* Opens a command's output. */
#include "cmd/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bounded.h"
#include "base/newfile.h"

const char *output_path(const struct options *o)
{
	const char *path = opt_str(o, "output");
	return path && strcmp(path, "-") ? path : NULL;
}

/* Behind "%q": "{NAME}".  The text behind it, or NULL after complaining. */
static const char *put_variable(const char *pattern, const char *at, struct bounded *to)
{
	char name[128];
	const char *close = *at == '{' ? strchr(at, '}') : NULL;
	struct bounded b = BOUNDED(name);
	if (!close || close == at + 1) {
		complain(EXIT_USAGE, "%s: %%q stands before a variable in braces: %%q{RANK}",
			pattern);
		return NULL;
	}
	bounded_bytes(&b, at + 1, (size_t)(close - at) - 1);
	const char *value = getenv(bounded_end(&b));
	if (!value || !*value || b.cut) {
		complain(EXIT_USAGE, "%s: the variable %s is not set", pattern, name);
		return NULL;
	}
	for (; *value; value++) /* one name, in the directory that was asked for */
		bounded_char(to, *value == '/' ? '_' : *value);
	return close + 1;
}

/* Puts the text for a mark; returns the text behind it, or NULL after complaining. */
static const char *put_mark(const char *pattern, const char *at, struct bounded *to)
{
	char host[256] = "";
	switch (*at++) {
	case 'p':
		bounded_printf(to, "%ld", (long)getpid());
		return at;
	case 'h':
		gethostname(host, sizeof host - 1);
		bounded_put(to, host);
		return at;
	case 'q':
		return put_variable(pattern, at, to);
	case '%':
		bounded_char(to, '%');
		return at;
	default:
		complain(EXIT_USAGE,
			"%s: behind %% stand p (the process), h (the host), q{NAME} (a variable) or %%",
			pattern);
		return NULL;
	}
}

int output_expand(const char *pattern, char *ret_path, size_t size)
{
	struct bounded to = { .to = ret_path, .size = size };
	for (const char *at = pattern; *at;) {
		if (*at != '%') {
			bounded_char(&to, *at++);
			continue;
		}
		at = put_mark(pattern, at + 1, &to);
		if (!at)
			return EXIT_USAGE;
	}
	bounded_end(&to);
	return to.cut ? complain(EXIT_USAGE, "the name of the output is too long") : 0;
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

FILE *output_open(const char *path)
{
	struct stat st;
	const bool special = !stat(path, &st) && !S_ISREG(st.st_mode);
	const int fd = open(
		path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (special ? 0 : O_NOFOLLOW), 0600);
	return fd < 0 ? NULL : fdopen(fd, "w");
}
