/*
 * A model that PyTorch's AOTInductor compiled, in files that the loader and the CUDA driver can
 * open: a folder in TMPDIR, or /tmp, that lives as long as the package.  Failures are a sentence.
 */
#pragma once

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"

struct torch_package {
	struct buf object;   /* the shared object */
	char *folder;        /* of its own */
	const char *kernels; /* the folder of the images of kernels: its own, or where a .so is */
	ARRAY(char *) file;  /* in its own folder */
	char *beside;
};

/* file: an archive (.pt2) or a shared object that is at path.  The caller closes the package, also
 * after a failure. */
int torch_package_open(
	struct torch_package *p, const struct buf *file, const char *path, struct error *err);
/* The object as a file of this name in the package's folder.  *ret stays the package's. */
int torch_package_write_object(
	struct torch_package *p, const char *name, const char **ret, struct error *err);
void torch_package_close(struct torch_package *p);
