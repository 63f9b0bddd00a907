# mistake: the autotuner repeats a kernel that adds to its output
# says: `triton.autotune` runs `mean_kernel` many times
# runs: simulator

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"SIZE": 1024}), triton.Config({"SIZE": 2048})], key=["n"])
@triton.jit
def mean_kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0)
    tl.atomic_add(out_ptr, part)


def mean_triton(x, out):
    n = x.numel()
    total = torch.zeros(1, dtype=torch.float64, device=x.device)
    mean_kernel[lambda c: (triton.cdiv(n, c["SIZE"]),)](x, total, n)
    out.copy_(total / n)
