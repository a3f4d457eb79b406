/* One kernel with several scalars and buffers, and one that takes a structure: what
 * tests/gpu/args.sh looks for in the recording. */
#include <cstdio>

struct shape {
	int rows, columns;
	double scale;
	const float *from;
};

__global__ void axpy(const float *x, float *y, int n, float a)
{
	const int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] += a * x[i];
}

__global__ void scale(struct shape s, float *to)
{
	const int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < s.rows * s.columns)
		to[i] = s.from[i] * (float)s.scale;
}

__global__ void nothing(void)
{
}

int main(void)
{
	float *x, *y[2];
	cudaMalloc(&x, 1 << 20);
	cudaMalloc(&y[0], 1 << 20);
	cudaMalloc(&y[1], 1 << 20);
	for (int i = 0; i < 100; i++) {
		axpy<<<64, 256>>>(x, y[i & 1], 1000 + i % 4, 2.0f);
		scale<<<64, 256>>>({ 16, 32 + i % 2, 0.5, x }, y[i & 1]);
		nothing<<<1, 32>>>();
	}
	const cudaError_t e = cudaDeviceSynchronize();
	if (e)
		printf("%s\n", cudaGetErrorString(e));
	return e != cudaSuccess;
}
