/*
 * Every way to have device memory, under a quota (WEIR=sched,memory=BYTES,share=DIR) and without.
 *
 * A case prints the same as long as the quota is not reached; the driver says how much is in use,
 * which alone tells what the device has, and under a quota what is left of that. There the slot of
 * this process must say the same.
 */
#include "cu.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cuda_types.h"
#include "share/segment.h"

#define MIB ((size_t)1 << 20)

#define MORE_FUNCTIONS(X)                                                                          \
	X(cuCtxCreate_v2, (void **, unsigned, int))                                                \
	X(cuCtxDestroy_v2, (void *))                                                               \
	X(cuDevicePrimaryCtxReset_v2, (int))                                                       \
	X(cuDevicePrimaryCtxRelease_v2, (int))                                                     \
	X(cuDeviceTotalMem_v2, (size_t *, int))                                                    \
	X(cuStreamCreate, (void **, unsigned))                                                     \
	X(cuStreamSynchronize, (void *))                                                           \
	X(cuStreamBeginCapture_v2, (void *, int))                                                  \
	X(cuStreamEndCapture, (void *, void **))                                                   \
	X(cuMemAlloc, (uint64_t *, unsigned))                                                      \
	X(cuMemAllocPitch_v2, (uint64_t *, size_t *, size_t, size_t, unsigned))                    \
	X(cuMemAllocManaged, (uint64_t *, size_t, unsigned))                                       \
	X(cuMemAllocAsync, (uint64_t *, size_t, void *))                                           \
	X(cuMemAllocAsync_ptsz, (uint64_t *, size_t, void *))                                      \
	X(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *))                           \
	X(cuMemFreeAsync, (uint64_t, void *))                                                      \
	X(cuMemFreeAsync_ptsz, (uint64_t, void *))                                                 \
	X(cuMemPoolCreate, (void **, void *))                                                      \
	X(cuMemPoolDestroy, (void *))                                                              \
	X(cuArrayCreate_v2, (void **, void *))                                                     \
	X(cuArray3DCreate_v2, (void **, void *))                                                   \
	X(cuMipmappedArrayCreate, (void **, void *, unsigned))                                     \
	X(cuArrayDestroy, (void *))                                                                \
	X(cuImportExternalMemory, (void **, void *))                                               \
	X(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, uint64_t))                   \
	X(cuMemCreate, (uint64_t *, size_t, void *, uint64_t))                                     \
	X(cuMemRelease, (uint64_t))                                                                \
	X(cuMemRetainAllocationHandle, (uint64_t *, uint64_t))                                     \
	X(cuMemMap, (uint64_t, size_t, size_t, uint64_t, uint64_t))                                \
	X(cuMemUnmap, (uint64_t, size_t))                                                          \
	X(cuMemExportToShareableHandle, (void *, uint64_t, int, uint64_t))                         \
	X(cuMemImportFromShareableHandle, (uint64_t *, void *, int))                               \
	X(cuCtxSetLimit, (int, size_t))                                                            \
	X(cuGraphCreate, (void **, unsigned))                                                      \
	X(cuGraphAddMemAllocNode, (void **, void *, void *, size_t, void *))                       \
	X(cuGraphAddNode, (void **, void *, void *, size_t, void *))                               \
	X(cuGraphInstantiateWithFlags, (void **, void *, uint64_t))                                \
	X(cuGraphLaunch, (void *, void *))                                                         \
	X(cuDeviceGraphMemTrim, (int))                                                             \
	X(cuIpcGetMemHandle, (void *, uint64_t))
MORE_FUNCTIONS(CU_DECLARE)

static struct share_file *shared; /* NULL: the program is alone */
static _Atomic int bad;
static size_t own_bytes; /* that contexts take, of what is in use */

static void open_shared(void)
{
	char directory[SHARE_PATH];
	const char *why = NULL;
	const char *words = getenv("WEIR"), *at = words ? strstr(words, "share=") : NULL;
	if (!at)
		return;
	snprintf(directory, sizeof directory, "%.*s", (int)strcspn(at + 6, ","), at + 6);
	shared = share_open(directory, &why);
	cu_need(!shared, why);
}

