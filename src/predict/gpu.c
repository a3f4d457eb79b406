/* Which row of api/gpu.tbl a device is: see gpu.h. */
#include "predict/gpu.h"

#include "base/digit.h"

/* The text as the pattern has it: every * is tried with the shortest text first, and only the
 * last one is ever taken back, since what an earlier one took does not matter to a later one. */
static bool fits(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;
	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (ascii_lower(*pattern) == ascii_lower(*text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

const struct gpu *gpu_find(const char *name, unsigned cc)
{
	for (size_t i = 0; name && i < gpu_count; i++)
		if ((!cc || gpus[i].cc == cc) && fits(gpus[i].name, name))
			return &gpus[i];
	return NULL;
}

bool gpu_peak(const struct gpu *g, enum gpu_unit unit, double *ret_flops_per_s)
{
	if (!(g->has >> unit & 1))
		return false;
	*ret_flops_per_s = g->tflops[unit] * 1e12;
	return true;
}

double gpu_bandwidth_ceiling(const struct gpu *g)
{
	return g->reached_gb_per_s > 0 ? g->reached_gb_per_s : g->dram_gb_per_s;
}

bool gpu_ceiling(const struct gpu *g, enum gpu_unit unit, double *ret_flops_per_s)
{
	if (g->reached_tflops[unit] <= 0)
		return gpu_peak(g, unit, ret_flops_per_s);
	*ret_flops_per_s = g->reached_tflops[unit] * 1e12;
	return true;
}

double gpu_flops_share(
	const struct gpu *g, enum gpu_unit unit, bool product, double flops_per_s, bool *ret_beyond)
{
	double peak, ceiling;
	*ret_beyond = false;
	if (!gpu_peak(g, unit, &peak) || !gpu_ceiling(g, unit, &ceiling))
		return 0;
	if (product && unit == GPU_FP64 && g->fp64_products_tflops > 0)
		peak = ceiling = g->fp64_products_tflops * 1e12;
	*ret_beyond = flops_per_s > peak;
	return flops_per_s / ceiling;
}

double gpu_bytes_share(const struct gpu *g, double bytes, double ns, bool *ret_beyond)
{
	const double l2 = g->reached_l2_gb_per_s > 0 ? g->reached_l2_gb_per_s : g->l2_gb_per_s;
	const double past_l2 = (bytes - (double)g->l2_bytes) / g->dram_gb_per_s / ns;
	double share = bytes / ns / gpu_bandwidth_ceiling(g);
	*ret_beyond = false;
	if (bytes / ns <= g->dram_gb_per_s)
		return share;
	share = past_l2;
	if (past_l2 <= 1) {
		const double of_l2 = l2 > 0 ? bytes / ns / l2 : 0;
		share = of_l2 > past_l2 ? of_l2 : l2 > 0 ? past_l2 : 0;
	}
	*ret_beyond = share > 1;
	return share;
}

const char *gpu_unit_word(enum gpu_unit unit)
{
	static const char *const words[GPU_UNITS] = {
		[GPU_FP64] = "fp64",
		[GPU_FP32] = "fp32",
		[GPU_TF32] = "tf32",
		[GPU_FP16] = "fp16",
		[GPU_FP8] = "fp8",
	};
	return words[unit];
}
