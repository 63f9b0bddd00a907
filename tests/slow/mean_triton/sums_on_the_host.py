# slow: brings the sums of the blocks to the host
# cause: waits for the GPU
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float64)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x, axis=0))


def mean_triton(x, out):
    import torch

    n = x.numel()
    blocks = triton.cdiv(n, 8192)
    sums = torch.empty(blocks, dtype=torch.float64, device=x.device)
    sums_kernel[(blocks,)](x, sums, n, BLOCK=8192)
    out.fill_(sums.cpu().sum() / n)
