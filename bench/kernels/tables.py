"""The tables of docs/explanation/kernels-results.md, from what h200.py has written.

    python3 bench/kernels/tables.py RESULT.json [OTHER.json...]

A key that several files have is that of the first.
"""
import json
import math
import statistics
import sys


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def ratio(v):
    return f"{v:.3f}".lstrip("0")


def table(*rows):
    rows = [[str(cell) for cell in row] for row in rows]
    print("\n".join("| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])) + "\n")


def select(rows, **want):
    return [r for r in rows if all(r.get(k) == v for k, v in want.items())]


def summary(d):
    layers = [c for c in d["convolutions"] if c["channels"] >= 8]
    bf16 = [r for r in select(d["products"], type="bf16") if "batch" not in r]
    own = [r for r in d["fused"] if r["epilogue"] in ("bias", "gelu", "silu")]  # whose bias cuBLASLt adds
    groups = [("BF16 products", bf16, "times_torch"),
              ("the same, beside the fastest of cuBLASLt's first 16", bf16, "times_library"),
              ("products with what follows them", d["fused"], "times_torch"),
              ("bias, GELU and SiLU, beside cuBLASLt's fastest product", own, "times_library"),
              ("few rows, of weights that may change", d["few"], "times_torch"),
              ("few rows, of weights that stay", d["few"], "times_torch_ahead"),
              ("TF32 products", select(d["products"], type="tf32"), "times_torch"),
              ("FP32 by three products of TF32", select(d["products"], type="tf32x3"), "times_torch"),
              ("batches of BF16 products", [r for r in d["products"] if "batch" in r], "times_torch"),
              ("convolutions, forward", select(layers, **{"pass": "forward", "epilogue": None}), "times_torch"),
              ("convolutions with bias and ReLU", select(layers, epilogue="relu"), "times_torch"),
              ("gradient of the input, stride 1", select(layers, stride=1, **{"pass": "input"}), "times_torch"),
              ("gradient of the input, stride 2", select(layers, stride=2, **{"pass": "input"}), "times_torch"),
              ("gradient of the filters", select(layers, **{"pass": "filters"}), "times_torch"),
              ("the first layer, 3 channels", [c for c in d["convolutions"] if c["channels"] < 8], "times_torch"),
              ("INT8 products", [r for r in select(d["scaled"], type="s8") if "size" in r], "times_torch"),
              ("FP8 products", select(d["scaled"], type="e4m3"), "times_torch"),
              ("INT8 convolutions, beside cuDNN's INT8", [r for r in d["scaled"] if "convolution" in r], "times_cudnn"),
              ("INT8 convolutions, beside BF16 ones", [r for r in d["scaled"] if "convolution" in r], "times_torch_bf16")]
    table(("group", "shapes", "times as fast as PyTorch, geometric mean", "minimum"),
          *((name, len(rows), ratio(mean([r[key] for r in rows])), ratio(min(r[key] for r in rows)))
            for name, rows, key in ((name, [r for r in rows if key in r], key) for name, rows, key in groups) if rows))
    for name, rows in (("a product", bf16), ("a convolution or gradient of its input", [r for r in layers if r["pass"] != "filters"]),
                       ("few rows", d["few"])):
        off = sorted(abs(r["plans"][0]["us"] / r["us"]["weir 0"] - 1) for r in rows)
        print(f"The predicted time of {name} is off by {100 * statistics.median(off):.1f} % at the median and by "
              f"{100 * off[-1]:.0f} % at most.\n")


def main(paths):
    d = {}
    for path in paths:
        for key, value in json.load(open(path)).items():
            if isinstance(value, list) and key not in ("failures",):
                d[key] = d.get(key, []) + [r for r in value if not isinstance(r, dict) or not any(same(r, o) for o in d.get(key, []))]
            else:
                d.setdefault(key, value)
    summary(d)
    table(("M N K", "PyTorch", "Weir", "times as fast", "cuBLASLt's fastest", "predicted"),
          *((f"{r['m']} {r['n']} {r['k']}", f"{r['us']['torch']:.1f}", f"{r['us']['weir 0']:.1f}", ratio(r["times_torch"]),
             library(r), f"{r['plans'][0]['us']:.1f}") for r in select(d["products"], type="bf16") if "batch" not in r))
    table(("M N K", "ends with", "PyTorch", "cuBLASLt's fastest", "Weir", "times as fast"),
          *((f"{r['m']} {r['n']} {r['k']}", r["epilogue"], f"{r['us']['torch']:.1f}", library(r), f"{r['us']['weir 0']:.1f}",
             ratio(r["times_torch"])) for r in d["fused"]))
    table(("rows", "N K", "PyTorch", "Weir", "times as fast", "weights stay", "times as fast"),
          *((r["m"], f"{r['n']} {r['k']}", f"{r['us']['torch']:.1f}", f"{r['us']['weir 0']:.1f}", ratio(r["times_torch"]),
             f"{r['us']['ahead 0']:.1f}", ratio(r["times_torch_ahead"])) for r in d["few"]))
    for what in ("forward", "input", "filters"):
        table((f"{what}: pixels across, channels, filters", "filter", "stride", "PyTorch", "Weir", "times as fast"),
              *((f"{r['pixels']} {r['channels']} {r['filters']}", r["width"], r["stride"], f"{r['us']['torch']:.1f}",
                 f"{r['us']['weir 0']:.1f}", ratio(r["times_torch"]))
                for r in select(d["convolutions"], **{"pass": what, "epilogue": None})))
    table(("type", "size", "PyTorch", "Weir", "times as fast"),
          *((r["type"], r["size"], f"{r['us']['torch']:.1f}", f"{r['us']['weir 0']:.1f}", ratio(r["times_torch"]))
            for r in d["scaled"] if "size" in r))
    rows_table(d["rows"])


def same(a, b):
    return isinstance(b, dict) and "us" in a and all(a[k] == b.get(k) for k in a if isinstance(a[k], (str, int)) or k == "convolution")


def library(r):
    times = [v for name, v in r["us"].items() if name.startswith("library")]
    return f"{min(times):.1f}" if times else ""


def rows_table(rows):
    small = [r for r in rows if r["rows"] * r["width"] * (4 if r["type"] == "f32" else 2) == 64 << 20]
    share = lambda some: "" if not some else f"{100 * min(some):.0f} to {100 * max(some):.0f} %"
    lines = []
    for operation in ("softmax", "rms_norm", "layer_norm", "log_softmax"):
        for kind in ("bf16", "f32"):
            of = select(small, operation=operation, type=kind)
            if of:
                lines.append((f"{operation} {kind}", share([r["share_of_copy"] for r in of if r["width"] <= 8192]),
                              share([r["share_of_copy"] for r in of if r["width"] > 8192]),
                              ratio(mean([r["times_torch"] for r in of])), ratio(min(r["times_torch"] for r in of))))
    table(("kernel", "up to 8,192 columns", "16,384 and more", "times as fast as PyTorch, geometric mean", "minimum"), *lines)
    for r in rows:
        if r not in small:
            print(f"{r['operation']} {r['type']} {r['width']}, 256 MB: {100 * r['share_of_copy']:.0f} % of a copy")


if __name__ == "__main__":
    main(sys.argv[1:])
