/* The table of devices: found by the driver's names, and figures that do not contradict each other.
 */
#include "unit.h"

#include "predict/gpu.h"
#include "predict/occupancy.h"

static void devices_are_found_by_the_drivers_names(void **state)
{
	static const struct {
		const char *name;
		unsigned cc, sms;
		double dram_gb_per_s;
	} rows[] = {
		{ "Tesla V100-SXM2-16GB", 70, 80, 900 },
		{ "Tesla V100-PCIE-32GB", 70, 80, 900 },
		{ "Tesla T4", 75, 40, 320 },
		{ "NVIDIA A100-SXM4-40GB", 80, 108, 1555 },
		{ "NVIDIA A100-PCIE-40GB", 80, 108, 1555 },
		{ "NVIDIA A100-SXM4-80GB", 80, 108, 2039 },
		{ "NVIDIA A100 80GB PCIe", 80, 108, 1935 },
		{ "NVIDIA A10", 86, 72, 600 },
		{ "NVIDIA A30", 80, 56, 933 },
		{ "NVIDIA L4", 89, 58, 300 },
		{ "NVIDIA L40S", 89, 142, 864 },
		{ "NVIDIA GeForce RTX 3090", 86, 82, 936 },
		{ "NVIDIA GeForce RTX 4090", 89, 128, 1008 },
		{ "NVIDIA GeForce RTX 5090", 120, 170, 1792 },
		{ "NVIDIA H100 PCIe", 90, 114, 2000 },
		{ "NVIDIA H100 80GB HBM3", 90, 132, 3350 },
		{ "NVIDIA H200", 90, 132, 4800 },
		{ "NVIDIA B200", 100, 148, 8000 },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct gpu *g = gpu_find(rows[i].name, rows[i].cc);
		assert_non_null(g);
		assert_int_equal(g->sms, rows[i].sms);
		assert_true(g->dram_gb_per_s == rows[i].dram_gb_per_s);
		assert_ptr_equal(gpu_find(rows[i].name, 0), g);
		assert_null(gpu_find(rows[i].name, rows[i].cc + 1));
	}
	assert_true(gpu_find("NVIDIA H200 NVL", 90)->boost_mhz < 1980);
}

static void a_device_of_no_row_is_not_guessed(void **state)
{
	assert_null(gpu_find("NVIDIA A1000", 86));
	assert_null(gpu_find("NVIDIA GeForce RTX 3090 Ti", 86));
	assert_null(gpu_find("", 90));
	assert_null(gpu_find(NULL, 90));
}

static void a_peak_that_is_not_there_is_not_zero(void **state)
{
	double flops = -1;
	assert_false(gpu_peak(gpu_find("Tesla T4", 75), GPU_FP8, &flops));
	assert_true(flops == -1);
	assert_true(gpu_peak(gpu_find("NVIDIA H200", 90), GPU_FP32, &flops));
	assert_true(flops == 67e12);
	assert_string_equal(gpu_unit_word(GPU_FP16), "fp16");
}

static void a_share_is_of_the_ceiling_that_applies(void **state)
{
	const struct gpu *h200 = gpu_find("NVIDIA H200", 90);
	const struct gpu *a100 = gpu_find("NVIDIA A100-SXM4-80GB", 80);
	bool beyond;
	/* All that was measured counts, and a faster run is shown as that: nothing is cut at 1. */
	assert_true(gpu_flops_share(h200, GPU_TF32, true, 405e12 / 2, &beyond) == 0.5);
	assert_false(beyond);
	assert_true(gpu_flops_share(h200, GPU_TF32, true, 450e12, &beyond) == 450.0 / 405);
	assert_false(beyond);
	assert_true(gpu_flops_share(h200, GPU_TF32, true, 810e12, &beyond) == 2);
	assert_true(beyond);
	assert_true(gpu_flops_share(a100, GPU_FP8, true, 1e12, &beyond) == 0);
	/* Products of FP64 have tensor cores of their own. */
	assert_true(gpu_flops_share(h200, GPU_FP64, true, 67e12, &beyond) == 1);
	assert_false(beyond);
	assert_true(gpu_flops_share(h200, GPU_FP64, false, 67e12, &beyond) > 1.9);
	assert_true(beyond);
	/* Bytes: from the memory; faster than that, from the L2, if they fit. */
	assert_true(gpu_bytes_share(a100, 2039e3, 2000, &beyond) == 0.5);
	const double l2 = gpu_bytes_share(a100, 10e6, 10e6 / (5.12 * 1410 / 2), &beyond);
	assert_true(l2 > 0.49 && l2 < 0.51 && !beyond);
	assert_true(gpu_bytes_share(h200, 4700e3, 1000, &beyond) == 4700.0 / 4627);
	assert_false(beyond);
	assert_true(gpu_bytes_share(h200, 8e6, 8e6 / 6000, &beyond) == 0);
	/* Much more than the L2 holds cannot have come from there. */
	assert_true(gpu_bytes_share(h200, 10e9, 10e9 / 9600, &beyond) > 1.9 && beyond);
	assert_true(gpu_bytes_share(a100, 10e9, 10e9 / 9600, &beyond) > 1.9 && beyond);
}

/* A mistyped digit shows as a peak that clock and multiprocessors cannot give. */
static void plain_peaks_follow_from_clock_and_multiprocessors(void **state)
{
	for (size_t i = 0; i < gpu_count; i++) {
		const struct gpu *g = &gpus[i];
		const double lanes = g->cc == 70 || g->cc == 75 || g->cc == 80 ? 64 : 128;
		const double expected = g->sms * lanes * 2 * g->boost_mhz * 1e6;
		double flops = 0;
		assert_true(gpu_peak(g, GPU_FP32, &flops));
		assert_true(flops > 0.95 * expected && flops < 1.05 * expected);
		for (int unit = GPU_TF32 + 1; unit < GPU_UNITS; unit++)
			if ((g->has >> unit & 1) && (g->has >> (unit - 1) & 1))
				assert_true(g->tflops[unit] >= 1.9 * g->tflops[unit - 1]);
		assert_non_null(occupancy_device_find(g->cc / 10, g->cc % 10));
		assert_true(g->dram_gb_per_s >= 300 && g->l2_bytes >= 4u << 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_found_by_the_drivers_names),
		cmocka_unit_test(a_device_of_no_row_is_not_guessed),
		cmocka_unit_test(a_peak_that_is_not_there_is_not_zero),
		cmocka_unit_test(a_share_is_of_the_ceiling_that_applies),
		cmocka_unit_test(plain_peaks_follow_from_clock_and_multiprocessors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
