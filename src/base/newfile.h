/*
 * A file that appears under its name once it is whole. Until then readers find the old one, and a
 * full disk or a kill leaves that as it was.
 *
 *	struct newfile f;
 *	int e = newfile_open(&f, path);
 *	if (!e)
 *		e = write_to(f.out);
 *	e = newfile_close(&f, e);
 *
 * The new file has no name at first, so nothing stays if its maker is killed. If the file system
 * cannot do that, or a caller needs a name, it is PATH.unfinished. Its maker holds a lock on it,
 * and the next maker removes one without a lock.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct newfile {
	FILE *out; /* open for reading and writing */
	const char *path;
	char *temp; /* PATH.unfinished */
	bool named; /* that is there, and ours */
};

/* 0 or -errno.  `path` stays the caller's.  The file is made for its owner alone, mode 0600. */
int newfile_open(struct newfile *f, const char *path);

/* The same for who writes by name, to f->temp; f->out is not to be written. */
int newfile_open_named(struct newfile *f, const char *path);

/*
 * e, 0 or -errno, is how the writing went.  After 0 the file is on the disk and takes its name,
 * in the place of one that is there.  Otherwise nothing of it stays.  Returns e, or what failed
 * here.  Takes what newfile_open() failed to open, too.
 */
int newfile_close(struct newfile *f, int e);
