# right: an autotuned kernel in place that gives the same when it is repeated
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


def main():
    x = torch.randn(200)
    right = x.relu()
    kernel[lambda chosen: (triton.cdiv(200, chosen["BLOCK"]),)](x, 200)
    return x, right
