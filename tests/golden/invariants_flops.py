"""The invariants of FLOPs: a part of invariants.py."""
import json
import os
import subprocess
from collections import Counter

from invariant import differences, invariant


def twice_the_peak(t):
    for row in t.report["kernels"]:
        if row["flops_share"] or row["bytes_share"]:
            row["flops_share"] = 2
            return True
    return False


def highest(gpu, key, unit):
    """The maker's peak, as a share of what was measured."""
    if key == "bytes_share":
        return gpu["peak_dram_bytes_per_second"] / gpu["dram_bytes_per_second"]
    return max(1, gpu["peak_flops_per_second"][unit] / gpu["flops_per_second"][unit]) if unit else 1


@invariant(spoil=twice_the_peak)
def no_share_is_beyond_what_the_device_can_do(t):
    for row in t.report["kernels"] + t.report["operators"]:
        for key in ("flops_share", "bytes_share"):
            if (row[key] or 0) > 1.05 * highest(t.report["gpu"], key, row["unit"]):
                yield "%s: %s is %.2f, by %s" % (row["name"][:120], key, row[key], row["unit"])


def helper_that_computes(t):
    for row in t.report["kernels"]:
        if "split" in row["name"] or "ToN" in row["name"]:
            row["flops"] = 1
            return True
    return False


@invariant(spoil=helper_that_computes)
def kernels_that_change_layouts_or_add_up_parts_have_no_flops(t):
    for row in t.report["kernels"]:
        if row["flops"] and any(word in row["name"] for word in (
                "nchwToNhwc", "nhwcToNchw", "splitKreduce", "ReduceSplitK", "split_k_kernel", "reduce_wgrad", "reduce_head",
                "im2col", "col2im", "convertTensor", "computeOffsets", "init_device_workspace")):
            yield "%s: %d FLOPs" % (row["name"][:120], row["flops"])


def kernel_with_flops_of_nobody(t):
    for row in t.report["kernels"]:
        if row["flops"]:
            row["flops"] *= 100
            return True
    return False


@invariant(spoil=kernel_with_flops_of_nobody)
def kernels_have_no_more_flops_than_operators(t):
    """An operator inside another counts in both, so the sum of all is no less than that of
    kernels."""
    kernels = sum(row["flops"] or 0 for row in t.report["kernels"])
    operators = sum(row["flops"] or 0 for row in t.report["operators"])
    if kernels > operators * 1.000001:
        yield "kernels have %d FLOPs together, operators %d" % (kernels, operators)


def product_without_flops(t):
    rows = [row for row in t.report["kernels"] if row["flops"]]
    if rows:
        max(rows, key=lambda row: row["flops"])["flops"] = 0
    return bool(rows)


@invariant(spoil=product_without_flops)
def the_flops_of_products_are_those_of_kernels(t):
    """None is lost between the two, whatever helps beside.  By FFT or Winograd names must tell where a step back begins anew."""
    names = " ".join(row["name"].lower() for row in t.report["kernels"])
    if not t.source or ("fft" in names or "winograd" in names) and "dgrad" not in names and "wgrad" not in names:
        return
    asked = sum(o.flops for o in products(t) if not o.inner)
    kernels = sum(row["flops"] or 0 for row in t.report["kernels"])
    if kernels < 0.999 * asked:
        yield "products of %d FLOPs, in kernels %d" % (asked, kernels)


def other_count_of_torch(t):
    counted = (t.expected or {}).get("flops_a_step") or {}
    for name in counted:
        counted[name] += 1000
    return bool(counted)


@invariant(spoil=other_count_of_torch)
def operators_have_the_flops_that_torch_counts(t):
    """FLOPs of one call of each kind.  torch's counter knows no masks, and takes weights of groups
    for those of all channels."""
    counted = (t.expected or {}).get("flops_a_step") or {}
    told = {row["name"]: row["flops"] for row in t.report["operators"] if row["kind"] == "operator"}
    calls = [Operator(e) for e in t.events("cpu_op") if e.get("args", {}).get("Input Dims")] if counted else ()
    costs(t, calls)
    plain = [Operator(unmasked(o)) for o in calls]
    costs(t, plain)
    for name, flops in counted.items():
        name = name.replace(".", "::", 1)
        ours = [o for o in calls if o.name == name]
        without = sum((o.flops or 0) + of_all_channels(o) for o in plain if o.name == name)
        if ours and sum(o.flops or 0 for o in ours) != told.get(name):
            yield "%s: %s FLOPs, its calls together %d" % (name, told.get(name), sum(o.flops or 0 for o in ours))
        if ours and without != flops * t.expected["steps"]:
            yield "%s: %d FLOPs, and torch counts %d" % (name, without, flops * t.expected["steps"])


