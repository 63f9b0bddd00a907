# right: as many programs as torch's device properties suggest
# runs: anywhere

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(out_ptr, x_ptr, xs, os, rows, columns, SIZE: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        lane = tl.arange(0, SIZE)
        x = tl.load(x_ptr + row * xs + lane, mask=lane < columns, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * os + lane, e / tl.sum(e, axis=0), mask=lane < columns)


def softmax(x, out):
    rows, columns = x.shape
    programs = min(4 * torch.cuda.get_device_properties(x.device).multi_processor_count, rows)
    rows_kernel[(programs,)](out, x, x.stride(0), out.stride(0), rows, columns, SIZE=triton.next_power_of_2(columns))
