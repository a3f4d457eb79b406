/* Memory that is had and freed at once: blocks, arrays, what another interface has allocated. */
#include <string.h>

#include "cuda_types.h"
#include "hook/core/hook_table.h"
#include "hook/mem/account.h"
#include "hook/mem/answers.h"
#include "hook/mem/served.h"

static uint64_t value_at(const void *pointer, size_t bytes)
{
	uint64_t value = 0;
	memcpy(&value, pointer, bytes);
	return value;
}

/* Claims the bytes around a call that puts what they become, `size` bytes of it, to `to`. */
#define CLAIMED(bytes, kind, to, size, call)                                                       \
	({                                                                                         \
		struct claim claim_;                                                               \
		int result_ = OUT_OF_MEMORY;                                                       \
		if (claim_begin(&claim_, bytes)) {                                                 \
			result_ = call;                                                            \
			result_ = claim_end(                                                       \
				&claim_, result_, kind, result_ ? 0 : value_at(to, size));         \
		}                                                                                  \
		result_;                                                                           \
	})

int memory_cuMemAlloc(void *address, unsigned int bytes)
{
	return CLAIMED(address ? whole_blocks(bytes) : 0, OWNED_BLOCK, address, 4,
		REAL(cuMemAlloc)(address, bytes));
}

int memory_cuMemAlloc_v2(void *address, size_t bytes)
{
	int served;
	if (served_alloc(address, bytes, &(struct served_order){ 0 }, &served))
		return served;
	return CLAIMED(address ? whole_blocks(bytes) : 0, OWNED_BLOCK, address, 8,
		REAL(cuMemAlloc_v2)(address, bytes));
}

int memory_cuMemAllocManaged(void *address, size_t bytes, unsigned int flags)
{
	return CLAIMED(address ? whole_blocks(bytes) : 0, OWNED_MANAGED, address, 8,
		REAL(cuMemAllocManaged)(address, bytes, flags));
}

/* Rows of whole 512 bytes, as devices have them. */
static uint64_t pitched(uint64_t width, uint64_t height)
{
	uint64_t bytes;
	const uint64_t row = width > UINT64_MAX - 511 ? width : (width + 511) / 512 * 512;
	return __builtin_mul_overflow(row, height, &bytes) ? UINT64_MAX / 2 : whole_blocks(bytes);
}

int memory_cuMemAllocPitch(
	void *address, void *pitch, unsigned int width, unsigned int height, unsigned int element)
{
	return CLAIMED(address && pitch ? pitched(width, height) : 0, OWNED_BLOCK, address, 4,
		REAL(cuMemAllocPitch)(address, pitch, width, height, element));
}

int memory_cuMemAllocPitch_v2(
	void *address, void *pitch, size_t width, size_t height, unsigned int element)
{
	return CLAIMED(address && pitch ? pitched(width, height) : 0, OWNED_BLOCK, address, 8,
		REAL(cuMemAllocPitch_v2)(address, pitch, width, height, element));
}

/* A call may free an address as any of these blocks. */
static bool give_block_begin(struct owned *o, uint64_t address)
{
	return give_begin(o, OWNED_BLOCK, address) || give_begin(o, OWNED_ASYNC, address) ||
	       give_begin(o, OWNED_MANAGED, address);
}

static int freed(const struct owned *o, bool known, int result)
{
	if (!known && !result)
		graphs_changed();
	return give_end(o, known, result);
}

int memory_cuMemFree(unsigned int address)
{
	struct owned o;
	const bool known = give_block_begin(&o, address);
	return freed(&o, known, REAL(cuMemFree)(address));
}

int memory_cuMemFree_v2(unsigned long long address)
{
	int served;
	struct owned o;
	if (served_free(address, &(struct served_order){ 0 }, &served))
		return served;
	const bool known = give_block_begin(&o, address);
	return freed(&o, known, REAL(cuMemFree_v2)(address));
}

/* Bytes of one channel: CUarray_format.  An unknown format counts as four. */
static uint64_t channel_bytes(int format)
{
	switch (format) {
	case 1: /* 8 bits, with and without sign */
	case 8:
		return 1;
	case 2: /* 16 bits, and half */
	case 9:
	case 0x10:
		return 2;
	default:
		return 4;
	}
}

