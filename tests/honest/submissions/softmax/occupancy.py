# honest: as in Triton's tutorial: compiled ahead by warmup, registers and occupancy set the number of programs
# exercise: softmax
# runs: gpu
# gates: may miss
import torch
import triton
import triton.language as tl
from triton.runtime import driver

properties = driver.active.utils.get_device_properties(torch.cuda.current_device())
NUM_SM = properties["multiprocessor_count"]
NUM_REGS = properties["max_num_regs"]
SIZE_SMEM = properties["max_shared_mem"]
WARP_SIZE = properties["warpSize"]
kernels = {}


@triton.jit
def softmax_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr,
                   num_stages: tl.constexpr):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        col_offsets = tl.arange(0, BLOCK_SIZE)
        mask = col_offsets < n_cols
        row = tl.load(input_ptr + row_idx * input_row_stride + col_offsets, mask=mask, other=-float('inf'))
        numerator = tl.exp(row - tl.max(row, axis=0))
        softmax_output = numerator / tl.sum(numerator, axis=0)
        tl.store(output_ptr + row_idx * output_row_stride + col_offsets, softmax_output, mask=mask)


def softmax(x, out):
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    num_warps = 8
    num_stages = 4 if SIZE_SMEM > 200000 and block_size <= 8192 else 2
    key = (x.stride(0), out.stride(0), n_rows, n_cols)
    if key not in kernels:
        kernel = softmax_kernel.warmup(out, x, *key, BLOCK_SIZE=block_size, num_stages=num_stages,
                                       num_warps=num_warps, grid=(1,))
        kernel._init_handles()
        occupancy = max(1, NUM_REGS // (max(kernel.n_regs, 1) * WARP_SIZE * num_warps))
        if kernel.metadata.shared:
            occupancy = max(1, min(occupancy, SIZE_SMEM // kernel.metadata.shared))
        kernels[key] = min(NUM_SM * occupancy, n_rows)
    softmax_kernel[(kernels[key],)](out, x, *key, BLOCK_SIZE=block_size, num_stages=num_stages, num_warps=num_warps)
