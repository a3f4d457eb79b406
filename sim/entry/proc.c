/*
 * cuGetProcAddress(): from a base name and a CUDA version to the newest function of that
 * name which that version knew.  The answer is always the driver's own address, whatever
 * is interposed on the symbol.
 */
#include "entry/entry.h"
#include "entry/script.h"

#include <string.h>

enum { PER_THREAD_STREAM = 2, ALL_FLAGS = 3 };

static bool better(const struct entry_row *a, const struct entry_row *best)
{
	if (!best || a->per_thread != best->per_thread)
		return !best || a->per_thread;
	if (a->since != best->since)
		return a->since > best->since;
	return strcmp(a->name, best->name) > 0;
}

static const struct entry_row *search(
	const char *symbol, int version, bool per_thread, int *ret_status)
{
	const struct entry_row *best = NULL;

	*ret_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	for (int i = 0; i < SIM_FUNCTIONS; i++) {
		const struct entry_row *row = &entry_table[i];

		if (strcmp(row->base, symbol) != 0 || (row->per_thread && !per_thread))
			continue;
		if (*ret_status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
			*ret_status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		if (row->since <= version && better(row, best))
			best = row;
	}
	if (best)
		*ret_status = CU_GET_PROC_ADDRESS_SUCCESS;
	return best;
}

static int look_up(const char *symbol, void **ret_address, int version, unsigned long long flags,
	int *ret_status)
{
	if (!symbol || !ret_address || flags & ~(unsigned long long)ALL_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_address = NULL;
	if (version > script.version)
		return CUDA_ERROR_INVALID_VALUE;
	const struct entry_row *row =
		search(symbol, version, (flags & PER_THREAD_STREAM) != 0, ret_status);
	if (!row)
		return CUDA_ERROR_NOT_FOUND;
	*ret_address = row->address;
	return CUDA_SUCCESS;
}

int sim_cuGetProcAddress(
	const char *symbol, void **ret_address, int version, unsigned long long flags)
{
	int status;

	return look_up(symbol, ret_address, version, flags, &status);
}

/* With somewhere to put the status, a symbol that is not there is an answer, not an error. */
int sim_cuGetProcAddress_v2(const char *symbol, void **ret_address, int version,
	unsigned long long flags, int *ret_status)
{
	int status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	int r = look_up(symbol, ret_address, version, flags, &status);

	if (!ret_status)
		return r;
	*ret_status = status;
	return r == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : r;
}
