# right: the indices of loops are tensors, also in sums, products, shifts and bitwise operations
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, SIZE), tl.num_programs(0)):
        for half in tl.range(2):
            at = block.to(tl.int64) * SIZE + (half * SIZE // 2).to(tl.int64) + tl.arange(0, SIZE // 2)
            factor = (1 + block).to(tl.float32) + (block >> 1).to(tl.float32) * (1 & block).to(tl.float32)
            tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


def main():
    x = torch.randn(1000)
    out = torch.empty(1000)
    kernel[(3,)](x, out, 1000, SIZE=64)
    block = torch.arange(1000) // 64
    return out, x * (1 + block + (block >> 1) * (block & 1))
