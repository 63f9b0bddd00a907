# right: a table of the inputs' addresses, as in the tutorial on groups of products, and the output's as a number
# runs: anywhere

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(table_ptr, out_address, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = i < n
    total = tl.zeros((SIZE,), tl.float32)
    for k in tl.static_range(2):
        input_ptr = tl.load(table_ptr + k).to(tl.pointer_type(tl.float32))
        total += tl.load(input_ptr + i, mask=inside)
    tl.store(out_address.to(tl.pointer_type(tl.float32)) + i, total, mask=inside)


def vector_add(x, y, out):
    table = torch.tensor([x.data_ptr(), y.data_ptr()], dtype=torch.int64, device=x.device)
    add_kernel[(triton.cdiv(x.numel(), 256),)](table, out.data_ptr(), x.numel(), SIZE=256)
