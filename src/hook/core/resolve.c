/* Finds the real functions of the driver. */
#include "hook/core/resolve.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "hook/core/hook_parts.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define PASS   ((void *)-1)

_Atomic(void *) hook_real[HOOK_COUNT];
HIDDEN _Atomic(void *) real_dlsym, real_dlvsym; /* for entry_*.S */

/* Open addressing, filled once: name to id, and real address to id. */
#define SLOTS 4096u
static uint16_t by_name[SLOTS];
static _Atomic bool by_name_ready;
static struct {
	_Atomic(void *) real;
	_Atomic uint32_t fn;
} by_address[SLOTS];

static uint32_t hash_name(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static void fill_names(void)
{
	for (uint32_t fn = 1; fn < HOOK_COUNT; fn++) {
		uint32_t at = hash_name(hooked[fn].name) % SLOTS;
		while (by_name[at] && by_name[at] != fn)
			at = (at + 1) % SLOTS;
		by_name[at] = (uint16_t)fn; /* the same from every thread that comes here */
	}
	store_release(&by_name_ready, true);
}

enum fn fn_of_name(const char *name)
{
	if (!load_acquire(&by_name_ready))
		fill_names();
	for (uint32_t at = hash_name(name) % SLOTS; by_name[at]; at = (at + 1) % SLOTS)
		if (!strcmp(hooked[by_name[at]].name, name))
			return by_name[at];
	return FN_NONE;
}

static uint32_t hash_address(const void *p)
{
	return (uint32_t)((uintptr_t)p >> 4) * 2654435761u % SLOTS;
}

/* The slot's function was of a driver that has been loaded elsewhere since: the slot is given to
 * another, else the table would fill up. */
static bool is_gone(uint32_t slot, const void *real)
{
	const enum fn fn = atomic_load_explicit(&by_address[slot].fn, memory_order_seq_cst);
	return fn && real_at(fn) != real;
}

static void learn(enum fn fn, void *real)
{
	store_relaxed(&hook_real[fn], real);
	for (uint32_t i = 0, at = hash_address(real); i < SLOTS; i++, at = (at + 1) % SLOTS) {
		void *seen = NULL;
		if (replace_if(&by_address[at].real, &seen, real, seq_cst, seq_cst) ||
			seen == real ||
			(is_gone(at, seen) &&
				replace_if(&by_address[at].real, &seen, real, seq_cst, seq_cst))) {
			atomic_store_explicit(&by_address[at].fn, fn, memory_order_seq_cst);
			return;
		}
	}
}

static enum fn fn_of_address(const void *real)
{
	for (uint32_t i = 0, at = hash_address(real); i < SLOTS; i++, at = (at + 1) % SLOTS) {
		const void *seen = atomic_load_explicit(&by_address[at].real, memory_order_seq_cst);
		if (!seen)
			break;
		if (seen == real)
			return atomic_load_explicit(&by_address[at].fn, memory_order_seq_cst);
	}
	return FN_NONE;
}

void *wrapper_of(const void *real)
{
	const enum fn fn = fn_of_address(real);
	return fn && real_at(fn) == real ? hooked[fn].wrapper : NULL;
}

static bool has_soname(const struct elf *e, const void *prefix)
{
	return e->soname && !strncmp(e->soname, prefix, strlen(prefix));
}

static bool is_runtime(const struct elf *e, const void *unused)
{
	return has_soname(e, "libcudart.so.");
}

bool resolve_is_us(const struct elf *e)
{
	return elf_find(e, "weir_bound_by_audit") == (void *)weir_bound_by_audit;
}

static bool defines(const struct elf *e, const void *name)
{
	return elf_find(e, name) && !resolve_is_us(e);
}

static bool defines_anywhere(const struct elf *e, const void *name)
{
	return elf_find(e, name) != NULL;
}

/* True for objects behind this library in the order of loading that define the name. */
static bool defines_after(const struct elf *e, const void *arg)
{
	struct {
		const char *name;
		bool passed;
	} *after = (void *)(uintptr_t)arg;
	if (after->passed)
		return elf_find(e, after->name) != NULL;
	after->passed = resolve_is_us(e);
	return false;
}

void *resolve_next(const char *name)
{
	struct {
		const char *name;
		bool passed;
	} after = { name, false };
	struct elf e;
	return elf_search(&e, defines_after, &after) ? elf_find(&e, name) : NULL;
}

static bool is_us_or(const struct elf *e, const void *base)
{
	return e->base == *(const uintptr_t *)base || resolve_is_us(e);
}

bool resolve_is_behind(const struct elf *e)
{
	struct elf first;
	return elf_search(&first, is_us_or, &e->base) && first.base != e->base;
}

static void find_dl_functions(void)
{
	store_relaxed(&real_dlvsym, resolve_next("dlvsym"));
	store_release(&real_dlsym, resolve_next("dlsym"));
}

/* The driver whose functions hook_real holds: where it was mapped, or 0. */
static _Atomic uintptr_t driver_base;

static void adopt_driver(const struct elf *e)
{
	if (atomic_exchange_explicit(&driver_base, e->base, memory_order_seq_cst) == e->base)
		return;
	for (uint32_t fn = 1; fn < FN_DRIVER_END; fn++) {
		void *real = elf_find(e, hooked[fn].name);
		if (real)
			learn(fn, real);
	}
}

/* The driver may have been loaded, or unloaded and loaded elsewhere, since we last looked. */
bool resolve_driver(void)
{
	struct elf e;
	if (!elf_search(&e, has_soname, "libcuda.so"))
		return driver_base != 0 && elf_of_address(&e, real_at(FN_cuInit));
	adopt_driver(&e);
	return true;
}

static void find_runtime(void)
{
	struct elf e;
	if (!elf_search(&e, is_runtime, NULL))
		return;
	for (uint32_t fn = FN_DRIVER_END; fn < FN_COUNT; fn++) {
		void *real = real_at(fn) ? NULL : elf_find(&e, hooked[fn].name);
		if (real)
			learn(fn, real);
	}
}

bool resolve_is_first(void)
{
	struct elf e;
	return elf_search(&e, defines_anywhere, "cuInit") && resolve_is_us(&e);
}

static int nobody_has_it(void)
{
	return 34; /* CUDA_ERROR_STUB_LIBRARY, cudaErrorStubLibrary */
}

void *resolve(enum fn fn, const void *caller)
{
	process_start();
	if (fn < FN_DRIVER_END)
		resolve_driver();
	else
		find_runtime();
	void *real = real_at(fn);
	if (!real && (real = resolve_next(hooked[fn].name)))
		learn(fn, real);
	return real ? real : (void *)nobody_has_it;
}

#define UNKNOWN 256u
extern const char unknown_thunks[] HIDDEN; /* entry_*.S */
HIDDEN void *unknown_real[UNKNOWN];
static uint64_t unknown_local[UNKNOWN];
HIDDEN uint64_t *unknown_counts = unknown_local;
static char unknown_names[UNKNOWN][64];
static _Atomic uint32_t unknown_taken;

static void declare_unknown(uint32_t i)
{
	const uint64_t index = i;
	meta_text(META_UNKNOWN, &index, 1, unknown_names[i], (uint32_t)strlen(unknown_names[i]));
}

static void *thunk_for(void *real, const char *name)
{
	const uint32_t taken = load_relaxed(&unknown_taken);
	for (uint32_t i = 0; i < taken && i < UNKNOWN; i++)
		if (unknown_real[i] == real)
			return (void *)(unknown_thunks + CPU_THUNK_BYTES * i);
	const uint32_t i = atomic_fetch_add_explicit(&unknown_taken, 1, memory_order_seq_cst);
	if (i >= UNKNOWN) {
		store_relaxed(&unknown_taken, UNKNOWN);
		return real;
	}
	strncpy(unknown_names[i], name, sizeof unknown_names[i] - 1);
	unknown_real[i] = real;
	if (unknown_counts != unknown_local)
		declare_unknown(i);
	return (void *)(unknown_thunks + CPU_THUNK_BYTES * i);
}

void resolve_declare(void)
{
	const uint32_t bytes = CHUNK_PAYLOAD + sizeof unknown_local;
	if (!load_relaxed(&unknown_taken) || !hook_recorder.header)
		return;
	struct chunk_header *c = recorder_chunk(&hook_recorder, CHUNK_UNKNOWN, bytes, 0);
	if (!c)
		return;
	c->used = sizeof unknown_local;
	unknown_counts = (uint64_t *)((char *)c + CHUNK_PAYLOAD);
	for (uint32_t i = 0; i < load_relaxed(&unknown_taken) && i < UNKNOWN; i++)
		declare_unknown(i);
}

void resolve_forked(void)
{
	unknown_counts = unknown_local;
}

static bool is_driver_name(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

static bool in_driver(const void *address)
{
	struct elf e;
	return elf_of_address(&e, address) && has_soname(&e, "libcuda.so");
}

void *resolve_answer(void *real, const char *symbol)
{
	void *wrapper = wrapper_of(real);
	if (wrapper)
		return wrapper;
	resolve_driver();
	wrapper = wrapper_of(real);
	if (wrapper)
		return wrapper;
	if (!is_driver_name(symbol) || !in_driver(real))
		return real;
	void *thunk = thunk_for(real, symbol);
	if (unknown_counts == unknown_local)
		resolve_declare();
	return thunk;
}

static bool may_be_ours(const char *name)
{
	return name && ((name[0] == 'c' && name[1] == 'u') || (name[0] == '_' && name[1] == '_'));
}

/* The auditor has put a wrapper in place of what this thread is looking up. */
static __thread bool was_bound_by_audit __attribute__((tls_model("initial-exec")));

/* The real dlsym's answer about a function of ours, or the wrapper for it. */
static void *answer_for(enum fn fn, const char *name, void *real)
{
	if (real == hooked[fn].wrapper) /* found by a search that begins with us */
		return real;
	process_start();
	if (real_at(fn) != real) {
		if (fn < FN_DRIVER_END)
			resolve_driver();
		else if (fn < FN_COUNT)
			find_runtime();
		else
			hook_above.library_look(fn);
	}
	return real_at(fn) == real ? hooked[fn].wrapper : real;
}

/*
 * CUPTI makes calls for a tool, not for the program.  Libraries look the same names up for each
 * kernel that they compile, so what was found of a caller is kept: its address, the low bits of
 * elf_changes(), and the answer.
 */
static bool called_by_tool(const void *caller)
{
	static _Atomic uint64_t seen[64];
	const uint64_t key = (uintptr_t)caller << 16 | (elf_changes() & 0x7fff) << 1;
	_Atomic uint64_t *at = &seen[key * UINT64_C(0x9e3779b97f4a7c15) >> 58];
	const uint64_t was = atomic_load_explicit(at, memory_order_seq_cst);
	struct elf e;
	if ((was & ~UINT64_C(1)) == key)
		return was & 1;
	const bool is_tool = elf_of_address(&e, caller) && has_soname(&e, "libcupti.so");
	atomic_store_explicit(at, key | is_tool, memory_order_seq_cst);
	return is_tool;
}

/* Whether the search through the whole program would find the name without us.  We can't ask what a
 * library reaches besides, through libraries of its own: then yes. */
static bool found_without_us(const char *name, const void *caller)
{
	void *(*real_lookup)(void *, const char *) = load_relaxed(&real_dlsym);
	struct elf e;
	if (real_lookup(RTLD_NEXT, name))
		return true;
	dlerror(); /* the question was ours, not the program's */
	const bool from_program = elf_of_address(&e, caller) && !e.soname;
	return !from_program && elf_search(&e, defines, name);
}

void *resolve_tool(const char *name)
{
	struct elf e;
	return elf_search(&e, has_soname, "libcupti.so") ? elf_find(&e, name) : NULL;
}

static bool is_tool_name(const char *name)
{
	return !strncmp(name, "cupti", 5);
}

/* Other tools in the program are told of what stands in front of CUPTI; we are not. */
static void *tool_answer(void *handle, const char *name, const void *caller)
{
	void *(*real_lookup)(void *, const char *) = load_relaxed(&real_dlsym);
	struct elf e;
	if (elf_of_address(&e, caller) && (resolve_is_us(&e) || has_soname(&e, "libcupti.so")))
		return PASS;
	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT)
		return found_without_us(name, caller) ? PASS : real_lookup(RTLD_NEXT, name);
	void *real = real_lookup(handle, name);
	return real ? hook_above.cupti_answer(name, real) : NULL;
}

HIDDEN void *dlsym_answer(void *handle, const char *name, const void *caller);
HIDDEN void *dlsym_answer(void *handle, const char *name, const void *caller)
{
	if (!load_acquire(&real_dlsym))
		find_dl_functions();
	if (!may_be_ours(name))
		return PASS;
	if (is_tool_name(name))
		return tool_answer(handle, name, caller);
	const enum fn fn = fn_of_name(name);
	if ((!fn && !is_driver_name(name)) || called_by_tool(caller))
		return PASS;
	void *(*real_lookup)(void *, const char *) = load_relaxed(&real_dlsym);
	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
		/* Our own definition stands first in most searches, and must not make a program
		 * believe in a driver that it could not reach. */
		return fn && !found_without_us(name, caller) ? real_lookup(RTLD_NEXT, name) : PASS;
	}
	was_bound_by_audit = false;
	void *real = real_lookup(handle, name);
	if (!real)
		return NULL;
	if (!fn)
		return resolve_answer(real, name);
	if (real == hooked[fn].wrapper &&
		!was_bound_by_audit) /* the whole program, which begins with us */
		return real_lookup(RTLD_NEXT, name) ? real : NULL;
	return answer_for(fn, name, real);
}

