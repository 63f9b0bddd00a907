# right: every program stores the same flag, and each element of a block the same sum
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, flag_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if tl.min(x, axis=0) < 0:
        tl.store(flag_ptr, 1)
    tl.store(out_ptr + tl.program_id(0) + 0 * tl.arange(0, 4), tl.sum(x, axis=0) + tl.zeros((4,), tl.float32))


def main():
    x, out, flag = torch.randn(256), torch.empty(4), torch.zeros(1, dtype=torch.int32)
    kernel[(4,)](x, out, flag, BLOCK=64)
    return torch.cat([out, flag]), torch.cat([x.view(4, 64).sum(1), torch.ones(1)])
