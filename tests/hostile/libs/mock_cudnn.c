/*
 * A libcudnn.so.9 that computes nothing and, like the real one, hands everything on to a part of
 * its own, which has functions of the same names.  Built with PART, it is that part.  A descriptor
 * is an array of numbers: type, how many, each.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#define CALL(name, ...)                                                                            \
	int name(__VA_ARGS__);                                                                     \
	__attribute__((visibility("default"))) int name(__VA_ARGS__)

enum { BAD_PARAM = 2000 };

#ifdef PART
static int context;

CALL(cudnnCreate, void **ret_handle)
{
	*ret_handle = &context;
	return 0;
}

CALL(cudnnConvolutionForward, void *handle, const void *alpha, const int *input, const void *x,
	const int *filter, const void *w, const void *conv, int algo, void *room, size_t bytes,
	const void *beta, const int *output, void *y)
{
	printf("convolution: %d, algorithm %d, %zu bytes, to %p\n", handle == &context, algo, bytes,
		y);
	return input && filter && output ? 0 : BAD_PARAM;
}

CALL(cudnnBackendExecute, void *handle, void *plan, void *pack)
{
	printf("plan: %d %p %p\n", handle == &context, plan, pack);
	return 0;
}
#else
static void *from_part(const char *name)
{
	static void *part;

	if (!part)
		part = dlopen("libcudnn_cnn.so.9", RTLD_NOW);
	return part ? dlsym(part, name) : NULL;
}

CALL(cudnnCreate, void **ret_handle)
{
	int (*real)(void **) = from_part("cudnnCreate");

	return real ? real(ret_handle) : BAD_PARAM;
}

CALL(cudnnConvolutionForward, void *handle, const void *alpha, const int *input, const void *x,
	const int *filter, const void *w, const void *conv, int algo, void *room, size_t bytes,
	const void *beta, const int *output, void *y)
{
	int (*real)(void *, const void *, const int *, const void *, const int *, const void *,
		const void *, int, void *, size_t, const void *, const int *, void *) =
		from_part("cudnnConvolutionForward");

	return real ? real(handle, alpha, input, x, filter, w, conv, algo, room, bytes, beta,
			      output, y)
		    : BAD_PARAM;
}

CALL(cudnnBackendExecute, void *handle, void *plan, void *pack)
{
	int (*real)(void *, void *, void *) = from_part("cudnnBackendExecute");

	return real ? real(handle, plan, pack) : BAD_PARAM;
}

CALL(cudnnGetTensorNdDescriptor, const int *of, int wanted, int *type, int *count, int *dims,
	int *strides)
{
	if (!of)
		return BAD_PARAM;
	*type = of[0];
	*count = of[1];
	for (int i = 0; i < of[1] && i < wanted; i++)
		dims[i] = of[2 + i], strides[i] = 1;
	return 0;
}

CALL(cudnnGetFilterNdDescriptor, const int *of, int wanted, int *type, int *format, int *count,
	int *dims)
{
	if (!of)
		return BAD_PARAM;
	*type = of[0];
	*format = 0;
	*count = of[1];
	for (int i = 0; i < of[1] && i < wanted; i++)
		dims[i] = of[2 + i];
	return 0;
}
#endif
