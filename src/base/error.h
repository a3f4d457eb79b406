/*
 * One failure in words. Functions return 0 or -errno, and some also fill a `struct error *` that
 * the caller owns and may leave NULL. The text is one clear sentence without a full stop, and
 * commands print it once.
 */
#pragma once

struct error {
	char text[720]; /* some list what there is */
};

/* Fills err (if any) and returns code: `return error_set(err, -EINVAL, "…", …);` */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
