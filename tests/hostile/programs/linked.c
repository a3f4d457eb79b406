/* Linked to libcuda.so.1: the dynamic linker binds the calls, nobody asks dlsym(). */
#include <stdio.h>

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuDriverGetVersion(int *version);

int main(void)
{
	void *context;
	int device, version, failed = 0;
	FILE *counts;

	failed += cuInit(0) != 0;
	failed += cuDeviceGet(&device, 0) != 0;
	failed += cuDevicePrimaryCtxRetain(&context, device) != 0;
	for (int i = 0; i < 10; i++)
		failed += cuCtxSetCurrent(context) != 0;
	failed += cuDriverGetVersion(&version) != 0;
	printf("%d failed\n", failed);
	counts = fopen("counts", "w");
	fputs("cuInit 1 1\ncuCtxSetCurrent 10 10\ncuDriverGetVersion 1 1\n", counts);
	fclose(counts);
	return 0;
}