static uint64_t array_bytes(const struct cu_array3d_desc *d)
{
	uint64_t bytes = channel_bytes(d->format) * (d->channels ? d->channels : 1);
	if (__builtin_mul_overflow(bytes, d->width, &bytes) ||
		__builtin_mul_overflow(bytes, d->height ? d->height : 1, &bytes) ||
		__builtin_mul_overflow(bytes, d->depth ? d->depth : 1, &bytes))
		return UINT64_MAX / 2;
	return whole_blocks(bytes);
}

/* Sparse and deferred ones have no memory of their own. */
static uint64_t array3d_bytes(const struct cu_array3d_desc *d)
{
	enum { SPARSE = 0x40, DEFERRED = 0x80 };
	return !d || d->flags & (SPARSE | DEFERRED) ? 0 : array_bytes(d);
}

struct old_array_desc { /* of CUDA 2 */
	uint32_t width, height;
	int format;
	uint32_t channels;
};

struct old_array3d_desc {
	uint32_t width, height, depth;
	int format;
	uint32_t channels, flags;
};

static int create_array(int (*real)(void *, void *), void *array, void *descriptor, uint64_t bytes)
{
	return CLAIMED(array ? bytes : 0, OWNED_ARRAY, array, 8, real(array, descriptor));
}

int memory_cuArrayCreate(void *array, void *descriptor)
{
	const struct old_array_desc *d = descriptor;
	const uint64_t bytes = d ? array_bytes(&(struct cu_array3d_desc){ .width = d->width,
					   .height = d->height,
					   .format = d->format,
					   .channels = d->channels })
				 : 0;
	return create_array(REAL(cuArrayCreate), array, descriptor, bytes);
}

int memory_cuArrayCreate_v2(void *array, void *descriptor)
{
	const struct cu_array_desc *d = descriptor;
	const uint64_t bytes = d ? array_bytes(&(struct cu_array3d_desc){ .width = d->width,
					   .height = d->height,
					   .format = d->format,
					   .channels = d->channels })
				 : 0;
	return create_array(REAL(cuArrayCreate_v2), array, descriptor, bytes);
}

int memory_cuArray3DCreate(void *array, void *descriptor)
{
	const struct old_array3d_desc *d = descriptor;
	const uint64_t bytes = d ? array3d_bytes(&(struct cu_array3d_desc){ .width = d->width,
					   .height = d->height,
					   .depth = d->depth,
					   .format = d->format,
					   .channels = d->channels,
					   .flags = d->flags })
				 : 0;
	return create_array(REAL(cuArray3DCreate), array, descriptor, bytes);
}

int memory_cuArray3DCreate_v2(void *array, void *descriptor)
{
	return create_array(REAL(cuArray3DCreate_v2), array, descriptor, array3d_bytes(descriptor));
}

/* All levels together have at most twice the first, a third more where there are rows. */
int memory_cuMipmappedArrayCreate(void *array, void *descriptor, unsigned int levels)
{
	const struct cu_array3d_desc *d = descriptor;
	const uint64_t first = array3d_bytes(d);
	const uint64_t more = levels < 2 ? 0 : d && d->height ? first / 3 : first;
	const uint64_t bytes = first ? whole_blocks(first + more) : 0;
	return CLAIMED(array ? bytes : 0, OWNED_ARRAY, array, 8,
		REAL(cuMipmappedArrayCreate)(array, descriptor, levels));
}

struct external_memory { /* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
	int type;
	void *handle[2];
	uint64_t bytes;
};

int memory_cuImportExternalMemory(void *memory, void *descriptor)
{
	const struct external_memory *d = descriptor;
	return CLAIMED(memory && d ? whole_blocks(d->bytes) : 0, OWNED_EXTERNAL, memory, 8,
		REAL(cuImportExternalMemory)(memory, descriptor));
}

/* memory_NAME() of a call that ends what a handle stands for. */
#define DESTROYS(name, kind)                                                                       \
	int memory_##name(void *handle)                                                            \
	{                                                                                          \
		struct owned o;                                                                    \
		const bool known = give_begin(&o, kind, (uintptr_t)handle);                        \
		return give_end(&o, known, REAL(name)(handle));                                    \
	}
DESTROYS(cuArrayDestroy, OWNED_ARRAY)
DESTROYS(cuMipmappedArrayDestroy, OWNED_ARRAY)
DESTROYS(cuDestroyExternalMemory, OWNED_EXTERNAL)
