/* Programs here say this of their own slot in the shared file, and of faults in it.
 */
#pragma once

#include <stdatomic.h>

#include "../../hostile/programs/cu.h"
#include "share/segment.h"

static struct share_slot *slot;
static struct share_device *device;
static int failures;

static inline void expect(bool right, int line, const char *what)
{
	if (right)
		return;
	printf("line %d: not %s\n", line, what);
	failures++;
}
#define EXPECT(condition) expect(condition, __LINE__, #condition)

static inline void find_slot(const char *directory)
{
	const char *why = "";
	struct share_file *f = share_open(directory, &why);
	cu_need(!f, why);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (f->slots[i].who.state == SLOT_LIVE && f->slots[i].who.pid == (uint32_t)getpid())
			slot = &f->slots[i];
	cu_need(!slot, "a slot");
	device = &f->devices[slot->who.device];
}

/* A program of class latency, alone on its device. */
static inline bool is_inside(void)
{
	const bool inside = atomic_load_explicit(&slot->work.inside, memory_order_seq_cst);
	/* It may stay active for a while between requests that follow each other soon. */
	EXPECT(share_any(device->active) || !inside);
	EXPECT(inside || !share_any(device->active) || share_lingers_until(&slot->work));
	return inside;
}

static inline void work(void)
{
	cu_need(cu_launch(2), "cuLaunchKernel");
	cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
}

static inline uint64_t counted(void)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < SHARE_BUCKETS; i++)
		n += slot->counts.request[i];
	return n;
}

static inline int result(void)
{
	puts(failures ? "wrong" : "all is as it is said");
	return failures != 0;
}
