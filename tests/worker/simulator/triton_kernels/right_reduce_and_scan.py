# right: reductions and scans by functions of one's own, in which the order counts, and one that branches

import torch
import triton
import triton.language as tl


@triton.jit
def compose(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def larger(a, b):
    larger = b
    if a > b:
        larger = a
    return larger


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    _, last = tl.reduce((a, b), 0, compose)
    _, rows = tl.reduce((a.reshape(4, N // 4), b.reshape(4, N // 4)), 1, compose, keep_dims=True)
    _, columns = tl.reduce((a.reshape(N // 4, 4), b.reshape(N // 4, 4)), axis=0, combine_fn=compose)
    _, up_to = tl.associative_scan((a, b), 0, compose)
    _, down_to = tl.associative_scan((a, b), 0, compose, reverse=True)
    _, along = tl.associative_scan((a.reshape(N // 4, 4), b.reshape(N // 4, 4)), 0, compose)
    tl.store(out_ptr, last)
    tl.store(out_ptr + 1, tl.reduce(b, 0, larger))
    tl.store(out_ptr + 4 + tl.arange(0, 4)[:, None], rows)
    tl.store(out_ptr + 8 + tl.arange(0, 4), columns)
    tl.store(out_ptr + N + i, up_to)
    tl.store(out_ptr + 2 * N + i, down_to)
    tl.store(out_ptr + 3 * N + i, along.reshape(N))


def composed(a, b):
    """The value after each step along the first axis of a linear recurrence."""
    value, found = torch.zeros_like(b[0]), []
    for one, other in zip(a, b, strict=True):
        value = value * one + other
        found.append(value)
    return torch.stack(found)


def main():
    n = 64
    a, b = torch.rand(n) + 0.5, torch.randn(n)
    out, right = torch.zeros(4 * n), torch.zeros(4 * n)
    kernel[(1,)](a, b, out, N=n)
    right[0], right[1] = composed(a, b)[-1], b.max()
    right[4:8] = composed(a.reshape(4, -1).T, b.reshape(4, -1).T)[-1]
    right[8:12] = composed(a.reshape(-1, 4), b.reshape(-1, 4))[-1]
    right[n : 2 * n] = composed(a, b)
    right[2 * n : 3 * n] = composed(a.flip(0), b.flip(0)).flip(0)
    right[3 * n :] = composed(a.reshape(-1, 4), b.reshape(-1, 4)).reshape(-1)
    return out, right
