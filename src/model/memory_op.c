/* Which calls change virtual memory, and how: see memory_op.h. */
#include "model/memory_op.h"

#include "model/report.h"

const char *const memory_kind_name[MEMORY_KINDS] = { "device", "managed", "vmm", "host" };

static const struct {
	const char *name;
	uint8_t what;
} roles[] = {
	{ "cuMemAddressReserve", VMM_RESERVE },
	{ "cuMemAddressFree", VMM_GIVE_BACK },
	{ "cuMemMap", VMM_MAP },
	{ "cuMemUnmap", VMM_UNMAP },
};

uint8_t memory_vmm_role(const struct schema_fn *fn)
{
	if (fn->api == API_RUNTIME)
		return VMM_NOTHING;
	if (fn->kind == CALL_ALLOC || fn->kind == CALL_FREE) {
		const bool is_free = fn->kind == CALL_FREE;
		if (!strcmp(fn->memory, "vmm"))
			return is_free ? VMM_RELEASE : VMM_CREATE;
		if (!strcmp(fn->memory, "segment"))
			return is_free ? VMM_GIVE_BACK : VMM_RESERVE;
		return VMM_NOTHING;
	}
	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
		if (!strcmp(fn->name, roles[i].name))
			return roles[i].what;
	return VMM_NOTHING;
}

/* Functions by the beginning of their names, or by all of it where calls with longer ones do
 * something else: those wait until the GPU is done with what it has been given (cuMemFree, and
 * the same above and beside the driver). */
static const struct {
	const char *name;
	bool whole, waits;
} memory_calls[] = {
	{ "cuMemFree", true, true },
	{ "cuMemFree_v2", true, true },
	{ "cuMemFreeHost", true, true },
	{ "cudaFree", true, true },
	{ "cudaFreeHost", true, true },
	{ "hipFree", true, true },
	{ "hipHostFree", true, true },
	{ "cuMemAlloc", false, false },
	{ "cuMemFree", false, false },
	{ "cuMemHost", false, false }, /* cuMemHostAlloc, cuMemHostRegister, cuMemHostUnregister */
	{ "cuMemCreate", false, false },
	{ "cuMemRelease", false, false },
	{ "cuMemAddress", false, false },
	{ "cuMemMap", false, false },
	{ "cuMemUnmap", false, false },
	{ "cuMemSetAccess", false, false },
	{ "cuMemPoolCreate", false, false },
	{ "cuMemPoolDestroy", false, false },
	{ "cuMemPoolTrimTo", false, false },
	{ "cuArrayCreate", false, false },
	{ "cuArray3DCreate", false, false },
	{ "cuArrayDestroy", false, false },
	{ "cuMipmappedArrayCreate", false, false },
	{ "cuMipmappedArrayDestroy", false, false },
	{ "cudaMalloc", false, false },
	{ "cudaFree", false, false },
	{ "cudaHostAlloc", false, false },
	{ "cudaHostRegister", false, false },
	{ "cudaHostUnregister", false, false },
	{ "cudaMemPoolCreate", false, false },
	{ "cudaMemPoolDestroy", false, false },
	{ "cudaMemPoolTrimTo", false, false },
	{ "hipMalloc", false, false },
	{ "hipFree", false, false },
	{ "hipHost", false, false },
};

/* Calls that only look. */
static bool only_looks(const char *name)
{
	return strstr(name, "GetDevicePointer") || strstr(name, "GetFlags");
}

uint8_t memory_call_of(const struct schema_fn *fn)
{
	if (fn->api == API_ALLOCATOR || only_looks(fn->name))
		return MEMORY_CALL_NO;
	for (size_t i = 0; i < sizeof memory_calls / sizeof memory_calls[0]; i++) {
		const char *name = memory_calls[i].name;
		if (memory_calls[i].whole ? !strcmp(fn->name, name)
					  : !strncmp(fn->name, name, strlen(name)))
			return memory_calls[i].waits ? MEMORY_CALL_WAITS : MEMORY_CALL;
	}
	return MEMORY_CALL_NO;
}

static bool argument(
	const struct schema_fn *fn, const struct record *r, unsigned i, uint64_t *ret_value)
{
	if (i >= fn->arg_count || fn->args[i].first >= r->words - RECORD_WORDS)
		return false;
	if (fn->args[i].out && i < 32 && (r->aux >> i & 1))
		return false;
	*ret_value = r->arg[fn->args[i].first];
	return true;
}

bool memory_vmm_op(
	const struct schema_fn *fn, uint8_t role, const struct record *r, struct vmm_op *ret_op)
{
	const bool begins = role == VMM_RESERVE || role == VMM_CREATE || role == VMM_MAP;
	struct vmm_op op = { .ticks = begins ? record_end(r) : r->ticks,
		.fn_id = r->fn,
		.what = role,
		.segment = !strcmp(fn->memory, "segment") };
	if (fn->kind == CALL_ALLOC || fn->kind == CALL_FREE) {
		if (!schema_call_pointer(fn, r, &op.pointer) || !op.pointer)
			return false;
		if (fn->kind == CALL_ALLOC && !schema_call_bytes(fn, r, &op.bytes))
			return false;
	} else if (!argument(fn, r, 0, &op.pointer) || !argument(fn, r, 1, &op.bytes)) {
		return false;
	}
	if (role == VMM_MAP && !argument(fn, r, 3, &op.handle))
		return false;
	*ret_op = op;
	return true;
}

static bool named_argument(
	const struct schema_fn *fn, const struct record *r, const char *name, uint64_t *ret_value)
{
	for (unsigned i = 0; i < fn->arg_count; i++)
		if (!strcmp(fn->args[i].name, name))
			return argument(fn, r, i, ret_value);
	return false;
}

bool memory_reserved_note(
	const struct schema_fn *fn, const struct record *r, struct reserved_note *ret_note)
{
	uint64_t bytes, device;
	if (fn->api != API_ALLOCATOR || !named_argument(fn, r, "reserved", &bytes) ||
		!named_argument(fn, r, "device", &device))
		return false;
	*ret_note =
		(struct reserved_note){ .ticks = fn->kind == CALL_FREE ? r->ticks : record_end(r),
			.bytes = bytes,
			.device = (uint32_t)device };
	return true;
}
