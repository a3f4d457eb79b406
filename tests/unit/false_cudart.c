/* The function of the CUDA runtime that the false provider needs. The test loads the driver. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int false_cudart_driver(void *library);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);

static int (*copy_in)(uint64_t to, const void *from, size_t bytes, void *stream);

int false_cudart_driver(void *library)
{
	void *found = dlsym(library, "cuMemcpyHtoDAsync_v2");
	memcpy(&copy_in, &found, sizeof found);
	return found ? 0 : -1;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	return copy_in((uint64_t)to, from, bytes, stream);
}
