/*
 * Streams and events of the runtime API.
 */
#include "rt.h"

RT_PASS(cudaStreamCreate, cuStreamCreate, (void **stream), stream, 0)
RT_PASS(cudaStreamCreateWithFlags, cuStreamCreate, (void **stream, unsigned flags), stream, flags)
RT_PASS(cudaStreamCreateWithPriority, cuStreamCreateWithPriority,
	(void **stream, unsigned flags, int priority), stream, flags, priority)
RT_PASS(cudaStreamDestroy, cuStreamDestroy_v2, (void *stream), stream)
RT_PASS_PAIR(cudaStreamSynchronize, cuStreamSynchronize, (void *stream), stream)
RT_PASS_PAIR(cudaStreamQuery, cuStreamQuery, (void *stream), stream)
RT_PASS_PAIR(cudaStreamWaitEvent, cuStreamWaitEvent, (void *stream, void *event, unsigned flags),
	stream, event, flags)
RT_PASS_PAIR(cudaStreamAddCallback, cuStreamAddCallback,
	(void *stream, void *callback, void *user, unsigned flags), stream, callback, user, flags)
RT_PASS_PAIR(cudaLaunchHostFunc, cuLaunchHostFunc, (void *stream, void *function, void *user),
	stream, function, user)
RT_PASS_PAIR(cudaStreamGetFlags, cuStreamGetFlags, (void *stream, unsigned *flags), stream, flags)
RT_PASS_PAIR(
	cudaStreamGetPriority, cuStreamGetPriority, (void *stream, int *priority), stream, priority)
RT_PASS_PAIR(cudaStreamGetId, cuStreamGetId, (void *stream, unsigned long long *id), stream, id)
RT_PASS_PAIR(cudaStreamGetDevice, cuStreamGetDevice, (void *stream, int *device), stream, device)
RT_PASS_PAIR(cudaStreamAttachMemAsync, cuStreamAttachMemAsync,
	(void *stream, void *address, size_t size, unsigned flags), stream, (uint64_t)address, size,
	flags)

RT_PASS(cudaEventCreate, cuEventCreate, (void **event), event, 0)
RT_PASS(cudaEventCreateWithFlags, cuEventCreate, (void **event, unsigned flags), event, flags)
RT_PASS(cudaEventDestroy, cuEventDestroy_v2, (void *event), event)
RT_PASS_PAIR(cudaEventRecord, cuEventRecord, (void *event, void *stream), event, stream)
RT_PASS_PAIR(cudaEventRecordWithFlags, cuEventRecordWithFlags,
	(void *event, void *stream, unsigned flags), event, stream, flags)
RT_PASS(cudaEventQuery, cuEventQuery, (void *event), event)
RT_PASS(cudaEventSynchronize, cuEventSynchronize, (void *event), event)
RT_PASS(cudaEventElapsedTime, cuEventElapsedTime_v2, (float *ms, void *start, void *end), ms, start,
	end)
