"""Sources of Triton kernels.  triton_zoo.py makes kernels of them, one for each set of constants, with
the constants in its name, since a profiler shows no more than the name.  Hence none is decorated here.
"""
import triton.language as tl


def add(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    mask = i < n
    tl.store(z + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def scale(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    mask = i < n
    by = tl.load(y).to(tl.float32)
    v = tl.load(x + i, mask=mask).to(tl.float32)
    tl.store(z + i, (v * by + 1).to(z.dtype.element_ty), mask=mask)


def silu_mul(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    mask = i < n
    v = tl.load(x + i, mask=mask).to(tl.float32)
    w = tl.load(y + i, mask=mask).to(tl.float32)
    tl.store(z + i, (v * tl.sigmoid(v) * w).to(z.dtype.element_ty), mask=mask)


def softmax(x, w, z, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    c = tl.arange(0, B)
    mask = c < columns
    v = tl.load(x + row + c, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(z + row + c, (e / tl.sum(e, 0)).to(z.dtype.element_ty), mask=mask)


def layernorm(x, w, z, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    c = tl.arange(0, B)
    mask = c < columns
    v = tl.load(x + row + c, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / columns
    d = tl.where(mask, v - mean, 0.0)
    by = 1.0 / tl.sqrt(tl.sum(d * d, 0) / columns + 1e-5)
    weight = tl.load(w + c, mask=mask, other=0.0).to(tl.float32)
    tl.store(z + row + c, (d * by * weight).to(z.dtype.element_ty), mask=mask)


def rmsnorm(x, w, z, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    c = tl.arange(0, B)
    mask = c < columns
    v = tl.load(x + row + c, mask=mask, other=0.0).to(tl.float32)
    by = 1.0 / tl.sqrt(tl.sum(v * v, 0) / columns + 1e-5)
    weight = tl.load(w + c, mask=mask, other=0.0).to(tl.float32)
    tl.store(z + row + c, (v * by * weight).to(z.dtype.element_ty), mask=mask)


def reduce_rows(x, z, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    sums = tl.zeros((B,), dtype=tl.float32)
    for first in range(0, columns, B):
        c = first + tl.arange(0, B)
        sums += tl.load(x + row * columns + c, mask=c < columns, other=0.0).to(tl.float32)
    tl.store(z + row, tl.sum(sums, 0).to(z.dtype.element_ty))


def tile_sums(a, b, m, n, k, rows, columns, begin, end, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr):
    """One tile of a product, of the inner places from begin to end.  Other kernels call it."""
    inner = tl.arange(0, BK)
    row_at = rows.to(tl.int64)
    column_at = columns.to(tl.int64)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(begin, end, BK):
        i = first + inner
        left = tl.load(a + row_at[:, None] * k + i[None, :],
                       mask=(rows[:, None] < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i.to(tl.int64)[:, None] * n + column_at[None, :],
                        mask=(i[:, None] < k) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(left, right, sums)
    return sums


def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tile_sums(a, b, m, n, k, rows, columns, 0, k, BM, BN, BK)
    tl.store(c + rows.to(tl.int64)[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul_grouped(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   GROUP: tl.constexpr):
    """Tiles that are near each other run at about the same time, for the sake of L2."""
    tile = tl.program_id(0)
    high = tl.cdiv(m, BM)
    in_group = GROUP * tl.cdiv(n, BN)
    first = tile // in_group * GROUP
    size = tl.minimum(high - first, GROUP)
    rows = (first + tile % in_group % size) * BM + tl.arange(0, BM)
    columns = tile % in_group // size * BN + tl.arange(0, BN)
    sums = tile_sums(a, b, m, n, k, rows, columns, 0, k, BM, BN, BK)
    tl.store(c + rows.to(tl.int64)[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul_split(a, b, c, m, n, k, part, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Each third coordinate has `part` inner places and a matrix of partial sums of its own."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    begin = tl.program_id(2) * part
    sums = tile_sums(a, b, m, n, k, rows, columns, begin, tl.minimum(begin + part, k), BM, BN, BK)
    at = tl.program_id(2).to(tl.int64) * m + rows
    tl.store(c + at[:, None] * n + columns[None, :], sums,
             mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul_bias_relu(a, b, c, bias, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tile_sums(a, b, m, n, k, rows, columns, 0, k, BM, BN, BK)
    add = tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)
    sums = tl.maximum(sums + add[None, :], 0.0)
    tl.store(c + rows.to(tl.int64)[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


def attention(q, k, v, z, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
              CAUSAL: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1).to(tl.int64) * n * D
    d = tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, D), dtype=tl.float32)
    end = n
    if CAUSAL:
        end = tl.minimum(n, (tl.program_id(0) + 1) * BM)
    for first in range(0, end, BN):
        columns = first + tl.arange(0, BN)
        key = tl.load(k + base + columns[None, :] * D + d[:, None], mask=columns[None, :] < n,
                      other=0.0)
        score = tl.dot(query, key) * scale
        seen = columns[None, :] < n
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        score = tl.where(seen, score, -float("inf"))
        now = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp(score - now[:, None])
        fade = tl.exp(most - now)
        total = total * fade + tl.sum(weight, 1)
        value = tl.load(v + base + columns[:, None] * D + d[None, :], mask=columns[:, None] < n,
                        other=0.0)
        out = out * fade[:, None] + tl.dot(weight.to(value.dtype), value)
        most = now
    tl.store(z + base + rows[:, None] * D + d[None, :], (out / total[:, None]).to(z.dtype.element_ty),
             mask=rows[:, None] < n)
