# honest: works on contiguous copies and copies the result into the padded rows
# exercise: softmax
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, numerator / tl.sum(numerator, axis=0), mask=at < columns)


def softmax(x, out):
    rows, columns = x.shape
    flat = x.clone(memory_format=torch.contiguous_format)
    result = torch.zeros(rows, columns, device=x.device)
    block = triton.next_power_of_2(columns)
    kernel[(rows,)](flat, result, columns, BLOCK=block, num_warps=min(max(block // 512, 1), 32))
    out.copy_(result)
    del flat, result
