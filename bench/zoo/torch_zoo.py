"""PyTorch's operators over many shapes and types, one call at a time, to be recorded.

    python3 torch_zoo.py --csv calls.csv --seconds 40

Operators are in torch_products.py and torch_ops.py.  Inputs are views of random numbers that were
drawn before, so that almost every launch of the process belongs to an operator under test.
"""
import warnings

import torch

import torch_ops
import torch_products
import zoo_ops

MOST = 1 << 31  # elements of the buffer of 32 bits
OPS = torch_products.OPS | torch_ops.OPS


class Pool:
    """Random tensors of any shape: views of one buffer a type."""

    def __init__(self):
        numbers = torch.rand(MOST, device="cuda").mul_(2).sub_(1)
        self.numbers = {
            "fp64": numbers[:MOST // 4].double(),
            "fp32": numbers,
            "tf32": numbers,
            "fp16": numbers.half(),
            "bf16": numbers.bfloat16(),
            "fp8": numbers[:MOST // 2].to(torch.float8_e4m3fn),
        }
        for t, integer in (("int32", torch.int32), ("int8", torch.int8), ("uint8", torch.uint8)):
            self.numbers[t] = numbers.view(integer)  # bits of floats are random enough
        self.mask = numbers > 0
        self.one = torch.ones((), device="cuda")
        self.indexes = torch.randint(0, 1 << 62, (torch_ops.INDEXES,), device="cuda")

    def get(self, dtype, *shape, at=0.0):
        """at: from where in the buffer, 0 is its beginning and 1 its end."""
        n = 1
        for s in shape:
            n *= s
        buffer = self.numbers[dtype]
        start = int((buffer.numel() - n) * at) // 64 * 64  # aligned, as allocations are
        return buffer[start:start + n].view(*shape)

    def index(self, n, below):
        return self.indexes[:n] % below


def set_precision(dtype):
    tf32 = dtype == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def main():
    o = zoo_ops.options("torch_zoo")
    warnings.simplefilter("ignore")  # of each library that attention does not go through
    torch.set_grad_enabled(False)
    calls = zoo_ops.calls(OPS, o.seed, o.shapes)
    pool = Pool()
    table = zoo_ops.Table(o.csv, o.app)

    def prepare(op, dtype, sizes):
        set_precision(dtype)
        return OPS[op].make(pool, dtype, **sizes)

    todo = zoo_ops.shuffled(calls, zoo_ops.rng_for(o.seed, "order"))
    done = zoo_ops.run(table, todo, o.seconds, prepare, torch.cuda.synchronize)
    table.close()
    print(f"torch {torch.__version__}: {done} of {len(todo)} calls in the time given")


if __name__ == "__main__":
    main()
