/*
 * Entering and leaving the driver, and the few functions that work before cuInit() and in
 * a forked child: those run without the driver lock, which a thread that did not survive
 * the fork may hold for ever.
 */
#include "entry/entry.h"
#include "entry/script.h"
#include "driver/gpu_file.h"
#include "driver/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state { FRESH, READY, FORKED };

static atomic_int state;
static _Thread_local bool per_thread_call;
static _Thread_local bool in_callback;

static bool is_free(int id)
{
	switch (id) {
	case ID_cuInit:
	case ID_cuDriverGetVersion:
	case ID_cuGetErrorName:
	case ID_cuGetErrorString:
	case ID_cuGetProcAddress:
	case ID_cuGetProcAddress_v2:
	case ID_cuGetExportTable:
		return true;
	}
	return false;
}

int entry_enter(int id, bool per_thread)
{
	script_load();
	log_count(id);
	observe_call();
	if (!is_free(id) && atomic_load_explicit(&state, memory_order_acquire) != READY)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!is_free(id) && in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	int fault = script_fault(id);
	if (fault)
		return fault;
	if (!is_free(id))
		sim_lock();
	per_thread_call = per_thread;
	return ENTRY_GO;
}

int entry_leave(int id, int result)
{
	per_thread_call = false;
	if (!is_free(id))
		sim_unlock();
	return result;
}

bool entry_per_thread(void)
{
	return per_thread_call;
}

void entry_callback_begin(void)
{
	in_callback = true;
}

void entry_callback_end(void)
{
	in_callback = false;
}

int entry_find(const char *name)
{
	for (int i = 0; i < SIM_FUNCTIONS; i++)
		if (strcmp(entry_table[i].name, name) == 0)
			return i;
	return -1;
}

static void after_fork(void)
{
	if (atomic_load(&state) == READY)
		atomic_store(&state, FORKED);
}

static void start(void)
{
	if (!gpu_attach())
		return;
	pthread_atfork(NULL, NULL, after_fork);
	atomic_store_explicit(&state, READY, memory_order_release);
}

int sim_cuInit(unsigned int flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (script_error()) {
		fprintf(stderr, "weir sim: WEIR_SIM is not understood: %s\n", script_error());
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (atomic_load(&state) == FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (script.devices == 0)
		return CUDA_ERROR_NO_DEVICE;
	pthread_once(&once, start);
	return atomic_load(&state) == READY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int sim_cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = script.version;
	return CUDA_SUCCESS;
}

int sim_cuGetErrorName(int code, char **ret_name)
{
	if (!ret_name)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_name = (char *)entry_error_name(code);
	return *ret_name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int sim_cuGetErrorString(int code, char **ret_text)
{
	if (!ret_text)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_text = (char *)entry_error_text(code);
	return *ret_text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/*
 * The private tables between NVIDIA's libraries and NVIDIA's driver are theirs: every id is
 * unknown here, and stays so.
 */
int sim_cuGetExportTable(void **ret_table, void *id)
{
	return CUDA_ERROR_NOT_FOUND;
}
