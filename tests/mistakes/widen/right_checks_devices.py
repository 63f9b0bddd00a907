# right: asks for the device at import, and checks where its tensors are
# runs: anywhere
import torch
import triton
import triton.language as tl

assert torch.cuda.current_device() == 0


@triton.jit
def scale_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(column < columns, 4)
    gain = tl.load(gain_ptr + row)
    x_at = tl.multiple_of(row * x_stride, 4)
    out_at = tl.multiple_of(row * out_stride, 4)
    x = tl.load(x_ptr + x_at + column, mask=mask)
    tl.store(out_ptr + out_at + column, x * gain, mask=mask)


def widen(x, gain, out):
    assert x.is_cuda
    assert x.device.type == "cuda"
    assert out.device == x.device
    rows, columns = x.shape
    scratch = torch.zeros(1, device=x.device)
    assert (gain[:1] + scratch).is_cuda
    grid = rows, triton.cdiv(columns, 1024)
    scale_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=1024, num_warps=8)
