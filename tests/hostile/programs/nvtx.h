/*
 * NVTX as a program has it: what the header does, in as much as is needed here.  The first call
 * loads the library that NVTX_INJECTION64_PATH names, if any, and lets it fill in the functions;
 * without one every function does nothing.  Numbers and layouts are those of NVTX version 3.
 */
#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

struct nvtx_event {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	union {
		uint64_t u64;
		double real;
	} payload;
	int32_t message_type;
	const void *message;
};

#define NVTX_EVENT(...) (&(struct nvtx_event){ .version = 3, .size = 48, __VA_ARGS__ })

static int (*nvtx_push)(const char *);
static int (*nvtx_push_wide)(const wchar_t *);
static int (*nvtx_push_event)(const struct nvtx_event *);
static int (*nvtx_pop)(void);
static void (*nvtx_mark)(const char *);
static uint64_t (*nvtx_start)(const char *);
static void (*nvtx_end)(uint64_t);
static int (*nvtx_domain_push)(void *, const struct nvtx_event *);
static int (*nvtx_domain_pop)(void *);
static void *(*nvtx_domain)(const char *);
static void *(*nvtx_register)(void *, const char *);

/* NVTX's table of a module: pointers to where the functions are kept. */
static void **nvtx_core[16] = { [2] = (void **)&nvtx_mark,
	[5] = (void **)&nvtx_start,
	[7] = (void **)&nvtx_end,
	[8] = (void **)&nvtx_push_event,
	[9] = (void **)&nvtx_push,
	[10] = (void **)&nvtx_push_wide,
	[11] = (void **)&nvtx_pop };
static void **nvtx_core2[16] = { [4] = (void **)&nvtx_domain_push,
	[5] = (void **)&nvtx_domain_pop,
	[10] = (void **)&nvtx_register,
	[12] = (void **)&nvtx_domain };

static int nvtx_table(int module, void ****ret_table, unsigned *ret_size)
{
	if (module != 1 && module != 5)
		return 0;
	*ret_table = module == 1 ? nvtx_core : nvtx_core2;
	*ret_size = 16;
	return 1;
}

static const struct {
	size_t size;
	int (*get)(int, void ****, unsigned *);
} nvtx_callbacks = { sizeof nvtx_callbacks, nvtx_table };

static const void *nvtx_export(uint32_t id)
{
	return id == 1 ? &nvtx_callbacks : NULL;
}

/* Whether anybody listens. */
static inline bool nvtx_load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(const void *(*)(uint32_t)) = NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
	return initialize && initialize(nvtx_export);
}

#define NVTX(function, ...) (nvtx_##function ? nvtx_##function(__VA_ARGS__) : 0)
#define NVTX_VOID(function, ...)                                                                   \
	do {                                                                                       \
		if (nvtx_##function)                                                               \
			nvtx_##function(__VA_ARGS__);                                              \
	} while (0)
