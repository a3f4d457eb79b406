/* Operands of FP32 that the tensor cores do not read as they are stored. */
#include "kernels/gemm.h"

#define COPIES_MOST 1e12 /* elements: far above any memory, and countable in bytes */

bool gemm_is_tf32(const struct weir_gemm *w)
{
	return w->type == WEIR_TF32 || w->type == WEIR_TF32X3;
}

/* Instructions of TF32 read rows of adjacent K alone. */
static size_t place(const struct weir_gemm *w, int64_t rows, bool transposed, bool alone,
	size_t from, struct split_operand *ret)
{
	const bool splits = w->type == WEIR_TF32X3;
	const int64_t pitch = (w->k + 3) / 4 * 4, batch = alone ? 1 : gemm_batch(w);
	const size_t bytes =
		((size_t)batch * (size_t)rows * (size_t)pitch * sizeof(float) + 127) / 128 * 128;
	*ret = (struct split_operand){ .copied = splits || (transposed && gemm_is_tf32(w)),
		.high = from,
		.low = from + (splits ? bytes : 0),
		.rows = rows,
		.pitch = pitch,
		.apart = alone ? 0 : rows * pitch,
		.batch = batch };
	return ret->copied ? ret->low + bytes : from;
}

size_t gemm_split(const struct weir_gemm *w, struct split_operand ret[static 2])
{
	const double most =
		(double)(w->m > w->n ? w->m : w->n) * (double)w->k * (double)gemm_batch(w);
	const size_t a = place(w, w->m, w->a_transposed, !w->a_batch, 0, &ret[0]);
	const size_t all = place(w, w->n, w->b_transposed, !w->b_batch, a, &ret[1]);
	return most > COPIES_MOST ? SIZE_MAX : all;
}

struct weir_gemm gemm_as_read(const struct weir_gemm *w)
{
	struct split_operand operand[2];
	struct weir_gemm read = *w;
	gemm_split(w, operand);
	if (operand[0].copied) {
		read.a_transposed = 0;
		read.a_pitch = operand[0].pitch;
		read.a_batch = operand[0].apart;
	}
	if (operand[1].copied) {
		read.b_transposed = 0;
		read.b_pitch = operand[1].pitch;
		read.b_batch = operand[1].apart;
	}
	return read;
}

void gemm_split_program(struct buf *ret_name, struct buf *ret)
{
	buf_put_text(ret_name, "weir_gemm_split");
	buf_put_text(ret,
		"#include \"gemm_split.cu\"\n#include \"sm90.cuh\"\nextern \"C\" __global__ void __launch_bounds__(256) "
		"weir_gemm_split(const split_args a)\n{ launch_next(); launch_wait(); gemm_split(a); }\n");
}
