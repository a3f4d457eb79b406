/*
 * A model that PyTorch's AOTInductor compiled, in files that the loader and the CUDA driver can
 * open: a folder in TMPDIR, or /tmp, that lives as long as the package.  Failures are a sentence.
 */
#pragma once

#include <stdbool.h>

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

/*
 * The shared object of a model calls functions of libtorch and of the CUDA runtime.  Weir has the
 * few that models without other operators need, under names of its own, so that libtorch can be in
 * the same process: this renames them in the object, an ELF file of 64 bits in memory.
 */
/* The object's calls of libtorch and the CUDA runtime, in the object's memory. */
struct torch_calls {
	ARRAY(const char *) name;
	bool catches; /* it has C++ in it, and may catch exceptions */
};

int torch_object_calls(const struct buf *object, struct torch_calls *ret, struct error *err);
/* Each of these functions gets "weir" for its first four letters, the object no longer asks the
 * loader for libtorch, and it shares no symbol with another model. */
int torch_object_rename(struct buf *object, struct error *err);
