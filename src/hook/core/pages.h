/*
 * Tables of the hook that a forked child begins without.
 *
 * Writing zeros over them would give each child pages of its own for what it may never look at.  So
 * a table has whole pages, and the child drops them: what is read there next is zeros.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cpu.h"
#include "base/sys.h"

#define PAGE_BYTES 4096
#define OWN_PAGES  __attribute__((aligned(PAGE_BYTES)))

static inline void drop_pages(void *table, size_t bytes)
{
	const size_t page = cpu_page_bytes();    /* else part of one is another's */
	if (((uintptr_t)table | bytes) % page || /* or locked, say */
		sys_failed(sys(madvise, table, bytes, MADV_DONTNEED)))
		memset(table, 0, bytes);
}

/* Makes a variable that is all zeros at first, with OWN_PAGES, so again. */
#define DROP(table)                                                                                \
	do {                                                                                       \
		_Static_assert(__alignof__(table) >= PAGE_BYTES && sizeof table % PAGE_BYTES == 0, \
			"pages that it shares with nothing");                                      \
		drop_pages(&(table), sizeof table);                                                \
	} while (0)
