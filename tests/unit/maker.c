/* Trace files for tests: see maker.h. */
#include "maker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_TICKS 1000000u

const char maker_schema[] =
	"1 driver device call cuInit(uint Flags)\n"
	"2 driver memory alloc:p=0:n=1:m=device cuMemAlloc_v2(out CUdeviceptr dptr, size_t bytesize)\n"
	"3 driver memory free:p=0:m=device cuMemFree_v2(CUdeviceptr dptr)\n"
	"4 driver launch launch cuLaunchKernel(CUfunction f, uint gridDimX, uint gridDimY, "
	"uint gridDimZ, uint blockDimX, uint blockDimY, uint blockDimZ, uint sharedMemBytes, "
	"CUstream hStream, void** kernelParams, void** extra)\n"
	"5 driver launch graphlaunch cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)\n"
	"6 driver copy copy:n=2:d=HtoD cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, void* srcHost, "
	"size_t ByteCount, CUstream hStream)\n"
	"7 driver copy copy:n=2:d=DtoH cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, "
	"size_t ByteCount, CUstream hStream)\n"
	"8 driver set set:n=2x4 cuMemsetD32Async(CUdeviceptr dstDevice, uint ui, size_t N, "
	"CUstream hStream)\n"
	"9 driver sync call cuStreamSynchronize(CUstream hStream)\n"
	"10 driver query call cuEventQuery(CUevent hEvent)\n"
	"11 driver event call cuEventRecord(CUevent hEvent, CUstream hStream)\n"
	"12 driver module call cuModuleLoad(out CUmodule module, str fname)\n"
	"13 driver module call cuModuleGetFunction(out CUfunction hfunc, CUmodule hmod, str name)\n"
	"14 driver memory alloc:p=0:n=1:m=host cuMemHostAlloc(out ptr pp, size_t bytesize, "
	"uint Flags)\n"
	"15 driver memory free:p=0:m=host cuMemFreeHost(void* p)\n"
	"16 driver memory alloc:p=0:n=1:m=vmm cuMemCreate(out CUmemGenericAllocationHandle handle, "
	"size_t size, CUmemAllocationProp* prop, uint64 flags)\n"
	"17 driver memory free:p=0:m=vmm cuMemRelease(CUmemGenericAllocationHandle handle)\n"
	"18 driver memory alloc:p=0:n=1:m=managed cuMemAllocManaged(out CUdeviceptr dptr, "
	"size_t bytesize, uint flags)\n"
	"19 driver launch launchex cuLaunchKernelEx(CUlaunchConfig* config, CUfunction f, "
	"void** kernelParams, void** extra)\n"
	"20 driver context call cuCtxSetLimit(CUlimit limit, size_t value)\n"
	"21 driver copy copy:n=1:d=any cuMemcpy2D_v2(CUDA_MEMCPY2D* pCopy, "
	"size_t bytes=copy2d_bytes(pCopy))\n"
	"22 driver context call cuCtxCreate_v2(out CUcontext pctx, uint flags, CUdevice dev)\n"
	"23 driver other call cuProfilerInitialize(str configFile, str outputFile, "
	"CUoutput_mode outputMode)\n"
	"100 runtime memory call cudaMalloc(out ptr devPtr, size_t size)\n"
	"101 runtime launch rtlaunch cudaLaunchKernel(void* func, dim3 gridDim, dim3 blockDim, "
	"void** args, size_t sharedMem, cudaStream_t stream)\n"
	"102 runtime copy call cudaMemcpyAsync(void* dst, void* src, size_t count, "
	"cudaMemcpyKind kind, cudaStream_t stream)\n"
	"103 runtime sync call cudaStreamSynchronize(cudaStream_t stream)\n"
	"104 runtime query status cudaGetLastError()\n"
	"105 runtime memory call cudaMalloc3D(cudaPitchedPtr* pitchedDevPtr, cudaExtent extent)\n"
	"type ptr ptr 8\n"
	"type str str 8\n"
	"type int int 4\n"
	"type CUdevice int 4\n"
	"type uint uint 4\n"
	"type uint64 uint 8\n"
	"type size_t uint 8\n"
	"type dim3 dim3 12\n"
	"type cudaExtent extent 24\n"
	"type CUdeviceptr ptr 8\n"
	"type CUmemGenericAllocationHandle ptr 8\n"
	"type CUcontext ptr 8\n"
	"type CUevent ptr 8\n"
	"type CUfunction ptr 8\n"
	"type CUgraphExec ptr 8\n"
	"type CUmodule ptr 8\n"
	"type CUstream ptr 8\n"
	"type cudaStream_t ptr 8\n"
	"type CUlimit enum 4\n"
	"type CUoutput_mode enum 4\n"
	"type cudaMemcpyKind enum 4\n";

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

static void write_at(struct maker *m, const void *data, size_t bytes, uint64_t at)
{
	need(pwrite(m->fd, data, bytes, (off_t)at) == (ssize_t)bytes, "pwrite");
}

