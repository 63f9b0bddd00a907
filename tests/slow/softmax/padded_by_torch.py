# slow: torch pads the matrix to a power of two first, and copies the result out of another padded one
# cause: extra operations
import torch
import triton
import triton.language as tl


@triton.jit
def rowwise(src, dst, WIDTH: tl.constexpr):
    # WIDTH is a power of two and each row is filled up with -inf, so there is no mask
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    row = tl.load(src + at)
    row = tl.exp(row - tl.max(row, axis=0))
    tl.store(dst + at, row / tl.sum(row, axis=0))


def softmax(x, out):
    m, n = x.shape
    width = triton.next_power_of_2(n)
    padded = torch.full((m, width), float("-inf"), device=x.device, dtype=x.dtype)
    padded[:, :n] = x
    result = torch.empty_like(padded)
    rowwise[(m,)](padded, result, WIDTH=width, num_warps=8 if width > 2048 else 4)
    out.copy_(result[:, :n])