def unmasked(o):
    """The event of the same attention that is not causal."""
    args = dict(o.args)
    if "attention" in o.name:
        args["Concrete Inputs"] = [value.replace("True", "False") for value in args.get("Concrete Inputs", ())]
    return {"name": o.name, "ts": o.begin, "dur": o.end - o.begin, "args": args}


def of_all_channels(o):
    """The FLOPs that torch counts besides for the gradient of weights: every channel with those of
    all groups."""
    values = o.args.get("Concrete Inputs") or []
    if o.name != "aten::convolution_backward" or len(values) < 11 or "True" not in values[10].split(",")[1]:
        return 0
    return o.flops / wanted_gradients(o) * (int(values[9]) - 1)


class Operator:
    """One that PyTorch ran: where it is, the products right inside it, and what it must do."""

    def __init__(self, event):
        self.name, self.args = event["name"], event.get("args", {})
        self.begin, self.end = event["ts"], event["ts"] + event.get("dur", 0)
        self.inner, self.flops, self.bytes, self.product = [], None, None, False


def costs(t, operators):
    lines = "".join("%s\t%s\n" % (o.name, json.dumps(o.args).replace("\n", " ")) for o in operators)
    told = subprocess.run([os.path.join(os.path.dirname(t.command), "..", "tests", "cost-of")], input=lines, text=True,
                          check=True, stdout=subprocess.PIPE).stdout.split("\n")
    for operator, line in zip(operators, told):
        flops, product, moved = line.split()
        operator.flops = None if flops == "-" else float(flops)
        operator.bytes = None if moved == "-" else float(moved)
        operator.product = product == "1" and operator.flops is not None


def threads(t):
    """All operators, those of a thread in their order."""
    found = {}
    for e in t.events("cpu_op"):
        found.setdefault((e.get("pid"), e.get("tid")), []).append(Operator(e))
    costs(t, [o for operators in found.values() for o in operators])
    return {thread: sorted(operators, key=lambda o: (o.begin, -o.end)) for thread, operators in found.items()}


def products(t):
    """Operators that are products of matrices; t.factor damages those that contain none."""
    all_of = threads(t)
    for operators in all_of.values():
        around = []
        for o in (o for o in operators if o.product):
            while around and around[-1].end <= o.begin:
                around.pop()
            if around:
                around[-1].inner.append(o)
            around.append(o)
    found = [o for operators in all_of.values() for o in operators if o.product]
    for o in found:
        o.flops *= 1 if o.inner else getattr(t, "factor", 1)
    return found


def twice_as_often(t):
    for row in t.report["operators"]:
        if row["flops"] and row["costed_ns"]:
            row["costed_ns"], row["flops"] = row["device_total_ns"] + 1, 2 * row["flops"]
            return True
    return False


@invariant(spoil=twice_as_often)
def what_sizes_are_known_of_took_no_longer_than_all(t):
    for row in t.report["kernels"] + t.report["operators"] + t.by_shape:
        if row["costed_ns"] and row["device_total_ns"] is not None and row["costed_ns"] > row["device_total_ns"]:
            yield "%s: %d ns of %d" % (row["name"][:120], row["costed_ns"], row["device_total_ns"])


@invariant(spoil=twice_as_often)
def the_shapes_of_an_operator_add_up_to_it(t):
    for key in "count", "flops", "bytes", "costed_count", "costed_ns":
        sums = {}
        for row in t.by_shape:
            sums[row["name"], row["kind"]] = sums.get((row["name"], row["kind"]), 0) + (row[key] or 0)
        told = {(row["name"], row["kind"]): row[key] or 0 for row in t.report["operators"]}
        yield from differences("%s by shape" % key, told, sums)


