/* A program on the CUDA runtime as nvcc makes them: registers its device code before main() and
 * launches through the runtime.  Built twice, with the shared runtime and with the static one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dim3 {
	unsigned x, y, z;
};

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int limit, void *tid, void *bid, void *block, void *grid, int *warp);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemset(void *address, int value, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
	size_t shared_bytes, void *stream);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);

/* A fat binary with one entry: PTX, as it is. */
static struct {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes;
	struct {
		uint16_t kind, version;
		uint32_t header_bytes;
		uint64_t bytes;
		uint32_t packed_bytes, name, minor, arch;
		uint64_t unused, flags, unused2, unpacked_bytes;
	} entry;
	char ptx[192];
} fat = {
	.magic = 0xba55ed50,
	.version = 1,
	.header_bytes = 16,
	.bytes = 64 + 192,
	.entry = { .kind = 1, .version = 0x101, .header_bytes = 64, .bytes = 192, .arch = 50 },
	.ptx = ".version 7.0\n.target sm_50\n.address_size 64\n"
	       ".visible .entry nothing()\n{\n	ret;\n}\n",
};

static struct {
	int magic, version;
	const void *data;
	void *unused;
} wrapper = { 0x466243b1, 1, &fat, NULL };

static void **handle;

static void nothing(void)
{
}

__attribute__((constructor)) static void enlist(void)
{
	static char name[] = "nothing";

	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(
		handle, (const char *)nothing, name, name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
}

__attribute__((destructor)) static void leave(void)
{
	__cudaUnregisterFatBinary(handle);
}

int main(void)
{
	const struct dim3 grid = { 4, 1, 1 }, block = { 64, 1, 1 };
	char data[256] = { 0 };
	void *address = NULL;
	int failed = 0;
	FILE *counts;

	printf("malloc %d\n", cudaMalloc(&address, sizeof data));
	printf("memset %d\n", cudaMemset(address, 7, sizeof data));
	printf("copy %d\n", cudaMemcpy(data, address, sizeof data, 2));
	printf("data %d\n", data[100]);
	for (int i = 0; i < 20; i++)
		failed += cudaLaunchKernel((const void *)nothing, grid, block, NULL, 0, NULL) != 0;
	printf("%d launches failed\n", failed);
	printf("synchronize %d\n", cudaDeviceSynchronize());
	printf("free %d\n", cudaFree(address));
	printf("impossible %d\n", cudaMalloc(&address, (size_t)1 << 60));
	printf("last error %d\n", cudaGetLastError());

	counts = fopen("counts", "w");
	if (!counts)
		return 1;
	fputs("cuLaunchKernel 20 20\ncuMemAlloc_v2 2 2\ncuMemFree_v2 1 1\n", counts);
	fputs(RUNTIME_COUNTS, counts);
	fclose(counts);
	return 0;
}
