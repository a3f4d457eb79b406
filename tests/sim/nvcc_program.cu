/* A program as users write them, built by nvcc with both forms of the runtime. */
#include <cstdio>

__device__ int counter = 7;
__managed__ int managed;

__global__ void add(const float *a, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		c[i] = a[i] + counter;
}

template <typename T> __global__ void fill(T *p, T v)
{
	p[threadIdx.x] = v;
}

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(cudaGetLastError()));
	return 1;
}

int main()
{
	float *d;
	int x = 0;
	cudaDeviceProp p;
	cudaStream_t s;
	cudaEvent_t a, b;
	float ms;

	if (cudaMalloc(&d, 4096) || cudaStreamCreate(&s) || cudaEventCreate(&a) ||
		cudaEventCreate(&b))
		return fail("set up");
	cudaEventRecord(a, s);
	add<<<4, 128, 0, s>>>(d, d, 10);
	fill<int><<<1, 32, 0, s>>>((int *)d, 3);
	cudaEventRecord(b, s);
	if (cudaGetLastError() || cudaStreamSynchronize(s) || cudaEventElapsedTime(&ms, a, b))
		return fail("launch");
	if (!(ms > 0))
		return fail("time");
	if (cudaMemcpyFromSymbol(&x, counter, sizeof(x)))
		return fail("symbol");
	managed = 3;
	if (cudaGetDeviceProperties(&p, 0) || p.multiProcessorCount != 132 || p.major != 9)
		return fail("properties");
	return cudaDeviceSynchronize() ? fail("end") : 0;
}
