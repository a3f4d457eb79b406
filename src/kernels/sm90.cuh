/* The PTX of kernels for tensor cores, most of it for Hopper.  The emulator has a second
 * implementation of each function. */
#pragma once

#include "gemm.cuh" /* tensor_map */

typedef unsigned u32;
typedef unsigned long long u64;

#define DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]

static __device__ __forceinline__ u32 shared_address(const void *at)
{
	return (u32)__cvta_generic_to_shared(at);
}

static __device__ __forceinline__ u32 cluster_rank(void)
{
	u32 rank;
	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	return rank;
}

static __device__ __forceinline__ void cluster_arrive(void)
{
	asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait(void)
{
	asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* Writes to the same place of another block's shared memory. */
static __device__ __forceinline__ void cluster_store(float *at, unsigned rank, float v)
{
	asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; st.shared::cluster.f32 [a], %2;}" ::"r"(
			     shared_address(at)),
		"r"(rank), "f"(v)
		: "memory");
}

/* The same, without a wait: it comes with 4 bytes that the barrier of that block expects. */
static __device__ __forceinline__ void cluster_send(float *at, unsigned rank, float v, u32 barrier)
{
	asm volatile("{.reg .b32 a, b; mapa.shared::cluster.u32 a, %0, %1; mapa.shared::cluster.u32 b, %3, %1; "
		     "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [a], %2, [b];}" ::"r"(shared_address(at)),
		"r"(rank), "r"(__float_as_uint(v)), "r"(barrier)
		: "memory");
}

/* Four neighbours from that place of another block's shared memory. */
static __device__ __forceinline__ void cluster_load(u32 at, unsigned rank, float *v)
{
	asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %4, %5; ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [a];}"
		     : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
		     : "r"(at), "r"(rank)
		     : "memory");
}

/* The following lets a launch begin before the one before it has ended. */

static __device__ __forceinline__ void launch_next(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Until that has ended, and what it wrote is there. */
static __device__ __forceinline__ void launch_wait(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* One thread of a warp. */
static __device__ __forceinline__ bool elect_one(void)
{
	u32 is;
	asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(is));
	return is != 0;
}

/* A named barrier: sync waits for so many threads, arrive counts as one of them and goes on. */
static __device__ __forceinline__ void named_sync(int id, int threads)
{
	asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ void named_arrive(int id, int threads)
{
	asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ void mbarrier_init(u32 at, u32 count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

static __device__ __forceinline__ void mbarrier_fence(void)
{
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and waits for that many bytes of copies. */
static __device__ __forceinline__ void mbarrier_expect(u32 at, u32 bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(u32 at, u32 rank)
{
	asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [a];}" ::"r"(
			     at),
		"r"(rank)
		: "memory");
}

/* Waits for the end of a phase of that parity.  A trap here would make ptxas give up the register budget. */
static __device__ __forceinline__ void mbarrier_wait(u32 at, u32 parity)
{
	u32 done;
	do
		asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
			     : "=r"(done)
			     : "r"(at), "r"(parity)
			     : "memory");
	while (!done);
}

/* The same where other blocks of the cluster wrote. */
static __device__ __forceinline__ void mbarrier_wait_cluster(u32 at, u32 parity)
{
	u32 done;
	do
		asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
			     "selp.u32 %0, 1, 0, p;}"
			     : "=r"(done)
			     : "r"(at), "r"(parity)
			     : "memory");
	while (!done);
}

/* Adjacent bytes, a multiple of 16. */
static __device__ __forceinline__ void bulk_load(u32 to, const void *from, u32 bytes, u32 barrier)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
		"l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
		: "memory");
}

/* The same to memory, for tma_wait_read() and tma_wait(). */
static __device__ __forceinline__ void bulk_store(void *to, u32 from, u32 bytes)
{
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
		"r"(from), "r"(bytes)
		: "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

static __device__ __forceinline__ void tma_prefetch(const tensor_map &map)
{
	asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

static __device__ __forceinline__ void tma_load(u32 to, const tensor_map &map, int x, int y, u32 barrier)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
		     "[%4];" ::"r"(to),
		"l"(&map), "r"(x), "r"(y), "r"(barrier)
		: "memory");
}

/* The same of what is read once: the L2 keeps it for the shortest time. */
static __device__ __forceinline__ void tma_load_once(u32 to, const tensor_map &map, int x, int y, u32 barrier)
{
	asm volatile("{.reg .b64 first; createpolicy.fractional.L2::evict_first.b64 first, 1.0;"
		     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
		     "[%0], [%1, {%2, %3}], [%4], first;}" ::"r"(to),
		"l"(&map), "r"(x), "r"(y), "r"(barrier)
		: "memory");
}

