/*
 * The forms of an image told apart, and the lists that all parsers fill.
 */
#include "image/image.h"
#include "sim_enums.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 4096, MAX_PTX = 1 << 28 };

static uint32_t word_at(const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

static bool is_elf(const uint8_t *data)
{
	return memcmp(data, "\177ELF", 4) == 0;
}

/* PTX begins with text: a comment, a directive or white space. */
static bool is_text(const uint8_t *data)
{
	return *data == '/' || *data == '.' || *data == '\n' || *data == '\r' || *data == ' ' ||
	       *data == '\t';
}

int image_parse(const uint8_t *data, size_t size, int capability, struct image *ret_image)
{
	struct image image = { 0 };
	int r;

	if (size < 4)
		return CUDA_ERROR_INVALID_IMAGE;
	if (is_elf(data))
		r = cubin_parse(data, size, capability, &image);
	else if (word_at(data) == (uint32_t)IMAGE_FATBIN_MAGIC)
		r = fatbin_parse(data, size, capability, &image);
	else if (is_text(data))
		r = ptx_parse((const char *)data, size, capability, &image);
	else
		r = CUDA_ERROR_INVALID_IMAGE;
	if (r)
		image_fini(&image);
	else
		*ret_image = image;
	return r;
}

size_t image_measure(const void *pointer)
{
	const uint8_t *data = pointer;

	if (is_text(data))
		return strnlen(pointer, MAX_PTX);
	if (is_elf(data))
		return cubin_measure(data);
	if (word_at(data) == (uint32_t)IMAGE_FATBIN_MAGIC) {
		uint16_t header;
		uint64_t body;

		memcpy(&header, data + 6, sizeof header);
		memcpy(&body, data + 8, sizeof body);
		return body > SIZE_MAX - header ? 0 : header + body;
	}
	return 0;
}

void image_fini(struct image *image)
{
	for (size_t i = 0; i < image->kernel_count; i++) {
		free(image->kernels[i].name);
		free(image->kernels[i].params);
	}
	for (size_t i = 0; i < image->global_count; i++) {
		free(image->globals[i].name);
		free(image->globals[i].initial);
	}
	free(image->kernels);
	free(image->globals);
	*image = (struct image){ 0 };
}

/* Makes room for one more element; lists grow by doubling at powers of two. */
static void *grow(void *list, size_t count, size_t element)
{
	if (count & (count - 1))
		return list;
	return reallocarray(list, count ? 2 * count : 1, element);
}

struct image_kernel *image_add_kernel(struct image *image, const char *name, size_t length)
{
	void *list = grow(image->kernels, image->kernel_count, sizeof *image->kernels);
	char *copy = list ? strndup(name, length) : NULL;

	if (list)
		image->kernels = list;
	if (!copy)
		return NULL;
	struct image_kernel *k = &image->kernels[image->kernel_count++];
	*k = (struct image_kernel){ .name = copy, .max_threads = 1024 };
	return k;
}

struct image_kernel *image_find_kernel(struct image *image, const char *name, size_t length)
{
	for (size_t i = 0; i < image->kernel_count; i++)
		if (strncmp(image->kernels[i].name, name, length) == 0 &&
			image->kernels[i].name[length] == '\0')
			return &image->kernels[i];
	return NULL;
}

struct image_global *image_add_global(struct image *image, const char *name, size_t length)
{
	void *list = grow(image->globals, image->global_count, sizeof *image->globals);
	char *copy = list ? strndup(name, length) : NULL;

	if (list)
		image->globals = list;
	if (!copy)
		return NULL;
	struct image_global *g = &image->globals[image->global_count++];
	*g = (struct image_global){ .name = copy };
	return g;
}

bool image_set_param(struct image_kernel *k, size_t index, uint32_t offset, uint32_t size)
{
	if (index >= MAX_PARAMS || size > IMAGE_MAX_PARAM_BYTES ||
		offset > IMAGE_MAX_PARAM_BYTES - size)
		return false;
	if (index >= k->param_count) {
		struct image_param *list = reallocarray(k->params, index + 1, sizeof *list);
		if (!list)
			return false;
		memset(list + k->param_count, 0, (index + 1 - k->param_count) * sizeof *list);
		k->params = list;
		k->param_count = index + 1;
	}
	k->params[index] = (struct image_param){ offset, size };
	if (offset + size > k->param_bytes)
		k->param_bytes = offset + size;
	return true;
}
