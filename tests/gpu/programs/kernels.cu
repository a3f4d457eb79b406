// A small program on the runtime library: launches, a captured graph, per-thread streams.
// As a library (-shared -Xcompiler -fPIC) its entry is run(); as a program, main().
#include <cstdio>

__global__ void scale(float *p, float f)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] *= f;
}

template <typename T> __global__ void add(T *p, T v)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] += v;
}

extern "C" int run(void)
{
	float *p;
	cudaStream_t s;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	if (cudaMalloc(&p, 1 << 20) != cudaSuccess)
		return 1;
	cudaStreamCreate(&s);
	for (int i = 0; i < 1000; i++) {
		scale<<<8, 256>>>(p, 2.0f);
		add<float><<<4, 128, 0, s>>>(p, 1.0f);
	}
	cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
	for (int i = 0; i < 7; i++)
		scale<<<8, 256, 0, s>>>(p, 0.5f);
	cudaStreamEndCapture(s, &graph);
	cudaGraphInstantiate(&exec, graph, 0);
	for (int i = 0; i < 50; i++)
		cudaGraphLaunch(exec, s);
	const cudaError_t e = cudaDeviceSynchronize();
	printf("%s\n", cudaGetErrorString(e));
	cudaFree(p);
	return e != cudaSuccess;
}

#ifndef LIBRARY
int main()
{
	return run();
}
#endif
