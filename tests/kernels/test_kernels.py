"""weir.kernels on the simulated driver, with tensors of a small producer of DLPack: shapes, strides and types reach the
library, and what cannot be done is refused in words.  No kernel executes there."""
import ctypes as C
import sys
import unittest

from weir import kernels

CODES = {"f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "i32": (0, 32), "s8": (0, 8), "e4m3": (10, 8)}
cuda = C.CDLL("libcuda.so.1")
KEPT = []


class Tensor:
    """An array of the first GPU, or of the host."""

    def __init__(self, shape, dtype="f32", strides=None, kind=2, offset=0):
        self.shape, self.dtype, self.kind, self.offset = tuple(shape), dtype, kind, offset
        if strides is None:
            strides, step = [], 1
            for n in reversed(shape):
                strides.insert(0, step)
                step *= max(n, 1)
        self.strides = tuple(strides)
        if kind == 1:
            self.memory = C.create_string_buffer(bytes(range(1, 256)) * 257, 1 << 16)
            self.at = C.c_uint64(C.addressof(self.memory))
            return
        self.at = C.c_uint64()
        assert cuda.cuMemAlloc_v2(C.byref(self.at), C.c_size_t(1 << 20)) == 0

    def transpose(self, *order):
        turned = Tensor([self.shape[i] for i in order], self.dtype, [self.strides[i] for i in order], self.kind, self.offset)
        turned.at = self.at
        turned.memory = getattr(self, "memory", None)
        return turned

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        code, bits = CODES[self.dtype]
        n = len(self.shape)
        shape, strides = (C.c_int64 * n)(*self.shape), (C.c_int64 * n)(*self.strides)
        t = kernels._DLTensor(self.at.value, self.kind, 0, n, code, bits, 1, shape, strides, self.offset)
        KEPT.append((t, shape, strides))
        new = C.pythonapi.PyCapsule_New
        new.restype, new.argtypes = C.py_object, [C.c_void_p, C.c_char_p, C.c_void_p]
        return new(C.addressof(t), b"dltensor", None)


def empty_like(of):
    return Tensor(of.shape, of.dtype, kind=of.kind)


def empty(shape, dtype):
    return Tensor(shape, dtype, kind=PLACE[0])


PLACE = [2]  # of what empty() makes: 1 is the host


def nhwc(n, c, h, w, dtype="bf16"):
    return Tensor((n, h, w, c), dtype).transpose(0, 3, 1, 2)


Tensor.__module__ = "__main__"


class Kernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        context = C.c_void_p()
        assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0) == 0
        assert cuda.cuCtxSetCurrent(context) == 0

    def last(self):
        return kernels.plans()[-1]

    def test_each_operation_gives_a_tensor_of_the_same_shape(self):
        x = Tensor((2, 3, 64), "bf16")
        w = Tensor((64,), "bf16")
        self.assertEqual(kernels.softmax(x).shape, x.shape)
        self.assertEqual(kernels.log_softmax(x).shape, x.shape)
        self.assertEqual(kernels.layer_norm(x, w, w).shape, x.shape)
        self.assertEqual(kernels.rms_norm(x, w, residual=x, sum_out=Tensor(x.shape, "bf16")).shape, x.shape)
        self.assertIn("weir_rms_norm_bf16", self.last())

    def test_rows_without_a_common_stride_are_launched_part_by_part(self):
        count = 0
        library = kernels._get()
        run = library.c.weir_rows_run
        seen = []

        class Spy:
            def __getattr__(self, name):
                return getattr(real, name)

            def weir_rows_run(self, plan, args, stream):
                seen.append(args._obj.x)
                return run(plan, args, stream)

        real, library.c = library.c, Spy()
        try:
            x = Tensor((4, 3, 8), strides=(100, 8, 1))
            kernels.softmax(x)
            self.assertEqual([a - x.at.value for a in seen], [0, 400, 800, 1200])
            del seen[:]
            kernels.softmax(Tensor((4, 3, 8)))
            self.assertEqual(len(seen), 1)
            del seen[:]
            kernels.softmax(Tensor((4, 0, 8)))
            self.assertEqual(seen, [])
            kernels.softmax(Tensor((5,)))
            self.assertEqual(len(seen), 1)
        finally:
            library.c = real
        self.assertEqual(count, 0)

    def test_products_take_transposed_views_and_epilogues(self):
        x, w = Tensor((2, 8, 64), "bf16"), Tensor((32, 64), "bf16")
        b = Tensor((32,), "bf16")
        for activation in (None, "relu", "gelu", "silu"):
            self.assertEqual(kernels.linear(x, w, b, activation).shape, (2, 8, 32))
        self.assertEqual(kernels.linear(x, w, activation="swiglu").shape, (2, 8, 16))
        self.assertEqual(kernels.linear(x, w, residual=Tensor((2, 8, 32), "bf16")).shape, (2, 8, 32))
        kernels.linear(Tensor((8, 64), "f16", (1, 8)), Tensor((32, 64), "f16", (1, 32)))
        self.assertIn("weir_gemm_f16", self.last())

    def test_convolutions_take_images_in_channels_last(self):
        x, w, b = nhwc(2, 64, 9, 8), nhwc(32, 64, 3, 3), Tensor((32,), "bf16")
        y = kernels.conv2d(x, w, b, stride=(2, 1), padding=1, activation="relu")
        self.assertEqual((y.shape, y.strides), ((2, 32, 5, 8), (1280, 1, 256, 32)))
        self.assertIn("weir_conv_bf16_bias_relu_nn", self.last())
        self.assertEqual(kernels.conv2d(x, w, residual=nhwc(2, 32, 7, 6)).shape, (2, 32, 7, 6))
        self.assertEqual(kernels.conv2d(x, nhwc(64, 1, 3, 3), dilation=2, groups=64).shape, (2, 64, 5, 4))
        self.assertIn("direct", self.last())
        self.assertEqual(kernels.conv2d_input(x.shape, w, nhwc(2, 32, 9, 8), padding=1).shape, x.shape)
        self.assertIn("weir_conv_bf16_nt", self.last())
        self.assertEqual(kernels.conv2d_weight(x, w.shape, nhwc(2, 32, 9, 8), padding=1).shape, w.shape)
        self.assertIn("weir_conv_bf16_tt", self.last())
        kernels.conv2d_weight(nhwc(2, 64, 9, 8, "f32"), w.shape, nhwc(2, 32, 9, 8, "f32"), padding=1)
        self.assertIn("weir_conv_f32_filters", self.last())

    def test_products_of_8_bits_have_scales_and_another_result(self):
        scales = {"x_scale": Tensor((16,)), "weight_scale": Tensor((32,))}
        for dtype, result in (("s8", "s8"), ("s8", "bf16"), ("e4m3", "f16")):
            x, w, out = Tensor((2, 8, 64), dtype), Tensor((32, 64), dtype), Tensor((2, 8, 32), result)
            kernels.linear(x, w, Tensor((32,)), "relu", out=out, **scales)
            self.assertIn(f"weir_gemm_{dtype}_to_{result}_", self.last())
        for wrong, words in (
                (lambda: kernels.linear(x, w, out=out), "needs x_scale"),
                (lambda: kernels.linear(x, w, out=out, **{**scales, "x_scale": Tensor((2, 8))}), "x_scale has shape"),
                (lambda: kernels.linear(x, w, Tensor((32,), "f16"), out=out, **scales), "float32"),
                (lambda: kernels.softmax(x), "type is none"),
                (lambda: kernels.linear(x, w, out=Tensor((2, 8, 32), "s8"), **scales), "d_type"),
                (lambda: kernels.linear(Tensor((4, 8)), Tensor((6, 8)), x_scale=Tensor((4,)), weight_scale=Tensor((6,))),
                 "8 bits"),
        ):
            with self.assertRaisesRegex((TypeError, kernels.Error), words):
                wrong()

    def test_products_of_float32_run_as_tf32_where_that_is_asked_for(self):
        x, w, b = Tensor((2, 8, 64)), Tensor((32, 64)), Tensor((32,))
        self.assertEqual(kernels.linear(x, w, b, "gelu", tf32=True).dtype, "f32")
        self.assertIn("weir_gemm_tf32_bias_gelu_nn_", self.last())
        kernels.linear(x, w, b, "gelu", tf32=3)
        self.assertIn("weir_gemm_tf32x3_bias_gelu_nn_", self.last())
        kernels.bmm(Tensor((3, 8, 64)), Tensor((3, 64, 32)), tf32=True)
        self.assertIn("weir_gemm_tf32_batch_nn_", self.last())
        kernels.linear(x, w, b, "gelu")
        self.assertIn("weir_gemm_f32_plain", self.last())
        with self.assertRaisesRegex(TypeError, "True or 3"):
            kernels.linear(x, w, b, "gelu", tf32=2)
        with self.assertRaisesRegex(TypeError, "float32"):
            kernels.linear(Tensor((8, 64), "f16"), Tensor((32, 64), "f16"), tf32=True)

    def test_convolutions_of_int8_have_scales_and_another_result(self):
        nhwc = lambda n, c, h, w, dtype: Tensor((n, h, w, c), dtype).transpose(0, 3, 1, 2)
        x, w, s = nhwc(2, 32, 9, 9, "s8"), nhwc(48, 32, 3, 3, "s8"), Tensor((48,))
        out = nhwc(2, 48, 9, 9, "bf16")
        kernels.conv2d(x, w, Tensor((48,)), padding=1, activation="relu", out=out, weight_scale=s)
        self.assertIn("weir_conv_s8_to_bf16_bias_relu_nn_", self.last())
        for wrong, words in (
                (lambda: kernels.conv2d(x, w, padding=1, weight_scale=s), "needs weight_scale and out"),
                (lambda: kernels.conv2d(x, w, padding=1, out=out), "needs weight_scale and out"),
                (lambda: kernels.conv2d(x, w, Tensor((48,), "bf16"), padding=1, out=out, weight_scale=s), "float32"),
                (lambda: kernels.conv2d_weight(x, (48, 32, 3, 3), nhwc(2, 48, 9, 9, "s8"), padding=1), "needs weight_scale"),
        ):
            with self.assertRaisesRegex((TypeError, kernels.Error), words):
                wrong()

    def test_few_rows_may_begin_before_the_launch_before_has_ended(self):
        x, w = Tensor((8, 4096), "bf16"), Tensor((4096, 4096), "bf16")
        kernels.linear(x, w)
        self.assertRegex(self.last(), r"weir_gemm_bf16_few_[0-9x]+_s[0-9]+_p[0-9] ")
        kernels.linear(x, w, weight_stays=True)
        self.assertRegex(self.last(), r"weir_gemm_bf16_few_[0-9a-z_]*_ahead ")

    def test_batches_are_one_plan_whose_matrices_may_be_shared(self):
        a, b = Tensor((3, 8, 64), "bf16"), Tensor((3, 64, 32), "bf16")
        self.assertEqual(kernels.bmm(a, b, residual=Tensor((3, 8, 32), "bf16")).shape, (3, 8, 32))
        self.assertIn("weir_gemm_bf16_residual_batch_nt_", self.last())
        kernels.bmm(a, Tensor((3, 32, 64), "bf16").transpose(0, 2, 1))
        self.assertIn("weir_gemm_bf16_batch_nn_", self.last())
        kernels.bmm(Tensor((3, 64, 8), "bf16").transpose(0, 2, 1), Tensor((3, 64, 32), "bf16", (0, 32, 1)))
        self.assertIn("weir_gemm_bf16_batch_tt_", self.last())
        self.assertEqual(kernels._get().plans.popitem()[0][-6:-3], (512, 0, 256))
        for wrong, words in (
                (lambda: kernels.bmm(a, Tensor((3, 32, 64), "bf16")), r"\(B, K, N\)"),
                (lambda: kernels.bmm(a, b, out=Tensor((3, 8, 32), "bf16", (0, 32, 1))), "a matrix for each"),
                (lambda: kernels.bmm(a, b, tf32=True), "for float32"),
                (lambda: kernels.bmm(a, b, residual=Tensor((8, 32), "bf16")), "shape of the result"),
                (lambda: kernels.bmm(a, Tensor((3, 64, 32), "bf16", (4096, 64, 2))), "contiguous"),
        ):
            with self.assertRaisesRegex(TypeError, words):
                wrong()

    def test_rows_of_tensors_of_any_dimensions_are_one_launch(self):
        for shape in ((48,), (4, 48), (2, 3, 4, 48), (2, 1, 3, 2, 48)):
            self.assertEqual(kernels.softmax(Tensor(shape, "f16")).shape, shape)
            plan = list(kernels._get().plans)[-1]
            rows = 1
            for n in shape[:-1]:
                rows *= n
            self.assertEqual(plan[4:8], (rows, 48, 48, 1))

    def test_tensors_at_multiples_of_16_bytes_need_one_kernel(self):
        aligned = lambda: list(kernels._get().plans)[-1][-1]
        kernels.softmax(Tensor((4, 48), "f16"))
        self.assertTrue(aligned())
        kernels.softmax(Tensor((4, 48), "f16", offset=2))
        self.assertFalse(aligned())
        kernels.softmax(Tensor((4, 3, 48), "f16", (1001, 48, 1)))  # launched part by part
        self.assertFalse(aligned())
        product = lambda: list(kernels._get().plans)[-1][-2]  # behind it stands what others have not
        kernels.linear(Tensor((8, 48), "f16"), Tensor((32, 48), "f16"))
        self.assertTrue(product())
        kernels.linear(Tensor((8, 48), "f16"), Tensor((32, 48), "f16", offset=2))
        self.assertFalse(product())
        kernels.conv2d(nhwc(2, 64, 9, 8), nhwc(32, 64, 3, 3))
        self.assertTrue(product())

    def test_arrays_of_the_host_are_copied_and_come_back_as_they_were(self):
        host = lambda *shape, dtype="f32", strides=None: Tensor(shape, dtype, strides, kind=1)
        before = host(1).memory.raw
        PLACE[0] = 1
        try:
            for result in (
                    kernels.softmax(host(4, 8)), kernels.layer_norm(host(4, 8, strides=(9, 1)), host(8)),
                    kernels.linear(host(8, 16), host(16, 4).transpose(1, 0), host(4), "gelu"),
                    kernels.linear(host(8, 16), host(4, 16), out=host(8, 4, strides=(7, 1))),
                    kernels.bmm(host(3, 8, 16), host(3, 16, 4)),
                    kernels.conv2d(*(Tensor((n, h, h, 8), "f16", kind=1).transpose(0, 3, 1, 2) for n, h in ((2, 9), (16, 3)))),
                    kernels.conv2d_weight(Tensor((2, 9, 9, 8), "f16", kind=1).transpose(0, 3, 1, 2), (16, 8, 3, 3),
                                          Tensor((2, 7, 7, 16), "f16", kind=1).transpose(0, 3, 1, 2))):
                self.assertEqual(result.kind, 1)
                self.assertEqual(result.memory.raw, before)  # no kernel executes here
        finally:
            PLACE[0] = 2
        for wrong, words in (
                (lambda: kernels.linear(host(8, 16), Tensor((4, 16))), "one place"),
                (lambda: kernels.bmm(host(3, 8, 16), Tensor((3, 16, 4)), out=host(3, 8, 4)), "one place"),
                (lambda: kernels.softmax(host(4, 8, strides=(-8, 1)), out=host(4, 8)), "negative stride"),
        ):
            with self.assertRaisesRegex(TypeError, words):
                wrong()

    def test_what_cannot_be_done_is_refused_in_words(self):
        x = Tensor((4, 8))
        for wrong, words in (
                (lambda: kernels.softmax([1.0]), "__dlpack__"),
                (lambda: kernels.softmax(Tensor((4, 8), "i32")), "float32"),
                (lambda: kernels.softmax(Tensor((4, 8), kind=8)), "CUDA"),
                (lambda: kernels.softmax(Tensor(())), "dimension"),
                (lambda: kernels.softmax(x, out=Tensor((4, 9))), "out|y has"),
                (lambda: kernels.layer_norm(x, Tensor((9,))), "weight"),
                (lambda: kernels.layer_norm(x, Tensor((8,), strides=(2,))), "contiguous"),
                (lambda: kernels.rms_norm(x, residual=x, sum_out=Tensor((4, 8), strides=(16, 1))), "strides"),
                (lambda: kernels.linear(x, Tensor((5, 9))), "alike"),
                (lambda: kernels.linear(x, Tensor((6, 8)), activation="gelu"), "bias"),
                (lambda: kernels.linear(x, Tensor((6, 8)), activation="tan"), "activation"),
                (lambda: kernels.linear(Tensor((4, 8), strides=(4, 1)), Tensor((6, 8))), "contiguous"),
                (lambda: kernels.conv2d(x, Tensor((6, 8))), "four dimensions"),
                (lambda: kernels.conv2d(nhwc(1, 8, 4, 4), nhwc(8, 8, 1, 1), groups=2), "channels"),
                (lambda: kernels.conv2d(Tensor((1, 8, 4, 4)), nhwc(8, 8, 1, 1, "f32")), "channels_last"),
                (lambda: kernels.conv2d(nhwc(1, 8, 4, 4), nhwc(8, 8, 1, 1), activation="gelu"), "bias"),
                (lambda: kernels.conv2d(nhwc(1, 8, 4, 4), nhwc(8, 8, 1, 1), stride=0), "stride"),
                (lambda: kernels.conv2d(nhwc(1, 8, 4, 4), nhwc(8, 8, 1, 1, "f16")), "one type"),
        ):
            with self.assertRaisesRegex(TypeError, words):
                wrong()
        with self.assertRaisesRegex(kernels.Error, "epsilon"):
            kernels.rms_norm(x, epsilon=-1.0)
        with self.assertRaisesRegex(kernels.Error, "higher than the padded image"):
            kernels.conv2d(nhwc(1, 8, 2, 4), nhwc(8, 8, 3, 1), out=nhwc(1, 8, 0, 4))
        with self.assertRaisesRegex(kernels.Error, "no multiple"):
            kernels.softmax(Tensor((4, 8), offset=2))


if __name__ == "__main__":
    if cuda.cuInit(0):
        print("there is no driver")
        sys.exit(77)
    unittest.main()
