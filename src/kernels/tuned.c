/* Keeps what `weir kernels tune` found. */
#include "kernels/tuned.h"

#include <inttypes.h>
#include <stdlib.h>

#include "kernels/cache.h"

static char *key_of(const struct weir_kernels *k, const char *what)
{
	return xasprintf("weir kernels tuned\n%s\n%s", k->device.name, what);
}

bool tuned_get(const struct weir_kernels *k, const char *what, char ret_name[TUNED_NAME])
{
	struct buf name = { 0 };
	if (!k->cache)
		return false;
	char *key = key_of(k, what);
	const bool found = cache_get(k->cache, key, &name) && name.n > 0 && name.n < TUNED_NAME;
	if (found) {
		memcpy(ret_name, name.v, name.n);
		ret_name[name.n] = 0;
	}
	free(key);
	buf_free(&name);
	return found;
}

void tuned_put(const struct weir_kernels *k, const char *what, const char *name)
{
	struct buf content = { 0 };
	if (!k->cache)
		return;
	char *key = key_of(k, what);
	buf_put_text(&content, name);
	cache_put(k->cache, key, &content);
	free(key);
	buf_free(&content);
}

void rows_describe(const struct weir_rows *w, struct buf *ret)
{
	buf_printf(ret,
		"%s %s %" PRId64 "x%" PRId64 " x %" PRId64 ",%" PRId64 " y %" PRId64 ",%" PRId64
		" residual %u %" PRId64 ",%" PRId64 " sum %u weight %u bias %u",
		rows_operation_word(w->operation), kernel_type_word(w->type), w->rows, w->width,
		w->x_row, w->x_column, w->y_row, w->y_column, w->has_residual, w->residual_row,
		w->residual_column, w->has_sum, w->has_weight, w->has_bias);
}

void gemm_describe(const struct weir_gemm *w, struct buf *ret)
{
	buf_printf(ret,
		"gemm %s to %s epilogue %u %" PRId64 "x%" PRId64 "x%" PRId64 " a %u %" PRId64
		" b %u %" PRId64 " d %" PRId64 " residual %" PRId64 " batch %" PRId64 " %" PRId64
		" %" PRId64 " %" PRId64 " %" PRId64 " stays %u",
		kernel_type_word(w->type), kernel_type_word(gemm_d_type(w)), w->epilogue, w->m,
		w->n, w->k, w->a_transposed, w->a_pitch, w->b_transposed, w->b_pitch, w->d_pitch,
		w->residual_pitch, gemm_batch(w), w->a_batch, w->b_batch, w->d_batch,
		w->residual_batch, w->b_stays);
}

void conv_describe(const struct weir_conv *w, struct buf *ret)
{
	buf_printf(ret,
		"conv %s to %s epilogue %u pass %u %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
		" filters %" PRId64 "x%" PRId64 "x%" PRId64 " stride %" PRId64 ",%" PRId64
		" pad %" PRId64 ",%" PRId64 " dilation %" PRId64 ",%" PRId64 " groups %" PRId64,
		kernel_type_word(w->type), kernel_type_word(conv_d_type(w)), w->epilogue, w->pass,
		w->n, w->h, w->w, w->c, w->k, w->r, w->s, w->stride_h, w->stride_w, w->pad_h,
		w->pad_w, w->dilation_h, w->dilation_w, w->groups);
}
