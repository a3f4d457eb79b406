"""Writes small ONNX models for the tests of engines and server: make_models.py DIRECTORY.

Each model is DIRECTORY/NAME.onnx, put together from the fields of ONNX's protobuf messages, so that
nothing needs to be installed."""
import pathlib
import random
import struct
import sys

TYPES = {"FP32": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BYTES": 8,
         "BOOL": 9, "FP16": 10, "FP64": 11, "UINT32": 12, "UINT64": 13, "BF16": 16}


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def node(op, inputs, outputs, *attributes):
    return data(1, b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) +
                data(4, op) + b"".join(data(5, a) for a in attributes))


def attribute(name, value):
    return data(1, name) + number(3, value) + number(20, 2)


def dims(shape):
    return b"".join(data(1, data(2, d) if isinstance(d, str) else number(1, d)) for d in shape)


def value(field, name, kind, shape):
    return data(field, data(1, name) + data(2, data(1, number(1, TYPES[kind]) + data(2, dims(shape)))))


def tensor(name, kind, shape, raw):
    return data(5, b"".join(number(1, d) for d in shape) + number(2, TYPES[kind]) + data(8, name) + data(9, raw))


def external(name, shape, file):
    """Weights in a file beside the model's."""
    where = data(13, data(1, "location") + data(2, file))
    return data(5, b"".join(number(1, d) for d in shape) + number(2, 1) + data(8, name) + where + number(14, 1))


def graph(nodes, inputs, outputs, weights=b""):
    return nodes + data(2, "g") + weights + b"".join(value(11, *i) for i in inputs) + b"".join(value(12, *o) for o in outputs)


def model(content):
    return number(1, 8) + data(7, content) + data(8, data(1, "") + number(2, 17))


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def identity(kind, shape):
    return graph(node("Identity", ["X"], ["Y"]), [("X", kind, shape)], [("Y", kind, shape)])


def mlp(width, layers):
    """Layers of a square matrix and a Relu."""
    rng = random.Random(1)
    nodes = weights = b""
    last = "X"
    for i in range(layers):
        out = "Y" if i == layers - 1 else "h%d" % i
        nodes += node("MatMul", [last, "W%d" % i], ["m%d" % i]) + node("Relu", ["m%d" % i], [out])
        raw = floats(*(rng.uniform(-.04, .04) for _ in range(width * width)))
        weights += tensor("W%d" % i, "FP32", [width, width], raw)
        last = out
    return graph(nodes, [("X", "FP32", ["N", width])], [("Y", "FP32", ["N", width])], weights)


def models():
    for kind in TYPES:
        yield "identity_" + kind.lower(), identity(kind, ["N", 4])
    yield "scalar", identity("FP32", [])
    vector = ["N", 16]
    yield "add_sub", graph(
        node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]) + node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"]),
        [("INPUT0", "INT32", vector), ("INPUT1", "INT32", vector)],
        [("OUTPUT0", "INT32", vector), ("OUTPUT1", "INT32", vector)])
    yield "mlp", mlp(1024, 4)
    # Two rows, always.
    yield "fixed", graph(node("Neg", ["X"], ["Y"]), [("X", "FP32", [2, 3])], [("Y", "FP32", [2, 3])])
    yield "dynamic", graph(node("Transpose", ["X"], ["Y"]), [("X", "FP32", ["H", "W"])], [("Y", "FP32", ["W", "H"])])
    # B may be left out, and is 10 then.
    yield "optional", graph(node("Add", ["X", "B"], ["Y"]), [("X", "FP32", ["N", 2]), ("B", "FP32", [1])],
                            [("Y", "FP32", ["N", 2])], tensor("B", "FP32", [1], floats(10)))
    # An index that the table has not is found when it runs.
    yield "lookup", graph(node("Gather", ["T", "I"], ["Y"]), [("I", "INT64", ["N"])], [("Y", "FP32", ["N"])],
                          tensor("T", "FP32", [3], floats(1, 2, 3)))
    # A shape that does not divide what it is given fails when it runs, and not by the request's types.
    yield "reshape", graph(node("Reshape", ["X", "S"], ["Y"]), [("X", "FP32", ["N"])], [("Y", "FP32", ["M", 3])],
                           tensor("S", "INT64", [2], struct.pack("<2q", -1, 3)))
    sequence = data(1, "X") + data(2, data(4, data(1, data(1, number(1, 1)))))
    yield "sequence", node("SequenceLength", ["X"], ["Y"]) + data(2, "g") + data(11, sequence) + value(12, "Y", "INT64", [])
    for name, file in ("external", "weights.bin"), ("outside", "../weights.bin"):
        yield name, graph(node("Add", ["X", "B"], ["Y"]), [("X", "FP32", ["N", 2])], [("Y", "FP32", ["N", 2])],
                          external("B", [2], file))


def main():
    to = pathlib.Path(sys.argv[1])
    to.mkdir(parents=True, exist_ok=True)
    for name, content in models():
        (to / (name + ".onnx")).write_bytes(model(content))
    (to / "weights.bin").write_bytes(floats(1, 2))


main()
