# right: the official tutorial: the driver's properties, warmup, occupancy
# runs: anywhere

import triton
import triton.language as tl
from triton.runtime import driver

DEVICE = triton.runtime.driver.active.get_active_torch_device()
SMS = driver.active.utils.get_device_properties(DEVICE.index)["multiprocessor_count"]


@triton.jit
def rows_kernel(out_ptr, x_ptr, xs, os, rows, columns, SIZE: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        lane = tl.arange(0, SIZE)
        x = tl.load(x_ptr + row * xs + lane, mask=lane < columns, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * os + lane, e / tl.sum(e, axis=0), mask=lane < columns)


def softmax(x, out):
    rows, columns = x.shape
    size = triton.next_power_of_2(columns)
    warm = rows_kernel.warmup(
        out, x, x.stride(0), out.stride(0), rows, columns, SIZE=size, STAGES=2, num_warps=8, grid=(1,)
    )
    warm._init_handles()
    fit = max(1, 65536 // (warm.n_regs * 32 * 8))
    rows_kernel[(min(SMS * fit, rows),)](
        out, x, x.stride(0), out.stride(0), rows, columns, SIZE=size, STAGES=2, num_warps=8
    )
