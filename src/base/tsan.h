/*
 * Facts that ThreadSanitizer can't see by itself in the injected library: mappings that come and go
 * by system calls, and that a thread of which the kernel says that it is gone did all before. Empty
 * in other builds.
 */
#pragma once

#ifdef __SANITIZE_THREAD__
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cpu.h"

void __tsan_acquire(void *at);
void __tsan_release(void *at);

/* The thread has done something that is told of at this address, which is its own … */
#define tsan_did(at) __tsan_release(at)
/* … and is gone. */
#define tsan_is_gone(at) __tsan_acquire(at)

static inline long tsan_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	const int kept = errno;
	if (n != SYS_mmap && n != SYS_munmap)
		return sys6(n, a, b, c, d, e, f);
	long at = n == SYS_munmap ? munmap((void *)a, (size_t)b)
				  : (long)mmap((void *)a, (size_t)b, (int)c, (int)d, (int)e, f);
	at = at == -1 ? -errno : at;
	errno = kept;
	return at;
}
#else
#define tsan_did(at)     (void)(at)
#define tsan_is_gone(at) (void)(at)
#endif
