# right: `and` and `or` of blocks go by element; a constant ends them early
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, EVEN: tl.constexpr, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    chosen = inside
    if EVEN or tl.program_id(0) > 100:
        chosen = inside and at % 2 == 0
    x = tl.load(x_ptr + at, mask=inside and at >= 0)
    tl.store(out_ptr + at, tl.where(chosen and (x > 0 or x < -1), x, 0.0), mask=inside)


def main():
    x = torch.randn(300)
    out = torch.empty(300)
    kernel[(5,)](x, out, 300, EVEN=True, SIZE=64)
    chosen = (torch.arange(300) % 2 == 0) & ((x > 0) | (x < -1))
    return out, torch.where(chosen, x, 0.0)
