/* Which calls change virtual memory, and how: see memory_op.h. */
#include "model/memory_op.h"

#include <string.h>

#include "model/report.h"
#include "trace/trace.h"

#include "base/banned.h"

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
