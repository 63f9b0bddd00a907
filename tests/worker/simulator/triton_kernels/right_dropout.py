# right: seeded dropout
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, kept_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    kept = tl.rand(seed, i) > p
    tl.store(kept_ptr + i, kept.to(tl.int32), mask=i < n)
    tl.store(out_ptr + i, tl.where(kept, x / (1 - p), 0.0), mask=i < n)


def main():
    x, out, kept = torch.randn(300), torch.empty(300), torch.empty(300, dtype=torch.int32)
    kernel[(3,)](x, out, kept, 300, 0.5, 7, BLOCK=128)
    return out, x / 0.5 * kept