/* That of this process; there is none before its first call about memory. */
static struct share_slot *own(void)
{
	static struct share_slot none;
	for (uint32_t i = 0; shared && i < SHARE_SLOTS; i++)
		if (shared->slots[i].who.state == SLOT_LIVE &&
			shared->slots[i].who.pid == (uint32_t)getpid())
			return &shared->slots[i];
	return &none;
}

static size_t in_use(void)
{
	size_t left = 0, all = 0;
	cu_need(cuMemGetInfo_v2(&left, &all), "cuMemGetInfo");
	return all - left;
}

static void check(const char *what, size_t bytes)
{
	const size_t used = in_use();
	const struct share_memory *m = &own()->memory;
	if (used != bytes + own_bytes && ++bad)
		printf("%s: %zu bytes in use, not %zu\n", what, used - own_bytes, bytes);
	if (shared && m->used != bytes && ++bad)
		printf("%s: the slot says %zu bytes, not %zu\n", what, (size_t)m->used, bytes);
	if (m->asked && ++bad)
		printf("%s: %zu bytes are still asked for\n", what, (size_t)m->asked);
}

static void say(const char *what, int result, size_t mib)
{
	printf("%s: %d\n", what, result);
	check(what, mib * MIB);
}

static void blocks(void)
{
	uint64_t p = 0, q = 0;
	size_t pitch = 0;
	say("cuMemAlloc_v2", cuMemAlloc_v2(&p, 64 * MIB), 64);
	say("a second", cuMemAlloc_v2(&q, 16 * MIB), 80);
	say("cuMemFree_v2", cuMemFree_v2(p), 16);
	say("twice", cuMemFree_v2(p), 16);
	say("a part", cuMemFree_v2(q + 512), 16);
	say("the second", cuMemFree_v2(q), 0);
	say("nothing", cuMemFree_v2(0), 0);
	say("no bytes", cuMemAlloc_v2(&p, 0), 0);
	say("nowhere", cuMemAlloc_v2(NULL, MIB), 0);
	say("32 bits", cuMemAlloc(&p, 64 * MIB), 0);
	say("cuMemAllocPitch_v2", cuMemAllocPitch_v2(&p, &pitch, MIB, 64, 4), 64);
	say("freed", cuMemFree_v2(p), 0);
	say("narrow rows", cuMemAllocPitch_v2(&p, &pitch, 4, 131072, 4), 64);
	say("freed", cuMemFree_v2(p), 0);
	say("rows of nothing", cuMemAllocPitch_v2(&p, &pitch, MIB, 64, 5), 0);
	say("cuMemAllocManaged", cuMemAllocManaged(&p, 64 * MIB, 1), 64);
	if (shared && own()->memory.lazy != 64 * MIB && ++bad)
		puts("managed memory may be elsewhere");
	say("freed", cuMemFree_v2(p), 0);
	if (own()->memory.lazy && ++bad)
		puts("something may still be elsewhere");
}

static void arrays(void)
{
	void *array = NULL;
	struct cu_array_desc flat = { 4096, 4096, 0x20, 1 };
	struct cu_array3d_desc deep = { 4096, 1024, 4, 1, 4, 0 };
	say("cuArrayCreate_v2", cuArrayCreate_v2(&array, &flat), 64);
	say("destroyed", cuArrayDestroy(array), 0);
	say("cuArray3DCreate_v2", cuArray3DCreate_v2(&array, &deep), 64);
	say("destroyed", cuArrayDestroy(array), 0);
	say("twice", cuArrayDestroy(array), 0);
	flat.channels = 3;
	say("a wrong one", cuArrayCreate_v2(&array, &flat), 0);
	say("cuMipmappedArrayCreate", cuMipmappedArrayCreate(&array, &deep, 3), 0);
}

static void external(void)
{
	void *memory = NULL;
	uint64_t descriptor[16] = { 1, 0, 0, 64 * MIB };
	say("cuImportExternalMemory", cuImportExternalMemory(&memory, descriptor), 0);
}

static struct cu_mem_pool_props pool_props(void)
{
	return (struct cu_mem_pool_props){ .type = 1, .location = { 1, 0 } };
}

