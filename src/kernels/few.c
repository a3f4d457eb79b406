/* Chooses gemm_few.cu's kernel for a product of few rows. */
#include <math.h>
#include <stdio.h>

#include "kernels/gemm.h"

enum { ROWS_MOST = 128, STAGES_MOST = 16, SM_BYTES = 232448, RESERVED = 1024 };
#define LAUNCH_NS   2000.
#define START_NS    1500. /* barriers and the first loads */
#define TURN_NS     2000. /* of blocks that follow others */
#define JOIN_NS     800.  /* of each doubling of a cluster, whose blocks wait for each other */
#define L2_BYTES    49.   /* that reach an SM in a cycle */
#define A_SHARE     .85   /* of A's bytes, where all SMs read the same lines of A at a time */
#define SM_BYTES_NS 45.   /* that an SM's blocks get from memory in a nanosecond */

static bool is_few(const struct kernel_device *d, const struct weir_gemm *w)
{
	return d->cc == 90 && (w->type == WEIR_F16 || w->type == WEIR_BF16) && w->m <= ROWS_MOST &&
	       w->m > 0 && w->n > 0 && w->k > 0 && gemm_batch(w) == 1 && !w->a_transposed &&
	       !w->b_transposed && w->n % 8 == 0 && w->a_pitch % 8 == 0 && w->b_pitch % 8 == 0 &&
	       w->d_pitch % 8 == 0 &&
	       (w->epilogue != WEIR_EPILOGUE_RESIDUAL || w->residual_pitch % 8 == 0);
}

static unsigned over(int64_t n, unsigned by)
{
	return (unsigned)((n + by - 1) / by);
}

/* As many stages as fit beside those of another block, if there is more than one for each SM.
 * false: the sums need more. */
static bool fill_stages(
	const struct kernel_device *d, const struct weir_gemm *w, struct gemm_choice *c)
{
	struct gemm_form *f = &c->form;
	const unsigned stage = (f->bm + f->bn) * 128;
	const unsigned blocks = c->clusters * c->cluster > d->sms ? 2 : 1;
	const unsigned room = SM_BYTES / blocks - RESERVED * (blocks - 1);
	const unsigned each = over(over(w->k, 64), c->parts);
	f->stages = room / (stage + 16);
	f->stages = f->stages < each ? f->stages : each;
	f->stages = f->stages < STAGES_MOST ? f->stages : STAGES_MOST;
	const unsigned sums = over((f->bm + 4) * 4 * f->bn, stage);
	f->stages = f->stages > sums ? f->stages : sums;
	c->shared_bytes = f->stages * (stage + 16);
	return f->stages > 1 && c->shared_bytes <= room;
}

/* Blocks that run at a time. An H200 has no room for clusters of 4 and 8 on some of its SMs. */
static double count_at_a_time(const struct kernel_device *d, const struct gemm_choice *c)
{
	const double share = c->cluster > 4 ? .85 : c->cluster > 2 ? .91 : 1;
	return share * d->sms * (2 * (c->shared_bytes + RESERVED) <= SM_BYTES + RESERVED ? 2 : 1);
}

/* Counts what all get from memory, and what the tiles of the SM with the most blocks read from the
 * L2, which is under way at the same time for the most part.  Blocks that wait for others to end
 * begin anew. */
static double predict(
	const struct kernel_device *d, const struct weir_gemm *w, const struct gemm_choice *c)
{
	const struct gemm_form *f = &c->form;
	const double all = (double)c->clusters * c->cluster;
	const double most = ceil(all / d->sms), turns = ceil(all / count_at_a_time(d, c));
	const double weights = (double)w->n * (double)w->k * kernel_type_bytes(w->type);
	const double kept =
		fmax(gemm_bytes(w) / d->copy_gb_per_s, most * weights / all / SM_BYTES_NS);
	const double of_a = f->bn * (c->parts == 1 && 2 * f->bm <= f->bn ? A_SHARE : 1);
	const double of_l2 = most * over(over(w->k, 64), c->parts) * 128. * (f->bm + of_a);
	const double by_l2 = of_l2 / (L2_BYTES * d->boost_mhz) * 1e3;
	const int doublings = 31 - __builtin_clz(c->cluster); /* no log2(): glibc 2.29 */
	return LAUNCH_NS + START_NS + JOIN_NS * doublings + fmax(kept, by_l2) +
	       .1 * fmin(kept, by_l2) + (turns - 1) * TURN_NS * (1 + doublings / 2.);
}

static void name_choice(const struct weir_gemm *w, struct gemm_choice *c)
{
	const struct gemm_form *f = &c->form;
	snprintf(c->name, sizeof c->name, "weir_gemm_%s%s_few_%ux%u_s%u_p%u%s",
		kernel_type_word(w->type), gemm_epilogue_word(w->epilogue), f->bm, f->bn, f->stages,
		c->parts, w->b_stays ? "_ahead" : "");
}

static size_t put_in_order(struct gemm_choice *all, size_t n, const struct gemm_choice *c)
{
	size_t at = n;
	for (; at > 0 && c->predicted_ns < all[at - 1].predicted_ns; at--)
		if (at < FEW_FORMS)
			all[at] = all[at - 1];
	if (at < FEW_FORMS)
		all[at] = *c;
	return n < FEW_FORMS ? n + 1 : n;
}

size_t few_choose(const struct kernel_device *d, const struct weir_gemm *w,
	struct gemm_choice ret[static FEW_FORMS])
{
	size_t n = 0;
	unsigned bn = 16;
	while (bn < w->m && bn < ROWS_MOST)
		bn *= 2;
	if (!is_few(d, w))
		return 0;
	struct kernel_device like = *d; /* an unknown one has the order of an H100 */
	like.copy_gb_per_s = d->copy_gb_per_s ? d->copy_gb_per_s : 2900;
	like.boost_mhz = d->boost_mhz ? d->boost_mhz : 1755;
	for (unsigned warpgroups = 1; warpgroups <= 4; warpgroups *= 2)
		for (unsigned parts = 1; parts <= 8 && parts <= over(w->k, 64); parts *= 2) {
			struct gemm_choice c = { .form = { .bm = 64 * warpgroups,
							 .bn = bn,
							 .clm = 1,
							 .cln = 1,
							 .few = true },
				.block = 128 * warpgroups + 32,
				.cluster = parts,
				.parts = parts };
			c.clusters = over(w->n, c.form.bm);
			if (!fill_stages(d, w, &c))
				continue;
			c.predicted_ns = predict(&like, w, &c);
			name_choice(w, &c);
			n = put_in_order(ret, n, &c);
		}
	for (size_t i = 0; i < n && !d->copy_gb_per_s; i++)
		ret[i].predicted_ns = 0;
	return n;
}

void few_program(const struct weir_gemm *w, const struct gemm_choice *c, struct buf *ret)
{
	const struct gemm_form *f = &c->form;
	buf_put_text(ret, "#include \"gemm_few.cu\"\n");
	gemm_put_wgmma(w, f->bn, ret);
	buf_printf(ret,
		"extern \"C\" __global__ void __launch_bounds__(%u) %s(const __grid_constant__ few_args p)\n"
		"{\nDYNAMIC_SHARED(shared);\n"
		"few<%s, wgmma, %u, %u, %u, %u, %u, %s>(p, shared_address(shared)).run();\n}\n",
		c->block, c->name, kernel_type_word(w->type), f->bm / 64, f->bn, f->stages,
		c->parts, w->epilogue, w->b_stays ? "true" : "false");
}
