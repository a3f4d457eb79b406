/*
 * Copies that ONNX Runtime's CUDA provider makes from the host. A graph copies from there whenever
 * it is replayed, and by then other numbers of the same run lie there. So a captured run copies
 * from blocks of its plan, which hold what was there when it was captured.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct onnx_kept {
	struct onnx_block *first;
};

/* When the provider is loaded. If its copies can't be watched, nothing is kept. */
void onnx_copies_watch(const char *provider);

/* Keeps what the calling thread copies from now on. NULL: nothing more. */
void onnx_copies_keep(struct onnx_kept *k);
bool onnx_copies_are_kept(const struct onnx_kept *k, const void *at, size_t bytes);
void onnx_copies_free(struct onnx_kept *k);