static void pools(void)
{
	uint64_t p = 0, q = 0;
	void *pool = NULL, *s = NULL;
	struct cu_mem_pool_props props = pool_props();
	cu_need(cuStreamCreate(&s, 1), "cuStreamCreate");
	say("cuMemAllocAsync", cuMemAllocAsync(&p, 64 * MIB, s), 64);
	say("cuMemAllocAsync_ptsz", cuMemAllocAsync_ptsz(&q, 16 * MIB, s), 80);
	cuMemFreeAsync(p, s);
	say("cuMemFreeAsync", cuStreamSynchronize(s), 16);
	printf("cuMemFreeAsync_ptsz: %d\n", cuMemFreeAsync_ptsz(q, s));
	say("synchronised", cuStreamSynchronize(s), 0);
	cuMemPoolCreate(&pool, &props);
	say("cuMemAllocFromPoolAsync", cuMemAllocFromPoolAsync(&p, 64 * MIB, pool, s), 64);
	say("cuMemPoolDestroy", cuMemPoolDestroy(pool), 64);
	say("from a pool that was destroyed", cuMemAllocFromPoolAsync(&q, 64 * MIB, pool, s), 64);
	say("cuMemFree_v2", cuMemFree_v2(p), 0);
	say("a block", cuMemAlloc_v2(&p, 64 * MIB), 64);
	cuMemFreeAsync(p, s);
	say("freed in the order of the stream", cuStreamSynchronize(s), 0);
	say("twice", cuMemFreeAsync(p, s), 0);
}

static uint64_t create(size_t mib)
{
	uint64_t handle = 0;
	struct cu_mem_allocation_prop p = { .type = 1, .location = { 1, 0 } };
	printf("cuMemCreate: %d\n", cuMemCreate(&handle, mib * MIB, &p, 0));
	return handle;
}

static void physical(void)
{
	uint64_t at = 0, again = 0, h = create(64), other;
	check("cuMemCreate", 64 * MIB);
	cu_need(cuMemAddressReserve(&at, 256 * MIB, 0, 0, 0), "cuMemAddressReserve");
	say("cuMemMap", cuMemMap(at, 64 * MIB, 0, h, 0), 64);
	say("a second mapping", cuMemMap(at + 128 * MIB, 64 * MIB, 0, h, 0), 64);
	say("on top of it", cuMemMap(at, 64 * MIB, 0, h, 0), 64);
	say("cuMemRelease", cuMemRelease(h), 64);
	say("twice", cuMemRelease(h), 64);
	say("from the middle", cuMemRetainAllocationHandle(&again, at + 34 * MIB), 64);
	say("unmapped once", cuMemUnmap(at, 64 * MIB), 64);
	other = create(16);
	check("a second handle", 80 * MIB);
	say("mapped before it", cuMemMap(at + 112 * MIB, 16 * MIB, 0, other, 0), 80);
	say("its handle goes", cuMemRelease(other), 80);
	say("both unmapped", cuMemUnmap(at + 112 * MIB, 80 * MIB), 64);
	say("unmapped twice", cuMemUnmap(at + 128 * MIB, 64 * MIB), 64);
	say("the last handle", cuMemRelease(again), 0);
}

static void graphs(void)
{
	void *g = NULL, *node = NULL, *exec = NULL, *s = NULL, *captured = NULL;
	uint64_t p = 0;
	struct cu_mem_alloc_node_params params = { .pool = pool_props(), .bytes = 64 * MIB };
	cu_need(cuStreamCreate(&s, 1), "cuStreamCreate");
	cu_need(cuGraphCreate(&g, 0), "cuGraphCreate");
	say("cuGraphAddMemAllocNode", cuGraphAddMemAllocNode(&node, g, NULL, 0, &params), 64);
	say("instantiated", cuGraphInstantiateWithFlags(&exec, g, 0), 64);
	say("cuGraphLaunch", cuGraphLaunch(exec, s), 64);
	say("synchronised", cuStreamSynchronize(s), 64);
	say("freed", cuMemFree_v2(params.address), 0);
	say("cuDeviceGraphMemTrim", cuDeviceGraphMemTrim(0), 0);
	say("capture begins", cuStreamBeginCapture_v2(s, 2), 0);
	say("captured", cuMemAllocAsync(&p, 64 * MIB, s), 64);
	say("capture ends", cuStreamEndCapture(s, &captured), 64);
	cuMemFreeAsync(p, s);
	cuStreamSynchronize(s);
	say("freed in the order of the stream, and trimmed", cuDeviceGraphMemTrim(0), 0);
}

