/*
 * These functions stand in front of CUPTI's own and hear other clients, such as PyTorch's profiler.
 * While no device times are recorded they only remember the client's calls. Otherwise we call the
 * client's callbacks ourselves (cupti_shared.h), and its disabling does not end our collection.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "hook/time/cupti.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "hook/core/resolve.h"
#include "hook/time/cupti_proxy.h"

#define EXPORT          __attribute__((visibility("default")))
#define NOT_INITIALIZED 15 /* CUPTI_ERROR_NOT_INITIALIZED */

#define BUFFER_PER_THREAD 9 /* CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER */

#define CUPTI(name, ...) ((int (*)(__VA_ARGS__))resolve_tool(name))

/* Once a process, into the trace. */
static void message_once(const char *text)
{
	static _Atomic uint32_t done;
	if (!atomic_exchange_explicit(&done, 1, memory_order_relaxed))
		meta_message(text);
}

EXPORT int cuptiActivityRegisterCallbacks(share_request *request, share_complete *complete)
{
	int (*real)(void *, void *) = CUPTI("cuptiActivityRegisterCallbacks", void *, void *);
	if (!real)
		return NOT_INITIALIZED;
	if (!request || !complete || !cupti_is_collecting()) {
		const int result = real((void *)request, (void *)complete);
		if (!result)
			share_callbacks(request, complete);
		return result;
	}
	const bool clock_kept = cupti_share() == 0;
	share_callbacks(request, complete);
	message_once(
		clock_kept
			? "another tool in this program uses CUPTI as well: it gets the records "
			  "that it asks for"
			: "another tool in this program uses CUPTI as well: it gets the records "
			  "that it asks for, dated by CLOCK_MONOTONIC, as CUPTI keeps to that clock");
	return 0;
}

EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void))
{
	int (*real)(void *) = CUPTI("cuptiActivityRegisterTimestampCallback", void *);
	const bool collecting = cupti_is_collecting();
	if (collecting && !share_is_clock(now))
		cupti_flush();
	const int result = real ? real((void *)now) : NOT_INITIALIZED;
	if (!result)
		share_clock(now, collecting);
	return result;
}

/* CUPTI has to be done before anything is enabled, and can't be any more. */
EXPORT int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
	int (*real)(int, size_t *, void *) =
		CUPTI("cuptiActivitySetAttribute", int, size_t *, void *);
	if (attribute == BUFFER_PER_THREAD && bytes && value && cupti_is_collecting())
		return 0;
	return real ? real(attribute, bytes, value) : NOT_INITIALIZED;
}

static int enabled(int result, int kind)
{
	if (result)
		return result;
	share_enable(kind, true);
	if (cupti_is_collecting())
		share_prepare();
	return 0;
}

EXPORT int cuptiActivityEnable(int kind)
{
	int (*real)(int) = CUPTI("cuptiActivityEnable", int);
	return enabled(real ? real(kind) : NOT_INITIALIZED, kind);
}

EXPORT int cuptiActivityEnableAndDump(int kind)
{
	int (*real)(int) = CUPTI("cuptiActivityEnableAndDump", int);
	return enabled(real ? real(kind) : NOT_INITIALIZED, kind);
}

EXPORT int cuptiActivityDisable(int kind)
{
	int (*real)(int) = CUPTI("cuptiActivityDisable", int);
	const bool ours = cupti_is_collecting() && cupti_records(kind);
	const int result = ours ? 0 : real ? real(kind) : NOT_INITIALIZED;
	if (!result)
		share_enable(kind, false);
	return result;
}

EXPORT int cuptiActivityEnableContext(void *context, int kind)
{
	int (*real)(void *, int) = CUPTI("cuptiActivityEnableContext", void *, int);
	return enabled(real ? real(context, kind) : NOT_INITIALIZED, kind);
}

EXPORT int cuptiActivityDisableContext(void *context, int kind)
{
	int (*real)(void *, int) = CUPTI("cuptiActivityDisableContext", void *, int);
	const bool ours = cupti_is_collecting() && cupti_records(kind);
	return ours ? 0 : real ? real(context, kind) : NOT_INITIALIZED;
}

EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret_dropped)
{
	int (*real)(void *, uint32_t, size_t *) =
		CUPTI("cuptiActivityGetNumDroppedRecords", void *, uint32_t, size_t *);
	if (!real)
		return NOT_INITIALIZED;
	if (!cupti_is_collecting() || !ret_dropped)
		return real(context, stream, ret_dropped);
	*ret_dropped = share_take_dropped();
	return 0;
}

static int flush(int (*real)(uint32_t), uint32_t forced)
{
	share_begin_flush();
	cupti_hand_on_waiting();
	const int result = real(forced);
	share_end_flush();
	return result;
}

EXPORT int cuptiActivityFlushAll(uint32_t forced)
{
	int (*real)(uint32_t) = CUPTI("cuptiActivityFlushAll", uint32_t);
	return real ? flush(real, forced) : NOT_INITIALIZED;
}

static void disable_all(void)
{
	for (int kind = 0; kind < SHARE_KINDS; kind++)
		if (share_is_enabled(kind))
			cuptiActivityDisable(kind);
}

/* Ends CUPTI for everybody: then for the other client alone. */
EXPORT int cuptiFinalize(void)
{
	int (*real)(void) = (int (*)(void))resolve_tool("cuptiFinalize");
	int (*real_flush)(uint32_t) = CUPTI("cuptiActivityFlushAll", uint32_t);
	if (!real)
		return NOT_INITIALIZED;
	if (!cupti_is_collecting()) {
		share_forget();
		return real();
	}
	disable_all();
	const int result = real_flush ? flush(real_flush, 0) : 0;
	share_forget();
	return result;
}

static const struct {
	const char *name;
	void *ours;
} functions[] = {
	{ "cuptiActivityRegisterCallbacks", (void *)cuptiActivityRegisterCallbacks },
	{ "cuptiActivityRegisterTimestampCallback",
		(void *)cuptiActivityRegisterTimestampCallback },
	{ "cuptiActivityEnable", (void *)cuptiActivityEnable },
	{ "cuptiActivityEnableAndDump", (void *)cuptiActivityEnableAndDump },
	{ "cuptiActivityDisable", (void *)cuptiActivityDisable },
	{ "cuptiActivityEnableContext", (void *)cuptiActivityEnableContext },
	{ "cuptiActivityDisableContext", (void *)cuptiActivityDisableContext },
	{ "cuptiActivityGetNumDroppedRecords", (void *)cuptiActivityGetNumDroppedRecords },
	{ "cuptiActivitySetAttribute", (void *)cuptiActivitySetAttribute },
	{ "cuptiActivityFlushAll", (void *)cuptiActivityFlushAll },
	{ "cuptiFinalize", (void *)cuptiFinalize },
};

void *cupti_proxy_answer(const char *name, void *real)
{
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name))
			return resolve_tool(name) == real ? functions[i].ours : real;
	return real;
}
