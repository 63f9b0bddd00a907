# right: functions of Triton as methods of tensors
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = x.exp().log() + x.abs().sqrt() - x.cos() * x.sin()
    tl.store(out_ptr + i, y.reshape(2, N // 2).trans().ravel() + x.sigmoid().sum())


def main():
    x = torch.randn(64)
    out = torch.empty(64)
    kernel[(1,)](x, out, N=64)
    y = x + x.abs().sqrt() - x.cos() * x.sin()
    return out, y.reshape(2, 32).T.reshape(-1) + x.sigmoid().sum()