/* Some memory ends with a context and some does not: as on an H200. */
static void contexts(void)
{
	void *second = NULL;
	uint64_t p = 0, async = 0, mine = 0, h;
	const size_t each = own_bytes;
	say("a block", cuMemAlloc_v2(&mine, 32 * MIB), 32);
	cu_need(cuCtxCreate_v2(&second, 0, 0), "cuCtxCreate");
	own_bytes = 2 * each;
	say("in a second context", cuMemAlloc_v2(&p, 64 * MIB), 96);
	say("of a pool", cuMemAllocAsync(&async, 16 * MIB, NULL), 112);
	h = create(8);
	check("physical memory", 120 * MIB);
	cu_need(cuCtxDestroy_v2(second), "cuCtxDestroy");
	own_bytes = each;
	cuCtxSetCurrent(cu_context);
	say("the second has ended, a block of it", cuMemFree_v2(p), 56);
	cu_need(cuCtxCreate_v2(&second, 0, 0), "cuCtxCreate");
	own_bytes = 2 * each;
	say("in another", cuMemAlloc_v2(&p, 64 * MIB), 120);
	own_bytes = each;
	say("the first is reset", cuDevicePrimaryCtxReset_v2(0), 88);
	say("and given back", cuDevicePrimaryCtxRelease_v2(0), 88);
	cuMemFreeAsync(async, NULL);
	say("of the pool", cuCtxSynchronize(), 72);
	say("physical memory", cuMemRelease(h), 64);
	say("the second is left", cuMemFree_v2(p), 0);
}

static uint64_t given[64];

static void *free_all(void *unused)
{
	cuCtxSetCurrent(cu_context);
	for (int i = 0; i < 64; i++)
		bad += cuMemFree_v2(given[i]) != 0;
	return NULL;
}

static void elsewhere(void)
{
	pthread_t t;
	for (int i = 0; i < 64; i++)
		cu_need(cuMemAlloc_v2(&given[i], 2 * MIB), "cuMemAlloc");
	check("of this thread", 128 * MIB);
	pthread_create(&t, NULL, free_all, NULL);
	pthread_join(t, NULL);
	check("freed by another", 0);
}

static void *come_and_go(void *unused)
{
	uint64_t p[8] = { 0 };
	cuCtxSetCurrent(cu_context);
	for (int i = 0; i < 2000; i++)
		bad += cuMemAlloc_v2(&p[i % 8], (size_t)(1 + i % 3) << 14) != 0 ||
		       (i % 8 == 7 && (cuMemFree_v2(p[0]) || cuMemFree_v2(p[1]) ||
					      cuMemFree_v2(p[2]) || cuMemFree_v2(p[3]) ||
					      cuMemFree_v2(p[4]) || cuMemFree_v2(p[5]) ||
					      cuMemFree_v2(p[6]) || cuMemFree_v2(p[7])));
	return NULL;
}

