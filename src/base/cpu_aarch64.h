/* The functions that cpu.h promises, for arm64. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/atomic.h"

#define CPU_NAME    "arm64"
#define CPU_MACHINE EM_AARCH64
/* Paths on servers, and on JetPack. */
#define CPU_CUPTI                                                                                  \
	"/usr/local/cuda/targets/sbsa-linux/lib/libcupti.so",                                      \
		"/usr/local/cuda/targets/aarch64-linux/lib/libcupti.so"

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}

/*
 * CNTVCT_EL0 counts at the rate of CNTFRQ_EL0: a gigahertz on servers, 31.25 MHz on a Jetson.  A
 * slow counter is shifted to between a half and one gigahertz, so that a number of ticks means
 * about the same time on each machine.  No isb before it: a reading may be early by what the
 * processor has under way, which is less than a call of the driver by far.
 */
static inline uint64_t cpu_ticks(void)
{
	uint64_t count, hz;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count) : : "memory");
	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	const int log = 63 - __builtin_clzll(hz | 1);
	return log < 29 ? count << (29 - log) : count;
}

static inline uint64_t cpu_ticks_behind(void)
{
	__asm__ volatile("isb" : : : "memory");
	return cpu_ticks();
}

static inline bool cpu_has_ticks(void)
{
	return true;
}

/* Another source means that the kernel knows of a fault of the counter. */
static inline bool cpu_ticks_trusted(const char *source)
{
	return !strncmp(source, "arch_sys_counter", 16);
}

/* On most cores `yield` does nothing; isb waits for some tens of cycles. */
static inline void cpu_pause(void)
{
	__asm__ volatile("isb" : : : "memory");
}

static inline void cpu_prefetch(const void *at)
{
	__builtin_prefetch(at, 1);
	__builtin_prefetch((const char *)at + 64, 1);
}

/* A pair of exclusive accesses: the second fails if a signal handler ran in between.  The fences
 * keep the compiler from moving accesses across, as the other twin's do. */
static inline __attribute__((always_inline)) void cpu_add(uint64_t *word, uint64_t by)
{
	add_relaxed((_Atomic uint64_t *)word, by);
}

static inline __attribute__((always_inline)) bool cpu_swap(
	char *volatile *word, char *old, char *new)
{
	atomic_signal_fence(memory_order_seq_cst);
	const bool done = replace_if((char *volatile _Atomic *)word, &old, new, relaxed, relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return done;
}

static inline void cpu_fence_behind_rmw(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

static inline bool cpu_copy(char *to, const char *from, size_t n)
{
	return false;
}

static inline bool cpu_fill(char *to, int byte, size_t n)
{
	return false;
}

/* A bit of its own for each lane of a half, and the sum of the lanes in the topmost. */
static inline unsigned cpu_equal(const char *at, unsigned char c)
{
	typedef unsigned char lanes __attribute__((vector_size(16), may_alias));
	typedef uint64_t halves __attribute__((vector_size(16)));
	const lanes all = { c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c };
	const lanes bits = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	const halves h = (halves)((lanes)(*(const lanes *)at == all) & bits);
	const uint64_t sum = 0x0101010101010101u;
	return (unsigned)(h[0] * sum >> 56 | h[1] * sum >> 56 << 8);
}

#define CPU_PAGE_MOST 65536

static inline size_t cpu_page_bytes(void)
{
	return getauxval(AT_PAGESZ);
}

#define CPU_THUNK_BYTES 64

#define CPU_STACK STACK_AARCH64

/* pc, sp, x29 (the frame), x30, and four of those that a function gives back: no rule for the frame
 * of a caller needs another.  Nothing may stand below sp here (no red zone). */
static inline __attribute__((always_inline)) void cpu_registers(uint64_t to[8])
{
	__asm__ volatile("adr x9, .\n\tmov x10, sp\n\tstp x9, x10, [%0]\n\t"
			 "stp x29, x30, [%0, 16]\n\tstp x19, x20, [%0, 32]\n\t"
			 "stp x21, x22, [%0, 48]"
			 :
			 : "r"(to)
			 : "x9", "x10", "memory");
}

/* The C library keeps its data of a thread above the stack and below the thread pointer. */
static inline uintptr_t cpu_thread_end(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}
