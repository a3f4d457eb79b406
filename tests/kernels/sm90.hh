/* What src/kernels/sm90.cuh says in PTX, for the emulator.
 *
 * Barriers in shared memory count arrivals and bytes, and a wait tells only one phase from the next, as on the GPU.  Copies
 * come at a random later time and in any order.  A product reads its operands when it is begun or when it is waited for,
 * whichever is worse that time: what reads too early, or writes into a stage that is in use, gives a wrong result.  Who
 * waits for what never comes ends the program. */
#pragma once

#include "emulate.h"

#include "element.cuh"

#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <vector>

typedef unsigned u32;
typedef unsigned long long u64;

#define __grid_constant__

enum { SHARED_MOST = 232448 };
static char emulated_shared;

/* Whether a case is wrong.  A control ends with the first that is. */
static inline int wrong(int bad)
{
#ifdef CONTROL
	if (bad)
		exit(1);
#endif
	return bad != 0;
}

static inline char *shared_at(u32 at)
{
	if (at >= SHARED_MOST)
		abort();
	return (char *)emulate_shared(&emulated_shared, SHARED_MOST) + at;
}

static inline char *shared_of(u32 at, unsigned rank)
{
	return (char *)emulate_remote(shared_at(at), rank);
}

static inline void cluster_store(float *at, unsigned rank, float v)
{
	*(float *)emulate_remote(at, rank) = v;
}

static inline void cluster_load(u32 at, unsigned rank, float *v)
{
	memcpy(v, shared_of(at, rank), 16);
}

/* What the launch before has written is there once a thread has waited for it: the test says how. */
static std::function<void()> emulated_launch_before;

static inline void launch_next(void)
{
}

static inline void launch_wait(void)
{
	if (emulated_launch_before)
		emulated_launch_before();
}

static inline bool elect_one(void)
{
	return emulate_lane() == 0;
}

struct mbarrier {
	u32 phase, count, left;
	long bytes;
};
/* By block and place, of the cluster that runs. */
static std::map<std::pair<unsigned, u32>, mbarrier> emulated_mbarriers;
struct named_barrier {
	int arrived, turn;
};
static std::map<std::pair<unsigned, int>, named_barrier> emulated_named;

static inline void mbarrier_step(mbarrier &b)
{
	if (b.left || b.bytes)
		return;
	b.phase++;
	b.left = b.count;
	emulate_notify();
}

static inline void mbarrier_init(u32 at, u32 count)
{
	emulated_mbarriers[{cluster_rank(), at}] = {0, count, count, 0};
}

static inline void mbarrier_fence(void)
{
}

static inline void mbarrier_down(unsigned rank, u32 at, u32 bytes)
{
	mbarrier &b = emulated_mbarriers.at({rank, at});
	if (!b.left) {
		fprintf(stderr, "emulate: more arrive at a barrier than it counts\n");
		abort();
	}
	b.left--;
	b.bytes += bytes;
	mbarrier_step(b);
}

static inline void mbarrier_expect(u32 at, u32 bytes)
{
	mbarrier_down(cluster_rank(), at, bytes);
}

static inline void mbarrier_arrive(u32 at, u32 rank)
{
	mbarrier_down(rank, at, 0);
}

static inline void mbarrier_wait(u32 at, u32 parity)
{
	const mbarrier *b = &emulated_mbarriers.at({cluster_rank(), at});
	emulate_wait([=] { return b->phase % 2 != parity; });
}

static inline void mbarrier_wait_cluster(u32 at, u32 parity)
{
	mbarrier_wait(at, parity);
}

static inline void mbarrier_bytes(unsigned rank, u32 at, long bytes)
{
	mbarrier &b = emulated_mbarriers.at({rank, at});
	b.bytes -= bytes;
	mbarrier_step(b);
}

static inline void cluster_send(float *at, unsigned rank, float v, u32 barrier)
{
	float *to = (float *)emulate_remote(at, rank);
	emulate_later([=] {
		*to = v;
		mbarrier_bytes(rank, barrier, sizeof v);
	});
}

static inline void named_step(named_barrier &b, int threads)
{
	if (++b.arrived < threads)
		return;
	b.arrived = 0;
	b.turn++;
	emulate_notify();
}

static inline void named_arrive(int id, int threads)
{
	named_step(emulated_named[{cluster_rank(), id}], threads);
}

