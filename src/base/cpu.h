/*
 * Each kind of processor does these things in its own way, under one name.  No other file outside
 * the twins NAME_x86_64 and NAME_aarch64 holds an instruction of one processor
 * (tools/check-cpu.sh).
 *
 *	sys6()              a system call: the kernel's answer, a value or -errno
 *	cpu_ticks()         counts at a constant rate, about a gigahertz, the same on all cores
 *	cpu_ticks_behind()  the same, when all before it is done: for benchmarks
 *	cpu_has_ticks()     whether that rate is constant on this machine …
 *	cpu_ticks_trusted() … and the kernel, by its clock source's name, relies on it
 *	cpu_pause()         in a loop that waits for another core
 *	cpu_prefetch()      asks for the two lines at an address, which will be written
 *	cpu_add()           adds to a word of this thread: a signal handler finds it before or after
 *	cpu_swap()          swaps such a word unless it has changed; orders nothing for others
 *	cpu_fence_behind_rmw() a full barrier, behind a read-modify-write of order seq_cst
 *	cpu_copy()          many bytes, upwards; false: nothing is done, as a loop is as fast
 *	cpu_fill()          the same with one byte
 *	cpu_equal()         bit i: byte i of the 16 at a multiple of 16 is c
 *	cpu_registers()     those that an unwinder begins with: enum stack_word
 *	cpu_thread_end()    where a thread's stack ends, but the first thread's
 *	cpu_page_bytes()    the size of the kernel's pages
 *
 *	CPU_NAME, CPU_MACHINE  its name, and in an ELF file
 *	CPU_CUPTI           where a toolkit for it keeps CUPTI, beside where all do
 *	CPU_PAGE_MOST       the largest page that its kernels have
 *	CPU_THUNK_BYTES     from one thunk of entry_*.S to the next
 *	CPU_STACK           bits of STACK_COUNTS: whose registers they are
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "base/cpu_x86_64.h"
#elif defined(__aarch64__)
#include "base/cpu_aarch64.h"
#else
#error "Weir is written for Linux on x86-64 and arm64"
#endif