struct maker *maker_new(const char *path, const char *schema, uint32_t chunk_bytes)
{
	struct maker *m = calloc(1, sizeof *m);
	need(m, "calloc");
	unlink(path); /* a file that is cut off and written again is flushed when it is closed */
	m->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	need(m->fd >= 0, path);
	m->chunk_bytes = chunk_bytes;
	m->header = (struct trace_header){
		.magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.header_bytes = TRACE_GRAIN,
		.form = TRACE_RAW,
		.clock = CLOCK_IS_MONOTONIC,
		.launched = 1,
		.next = TRACE_GRAIN,
		.processes = 1,
		.start = { START_TICKS, START_TICKS, 1700000000000000000u },
		.root_pid = 100,
		.host = "testhost",
		.program = "python train.py --epochs 3",
	};
	if (schema)
		maker_chunk(m, CHUNK_SCHEMA, 0, 0, schema, (uint32_t)strlen(schema));
	return m;
}

static uint64_t take(struct maker *m, uint32_t bytes)
{
	const uint64_t at = m->header.next;
	m->header.next += bytes;
	need(ftruncate(m->fd, (off_t)m->header.next) == 0, "ftruncate");
	return at;
}

void maker_chunk(struct maker *m, enum chunk_kind kind, uint32_t pid, uint32_t tid,
	const void *payload, uint32_t bytes)
{
	const uint32_t whole =
		(CHUNK_PAYLOAD + bytes + TRACE_GRAIN - 1) / TRACE_GRAIN * TRACE_GRAIN;
	const struct chunk_header h = { .magic = CHUNK_MAGIC,
		.kind = (uint16_t)kind,
		.state = CHUNK_CLOSED,
		.bytes = whole,
		.used = bytes,
		.pid = pid,
		.tid = tid,
		.process_start = pid,
		.open = m->header.start };
	const uint64_t at = take(m, whole);
	write_at(m, &h, sizeof h, at);
	write_at(m, payload, bytes, at + CHUNK_PAYLOAD);
}

int maker_thread(
	struct maker *m, enum chunk_kind kind, uint32_t pid, uint32_t tid, const char *name)
{
	const int i = m->thread_count++;
	struct maker_thread *t = &m->threads[i];
	need(i < MAKER_THREADS, "threads");
	t->payload = calloc(1, m->chunk_bytes);
	need(t->payload, "calloc");
	t->room = m->chunk_bytes - CHUNK_PAYLOAD;
	t->head = (struct chunk_header){ .magic = CHUNK_MAGIC,
		.kind = (uint16_t)kind,
		.state = CHUNK_OPEN,
		.bytes = m->chunk_bytes,
		.pid = pid,
		.tid = tid,
		.process_start = pid,
		.open = m->header.start };
	snprintf(t->head.thread, sizeof t->head.thread, "%s", name);
	return i;
}

static void flush(struct maker *m, struct maker_thread *t, bool open)
{
	const uint64_t at = take(m, m->chunk_bytes);
	struct chunk_header h = t->head;
	h.state = open ? CHUNK_OPEN : CHUNK_CLOSED;
	if (open)
		h.used = 0;
	write_at(m, &h, sizeof h, at);
	write_at(m, t->payload, t->head.used, at + CHUNK_PAYLOAD);
	t->head.seq++;
	t->head.used = 0;
}

struct record *maker_put(struct maker *m, int thread, struct record head, const uint64_t *args)
{
	struct maker_thread *t = &m->threads[thread];
	const uint32_t bytes = head.words * 8u;
	if (t->head.used + bytes > t->room)
		flush(m, t, false);
	need(bytes <= t->room, "a record longer than a chunk");
	struct record *r = (struct record *)(t->payload + t->head.used);
	memcpy(r, &head, sizeof head);
	if (bytes > sizeof head)
		memcpy(r->arg, args, bytes - sizeof head);
	t->head.used += bytes;
	return r;
}

void maker_meta(struct maker *m, int thread, uint16_t id, uint64_t ticks, int arg_count,
	const uint64_t *args, const void *data, uint32_t bytes, uint32_t aux)
{
	uint64_t words[8192] = { 0 };
	const uint32_t all = (uint32_t)arg_count + (bytes + 7) / 8;
	need(all <= 8192, "meta record");
	if (arg_count)
		memcpy(words, args, (size_t)arg_count * 8);
	if (bytes)
		memcpy(words + arg_count, data, bytes);
	const struct record head = {
		.ticks = ticks, .fn = id, .aux = aux, .words = (uint16_t)(RECORD_WORDS + all)
	};
	maker_put(m, thread, head, words);
}

void maker_name(struct maker *m, int thread, uint64_t ticks, uint64_t handle, const char *name)
{
	const uint64_t args[2] = { handle, 0x1000 };
	const uint32_t n = (uint32_t)strlen(name);
	maker_meta(m, thread, META_KERNEL, ticks, 2, args, name, n, n);
}

void maker_finish(struct maker *m, uint64_t end_ticks, bool open)
{
	for (int i = 0; i < m->thread_count; i++) {
		if (m->threads[i].head.used || m->threads[i].head.next_free)
			flush(m, &m->threads[i], open);
		free(m->threads[i].payload);
	}
	if (!open) {
		m->header.state = TRACE_FINISHED;
		m->header.end = m->header.start;
		m->header.end.ticks = m->header.end.mono_ns = end_ticks;
		m->header.end.real_ns += end_ticks - START_TICKS;
	}
	take(m, 0);
	write_at(m, &m->header, sizeof m->header, 0);
	close(m->fd);
	free(m);
}