static inline void named_sync(int id, int threads)
{
	named_barrier *b = &emulated_named[{cluster_rank(), id}];
	const int turn = b->turn;
	named_step(*b, threads);
	emulate_wait([=] { return b->turn != turn; });
}

/* What the test puts into a struct tensor_map: a matrix of 2-byte elements, x along its rows. */
struct emulated_map {
	unsigned short *at;
	int width, height, box_x, box_y;
	long pitch; /* elements */
	int swizzle; /* bytes of a row, 128 or 64 */
	int taps;
	long tap_pitch;
	int bytes; /* 1: elements are bytes, of which two are one here, but not where the device counts them; 4: they are
		    * words, of which one is two here */
};

/* The same for images of NHWC: where the first tap of the first and of the last pixel is, and how many come at a time. */
struct emulated_image {
	unsigned short *at;
	int channels, width, height, images;
	int first_x, first_y, last_x, last_y, step_x, step_y;
	int pixels;
	long pixel_pitch, line_pitch; /* elements; 0: they are adjacent */
	int bytes; /* as above: 1 */
	int row;   /* bytes of a pixel's channels, 128 or 64; 0: 128 */
	long image_pitch;
};

static inline u32 swizzled(u32 at, int bytes = 128)
{
	return bytes == 128 ? at ^ (at >> 7 & 7) << 4 : bytes == 64 ? at ^ (at >> 7 & 3) << 4 : at;
}

template <typename F> static void each_of_box(const emulated_map &m, u32 at, int x, int y, F f)
{
	x = m.bytes == 1 ? x / 2 : m.bytes == 4 ? x * 2 : x;
	for (int j = 0; j < m.box_y; j++)
		for (int i = 0; i < m.box_x; i++) {
			const u32 plain = at + (u32)(j * m.box_x + i) * 2;
			const bool inside = x + i >= 0 && x + i < m.width && y + j >= 0 && y + j < m.height;
			f(swizzled(plain, m.swizzle), inside ? m.at + (y + j) * m.pitch + x + i : nullptr);
		}
}

template <typename M> static emulated_map map_of(const M &map)
{
	emulated_map m;
	memcpy(&m, &map, sizeof m);
	return m;
}

static inline void tma_load_to(u32 to, const emulated_map &m, int x, int y, u32 barrier, unsigned rank)
{
	char *memory = shared_of(0, rank);
	emulate_later([=] {
		each_of_box(m, to, x, y, [&](u32 at, const unsigned short *from) {
			const unsigned short v = from ? *from : 0;
			memcpy(memory + at, &v, sizeof v);
		});
		mbarrier_bytes(rank, barrier, (long)m.box_x * m.box_y * 2);
	});
}

static inline void bulk_load(u32 to, const void *from, u32 bytes, u32 barrier)
{
	char *memory = shared_at(to);
	const unsigned rank = cluster_rank();
	if ((uintptr_t)from % 16 || bytes % 16 || to % 16)
		abort();
	emulate_later([=] {
		memcpy(memory, from, bytes);
		mbarrier_bytes(rank, barrier, bytes);
	});
}

template <typename M> static void tma_prefetch(const M &)
{
}

template <typename M> static void tma_load(u32 to, const M &map, int x, int y, u32 barrier)
{
	tma_load_to(to, map_of(map), x, y, barrier, cluster_rank());
}

template <typename M> static void tma_load_once(u32 to, const M &map, int x, int y, u32 barrier)
{
	tma_load(to, map, x, y, barrier);
}

template <typename M> static void tma_load_all(u32 to, const M &map, int x, int y, u32 barrier, unsigned mask)
{
	for (unsigned rank = 0; rank < 16; rank++)
		if (mask >> rank & 1)
			tma_load_to(to, map_of(map), x, y, barrier, rank);
}

/* Outside of the taps: all 0. */
template <typename M> static void tma_load_tap_all(u32 to, const M &map, int x, int tap, int y, u32 barrier, unsigned mask)
{
	emulated_map m = map_of(map);
	m.at += tap * m.tap_pitch;
	m.width = tap >= 0 && tap < m.taps ? m.width : 0;
	for (unsigned rank = 0; rank < 16; rank++)
		if (mask >> rank & 1)
			tma_load_to(to, m, x, y, barrier, rank);
}

