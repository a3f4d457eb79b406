/* The types of elements in the device sources: how each becomes FP32 and what FP32 rounds to.  The members are those of
 * the emulator too, which has no PTX. */
#pragma once

struct f32 {
	static constexpr unsigned LEAST = 0xff800000; /* 4 bytes of -infinity */
	float v;
	static __device__ __forceinline__ float get(f32 e)
	{
		return e.v;
	}
	static __device__ __forceinline__ f32 make(float v)
	{
		return {v};
	}
	/* The numbers that fit into 4 bytes. */
	static __device__ __forceinline__ unsigned word(const float *v)
	{
		unsigned w;
		memcpy(&w, v, sizeof w);
		return w;
	}
	static __device__ __forceinline__ float largest(unsigned w)
	{
		float v;
		memcpy(&v, &w, sizeof v);
		return v;
	}
	static __device__ __forceinline__ unsigned larger(unsigned a, unsigned b)
	{
		const float v = fmaxf(largest(a), largest(b));
		return word(&v);
	}
};

/* The largest of two halves. */
template <typename T> static __device__ __forceinline__ float largest_half(unsigned w)
{
	return fmaxf(T::get({(unsigned short)w}), T::get({(unsigned short)(w >> 16)}));
}

/* The larger one of each half. */
template <typename T> static __device__ __forceinline__ unsigned larger_halves(unsigned a, unsigned b)
{
	const float v[] = {fmaxf(T::get({(unsigned short)a}), T::get({(unsigned short)b})),
		fmaxf(T::get({(unsigned short)(a >> 16)}), T::get({(unsigned short)(b >> 16)}))};
	return T::word(v);
}

/* FP32 in memory, of which the tensor cores read 10 bits of mantissa. */
struct tf32 {
	float v;
	static __device__ __forceinline__ float get(tf32 e)
	{
		unsigned word;
		memcpy(&word, &e.v, sizeof word);
		word &= 0xffffe000;
		memcpy(&e.v, &word, sizeof word);
		return e.v;
	}
};

/* The same as two parts that TF32 holds, one behind the other: see gemm_split.cu. */
struct tf32x3 : tf32 {
};

struct f16 {
	static constexpr unsigned LEAST = 0xfc00fc00;
	unsigned short bits;
	static __device__ __forceinline__ float get(f16 e)
	{
#ifdef __CUDACC_RTC__
		float v;
		asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(e.bits));
		return v;
#else
		_Float16 v;
		memcpy(&v, &e.bits, sizeof v);
		return (float)v;
#endif
	}
	static __device__ __forceinline__ f16 make(float v)
	{
		f16 e;
#ifdef __CUDACC_RTC__
		asm("cvt.rn.f16.f32 %0, %1;" : "=h"(e.bits) : "f"(v));
#else
		const _Float16 h = (_Float16)v;
		memcpy(&e.bits, &h, sizeof h);
#endif
		return e;
	}
	static __device__ __forceinline__ unsigned word(const float *v)
	{
#if defined __CUDACC_RTC__ && __CUDA_ARCH__ >= 800
		unsigned w;
		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(v[1]), "f"(v[0]));
		return w;
#else
		return make(v[0]).bits | (unsigned)make(v[1]).bits << 16;
#endif
	}
	static __device__ __forceinline__ float largest(unsigned w)
	{
		return largest_half<f16>(w);
	}
	static __device__ __forceinline__ unsigned larger(unsigned a, unsigned b)
	{
#if defined __CUDACC_RTC__ && __CUDA_ARCH__ >= 800
		unsigned w;
		asm("max.f16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b));
		return w;
#else
		return larger_halves<f16>(a, b);
#endif
	}
};

/* The upper half of an FP32, rounded to nearest even; NaN keeps its sign and stays NaN. */
struct bf16 {
	static constexpr unsigned LEAST = 0xff80ff80;
	unsigned short bits;
	static __device__ __forceinline__ float get(bf16 e)
	{
		const unsigned word = (unsigned)e.bits << 16;
		float v;
		memcpy(&v, &word, sizeof v);
		return v;
	}
	static __device__ __forceinline__ bf16 make(float v)
	{
		unsigned word;
		memcpy(&word, &v, sizeof word);
		if (v != v)
			return {(unsigned short)(word >> 16 | 0x40)};
		return {(unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16)};
	}
	static __device__ __forceinline__ unsigned word(const float *v)
	{
#if defined __CUDACC_RTC__ && __CUDA_ARCH__ >= 800
		unsigned w;
		asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(v[1]), "f"(v[0]));
		return w;
#else
		return make(v[0]).bits | (unsigned)make(v[1]).bits << 16;
#endif
	}
	static __device__ __forceinline__ float largest(unsigned w)
	{
		return largest_half<bf16>(w);
	}
	static __device__ __forceinline__ unsigned larger(unsigned a, unsigned b)
	{
#if defined __CUDACC_RTC__ && __CUDA_ARCH__ >= 800
		unsigned w;
		asm("max.bf16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b));
		return w;
#else
		return larger_halves<bf16>(a, b);
#endif
	}
};

/* 8 bits with a sign. */
struct s8 {
	signed char v;
	static __device__ __forceinline__ int get(s8 e)
	{
		return e.v;
	}
	/* To the nearest, ties to even, and no further than the type goes. */
	static __device__ __forceinline__ s8 make(float v)
	{
		return {(signed char)rintf(fminf(fmaxf(v, -128), 127))};
	}
	static __device__ __forceinline__ unsigned pair(const float *v)
	{
		return (unsigned char)make(v[0]).v | (unsigned)(unsigned char)make(v[1]).v << 8;
	}
};

/* 4 bits of exponent and 3 of mantissa.  It has no infinity, and one NaN of either sign. */
struct e4m3 {
	unsigned char bits;
	static __device__ __forceinline__ float get(e4m3 e)
	{
		const unsigned word = (e.bits & 0x7f) == 0x7f ? 0x7fc00000 : (e.bits & 0x7fu) << 20;
		float v;
		memcpy(&v, &word, sizeof v);
		v *= 1.329227995784916e36f; /* 2^120: the difference of the exponents' biases */
		return e.bits & 0x80 ? -v : v;
	}
};

/* The type in which products of a type are added up. */
template <typename T> struct sum_of {
	typedef float type;
};

template <> struct sum_of<s8> {
	typedef int type;
};
