/* Wraps calls of cuBLAS, cuBLASLt and cuDNN in ranges. */
#include "hook/range/library.h"

#include <string.h>

#include "base/atomic.h"
#include "hook/range/range.h"
#include "hook/core/resolve.h"
#include "hook/core/slots.h"
#include "hook/core/strings.h"

_Atomic(void *) library_ask[LIBRARY_QUESTIONS];

static const struct {
	enum library_id of;
	const char *name;
} questions[LIBRARY_QUESTIONS] = {
	[ASK_LAYOUT] = { LIBRARY_OF_cublasLt, "cublasLtMatrixLayoutGetAttribute" },
	[ASK_MATMUL] = { LIBRARY_OF_cublasLt, "cublasLtMatmulDescGetAttribute" },
	[ASK_TENSOR] = { LIBRARY_OF_cudnn, "cudnnGetTensorNdDescriptor" },
	[ASK_FILTER] = { LIBRARY_OF_cudnn, "cudnnGetFilterNdDescriptor" },
};

#define SEVERAL 1u /* no address that anything is loaded at */

/* The address of the copy whose functions hook_real has; 0, or SEVERAL. */
static _Atomic uintptr_t bases[LIBRARIES];

/* Goes up with each change of bases, so that what was found before is not found again. */
static _Atomic uint64_t generation;

struct census {
	const struct library *library;
	bool passed; /* us: what was loaded before does not come to us */
	uint32_t count;
	struct elf first;
};

static bool count_copy(const struct elf *e, const void *arg)
{
	struct census *c = (void *)(uintptr_t)arg;
	if (!c->passed) {
		c->passed = resolve_is_us(e);
		return false;
	}
	const char *parts = c->library->parts;
	if (e->soname && !strncmp(e->soname, parts, strlen(parts)))
		return false;
	if (elf_find(e, c->library->opener) && !c->count++)
		c->first = *e;
	return false;
}

/* e NULL: none of them. */
static void adopt(enum library_id which, const struct elf *e, uintptr_t base)
{
	if (atomic_exchange_explicit(&bases[which], base, memory_order_seq_cst) == base)
		return;
	atomic_fetch_add_explicit(&generation, 1, memory_order_seq_cst);
	for (unsigned fn = FN_COUNT; fn < HOOK_COUNT; fn++)
		if (library_of[fn - FN_COUNT] == which)
			store_relaxed(&hook_real[fn], e ? elf_find(e, hooked[fn].name) : NULL);
	for (unsigned i = 0; i < LIBRARY_QUESTIONS; i++)
		if (questions[i].of == which)
			store_relaxed(&library_ask[i], e ? elf_find(e, questions[i].name) : NULL);
}

/* elf_changes() when the copies of a library were last counted. */
static _Atomic uint64_t looked[LIBRARIES];

/* Programs open a library again and again: a search through all objects takes tens of us. */
void library_look(unsigned fn)
{
	const enum library_id which = library_of[fn - FN_COUNT];
	struct census c = { .library = &libraries[which] };
	const uint64_t changes = elf_changes();
	struct elf none;
	if (atomic_load_explicit(&looked[which], memory_order_seq_cst) == changes)
		return;
	elf_search(&none, count_copy, &c);
	if (c.count == 1)
		adopt(which, &c.first, c.first.base);
	else if (c.count)
		adopt(which, NULL, SEVERAL);
	atomic_store_explicit(&looked[which], changes, memory_order_seq_cst);
}

void library_bound_by_audit(unsigned fn, const struct elf *e)
{
	const enum library_id which = library_of[fn - FN_COUNT];
	if (!atomic_load_explicit(&bases[which], memory_order_seq_cst))
		adopt(which, e, e->base);
}

#define QUEUE 512u

/* Names of objects that an object needs, directly or not, nearest first. */
struct queue {
	const char *names[QUEUE];
	uint32_t count;
};

static void queue_needed(struct queue *q, const struct elf *e)
{
	for (const Elf64_Dyn *d = e->dynamic; d->d_tag != DT_NULL && q->count < QUEUE; d++) {
		const char *name = e->strings + d->d_un.d_val;
		uint32_t i = 0;
		if (d->d_tag != DT_NEEDED)
			continue;
		while (i < q->count && strcmp(q->names[i], name) != 0)
			i++;
		if (i == q->count)
			q->names[q->count++] = name;
	}
}

static bool is_called(const struct elf *e, const void *soname)
{
	return e->soname && !strcmp(e->soname, soname);
}

/* In the object at hand, or in what it needs, as the loader would search without us. */
static void *reach(struct elf *e, const char *name)
{
	struct queue q = { .count = 0 };
	for (uint32_t next = 0;; next++) {
		void *found = elf_find(e, name);
		if (found && resolve_is_behind(e))
			return found;
		queue_needed(&q, e);
		while (next < q.count && !elf_search(e, is_called, q.names[next]))
			next++;
		if (next == q.count)
			return NULL;
	}
}

/*
 * The functions that callers have reached.  Filled once: a key is the function, the caller and the
 * generation, so that nothing is ever taken out.  When it is full, each call searches.
 */
#define REACHED 1024u
#define WINDOW  8u
static struct {
	_Atomic uint64_t key[REACHED];
	_Atomic(void *) real[REACHED];
} reached;
static const struct slots slots = { reached.key, REACHED, WINDOW, memory_order_seq_cst,
	memory_order_seq_cst };

static void *real_of_caller(unsigned fn, const void *caller)
{
	const uint64_t words[] = { fn, (uintptr_t)caller,
		atomic_load_explicit(&generation, memory_order_seq_cst) };
	const uint64_t key = string_hash(words, sizeof words, 6) | 1;
	const uint32_t first = (uint32_t)(key >> 32);
	struct elf e;
	bool new;
	uint32_t at = slots_find(slots, first, key);
	void *real = at != SLOTS_NONE
			     ? atomic_load_explicit(&reached.real[at], memory_order_seq_cst)
			     : NULL;
	if (real)
		return real;
	real = elf_of_address(&e, caller) ? reach(&e, hooked[fn].name) : NULL;
	at = real ? slots_claim(slots, first, key, &new) : SLOTS_NONE;
	if (at != SLOTS_NONE)
		atomic_store_explicit(&reached.real[at], real, memory_order_seq_cst);
	return real;
}

/* CUBLAS_STATUS_NOT_INITIALIZED, and for cuDNN a failure as well. */
static int nobody_has_it(void)
{
	return 1;
}

void *library_real(unsigned fn, const void *caller)
{
	const enum library_id which = library_of[fn - FN_COUNT];
	const bool opens = !strcmp(hooked[fn].name, libraries[which].opener);
	void *real = real_at(fn);
	if (__builtin_expect(real && !opens, 1))
		return real;
	process_start();
	if (opens || atomic_load_explicit(&bases[which], memory_order_seq_cst) != SEVERAL)
		library_look(fn);
	real = real_at(fn);
	if (!real && atomic_load_explicit(&bases[which], memory_order_seq_cst) == SEVERAL)
		real = real_of_caller(fn, caller);
	if (!real)
		real = resolve_next(hooked[fn].name);
	return real ? real : (void *)nobody_has_it;
}

uint32_t library_enter(unsigned fn, uint32_t args)
{
	const char *library = libraries[library_of[fn - FN_COUNT]].name;
	const char *name = hooked[fn].name;
	const struct range_text r = {
		.name = string_of(name),
		.args = args,
		.scope = string_of(library),
		.kind = RANGE_OPERATOR,
	};
	range_push(&r);
	return r.scope;
}