template <typename M> static void tma_load_tap(u32 to, const M &map, int x, int tap, int y, u32 barrier)
{
	tma_load_tap_all(to, map, x, tap, y, barrier, 1u << cluster_rank());
}

/* f(at, element) for pixels of 64 channels, under the swizzle; NULL is outside.  Behind the last of a line comes the first of
 * the next one. */
template <typename F> static void each_pixel(const emulated_image &m, u32 at, int channel, int x, int y, int n, int right, int down, F f)
{
	const int row = m.row ? m.row : 128;
	const long pixel = m.pixel_pitch ? m.pixel_pitch : m.channels;
	const long line = m.line_pitch ? m.line_pitch : m.width * pixel;
	const long image = m.image_pitch ? m.image_pitch : m.height * line;
	for (int i = 0; i < m.pixels; i++) {
		const int px = x + right, py = y + down;
		const bool inside = n < m.images && px >= 0 && px < m.width && py >= 0 && py < m.height;
		for (int c = 0; c < row / 2; c++)
			f(swizzled(at + (u32)(i * row + c * 2), row),
				inside && channel + c < m.channels ? m.at + n * image + py * line + px * pixel + channel + c : nullptr);
		x += m.step_x;
		if (x > m.last_x) {
			x = m.first_x;
			y += m.step_y;
		}
		if (y > m.last_y) {
			y = m.first_y;
			n++;
		}
	}
}

template <typename M>
static void tma_load_pixels(u32 to, const M &map, int channel, int x, int y, int image, int right, int down, u32 barrier)
{
	emulated_image m;
	memcpy(&m, &map, sizeof m);
	channel = m.bytes == 1 ? channel / 2 : channel;
	const unsigned rank = cluster_rank();
	char *memory = shared_of(0, rank);
	emulate_later([=] {
		each_pixel(m, to, channel, x, y, image, right, down, [&](u32 at, const unsigned short *from) {
			const unsigned short v = from ? *from : 0;
			memcpy(memory + at, &v, sizeof v);
		});
		mbarrier_bytes(rank, barrier, (long)m.pixels * (m.row ? m.row : 128));
	});
}

/* Of a thread, in order: whether each has read what it stores. */
static std::map<std::pair<unsigned, unsigned>, std::vector<bool>> emulated_stores;

template <typename F> static void store_later(F f)
{
	std::vector<bool> *stores = &emulated_stores[{cluster_rank(), threadIdx.x}];
	const size_t number = stores->size();
	stores->push_back(false);
	emulate_later([=] {
		f();
		(*stores)[number] = true;
	});
}

static inline void tma_store_map(u32 from, const emulated_map &m, int x, int y)
{
	const char *memory = shared_at(0);
	store_later([=] {
		/* 16 bytes at a time, also beyond the end of a row: that was seen on an H100. */
		emulated_map wide = m;
		wide.width = (m.width + 7) / 8 * 8;
		each_of_box(wide, from, x, y, [&](u32 at, unsigned short *to) {
			if (to)
				memcpy(to, memory + at, sizeof *to);
		});
	});
}

static inline void bulk_store(void *to, u32 from, u32 bytes)
{
	const char *memory = shared_at(from);
	if ((uintptr_t)to % 16 || bytes % 16 || from % 16)
		abort();
	store_later([=] { memcpy(to, memory, bytes); });
}

template <typename M> static void tma_store_pixels(u32 from, const M &map, int channel, int x, int y, int image)
{
	const char *memory = shared_at(0);
	emulated_image m;
	memcpy(&m, &map, sizeof m);
	/* A box beyond the image was an illegal instruction on an H200.  No other one than all of it was tried. */
	if (m.first_x || m.first_y || m.last_x != m.width - 1 || m.last_y != m.height - 1) {
		fprintf(stderr, "a store of pixels has a box that is not the image\n");
		abort();
	}
	store_later([=] {
		each_pixel(m, from, channel, x, y, image, 0, 0, [&](u32 at, unsigned short *to) {
			if (to)
				memcpy(to, memory + at, sizeof *to);
		});
	});
}

template <typename M> static void tma_store(u32 from, const M &map, int x, int y)
{
	tma_store_map(from, map_of(map), x, y);
}

