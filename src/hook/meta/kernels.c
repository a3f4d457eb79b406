/* See kernels.h.  Everything here runs after a call of the program has returned from the driver. */
#include "hook/meta/kernels.h"

#include <string.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "cuda_types.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/pages.h"
#include "hook/core/process.h"
#include "hook/core/slots.h"
#include "hook/meta/params.h"

static struct handles kernels OWN_PAGES, attributes OWN_PAGES;

/* Whether the handle's name is in the trace: as far as is remembered, which has room for some
 * tens of thousands. */
static bool kernel_is_known(uint64_t handle)
{
	return handles_has(&kernels, handle);
}

static void name_kernel(uint64_t handle, uint64_t module, const char *name)
{
	const size_t bytes = strnlen(name, 16384);
	params_invalidate(handle);
	if (!hook_recorder.header || !handles_remember(&kernels, handle, hash_bytes(name, bytes)))
		return;
	const uint64_t args[] = { handle, module };
	meta_text(META_KERNEL, args, 2, name, (uint32_t)bytes);
}

/* A CUfunction's name, or a CUkernel's: launches take either. */
const char *kernel_name(uint64_t handle)
{
	const char *name = NULL;
	if (real_at(FN_cuFuncGetName) && !REAL(cuFuncGetName)(&name, (void *)handle) && name)
		return name;
	if (real_at(FN_cuKernelGetName) && !REAL(cuKernelGetName)(&name, (void *)handle))
		return name;
	return NULL;
}

void kernel_describe(uint64_t handle)
{
	if (!handle || !hook_recorder.header || kernel_is_known(handle))
		return;
	const char *name = kernel_name(handle);
	if (name)
		name_kernel(handle, 0, name);
}

void after_cuModuleGetFunction(int result, void *function, void *module, const char *name)
{
	if (!result && function && name)
		name_kernel(*(const uint64_t *)function, (uintptr_t)module, name);
}

void after_cuLibraryGetKernel(int result, void *kernel, void *library, const char *name)
{
	after_cuModuleGetFunction(result, kernel, library, name);
}

void after_cuKernelGetFunction(int result, void *function, void *kernel)
{
	if (result || !function || !hook_recorder.header)
		return;
	const uint64_t args[] = { *(const uint64_t *)function, (uintptr_t)kernel };
	kernel_describe(args[1]);
	params_invalidate(args[0]);
	if (!handles_remember(&kernels, args[0], args[1]))
		return;
	meta_text(META_ALIAS, args, 2, "", 0);
}

void after_cuModuleEnumerateFunctions(int result, void *functions, unsigned count, void *module)
{
	for (unsigned i = 0; !result && functions && i < count; i++)
		kernel_describe(((const uint64_t *)functions)[i]);
}

void after_cuLibraryEnumerateKernels(int result, void *list, unsigned count, void *library)
{
	after_cuModuleEnumerateFunctions(result, list, count, library);
}

/* Which question of CUfunction_attribute each of ours is. */
static const int attribute_asked[ATTRIBUTES] = {
	[ATTRIBUTE_MAX_THREADS] = 0,
	[ATTRIBUTE_STATIC_SHARED] = 1,
	[ATTRIBUTE_CONST] = 2,
	[ATTRIBUTE_LOCAL] = 3,
	[ATTRIBUTE_REGISTERS] = 4,
	[ATTRIBUTE_PTX_VERSION] = 5,
	[ATTRIBUTE_BINARY_VERSION] = 6,
	[ATTRIBUTE_MAX_DYNAMIC_SHARED] = 8,
};

/* The attributes of a kernel are those of its function in the context at hand. */
static bool ask_attribute(uint64_t handle, unsigned i, uint32_t *ret_value)
{
	int value = 0;
	void *function = NULL;
	if (!real_at(FN_cuFuncGetAttribute))
		return false;
	int (*ask)(int *, int, void *) = real_at(FN_cuFuncGetAttribute);
	if (ask(&value, attribute_asked[i], (void *)handle) &&
		(!real_at(FN_cuKernelGetFunction) ||
			REAL(cuKernelGetFunction)(&function, (void *)handle) ||
			ask(&value, attribute_asked[i], function)))
		return false;
	*ret_value = (uint32_t)value;
	return value >= 0;
}

uint32_t kernel_attributes(uint64_t handle, uint32_t value[ATTRIBUTES])
{
	uint64_t args[2 + ATTRIBUTES / 2] = { handle };
	for (unsigned i = 0; i < ATTRIBUTES; i++) {
		value[i] = 0;
		if (ask_attribute(handle, i, &value[i]))
			args[1] |= 1ull << i;
		args[2 + i / 2] |= (uint64_t)value[i] << i % 2 * 32;
	}
	const uint64_t hash = hash_bytes(args + 1, sizeof args - 8);
	if (args[1] && hook_recorder.header && handles_remember(&attributes, handle, hash))
		meta_text(META_ATTRIBUTES, args, sizeof args / 8, "", 0);
	return (uint32_t)args[1];
}

void kernels_forget(void)
{
	DROP(kernels);
	DROP(attributes);
}

#define WINDOW 16u

static uint32_t slot_of(uint64_t handle)
{
	return (uint32_t)(handle * 0x9e3779b97f4a7c15u >> (64 - HANDLES_BITS));
}

static struct slots slots_of(_Atomic uint64_t *handles)
{
	return (struct slots){ handles, HANDLES_SIZE, WINDOW, memory_order_relaxed,
		memory_order_relaxed };
}

/* True when it was not known that the handle means this. */
bool handles_remember(struct handles *k, uint64_t handle, uint64_t hash)
{
	const uint32_t first = slot_of(handle);
	bool new;
	const uint32_t at = slots_claim(slots_of(k->handle), first, handle, &new);
	if (at != SLOTS_NONE)
		return atomic_exchange_explicit(&k->hash[at], hash, memory_order_relaxed) != hash;
	store_relaxed(&k->handle[first], handle);
	store_relaxed(&k->hash[first], hash);
	return true;
}

bool handles_has(struct handles *k, uint64_t handle)
{
	return slots_find(slots_of(k->handle), slot_of(handle), handle) != SLOTS_NONE;
}
