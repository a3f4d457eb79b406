/*
 * The provider calls the CUDA runtime through pointers that the dynamic loader has filled in. The
 * one to cudaMemcpyAsync() is put on a function of this file.
 */
#include "engine/onnx_runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/xmalloc.h"

#define COPY           "cudaMemcpyAsync"
#define HOST_TO_DEVICE 1

struct onnx_block {
	struct onnx_block *next;
	size_t bytes;
	char data[];
};

typedef int copy_fn(void *to, const void *from, size_t bytes, int kind, void *stream);
static copy_fn *real_copy;
static _Thread_local struct onnx_kept *keeper;

static int copy(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	if (keeper && kind == HOST_TO_DEVICE && bytes) {
		struct onnx_block *b = xmalloc(sizeof *b + bytes);
		*b = (struct onnx_block){ keeper->first, bytes };
		from = memcpy(b->data, from, bytes);
		keeper->first = b;
	}
	return real_copy(to, from, bytes, kind, stream);
}

void onnx_copies_keep(struct onnx_kept *k)
{
	keeper = k;
}

bool onnx_copies_are_kept(const struct onnx_kept *k, const void *at, size_t bytes)
{
	for (const struct onnx_block *b = k->first; b; b = b->next) {
		const size_t from = (uintptr_t)at - (uintptr_t)b->data;
		if (from <= b->bytes && bytes <= b->bytes - from)
			return true;
	}
	return false;
}

void onnx_copies_free(struct onnx_kept *k)
{
	while (k->first) {
		struct onnx_block *b = k->first;
		k->first = b->next;
		free(b);
	}
}

/* The loader may have made the page read-only.  It stays writable, since another pointer in it may
 * be filled in at its first use. */
static void redirect(void **slot)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)slot / page * page;
	if (mprotect((void *)at, page, PROT_READ | PROT_WRITE) == 0)
		store_release(shared(slot), (void *)(uintptr_t)copy);
}

/* 0: the library has no such entry. */
static uintptr_t entry(const struct link_map *m, int64_t tag)
{
	for (const ElfW(Dyn) *d = m->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_ptr;
	return 0;
}

static void redirect_all(const struct link_map *m, int64_t table, int64_t bytes)
{
	const ElfW(Rela) *r = (const void *)entry(m, table);
	const ElfW(Sym) *symbol = (const void *)entry(m, DT_SYMTAB);
	const char *names = (const void *)entry(m, DT_STRTAB);
	for (size_t n = r ? entry(m, bytes) / sizeof *r : 0; n--; r++)
		if (strcmp(names + symbol[ELF64_R_SYM(r->r_info)].st_name, COPY) == 0)
			redirect((void **)(m->l_addr + r->r_offset));
}

void onnx_copies_watch(const char *provider)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct link_map *m;
	pthread_mutex_lock(&lock);
	void *library = real_copy ? NULL : dlopen(provider, RTLD_NOLOAD | RTLD_NOW);
	void *found = library ? dlsym(library, COPY) : NULL;
	if (found && dlinfo(library, RTLD_DI_LINKMAP, &m) == 0) {
		memcpy(&real_copy, &found, sizeof found);
		redirect_all(m, DT_RELA, DT_RELASZ);
		redirect_all(m, DT_JMPREL, DT_PLTRELSZ);
	}
	pthread_mutex_unlock(&lock);
}
