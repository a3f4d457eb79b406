/* Calls NVRTC with the device sources, which embed.awk puts into the library. */
#include "kernels/nvrtc.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/shared_library.h"
#include "kernels/sources.h"
#include "weir/kernels.h"

#define NVRTC_FUNCTIONS(X)                                                                         \
	X(nvrtcVersion, (int *ret_major, int *ret_minor))                                          \
	X(nvrtcCreateProgram, (void **ret, const char *text, const char *name, int headers,        \
				      const char *const *texts, const char *const *names))         \
	X(nvrtcCompileProgram, (void *program, int n, const char *const *options))                 \
	X(nvrtcGetProgramLogSize, (void *program, size_t *ret))                                    \
	X(nvrtcGetProgramLog, (void *program, char *to))                                           \
	X(nvrtcGetCUBINSize, (void *program, size_t *ret))                                         \
	X(nvrtcGetCUBIN, (void *program, char *to))                                                \
	X(nvrtcGetPTXSize, (void *program, size_t *ret))                                           \
	X(nvrtcGetPTX, (void *program, char *to))                                                  \
	X(nvrtcDestroyProgram, (void **program))

struct nvrtc_functions {
#define NVRTC_POINTER(name, parameters) int(*name) parameters;
	NVRTC_FUNCTIONS(NVRTC_POINTER)
#undef NVRTC_POINTER
};

struct nvrtc {
	struct nvrtc_functions f;
	char version[24];
	char *file;
	struct nvrtc *next;
};

static struct {
	pthread_mutex_t lock;
	struct nvrtc *first;
} opened = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct library_symbol symbols[] = {
#define NVRTC_SYMBOL(name, parameters) { #name, offsetof(struct nvrtc_functions, name) },
	NVRTC_FUNCTIONS(NVRTC_SYMBOL)
};

/* Under the lock. */
static struct nvrtc *open_file(const char *file)
{
	int major, minor;
	struct nvrtc *n = opened.first;
	while (n && strcmp(n->file, file) != 0)
		n = n->next;
	if (n)
		return n;
	n = xcalloc(1, sizeof *n);
	if (library_load(file, symbols, sizeof symbols / sizeof *symbols, &n->f) ||
		n->f.nvrtcVersion(&major, &minor)) {
		free(n);
		return NULL;
	}
	snprintf(n->version, sizeof n->version, "%d.%d", major, minor);
	n->file = xstrdup(file);
	n->next = opened.first;
	opened.first = n;
	return n;
}

struct nvrtc *nvrtc_open(const char *file)
{
	/* The last is that of Debian and Ubuntu's packages of NVIDIA, which is on no search path.
	 */
	static const char *const usual[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
		"/usr/local/cuda/lib64/libnvrtc.so" };
	struct nvrtc *n = NULL;
	pthread_mutex_lock(&opened.lock);
	if (file)
		n = open_file(file);
	else
		for (size_t i = 0; i < sizeof usual / sizeof *usual && !n; i++)
			n = open_file(usual[i]);
	pthread_mutex_unlock(&opened.lock);
	return n;
}

const char *nvrtc_version(const struct nvrtc *n)
{
	return n->version;
}

/* Reads the compiler's log, "" if it is empty. */
static void read_log(const struct nvrtc *n, void *program, struct error *err)
{
	size_t bytes = 0;
	struct buf log = { 0 };
	if (!n->f.nvrtcGetProgramLogSize(program, &bytes) && bytes &&
		!n->f.nvrtcGetProgramLog(program, buf_more(&log, bytes)))
		log.n = strnlen(log.v, bytes);
	error_set(err, 0, "%s%s%s%.500s", log.n ? "NVRTC " : "", log.n ? n->version : "",
		log.n ? ": " : "", buf_text(&log));
	buf_free(&log);
}

int nvrtc_compile(const struct nvrtc *n, const char *text, const char *arch, struct buf *ret,
	struct error *err)
{
	char option[64];
	const char *texts[KERNEL_SOURCES_MOST], *names[KERNEL_SOURCES_MOST];
	int headers = 0;
	for (const struct kernel_source *s = kernel_sources; s->name; s++, headers++) {
		names[headers] = s->name;
		texts[headers] = s->text;
	}
	snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
	const char *const options[] = { option, "--std=c++17", "--ptxas-options=--warn-on-spills" };
	const bool ptx = strncmp(arch, "compute", 7) == 0;
	void *program;
	size_t bytes = 0;
	if (n->f.nvrtcCreateProgram(&program, text, "weir.cu", headers, texts, names)) {
		error_set(err, 0, "NVRTC %s makes no program", n->version);
		return WEIR_KERNELS_ERROR_COMPILER;
	}
	int e = n->f.nvrtcCompileProgram(program, 3, options);
	e = e     ? e
	    : ptx ? n->f.nvrtcGetPTXSize(program, &bytes)
		  : n->f.nvrtcGetCUBINSize(program, &bytes);
	ret->n = 0;
	if (!e && bytes) {
		char *to = buf_more(ret, bytes);
		e = ptx ? n->f.nvrtcGetPTX(program, to) : n->f.nvrtcGetCUBIN(program, to);
		ret->n = bytes;
	}
	read_log(n, program, err);
	n->f.nvrtcDestroyProgram(&program);
	return e || !bytes ? WEIR_KERNELS_ERROR_COMPILER : 0;
}

uint64_t nvrtc_sources(void)
{
	uint64_t h = 0;
	for (const struct kernel_source *s = kernel_sources; s->name; s++)
		h = hash_mix(h ^ hash_bytes(s->text, strlen(s->text)));
	return h;
}
