/* NVRTC, NVIDIA's compiler of CUDA C++, found at run time.  Any thread. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct nvrtc;

/* file NULL: the places where it usually is.  Opened once for each file and never closed; NULL
 * where it is not. */
struct nvrtc *nvrtc_open(const char *file);

/* "13.0" */
const char *nvrtc_version(const struct nvrtc *n);

/* Compiles a program that may include the device sources.  arch is sm_90a for a cubin, or
 * compute_75 for PTX.  0 or WEIR_KERNELS_ERROR_COMPILER; err gets the compiler's first words in
 * both cases. */
int nvrtc_compile(const struct nvrtc *n, const char *text, const char *arch, struct buf *ret,
	struct error *err);

/* A number that changes with the device sources. */
uint64_t nvrtc_sources(void);
