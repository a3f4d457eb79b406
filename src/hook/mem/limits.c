/*
 * The driver reserves device memory for some limits of a context: the heap of kernels, their printf
 * buffer, and thread stacks. This file counts those bytes.
 */
#include "hook/core/own_calls.h"
#include "hook/mem/account.h"
#include "hook/mem/answers.h"

enum { STACK_SIZE, PRINTF_FIFO_SIZE, MALLOC_HEAP_SIZE }; /* CUlimit */

static uint64_t attribute(const struct member *m, int what)
{
	int value = 0;
	return real_at(FN_cuDeviceGetAttribute) &&
			       !REAL(cuDeviceGetAttribute)(&value, what, m->ordinal) && value > 0
		       ? (uint64_t)value
		       : 0;
}

/* That of so high a limit. */
static uint64_t reserved(const struct member *m, int limit, uint64_t value)
{
	enum { MULTIPROCESSORS = 16, THREADS_EACH = 39 }; /* CUdevice_attribute */
	uint64_t bytes;
	if (limit == PRINTF_FIFO_SIZE || limit == MALLOC_HEAP_SIZE)
		return value;
	if (limit != STACK_SIZE)
		return 0;
	const uint64_t threads = attribute(m, MULTIPROCESSORS) * attribute(m, THREADS_EACH);
	return __builtin_mul_overflow(value, threads, &bytes) ? UINT64_MAX / 2 : bytes;
}

static uint64_t key_of(int limit)
{
	return (uintptr_t)current_context() * 4 + (uint64_t)limit;
}

static bool add(const struct claim *c, uint64_t key)
{
	if (!owned_lock())
		return false;
	struct owned limit = { .kind = OWNED_LIMIT,
		.key = key,
		.context = c->context,
		.device = (uint16_t)c->member->ordinal };
	const struct owned *before = owned_find(OWNED_LIMIT, key);
	limit.bytes = c->bytes + (before ? before->bytes : 0);
	const bool kept = owned_put(&limit);
	if (kept)
		atomic_fetch_add_explicit(
			&c->member->slot->memory.lazy, c->bytes, memory_order_seq_cst);
	owned_unlock();
	return kept;
}

/* As far as it was counted: what a context begins with is part of it. */
static void take_back(uint64_t key, uint64_t bytes)
{
	if (!owned_lock())
		return;
	struct owned *o = owned_find(OWNED_LIMIT, key);
	const uint64_t given = o && o->bytes < bytes ? o->bytes : bytes;
	if (o) {
		account_give(o->device, OWNED_LIMIT, given);
		o->bytes -= given;
	}
	owned_unlock();
}

int memory_cuCtxSetLimit(int limit, size_t value)
{
	struct claim c;
	size_t now = 0;
	const struct member *m = member_current();
	int (*const real)(int, size_t) = REAL(cuCtxSetLimit);
	if (!m || !real_at(FN_cuCtxGetLimit) || REAL(cuCtxGetLimit)(&now, limit))
		return real(limit, value);
	const uint64_t before = whole_blocks(reserved(m, limit, now));
	const uint64_t after = whole_blocks(reserved(m, limit, value));
	if (!claim_begin(&c, after > before ? after - before : 0))
		return OUT_OF_MEMORY;
	const int result = real(limit, value);
	if (c.member)
		claim_settle(&c, !result && add(&c, key_of(limit)));
	if (!result && after < before)
		take_back(key_of(limit), before - after);
	return result;
}
