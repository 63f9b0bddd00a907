# says: `triton.autotune` runs `kernel` many times to time it, and each run changes what the last one left in `out`
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))


def main():
    x, out = torch.randn(256), torch.zeros(1)
    kernel[lambda chosen: (triton.cdiv(256, chosen["BLOCK"]),)](x, out, 256)
    return out, x.sum()
