// The kernels whose compiled forms the image tests read.
__device__ int counter;
__constant__ float table[16];
struct pair { int a; double b; };
extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		c[i] = a[i] + b[i] * table[i & 15];
}
extern "C" __global__ void __launch_bounds__(128) tile(struct pair p, char flag, short *out)
{
	__shared__ double s[64];
	s[threadIdx.x & 63] = p.b + flag;
	__syncthreads();
	out[threadIdx.x] = (short)s[(threadIdx.x * 7) & 63] + atomicAdd(&counter, p.a);
}
template <typename T> __global__ void fill(T *p, T v) { p[threadIdx.x] = v; }
template __global__ void fill<int>(int *, int);