@invariant(spoil=twice_as_often)
def an_operator_that_calls_itself_counts_once(t):
    """As under autocast: with the bytes of the types that a product was given at last."""
    flops, moved = Counter(), Counter()
    for operators in threads(t).values() if t.source else ():
        around = []
        for o in operators:
            while around and around[-1].end <= o.begin:
                around.pop()
            o.counts = o.flops or o.bytes
            namesakes = [a for a in around if a.name == o.name and a.counts]
            if o.counts and not namesakes:
                flops[o.name] += o.flops or 0
                moved[o.name] += o.bytes or 0
            elif o.product and around[-1].name == o.name and around[-1].flops == o.flops:
                moved[o.name] += (o.bytes or 0) - (around[-1].bytes or 0)
            around.append(o)
    told = [row for row in t.report["operators"] if row["name"] in flops and row["kind"] == "operator"] if t.source else []
    yield from differences("FLOPs", flops, {row["name"]: row["flops"] or 0 for row in told})
    yield from differences("bytes", moved, {row["name"]: row["bytes"] or 0 for row in told})


def larger_copies(t):
    for row in t.report["memops"]:
        if row["bytes"]:
            row["bytes"] += 1
            return True
    return False


@invariant(spoil=larger_copies)
def copies_are_as_large_as_the_trace_says(t):
    """One that it says no size of has none: neither bytes nor a part in the rate."""
    if not t.source:
        return
    for kind, category in ("memcpy", "gpu_memcpy"), ("memset", "gpu_memset"):
        rows = [row for row in t.report["memops"] if row["kind"] == kind]
        known = [e for e in t.events(category) if "bytes" in e.get("args", {})]
        asked, told = sum(e["args"]["bytes"] for e in known), sum(row["bytes"] or 0 for row in rows)
        if asked != told:
            yield "%s: %d bytes, of %d in the trace" % (category, told, asked)
        if bool(known) != any(row["bytes"] is not None for row in rows):
            yield "%s: %d have a size" % (category, len(known))
        sizes = [e["args"]["bytes"] for e in known]
        ends = min((row["min_bytes"] for row in rows if row["bytes"] is not None), default=None), \
            max((row["max_bytes"] for row in rows if row["bytes"] is not None), default=None)
        if ends != (min(sizes, default=None), max(sizes, default=None)):
            yield "%s: from %s to %s bytes, in the trace from %s to %s" % (category, *ends, min(sizes, default=None), max(sizes, default=None))
        for row in rows:
            if row["bytes"] is not None and not row["min_bytes"] <= row["mean_bytes"] <= row["max_bytes"]:
                yield "%s: a mean of %d bytes" % (category, row["mean_bytes"])
        ns = sum(row["bytes"] * 1e9 / row["bytes_per_second"] for row in rows if row["bytes_per_second"])
        all_ns = sum(e["dur"] * 1000 for e in known)
        if ns > all_ns * 1.01 + 1000:
            yield "%s: rates are of %d ns, and those of known size took %d" % (category, ns, all_ns)


def other_flops(t):
    t.factor = 1.5


@invariant(spoil=other_flops)
def an_operator_has_the_flops_of_the_one_inside_that_does_its_work(t):
    """aten::conv2d those of its aten::cudnn_convolution, aten::linear of its aten::addmm, attention in any layout."""
    for o in products(t) if t.source else ():
        inner = sum(i.flops for i in o.inner)
        fused = [i for i in o.inner if "attention" in i.name]
        if "attention" in o.name and o.inner and not fused:
            continue  # by matrix products, which know nothing of a mask
        # Heads are padded to a multiple of 8 before fused attention.
        most = o.flops * (1.5 if fused else 1)
        if o.inner and not o.flops <= inner <= most:
            yield "%s: %.0f FLOPs, %s inside %.0f" % (o.name, o.flops, "/".join(i.name for i in o.inner[:3]), inner)


def wanted_gradients(o):
    """The number of gradients, of a convolution's input and weight, as its mask says."""
    mask = (o.args.get("Concrete Inputs") or [""] * 11)[10]
    return mask.count("True", 0, mask.rfind(","))


@invariant(spoil=other_flops)
def a_step_back_has_as_many_flops_for_each_gradient_as_the_step_forward(t):
    forward = {}
    found = products(t) if t.source else []
    for o in found:
        if "conv" in o.name and not o.name.endswith("backward") and "Sequence number" in o.args:
            forward.setdefault(o.args["Sequence number"], []).append(o.flops)
    for o in found:
        # Numbers come again in other threads of the program: one of those forward must fit.
        twins = forward.get(o.args.get("Sequence number"), ())
        if o.name == "aten::convolution_backward" and twins and not any(
                o.flops == flops * wanted_gradients(o) for flops in twins):
            yield "%s: %.0f FLOPs for %d gradients, forward %s" % (o.name, o.flops, wanted_gradients(o), twins)
