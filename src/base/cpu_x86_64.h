/* The functions that cpu.h promises, for x86-64. */
#pragma once

#include <cpuid.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CPU_NAME    "x86-64"
#define CPU_MACHINE EM_X86_64
#define CPU_CUPTI   "/usr/local/cuda/targets/x86_64-linux/lib/libcupti.so"

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline uint64_t cpu_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static inline uint64_t cpu_ticks_behind(void)
{
	unsigned core;
	return __builtin_ia32_rdtscp(&core);
}

static inline bool cpu_has_ticks(void)
{
	unsigned a, b, c, d = 0;
	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && d & 1u << 8;
}

/* A paravirtual clock stands on an invariant counter; acpi_pm and hpet mean distrust. */
static inline bool cpu_ticks_trusted(const char *source)
{
	return !strncmp(source, "tsc", 3) || !strncmp(source, "kvm", 3);
}

static inline void cpu_pause(void)
{
	__builtin_ia32_pause();
}

/* Never faults, whatever `at` is. */
static inline void cpu_prefetch(const void *at)
{
	__asm__ volatile("prefetchw (%0)\n\tprefetchw 64(%0)" : : "r"(at));
}

/* One instruction each; a locked one costs three times as much. */
static inline __attribute__((always_inline)) void cpu_add(uint64_t *word, uint64_t by)
{
	__asm__ volatile("addq %1, %0" : "+m"(*word) : "er"(by) : "cc");
}

static inline __attribute__((always_inline)) bool cpu_swap(
	char *volatile *word, char *old, char *new)
{
	char *seen = old;
	__asm__ volatile("cmpxchgq %2, %1" : "+a"(seen), "+m"(*word) : "r"(new) : "memory", "cc");
	return seen == old;
}

/* A locked instruction is a full barrier itself. */
static inline void cpu_fence_behind_rmw(void)
{
	__asm__ volatile("" : : : "memory");
}

static inline bool cpu_copy(char *to, const char *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	return true;
}

static inline bool cpu_fill(char *to, int byte, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
	return true;
}

static inline unsigned cpu_equal(const char *at, unsigned char c)
{
	typedef unsigned char lanes __attribute__((vector_size(16), may_alias));
	typedef char bytes __attribute__((vector_size(16)));
	const lanes all = { c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c };
	return (unsigned)__builtin_ia32_pmovmskb128((bytes)(*(const lanes *)at == all));
}

#define CPU_PAGE_MOST 4096

static inline size_t cpu_page_bytes(void)
{
	return 4096;
}

#define CPU_THUNK_BYTES 32

#define CPU_STACK 0u

/* rip, rsp, and those that a function gives back as it found them: rbp, rbx, r12 to r15. */
static inline __attribute__((always_inline)) void cpu_registers(uint64_t to[8])
{
	__asm__ volatile("leaq 0(%%rip), %%rax\n\t"
			 "movq %%rax, 0(%0)\n\tmovq %%rsp, 8(%0)\n\tmovq %%rbp, 16(%0)\n\t"
			 "movq %%rbx, 24(%0)\n\tmovq %%r12, 32(%0)\n\tmovq %%r13, 40(%0)\n\t"
			 "movq %%r14, 48(%0)\n\tmovq %%r15, 56(%0)"
			 :
			 : "r"(to)
			 : "rax", "memory");
}

/* The C library keeps its data of a thread above the stack. */
static inline uintptr_t cpu_thread_end(void)
{
	uintptr_t own;
	__asm__ volatile("movq %%fs:0, %0" : "=r"(own));
	return own;
}
