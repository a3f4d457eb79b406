/*
 * Arrays: create, describe, destroy.  Mipmapped arrays, planes and textures do not exist.
 */
#include "driver/array.h"
#include "driver/graph.h"

enum { PITCH = 512, MAX_SIDE = 131072 };

static size_t format_bytes(int format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	}
	return 0;
}

static bool desc_ok(const struct cu_array3d_desc *d)
{
	bool channels = d->channels == 1 || d->channels == 2 || d->channels == 4;

	return channels && format_bytes(d->format) && d->width && d->width <= MAX_SIDE &&
	       d->height <= MAX_SIDE && d->depth <= MAX_SIDE;
}

static int create(void **ret_array, const struct cu_array3d_desc *d)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_array || !d || !desc_ok(d))
		return CUDA_ERROR_INVALID_VALUE;
	r = capture_forbids();
	if (r)
		return r;
	struct array *a = obj_new(OBJ_ARRAY, sizeof *a, ctx);
	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->width = d->width;
	a->height = d->height ? d->height : 1;
	a->depth = d->depth ? d->depth : 1;
	a->asked_height = d->height;
	a->asked_depth = d->depth;
	a->format = d->format;
	a->channels = d->channels;
	a->flags = d->flags;
	a->row_bytes = d->width * format_bytes(d->format) * d->channels;
	a->pitch = (a->row_bytes + PITCH - 1) & ~(size_t)(PITCH - 1);
	r = range_alloc(ctx, a->pitch * a->height * a->depth, RANGE_ARRAY, NULL, &a->range);
	if (r) {
		obj_free(a);
		return r;
	}
	*ret_array = a;
	return CUDA_SUCCESS;
}

int sim_cuArray3DCreate_v2(void **ret_array, void *desc)
{
	return create(ret_array, desc);
}

int sim_cuArrayCreate_v2(void **ret_array, void *desc)
{
	const struct cu_array_desc *d = desc;

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	struct cu_array3d_desc full = {
		.width = d->width,
		.height = d->height,
		.format = d->format,
		.channels = d->channels,
	};
	return create(ret_array, &full);
}

static void array_free(struct array *a)
{
	range_remove(a->range);
	range_free(a->range);
	obj_free(a);
}

int sim_cuArrayDestroy(void *handle)
{
	struct array *a = obj_find(handle, OBJ_ARRAY);

	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	context_wait(a->obj.ctx);
	a = obj_find(handle, OBJ_ARRAY);
	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	array_free(a);
	return CUDA_SUCCESS;
}

void arrays_free(struct context *ctx)
{
	struct array *a;

	while ((a = obj_any(OBJ_ARRAY, ctx)) != NULL)
		array_free(a);
}

int sim_cuArray3DGetDescriptor_v2(void *desc, void *handle)
{
	struct array *a = obj_find(handle, OBJ_ARRAY);

	if (!a || !desc)
		return a ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*(struct cu_array3d_desc *)desc = (struct cu_array3d_desc){
		.width = a->width,
		.height = a->asked_height,
		.depth = a->asked_depth,
		.format = a->format,
		.channels = a->channels,
		.flags = a->flags,
	};
	return CUDA_SUCCESS;
}

int sim_cuArrayGetDescriptor_v2(void *desc, void *handle)
{
	struct array *a = obj_find(handle, OBJ_ARRAY);

	if (!a || !desc)
		return a ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*(struct cu_array_desc *)desc = (struct cu_array_desc){
		.width = a->width,
		.height = a->asked_height,
		.format = a->format,
		.channels = a->channels,
	};
	return CUDA_SUCCESS;
}
