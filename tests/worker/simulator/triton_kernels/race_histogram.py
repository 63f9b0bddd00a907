# says: A race: program 0 stores to `bins[0]` and program 1 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-1)
    for bin in range(4):
        count = tl.sum((x == bin).to(tl.int32))
        tl.store(bins_ptr + bin, tl.load(bins_ptr + bin) + count)


def main():
    x, bins = torch.randint(0, 4, (500,), dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    kernel[(4,)](x, bins, 500, BLOCK=128)
    return bins, torch.bincount(x, minlength=4).int()