template <typename M> static void tma_store_tap(u32 from, const M &map, int x, int tap, int y)
{
	emulated_map m = map_of(map);
	m.at += tap * m.tap_pitch;
	m.width = tap >= 0 && tap < m.taps ? m.width : 0;
	tma_store_map(from, m, x, y);
}

template <int N> static void tma_wait_read(void)
{
	const std::vector<bool> *stores = &emulated_stores[{cluster_rank(), threadIdx.x}];
	for (size_t i = 0; i + N < stores->size(); i++)
		emulate_wait([=] { return (*stores)[i]; });
}

static inline void tma_wait(void)
{
	tma_wait_read<0>();
}

static inline void fence_async(void)
{
}

/* How many copies of each group of a thread have come, and of how many. */
struct copy_groups {
	std::vector<int> come, all;
};
static std::map<std::pair<unsigned, unsigned>, copy_groups> emulated_copies;

static inline copy_groups &own_copies(void)
{
	copy_groups &c = emulated_copies[{blockIdx.x, threadIdx.x}];
	if (c.all.empty()) {
		c.all.push_back(0);
		c.come.push_back(0);
	}
	return c;
}

static inline void cp_async(u32 to, const void *from, int bytes)
{
	copy_groups *c = &own_copies();
	const size_t group = c->all.size() - 1;
	char *memory = shared_at(to);
	if ((uintptr_t)from % 16 || to % 16 || bytes < 0 || bytes > 16)
		abort();
	c->all[group]++;
	emulate_later([=] {
		memset(memory, 0, 16);
		memcpy(memory, from, (size_t)bytes);
		c->come[group]++;
	});
}

static inline void cp_commit(void)
{
	copy_groups &c = own_copies();
	c.all.push_back(0);
	c.come.push_back(0);
}

template <int N> static void cp_wait(void)
{
	const copy_groups *c = &own_copies();
	for (size_t i = 0; i + 1 + N < c->all.size(); i++)
		emulate_wait([=] { return c->come[i] == c->all[i]; });
}

/* mma.sync of a program: 16 x 8 over 32 bytes of K.  T is what the registers hold. */
template <typename T> struct emulated_mma {
	typedef typename sum_of<T>::type S;
	static T element(const u32 (&registers)[32][6], int lane, int which, int in)
	{
		T v;
		memcpy(&v, (const char *)&registers[lane][which] + in * (int)sizeof v, sizeof v);
		return v;
	}
	static void multiply(S (&d)[4], const u32 *a, const u32 *b)
	{
		static u32 all[32][32][6]; /* by warp and lane: a, then b */
		u32(&own)[32][6] = all[threadIdx.x / 32];
		const int lane = emulate_lane(), each = 4 / (int)sizeof(T);
		memcpy(own[lane], a, 16);
		memcpy(own[lane] + 4, b, 8);
		__syncwarp();
		for (int i = 0; i < 4; i++)
			for (int k = 0; k < 8 * each; k++) {
				const int q = k / each % 4, half = k / (4 * each), n = lane % 4 * 2 + i % 2;
				d[i] += T::get(element(own, lane / 4 * 4 + q, i / 2 + 2 * half, k % each)) *
					T::get(element(own, n * 4 + q, 4 + half, k % each));
			}
		__syncwarp();
	}
};

template <int N> static void registers_more(void)
{
}

template <int N> static void registers_less(void)
{
}

/* Products are a warpgroup's: a group of them ends for all its threads at a time, once all have begun it. */
struct product_group {
	int begun; /* by how many threads */
	std::vector<std::function<void()>> work;
};
struct warpgroup {
	std::vector<product_group> groups;
	unsigned committed[128]; /* by thread */
};
static std::map<std::pair<unsigned, unsigned>, warpgroup> emulated_warpgroups;
static bool emulate_eager; /* products read their operands when they are begun */

static inline warpgroup &own_warpgroup(void)
{
	return emulated_warpgroups[{cluster_rank(), threadIdx.x / 128}];
}

/* The one that this thread fills. */
static inline product_group &open_group(warpgroup &w)
{
	const unsigned i = w.committed[threadIdx.x % 128];
	if (w.groups.size() <= i)
		w.groups.resize(i + 1);
	return w.groups[i];
}

static inline void wgmma_fence(void)
{
}

