# right: functions that branch, in a reduction and in a scan; `max` and `min` of blocks
import torch
import triton
import triton.language as tl


@triton.jit
def first_largest(a, at_a, b, at_b):
    if a > b:
        value, at = a, at_a
    elif a == b:
        value, at = a, min(at_a, at_b)
    else:
        value, at = b, at_b
    return value, at


@triton.jit
def larger(a, b):
    return a if a > b else b


@triton.jit
def smaller(a, b):
    return min(a, b)


@triton.jit
def kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + at)
    value, place = tl.reduce((x, at % COLUMNS), 1, first_largest)
    row = out_ptr + tl.arange(0, ROWS)
    tl.store(row, value)
    tl.store(row + ROWS, place.to(tl.float32))
    tl.store(row + 2 * ROWS, tl.reduce(x, 1, smaller))
    tl.store(row + 3 * ROWS, tl.sum(max(x, 0.0, min(x, -1.0)), 1))
    tl.store(out_ptr + 4 * ROWS + at, tl.associative_scan(x, 1, larger))


def main():
    x = torch.randn(8, 32).mul(4).round()
    out = torch.empty(4 * 8 + x.numel())
    kernel[(1,)](x, out, ROWS=8, COLUMNS=32)
    columns = torch.arange(32).expand(8, 32).where(x == x.amax(1, keepdim=True), 99)
    rows = (x.amax(1), columns.amin(1).float(), x.amin(1), x.clamp(min=0).sum(1))
    return out, torch.cat([*rows, x.cummax(1).values.ravel()])
