# honest: asserts on all arguments, an early return for nothing, an import that may be missing
# exercise: vector_add
# runs: anywhere
# gates: passes
import torch
import triton
import triton.language as tl

try:
    import cupy  # only to compare with, in the notebook
except Exception:
    cupy = None

try:
    from triton.language.extra import libdevice
except ImportError:
    libdevice = None


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 32 == 0, "a block is made of warps")
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    for name, tensor in dict(x=x, y=y, out=out).items():
        assert isinstance(tensor, torch.Tensor), f"{name} is no tensor"
        assert tensor.dtype == torch.float32, f"{name} holds {tensor.dtype}"
        assert tensor.ndim == 1 and tensor.is_contiguous(), f"{name} is no plain vector"
        assert tensor.device == x.device
        assert not tensor.requires_grad
    if x.shape != y.shape or x.shape != out.shape:
        raise ValueError(f"shapes differ: {tuple(x.shape)}, {tuple(y.shape)}, {tuple(out.shape)}")
    if out.numel() == 0:
        return out
    grid = (triton.cdiv(out.numel(), 1024),)
    with torch.no_grad():
        add_kernel[grid](x, y, out, out.numel(), BLOCK=1024)
    return out