static void crowd(void)
{
	pthread_t t[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, come_and_go, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	check("after eight threads", 0);
	printf("%d failed\n", bad);
}

/* Memory of another process's is that process's: its handle here counts for nothing. */
static void ipc(void)
{
	uint64_t p = 0;
	char handle[64];
	say("a block", cuMemAlloc_v2(&p, 64 * MIB), 64);
	say("cuIpcGetMemHandle", cuIpcGetMemHandle(handle, p), 64);
	say("freed", cuMemFree_v2(p), 0);
}

/* The quota is 256 MiB. */
static void beyond(void)
{
	uint64_t p = 0, q = 0, h = 0;
	size_t pitch = 0, all = 0;
	void *x = NULL, *s = NULL, *g = NULL, *pool = NULL;
	struct cu_mem_allocation_prop vmm = { .type = 1, .location = { 1, 0 } };
	struct cu_array_desc flat = { 32768, 4096, 0x20, 1 };
	struct cu_array3d_desc deep = { 4096, 4096, 8, 0x20, 1, 0 };
	struct cu_mem_pool_props props = pool_props();
	struct cu_mem_alloc_node_params params = { .pool = props, .bytes = 320 * MIB };
	struct cu_graph_node_params node = { .type = 10, .u.alloc = params };
	uint64_t descriptor[16] = { 1, 0, 0, 320 * MIB };
	cu_need(cuStreamCreate(&s, 1), "cuStreamCreate");
	cu_need(cuGraphCreate(&g, 0), "cuGraphCreate");
	cu_need(cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
	say("half", cuMemAlloc_v2(&p, 128 * MIB), 128);
	say("cuMemAlloc_v2", cuMemAlloc_v2(&q, 192 * MIB), 128);
	say("all of it", cuMemAlloc_v2(&q, SIZE_MAX), 128);
	say("cuMemAlloc", cuMemAlloc(&q, 192 * MIB), 128);
	say("cuMemAllocPitch_v2", cuMemAllocPitch_v2(&q, &pitch, MIB, 192, 4), 128);
	say("beyond everything", cuMemAllocPitch_v2(&q, &pitch, SIZE_MAX, SIZE_MAX, 4), 128);
	say("cuMemAllocManaged", cuMemAllocManaged(&q, 192 * MIB, 1), 128);
	say("cuMemAllocAsync", cuMemAllocAsync(&q, 192 * MIB, s), 128);
	say("cuMemAllocAsync_ptsz", cuMemAllocAsync_ptsz(&q, 192 * MIB, s), 128);
	say("cuMemAllocFromPoolAsync", cuMemAllocFromPoolAsync(&q, 192 * MIB, pool, s), 128);
	say("cuArrayCreate_v2", cuArrayCreate_v2(&x, &flat), 128);
	say("cuArray3DCreate_v2", cuArray3DCreate_v2(&x, &deep), 128);
	say("cuMipmappedArrayCreate", cuMipmappedArrayCreate(&x, &deep, 3), 128);
	say("cuImportExternalMemory", cuImportExternalMemory(&x, descriptor), 128);
	say("cuMemCreate", cuMemCreate(&h, 192 * MIB, &vmm, 0), 128);
	say("cuGraphAddMemAllocNode", cuGraphAddMemAllocNode(&x, g, NULL, 0, &params), 128);
	say("cuGraphAddNode", cuGraphAddNode(&x, g, NULL, 0, &node), 128);
	cuStreamBeginCapture_v2(s, 2);
	say("captured", cuMemAllocAsync(&q, 192 * MIB, s), 128);
	say("a launch goes on", cuLaunchKernel(cu_kernel, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), 128);
	say("and the capture ends", cuStreamEndCapture(s, &x), 128);
	say("the other half", cuMemAlloc_v2(&q, 128 * MIB), 256);
	say("one byte", cuMemAlloc_v2(&h, 1), 256);
	say("freed", cuMemFree_v2(q), 128);
	say("cuDeviceTotalMem_v2", cuDeviceTotalMem_v2(&all, 0), 128);
	printf("%zu MiB in all\n", all / MIB);
	if (own()->memory.refused != 18 && ++bad)
		printf("%u refused\n", own()->memory.refused);
	if (own()->memory.peak != 256 * MIB && ++bad)
		printf("peak %zu\n", (size_t)own()->memory.peak);
}

/* Two nodes, each of which would fit alone. */
static void nodes(void)
{
	void *g = NULL, *node = NULL;
	struct cu_mem_alloc_node_params params = { .pool = pool_props(), .bytes = 160 * MIB };
	cu_need(cuGraphCreate(&g, 0), "cuGraphCreate");
	say("one", cuGraphAddMemAllocNode(&node, g, NULL, 0, &params), 160);
	say("another", cuGraphAddMemAllocNode(&node, g, NULL, 0, &params), 160);
}

/* A process, its child and what the child becomes have the quota together. */
static int child_takes(size_t mib, const char *then)
{
	int status = 0;
	fflush(stdout);
	const pid_t child = fork();
	if (!child) {
		uint64_t p = 0;
		cu_start();
		const int result = cuMemAlloc_v2(&p, mib * MIB);
		if (then && !result)
			execl("/proc/self/exe", "quota", then, NULL);
		if (then)
			raise(SIGKILL);
		_exit(result);
	}
	waitpid(child, &status, 0);
	return status;
}

static void family(void)
{
	uint64_t p = 0;
	/* None of this process's before: a driver that was begun is not for children. */
	printf("a child takes all: %x\n", (unsigned)child_takes(256, NULL));
	printf("and after it another: %x\n", (unsigned)child_takes(256, NULL));
	printf("one takes and becomes another: %x\n", (unsigned)child_takes(256, "becomes"));
	int pipes[2];
	char c;
	cu_need(pipe(pipes), "pipe");
	fflush(stdout);
	const pid_t child = fork();
	if (!child) {
		cu_start();
		cu_need(cuMemAlloc_v2(&p, 128 * MIB), "cuMemAlloc");
		cu_need(write(pipes[1], "x", 1) != 1, "write");
		pause();
		_exit(0);
	}
	cu_need(read(pipes[0], &c, 1) != 1, "read");
	printf("beside one that has half: %x\n", (unsigned)child_takes(192, NULL));
	printf("what is left: %x\n", (unsigned)child_takes(128, NULL));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("it was killed: %x\n", (unsigned)child_takes(256, NULL));
	cu_start();
	say("and here", cuMemAlloc_v2(&p, 256 * MIB), 256);
}

/* The memory of a process before it became another, which may never come to CUDA, is nobody's. */
static void becomes(void)
{
	printf("and it again: %x\n", (unsigned)child_takes(256, NULL));
}

static int create_for_others(uint64_t *ret_handle)
{
	struct cu_mem_allocation_prop p = { .type = 1, .handle_types = 1, .location = { 1, 0 } };
	return cuMemCreate(ret_handle, 64 * MIB, &p, 0);
}

static int export_and_release(int *ret_fd)
{
	uint64_t handle;
	const int result = create_for_others(&handle);
	if (result)
		return result;
	cu_need(cuMemExportToShareableHandle(ret_fd, handle, 1, 0), "export");
	cu_need(cuMemRelease(handle), "release");
	return 0;
}

static int import_and_map(int fd, uint64_t *ret_handle, uint64_t *ret_at)
{
	cu_need(cuMemImportFromShareableHandle(ret_handle, (void *)(intptr_t)fd, 1), "import");
	cu_need(cuMemAddressReserve(ret_at, 64 * MIB, 0, 0, 0), "reserve");
	return cuMemMap(*ret_at, 64 * MIB, 0, *ret_handle, 0);
}

static void say_used(const char *what, int result)
{
	printf("%s: %d, %zu MiB used\n", what, result, (size_t)own()->memory.used / MIB);
}

/* The memory is there for as long as somebody has the descriptor. */
static void descriptors(void)
{
	int fd[8], n = 0, result;
	uint64_t handle, at;
	while (n < 8 && !(result = export_and_release(&fd[n])))
		n++;
	printf("%d exported\n", n);
	say_used("one more", result);
	say_used("mapped again", import_and_map(fd[0], &handle, &at));
}

enum { GIVERS = 3 };

static void give(int said, int go)
{
	int fd;
	char c;
	cu_start();
	*(void **)&cuMemExportToShareableHandle = dlsym(cu_library, "cuMemExportToShareableHandle");
	*(void **)&cuMemCreate = dlsym(cu_library, "cuMemCreate");
	*(void **)&cuMemRelease = dlsym(cu_library, "cuMemRelease");
	cu_need(export_and_release(&fd), "cuMemCreate");
	cu_need(write(said, &fd, sizeof fd) != sizeof fd || read(go, &c, 1) != 0, "the taker");
	_exit(0);
}

static int taken_from(pid_t child, int fd)
{
	const int process = (int)syscall(SYS_pidfd_open, child, 0);
	const int mine = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	cu_need(mine < 0, "pidfd_getfd");
	return mine;
}

/* Children give memory away and end: it is its taker's. */
static void given_away(void)
{
	int said[GIVERS][2], go[GIVERS][2], fd[GIVERS], taken[GIVERS], result = 0;
	uint64_t block, handle[GIVERS], at[GIVERS];
	pid_t child[GIVERS];
	for (int i = 0; i < GIVERS; i++) {
		cu_need(pipe(said[i]) || pipe(go[i]), "pipe");
		child[i] = fork();
		if (!child[i]) {
			close(go[i][1]);
			give(said[i][1], go[i][0]);
		}
		close(go[i][0]);
		cu_need(read(said[i][0], &fd[i], sizeof fd[i]) != sizeof fd[i], "read");
		taken[i] = taken_from(child[i], fd[i]);
		close(go[i][1]);
		waitpid(child[i], NULL, 0);
	}
	cu_start();
	say_used("half of it", cuMemAlloc_v2(&block, 128 * MIB));
	for (int i = 0; i < GIVERS; i++) {
		result = import_and_map(taken[i], &handle[i], &at[i]);
		say_used("mapped", result);
	}
	cu_need(cuMemUnmap(at[0], 64 * MIB), "unmap");
	say_used("a handle is left", 0);
	cu_need(cuMemRelease(handle[0]), "release");
	say_used("none is left", 0);
	say_used("mapped then", cuMemMap(at[2], 64 * MIB, 0, handle[2], 0));
}

enum { STACK, PRINTF, HEAP };

static void limits(void)
{
	uint64_t block;
	say_used("a heap of 8 GiB", cuCtxSetLimit(HEAP, (size_t)8 << 30));
	say_used("of 136 MiB", cuCtxSetLimit(HEAP, 136 * MIB));
	say_used("another half", cuMemAlloc_v2(&block, 128 * MIB));
	say_used("more to print", cuCtxSetLimit(PRINTF, 64 * MIB));
	say_used("larger stacks", cuCtxSetLimit(STACK, (size_t)512 << 10));
	say_used("a smaller heap", cuCtxSetLimit(HEAP, 72 * MIB));
	say_used("more to print", cuCtxSetLimit(PRINTF, 33 * MIB));
	say_used("the first heap", cuCtxSetLimit(HEAP, 8 * MIB));
	cu_need(cuDevicePrimaryCtxReset_v2(0), "reset");
	say_used("without the context", 0);
}

static pthread_barrier_t start;

static void *first_allocation(void *ret_result)
{
	uint64_t p;
	cuCtxSetCurrent(cu_context);
	pthread_barrier_wait(&start);
	*(int *)ret_result = cuMemAlloc_v2(&p, 64 * MIB);
	return NULL;
}

/* Its first allocations, by 16 threads together: four fit. */
static void together(void)
{
	pthread_t t[16];
	int result[16], granted = 0, refused = 0;
	cu_start();
	pthread_barrier_init(&start, NULL, 16);
	for (int i = 0; i < 16; i++)
		pthread_create(&t[i], NULL, first_allocation, &result[i]);
	for (int i = 0; i < 16; i++) {
		pthread_join(t[i], NULL);
		granted += result[i] == 0;
		refused += result[i] == 2;
	}
	printf("%d granted, %d refused\n", granted, refused);
	check("counted", granted * 64 * MIB);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool later; /* it comes to CUDA itself */
} cases[] = {
	{ "blocks", blocks, false },
	{ "arrays", arrays, false },
	{ "external", external, false },
	{ "pools", pools, false },
	{ "physical", physical, false },
	{ "graphs", graphs, false },
	{ "contexts", contexts, false },
	{ "elsewhere", elsewhere, false },
	{ "crowd", crowd, false },
	{ "ipc", ipc, false },
	{ "beyond", beyond, false },
	{ "nodes", nodes, false },
	{ "descriptors", descriptors, false },
	{ "given_away", given_away, true },
	{ "limits", limits, false },
	{ "together", together, true },
	{ "family", family, true },
	{ "becomes", becomes, true },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		open_shared();
		if (!cases[i].later)
			cu_start();
		void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define MORE_RESOLVE(name, parameters)                                                             \
	*(void **)&name = dlsym(library, #name);                                                   \
	cu_need(!name, #name);
		MORE_FUNCTIONS(MORE_RESOLVE)
		own_bytes = cases[i].later ? 0 : in_use();
		cases[i].run();
		return bad > 0;
	}
	return 2;
}
