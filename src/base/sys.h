/*
 * System calls of Linux for code inside somebody else's process. They go straight to the
 * kernel, leave errno alone, are no cancellation points and pass no preloaded function. Each
 * returns the kernel's answer, a value or -errno.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cpu.h"
#include "base/tsan.h"

#define SYS_ARGS(a, b, c, d, e, f, ...)                                                            \
	(long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
#define sys(name, ...) SYS6(SYS_##name, SYS_ARGS(__VA_ARGS__ __VA_OPT__(, ) 0, 0, 0, 0, 0, 0))

#ifdef __SANITIZE_THREAD__
#define SYS6(...) tsan_sys6(__VA_ARGS__)
#else
#define SYS6(...) sys6(__VA_ARGS__)
#endif

/* True for the answers that the kernel uses for errors, mmap's addresses included. */
static inline int sys_failed(long answer)
{
	return (unsigned long)answer >= (unsigned long)-4095;
}

static inline uint64_t file_bytes(long fd) /* 0: not known */
{
	struct stat st;
	return sys(fstat, fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* Maps a part of a file, shared and populated; an address or -errno. */
static inline long file_map(long fd, uint64_t offset, uint64_t bytes)
{
	return sys(
		mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
}
