/* The identity of a kernel, and which launches are the same one. */
#include "unit.h"

#include <errno.h>

#include "predict/predict.h"

static struct predict_kernel named(const char *name)
{
	struct predict_kernel k = { 0 };
	predict_kernel_name(&k, name, 0);
	return k;
}

static void siblings_share_a_group_and_not_an_id(void **state)
{
	static const char *const siblings[][2] = {
		{ "void k<float, 128>(float *, int)", "void k<double, 64>(double *, int)" },
		{ "ampere_sgemm_128x64_nn", "ampere_sgemm_64x64_nn" },
		{ "void f<(anonymous namespace)::A>(int)", "void f<B<C, D> >(long)" },
		{ "void (anonymous namespace)::g<1>(int)",
			"void (anonymous namespace)::g<2>(int)" },
		{ "void h<&(int)>::operator()(int)", "void h<8>::operator()(long)" },
	};
	for (size_t i = 0; i < COUNT_OF(siblings); i++) {
		const struct predict_kernel a = named(siblings[i][0]), b = named(siblings[i][1]);
		assert_true(a.group == b.group);
		assert_true(a.id != b.id);
	}
	assert_true(named("copy_a(int)").group != named("copy_b(int)").group);
	assert_true(named("ampere_sgemm_nn").group != named("ampere_sgemm_nt").group);
}

static void one_name_in_two_binaries_is_two_kernels(void **state)
{
	struct predict_kernel a = { 0 }, b = { 0 };
	predict_kernel_name(&a, "k", 1);
	predict_kernel_name(&b, "k", 2);
	assert_true(a.id != b.id && a.group == b.group);
}

static void families_are_found_by_words(void **state)
{
	static const struct {
		const char *name, *family;
	} rows[] = {
		{ "ampere_sgemm_128x64_nn", "gemm" },
		{ "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16>(P)", "gemm" },
		{ "fmha_cutlassF_f16_aligned_64x64_rf_sm80(P)", "attention" },
		{ "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90>>(P)",
			"attention" },
		{ "void at::native::vectorized_elementwise_kernel<4, FillFunctor<int>>(int, F)",
			"elementwise" },
		{ "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)",
			"norm" },
		{ "void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps>>(R)", "reduce" },
		{ "void at::native::(anonymous namespace)::distribution_elementwise_grid<normal>()",
			"random" },
		{ "void cudnn::winograd_nonfused::winogradForwardData4x4<float>(P)", "conv" },
		{ "void softmax_warp_forward<float, float, float, 10, false, false>(float *)",
			"softmax" },
		{ "nvjet_sm90_hsh_96x128_64x7_2x1_v_bz_bias_TNN", "gemm" },
		{ "mystery", "unknown" },
		/* "mma" is in Gamma and in AdamMath, "conv" in convert, "cast" in broadcast,
		   "reduce" in reduced. */
		{ "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float>(long)",
			"norm" },
		{ "void cuComputePartGradGammaBeta<float>(float const*)", "norm" },
		{ "gammaCorrection", "unknown" },
		{ "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4> >(int)",
			"elementwise" },
		{ "cudnn::ops::convertTensor_kernel", "copy" },
		{ "broadcast_row", "unknown" },
		{ "void k<int>(reduced_divisor)", "unknown" },
		/* Words end where those of the name do, as it writes them. */
		{ "k<sm90_wgmma_64x64>", "gemm" },
		{ "k<mma>", "gemm" },
		{ "k<fp32mma16>", "gemm" },
		{ "k<MMAPolicy>", "gemm" },
		{ "k<WarpMma>", "gemm" },
		{ "conv2d_kernel", "conv" },
		{ "fftconv", "conv" },
		{ "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernelE", "conv" },
		{ "void at::native::mbtopk::gatherTopK<float>(int)", "sort" },
		{ "void internal::gemvx::kernel<int>(int)", "gemm" },
		{ "void cublasLt::splitKreduce_kernel<32, 16>(int)", "gemm" },
		/* One attention, by whatever library and in whatever part of it. */
		{ "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0",
			"attention" },
		{ "void cudnn::fusion::convert_dq_to_16bits<true>(void const*)", "attention" },
		/* The operation of multi_tensor_apply stands in its template arguments, if
		 * anywhere. */
		{ "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(int)",
			"elementwise" },
		{ "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float> >(int)",
			"reduce" },
		{ "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, UnaryOpFunctor<float>, Copy<float, float> >(int)",
			"copy" },
		/* Names of all operators that a compiler merged. */
		{ "triton_poi_fused__scaled_dot_product_cudnn_attention_convolution_add_1",
			"elementwise" },
		{ "triton_red_fused_convolution_native_batch_norm_backward_2", "norm" },
		{ "triton_red_fused_mm_sum_0", "reduce" },
		{ "triton_tem_fused_addmm_relu_3", "gemm" },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct predict_kernel k = named(rows[i].name);
		assert_string_equal(predict_family_word(k.family), rows[i].family);
	}
	for (int i = 0; i < FAMILIES; i++)
		assert_int_equal(
			predict_family_find(predict_family_word((enum predict_family)i)), i);
	assert_int_equal(predict_family_find("poetry"), FAMILY_UNKNOWN);
}

