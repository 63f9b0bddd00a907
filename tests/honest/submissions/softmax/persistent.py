# honest: a few hundred programs, each of which takes row after row
# exercise: softmax
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * out_stride + column, numerator / tl.sum(numerator, axis=0), mask=mask)


def processors():
    return torch.cuda.get_device_properties(0).multi_processor_count if torch.cuda.is_available() else 2


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 512, 1), 32)
    programs = min(rows, processors() * max(1, 48 // warps))
    kernel[(programs,)](
        x, out, x.stride(0), out.stride(0), rows, columns, BLOCK=block, STAGES=2, num_warps=warps
    )
