"""The invariants of the families of kernels, which are read from names: a part of invariants.py."""
import json
import re
from collections import Counter

from invariant import invariant

# The kernels that PyTorch's operators launch themselves, by the end of the operators' names: all of
# it is of these families.  Only part of a product of matrices multiplies.
LAUNCHED = (
    (r"(_scaled_|b)?mm", {"gemm"}),
    (r"addmm_?|addmv_?|baddbmm_?", {"gemm", "elementwise"}),
    (r"(cudnn|miopen|mkldnn)_convolution.*|convolution_backward|_conv_.*", {"conv", "gemm", "transpose", "copy", "unknown"}),
    (r".*_attention_(forward|backward)", {"attention"}),
    (r".*_layer_norm(_backward)?|_fused_rms_norm(_backward)?|cudnn_batch_norm(_backward)?|native_batch_norm_backward", {"norm"}),
    (r"native_(batch|group)_norm(_backward)?", {"norm", "elementwise"}),
    (r"_(log_)?softmax(_backward_data)?", {"softmax"}),
    (r"_foreach_(add|sub|mul|div|lerp|sqrt|neg|reciprocal|addcmul|addcdiv)_?|_fused_(adam|adamw|sgd)_|_amp_foreach_.*", {"elementwise"}),
    (r"_foreach_copy_", {"copy"}),
    (r"_foreach_norm|linalg_vector_norm|sum|mean|amax|amin|argmax|argmin|any|all", {"reduce"}),
    (r"(add|sub|mul|div|pow|clamp|clamp_min|eq|ne|lt|gt|where|neg|rsqrt|relu|gelu|silu|threshold_backward|arange)_?", {"elementwise"}),
    (r"max_pool2d.*|avg_pool.*", {"pool"}),
    (r"index_select|gather|index|embedding_dense_backward", {"gather"}),
)

# And these families come from no other operators.
OPERATORS = {
    "gemm": r".*(mm|mv|matmul|linear|conv|rnn|einsum|dot|attention).*",
    "conv": r".*conv.*",
    "attention": r".*attention.*",
}


def launched(t):
    """[(operator, kernel, its family, ns)] of the kernels that an operator launched itself."""
    if "launched" not in t.__dict__:
        family = {row["name"]: row["family"] for row in t.report["kernels"]}
        rows = json.loads(t.run("report", "--json", "-n", "0", "--only", "gpu_trace", "--filter", "kind = kernel", t.weir))["gpu_trace"]
        t.launched = [(row["operator"].removeprefix("aten::"), row["name"], family[row["name"]], row["duration_ns"]) for row in rows
                      if (row["operator"] or "").startswith("aten::") and row["name"] in family]
    return t.launched


def sum_of(rows, what):
    sums = Counter()
    for operator, name, family, ns in rows:
        sums["%s of %s: %s" % (family, operator, name[:160])] += ns
    for of, ns in sums.most_common(3):
        yield "%s: %d ns of %s" % (what, ns, of)


def norms_multiply(t):
    launched(t)
    for i, (operator, name, family, ns) in enumerate(t.launched):
        if family == "norm":
            t.launched[i] = operator, name, "gemm", ns
            return True
    return False


@invariant(spoil=norms_multiply)
def kernels_are_of_the_family_of_their_operator(t):
    for pattern, families in LAUNCHED:
        yield from sum_of((row for row in launched(t) if re.fullmatch(pattern, row[0]) and row[2] not in families),
                          "not among " + ", ".join(sorted(families)))


def products_of_a_sum(t):
    launched(t)
    for i, (operator, name, family, ns) in enumerate(t.launched):
        if family == "conv":
            t.launched[i] = "sum", name, family, ns
            return True
    return False


@invariant(spoil=products_of_a_sum)
def time_of_products_is_of_operators_that_multiply(t):
    for family, pattern in OPERATORS.items():
        yield from sum_of((row for row in launched(t) if row[2] == family and not re.fullmatch(pattern, row[0])), "no such operator")