static void a_tile_and_an_element_are_read_from_a_name(void **state)
{
	static const struct {
		const char *name;
		unsigned m, n, bytes;
	} rows[] = {
		{ "ampere_sgemm_128x64_nn", 128, 64, 4 },
		{ "sm80_xmma_gemm_f16f16_nn_n_tilesize64x256x32_warpsize2x2x1", 64, 256, 2 },
		{ "sm90_xmma_fprop_1x1x1_f32f32_tilesize128x32x8_stage3", 128, 32, 4 },
		{ "nvjet_sm90_tst_64x24_64x16_1x4_h_bz_NNT", 64, 24, 0 },
		{ "void k<c10::BFloat16, 4>(int)", 0, 0, 2 },
		{ "gemm_99999x8", 10000, 8, 0 },
		{ "warps_4x2x1", 0, 0, 0 },
		{ "x128x", 0, 0, 0 },
		{ "", 0, 0, 0 },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct predict_kernel k = named(rows[i].name);
		assert_int_equal(k.element_bytes, rows[i].bytes);
		assert_int_equal(k.tile[1], rows[i].n);
		assert_int_equal(k.tile[0], rows[i].m);
	}
}

static void a_name_of_any_length_and_shape_is_taken(void **state)
{
	static const char *const odd[] = { "", "<", ">", "<<<<", "void ", "((((", "a>b<c", "()" };
	char text[5000];
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = 0;
	for (size_t i = 0; i < COUNT_OF(odd); i++)
		assert_true(named(odd[i]).id);
	assert_int_equal(named(text).family, FAMILY_UNKNOWN);
}

/* Every field of a launch that decides its time makes another key, the rest does not. */
static void the_key_tells_launches_apart(void **state)
{
	const struct predict_kernel k = named("k"), other = named("other");
	const struct predict_launch first = { .kernel = &k,
		.grid = { 1, 2, 3 },
		.block = { 32, 2, 1 },
		.args = 3,
		.arg = { 7, 8, 9 } };
	struct predict_launch l[12];
	for (size_t i = 0; i < COUNT_OF(l); i++)
		l[i] = first;
	l[1].kernel = &other;
	l[2].grid[0]++;
	l[3].grid[1]++;
	l[4].grid[2]++;
	l[5].block[0]++;
	l[6].block[1]++;
	l[7].block[2]++;
	l[8].smem_dynamic_bytes = 1;
	l[9].args = 2;
	l[10].arg[2] = 10;
	l[11].arg[0] = 8;
	l[11].arg[1] = 7;
	for (size_t i = 0; i < COUNT_OF(l); i++)
		for (size_t j = 0; j < i; j++)
			assert_true(predict_key(&l[i]) != predict_key(&l[j]));
	struct predict_launch same = first;
	same.arg[3] = 99;
	same.has_bytes = same.has_flops = same.contended = true;
	same.bytes = same.flops = 1e9;
	assert_true(predict_key(&same) == predict_key(&first));
}

