# right: times itself by events, and keeps a value in pinned memory
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    tl.store(
        o_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) + tl.load(y_ptr + i, mask=i < n, other=0.0), mask=i < n
    )


start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
staging = torch.zeros(16).pin_memory()


def vector_add(x, y, out):
    n = x.numel()
    start.record()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, B=1024)
    end.record()
    staging.copy_(out[:1].expand(16), non_blocking=True)
    torch.cuda.synchronize()
    return start.elapsed_time(end)
