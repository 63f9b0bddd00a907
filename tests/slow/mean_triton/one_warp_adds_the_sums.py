# slow: one program of one warp adds 262,144 sums, 32 at a time
# cause: serial tail
# blind: missed
import torch
import triton
import triton.language as tl


@triton.jit
def first_stage(x, partial, n, B: tl.constexpr):
    block = tl.program_id(0)
    offs = block * B + tl.arange(0, B)
    values = tl.load(x + offs, mask=offs < n, other=0.0)
    tl.store(partial + block, tl.sum(values, axis=0))


@triton.jit
def second_stage(partial, out, blocks, n):
    lane = tl.arange(0, 32)
    total = 0.0
    for first in range(0, blocks, 32):
        mine = tl.load(partial + first + lane, mask=first + lane < blocks, other=0.0)
        total += tl.sum(mine, axis=0)
    tl.store(out, total / n)


def mean_triton(x, out):
    n = x.numel()
    blocks = triton.cdiv(n, 256)
    partial = torch.empty((blocks,), dtype=torch.float32, device=x.device)
    first_stage[(blocks,)](x, partial, n, B=256, num_warps=2)
    second_stage[(1,)](partial, out, blocks, n, num_warps=1)
