# right: a histogram with atomics per block, and pointers in a tensor
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(pointers_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x_ptr = tl.load(pointers_ptr + tl.program_id(0)).to(tl.pointer_type(tl.int32))
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    counts = tl.histogram(x, 4)
    tl.atomic_add(bins_ptr + tl.arange(0, 4), counts)


def main():
    xs = [torch.randint(0, 4, (64,), dtype=torch.int32) for _ in range(3)]
    bins = torch.zeros(4, dtype=torch.int32)
    kernel[(3,)](torch.tensor([x.data_ptr() for x in xs]), bins, 64, BLOCK=64)
    return bins, torch.bincount(torch.cat(xs), minlength=4).int()