HIDDEN void *dlvsym_answer(void *handle, const char *name, const char *version, const void *caller);
HIDDEN void *dlvsym_answer(void *handle, const char *name, const char *version, const void *caller)
{
	if (!load_acquire(&real_dlsym))
		find_dl_functions();
	if (!may_be_ours(name) || handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return PASS;
	const enum fn fn = fn_of_name(name);
	void *(*real_lookup)(void *, const char *, const char *) = load_relaxed(&real_dlvsym);
	void *real = fn ? real_lookup(handle, name, version) : NULL;
	return real ? answer_for(fn, name, real) : PASS;
}

__attribute__((visibility("default"))) void *weir_bound_by_audit(
	const char *name, void *real, const void *map)
{
	if (!may_be_ours(name))
		return real;
	const enum fn fn = fn_of_name(name);
	if (!fn || real == hooked[fn].wrapper)
		return real;
	const struct link_map *object = map;
	struct elf e;
	if (!elf_read(&e, object->l_addr, object->l_ld) || elf_find(&e, name) != real)
		return real;
	/* A second copy of the driver, in a namespace of its own, keeps to itself: one table
	 * holds one driver. */
	if (fn < FN_DRIVER_END && has_soname(&e, "libcuda.so") && !real_at(FN_cuInit))
		adopt_driver(&e);
	else if (fn >= FN_COUNT)
		hook_above.library_bound_by_audit(fn, &e);
	else if (fn >= FN_DRIVER_END && is_runtime(&e, NULL) && !real_at(fn))
		learn(fn, real);
	was_bound_by_audit = real_at(fn) == real;
	return was_bound_by_audit ? hooked[fn].wrapper : real;
}

void after_cuGetProcAddress(
	int result, const char *symbol, void *pfn, int version, unsigned long long flags)
{
	void **answer = pfn;
	if (!result && answer && *answer && symbol)
		*answer = resolve_answer(*answer, symbol);
}

void after_cuGetProcAddress_v2(int result, const char *symbol, void *pfn, int version,
	unsigned long long flags, void *status)
{
	after_cuGetProcAddress(result, symbol, pfn, version, flags);
}