static void a_device_is_found_or_refused(void **state)
{
	struct predict_device d;
	assert_int_equal(predict_device_find("NVIDIA H200", 90, 0, &d), 0);
	assert_int_equal(d.sms, 132);
	assert_int_equal(d.sm.warps_per_sm, 64);
	assert_true(d.dram_bytes_ns == 4800);
	assert_int_equal(predict_device_find("NVIDIA H200", 90, 104, &d), 0);
	assert_int_equal(d.sms, 104);
	assert_int_equal(predict_device_find("Voodoo 2", 90, 0, &d), -ENODEV);
	assert_int_equal(predict_device_find("NVIDIA H200", 80, 0, &d), -ENODEV);
}

static void a_product_is_done_by_the_kernels_that_multiply(void **state)
{
	static const struct {
		const char *name;
		bool helps, fewer;
	} rows[] = {
		{ "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_kernel_cudnn",
			false, false },
		{ "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>(int)", true,
			false },
		{ "void cudnn::ops::convertTensor_kernel<float, float, float>(int)", true, false },
		{ "void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)", true, false },
		{ "void at::native::im2col_kernel<float>(long)", true, false },
		{ "void cask__5x_cudnn::computeOffsetsKernel<false, false>(int)", true, false },
		{ "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
			true, false },
		/* The epilogue's words are in a computing kernel's template arguments. */
		{ "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16>(cutlass::epilogue::Params)",
			false, false },
		{ "ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", false, true },
		{ "void cudnn::winograd_nonfused::winogradForwardData4x4<float>(int)", true, true },
		{ "void fft2d_r2c_32x32<float, false>(float2*)", true, true },
		{ "void pytorch_flash::flash_fwd_splitkv_combine_kernel<int>(int)", true, false },
		{ "void pytorch_flash::flash_fwd_kernel<cutlass::half_t>(int)", false, false },
		{ "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_ffma_execute_split_k_kernel__5x_cublas",
			true, false },
		{ "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_execute_segment_k_off_kernel__5x_cublas",
			false, false },
		{ "void cutlass__5x_cudnn::Kernel<cutlass__5x_cudnn::reduction::kernel::ReduceSplitK<int> >(int)",
			true, false },
		{ "void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>(void*)", true, false },
		{ "void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<int>(int)",
			true, false },
		{ "void cudnn::fusion::fmha_reduce_head<true>(int)", true, false },
		{ "my_product", false, false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct predict_product p = predict_product_of(rows[i].name);
		if (p.helps != rows[i].helps || p.fewer != rows[i].fewer)
			fail_msg("%s: helps %d, fewer %d", rows[i].name, p.helps, p.fewer);
	}
}

static void gradients_of_weights_are_found_by_words(void **state)
{
	assert_true(predict_product_of("void wgrad_alg0_engine<float, 128>(int)").weight);
	assert_true(predict_product_of("conv_depthwise2d_grad_weight_kernel<float>(int)").weight);
	assert_true(predict_product_of("_ZN17cutlass__5x_cudnn23ImplicitGemmConvolutionINS4_52"
				       "Conv2dWgradOutputGradientTileAccessIterator")
			    .weight);
	assert_false(predict_product_of("sm80_xmma_dgrad_implicit_gemm_f32f32_f32").weight);
	assert_false(predict_product_of("sm80_xmma_fprop_implicit_gemm_f32f32_f32").weight);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siblings_share_a_group_and_not_an_id),
		cmocka_unit_test(one_name_in_two_binaries_is_two_kernels),
		cmocka_unit_test(families_are_found_by_words),
		cmocka_unit_test(a_tile_and_an_element_are_read_from_a_name),
		cmocka_unit_test(a_name_of_any_length_and_shape_is_taken),
		cmocka_unit_test(the_key_tells_launches_apart),
		cmocka_unit_test(a_device_is_found_or_refused),
		cmocka_unit_test(a_product_is_done_by_the_kernels_that_multiply),
		cmocka_unit_test(gradients_of_weights_are_found_by_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
