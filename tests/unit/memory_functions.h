/* Functions that give out memory, for traces of tests: besides those of maker_schema. */
#pragma once

enum {
	FN_RESERVE = 200,
	FN_ADDRESS_FREE,
	FN_MAP,
	FN_UNMAP,
	FN_ASYNC,
	FN_FREE_ASYNC,
	FN_POOL,
	FN_TAKE, /* of an allocator above the driver */
	FN_GIVE,
	FN_SEGMENT,
	FN_SEGMENT_FREE,
};

static const char memory_schema[] =
	"200 driver memory call cuMemAddressReserve(out CUdeviceptr ptr, size_t size, "
	"size_t alignment, CUdeviceptr addr, uint64 flags)\n"
	"201 driver memory call cuMemAddressFree(CUdeviceptr ptr, size_t size)\n"
	"202 driver memory call cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, "
	"CUmemGenericAllocationHandle handle, uint64 flags)\n"
	"203 driver memory call cuMemUnmap(CUdeviceptr ptr, size_t size)\n"
	"204 driver memory alloc:p=0:n=1:m=device cuMemAllocAsync(out CUdeviceptr dptr, "
	"size_t bytesize, CUstream hStream)\n"
	"205 driver memory free:p=0:m=device cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)\n"
	"206 driver memory alloc:p=0:n=1:m=device cuMemAllocFromPoolAsync(out CUdeviceptr dptr, "
	"size_t bytesize, CUmemoryPool pool, CUstream hStream)\n"
	"207 allocator memory alloc:p=0:n=1:m=device allocate(out CUdeviceptr pointer, "
	"size_t bytes, CUdevice device, out size_t reserved)\n"
	"208 allocator memory free:p=0:m=device free(CUdeviceptr pointer, size_t bytes, "
	"CUdevice device, out size_t reserved)\n"
	"209 allocator memory alloc:p=0:n=1:m=segment segment_alloc(out CUdeviceptr pointer, "
	"size_t bytes)\n"
	"210 allocator memory free:p=0:m=segment segment_free(CUdeviceptr pointer)\n"
	"type CUmemoryPool ptr 8\n";