/* To the same place of each block of the mask. */
static __device__ __forceinline__ void tma_load_all(u32 to, const tensor_map &map, int x, int y, u32 barrier, unsigned mask)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
		     "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
		"l"(&map), "r"(x), "r"(y), "r"(barrier), "h"((unsigned short)mask)
		: "memory");
}

/* The same of a tensor of three dimensions, x, taps and y: one tap of it. */
static __device__ __forceinline__ void tma_load_tap(u32 to, const tensor_map &map, int x, int tap, int y, u32 barrier)
{
	asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
		     "[%5];" ::"r"(to),
		"l"(&map), "r"(x), "r"(tap), "r"(y), "r"(barrier)
		: "memory");
}

static __device__ __forceinline__ void tma_load_tap_all(
	u32 to, const tensor_map &map, int x, int tap, int y, u32 barrier, unsigned mask)
{
	asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
		     "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
		"l"(&map), "r"(x), "r"(tap), "r"(y), "r"(barrier), "h"((unsigned short)mask)
		: "memory");
}

/* Channels from `channel` on of pixels of NHWC images, from (x, y) of `image` on, each moved by (right, down). */
static __device__ __forceinline__ void tma_load_pixels(
	u32 to, const tensor_map &map, int channel, int x, int y, int image, int right, int down, u32 barrier)
{
	asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
		     "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
		"l"(&map), "r"(channel), "r"(x), "r"(y), "r"(image), "r"(barrier), "h"((unsigned short)right),
		"h"((unsigned short)down)
		: "memory");
}

static __device__ __forceinline__ void tma_store(u32 from, const tensor_map &map, int x, int y)
{
	asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(from),
		"r"(x), "r"(y)
		: "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* The same to one tap of a tensor of three dimensions. */
static __device__ __forceinline__ void tma_store_tap(u32 from, const tensor_map &map, int x, int tap, int y)
{
	asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
		"r"(from), "r"(x), "r"(tap), "r"(y)
		: "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* The same to pixels of NHWC images, from (x, y) of `image` on. */
static __device__ __forceinline__ void tma_store_pixels(u32 from, const tensor_map &map, int channel, int x, int y, int image)
{
	asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
			     &map),
		"r"(from), "r"(channel), "r"(x), "r"(y), "r"(image)
		: "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Until at most N of this thread's stores still read shared memory. */
template <int N> static __device__ __forceinline__ void tma_wait_read(void)
{
	asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

static __device__ __forceinline__ void tma_wait(void)
{
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Makes the threads' writes to shared memory visible to the copy engine. */
static __device__ __forceinline__ void fence_async(void)
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* 16 bytes, of which `bytes` are read and the rest is 0. */
static __device__ __forceinline__ void cp_async(u32 to, const void *from, int bytes)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes)
		     : "memory");
}

static __device__ __forceinline__ void cp_commit(void)
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most N of this thread's groups are on their way. */
template <int N> static __device__ __forceinline__ void cp_wait(void)
{
	asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

template <int N> static __device__ __forceinline__ void registers_more(void)
{
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> static __device__ __forceinline__ void registers_less(void)
{
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

static __device__ __forceinline__ void wgmma_fence(void)
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> static __device__ __forceinline__ void wgmma_wait(void)
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

static __device__ __forceinline__ void stmatrix(u32 at, const u32 (&v)[4])
{
	asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]), "r"(v[1]),
		"r"(v[2]), "r"(v[3])
		: "memory");
}

/* The lower half of a word. */
static __device__ __forceinline__ void store_pair(u32 at, u32 v)
{
	asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"((unsigned short)v) : "memory");
}

static __device__ __forceinline__ void store_float(u32 at, float v)
{
	asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}

/* Two neighbours. */
static __device__ __forceinline__ void store_floats(u32 at, const float *v)
{
	asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(v[0]), "f"(v[1]) : "memory");
}

static __device__ __forceinline__ void load_floats(u32 at, float *v)
{
	asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "r"(at) : "memory");
}

static __device__ __forceinline__ void load_four(u32 at, float *v)
{
	asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
		     : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
		     : "r"(at)
		     : "memory");
}

static __device__ __forceinline__ void ldmatrix(u32 at, u32 (&v)[4])
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
		     : "r"(at)
		     : "memory");
}

static __device__ __forceinline__ float fast_tanh(float x)
{
	float y;
	asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