static inline void wgmma_commit(void)
{
	warpgroup &w = own_warpgroup();
	open_group(w).begun++;
	w.committed[threadIdx.x % 128]++;
	emulate_notify();
}

template <int N> static void wgmma_wait(void)
{
	warpgroup *w = &own_warpgroup();
	const unsigned committed = w->committed[threadIdx.x % 128];
	for (unsigned i = 0; i + N < committed; i++) {
		emulate_wait([=] { return w->groups[i].begun == 128; });
		for (auto &work : w->groups[i].work)
			work();
		w->groups[i].work.clear();
	}
}

/* An element of an operand by its descriptor; `rows`: K stands as rows. */
template <typename T> T operand(const char *memory, u64 descriptor, bool rows, int mn, int k)
{
	const u32 start = (u32)(descriptor & 0x3fff) << 4, apart = (u32)(descriptor >> 16 & 0x3fff) << 4;
	const int row = descriptor >> 62 == 1 ? 128 : 64, atom = (int)(descriptor >> 32 & 0x3fff) << 4;
	const u32 at = rows ? start + (u32)(mn / 64) * apart + (u32)(k / 8 * 1024 + k % 8 * 128 + mn % 64 * 2)
			    : start + (u32)(mn / 8 * atom + mn % 8 * row + k * (int)sizeof(T));
	T v;
	memcpy(&v, memory + swizzled(at, row), sizeof v);
	return v;
}

/* `struct wgmma` of a program, for one width. */
template <typename T, int N, int TA, int TB> struct emulated_wgmma {
	typedef typename sum_of<T>::type S;
	static void multiply(S (&d)[N / 2], u64 a, u64 b, int keep)
	{
		const char *memory = shared_at(0);
		S *to = d;
		const int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x % 128 / 32 * 16 + lane / 4;
		const auto work = [=] {
			enum { K = 32 / (int)sizeof(T) };
			S rows[2][K], column[K];
			for (int k = 0; k < 2 * K; k++)
				rows[k / K][k % K] = T::get(operand<T>(memory, a, TA, row + k / K * 8, k % K));
			for (int j = 0; j < N / 4; j++) {
				for (int k = 0; k < K; k++)
					column[k] = T::get(operand<T>(memory, b, TB, j / 2 * 8 + lane % 4 * 2 + j % 2, k));
				for (int half = 0; half < 2; half++) {
					S &sum = to[j / 2 * 4 + half * 2 + j % 2];
					sum = keep ? sum : 0;
					for (int k = 0; k < K; k++)
						sum += rows[half][k] * column[k];
				}
			}
		};
		if (emulate_eager)
			work();
		else
			open_group(own_warpgroup()).work.push_back(work);
	}
};

/* Matrix i has its rows' addresses in lanes 8i to 8i + 7; lane l has two elements of row l / 4 of each. */
static inline void stmatrix(u32 at, const u32 (&v)[4])
{
	for (int i = 0; i < 4; i++) {
		const u32 row = emulate_shuffle(at, i * 8 + emulate_lane() / 4);
		memcpy(shared_at(row) + emulate_lane() % 4 * 4, &v[i], 4);
	}
	__syncwarp();
}

static inline void store_pair(u32 at, u32 v)
{
	memcpy(shared_at(at), &v, 2);
}

static inline void store_float(u32 at, float v)
{
	memcpy(shared_at(at), &v, 4);
}

static inline void store_floats(u32 at, const float *v)
{
	memcpy(shared_at(at), v, 8);
}

static inline void load_floats(u32 at, float *v)
{
	memcpy(v, shared_at(at), 8);
}

static inline void load_four(u32 at, float *v)
{
	memcpy(v, shared_at(at), 16);
}

static inline void ldmatrix(u32 at, u32 (&v)[4])
{
	for (int i = 0; i < 4; i++) {
		const u32 row = emulate_shuffle(at, i * 8 + emulate_lane() / 4);
		memcpy(&v[i], shared_at(row) + emulate_lane() % 4 * 4, 4);
	}
	__syncwarp();
}

static inline float fast_tanh(float x)
{
	return tanhf(x);
}

/* Forgets what the blocks before have left. */
static inline void sm90_begin(void)
{
	emulated_mbarriers.clear();
	emulated_named.clear();
	emulated_stores.clear();
	emulated_copies.clear();
	emulated_warpgroups.clear();
}
