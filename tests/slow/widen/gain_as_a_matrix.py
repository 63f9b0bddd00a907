# slow: the gains are first expanded to a matrix as large as x, which the kernel reads
# cause: extra operations
import triton
import triton.language as tl


@triton.jit
def product_kernel(x_ptr, g_ptr, out_ptr, sx, sg, so, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = tl.max_constancy(col < columns, 4)
    x = tl.load(x_ptr + tl.multiple_of(row * sx, 4) + col, mask=inside)
    g = tl.load(g_ptr + tl.multiple_of(row * sg, 4) + col, mask=inside)
    tl.store(out_ptr + tl.multiple_of(row * so, 4) + col, x * g, mask=inside)


def widen(x, gain, out):
    rows, columns = x.shape
    gains = gain.unsqueeze(1).expand(rows, columns).contiguous()
    grid = (rows, triton.cdiv(columns, 2048))
    product_kernel[grid](x, gains, out, x.stride(0), gains.stride(0), out.stride(0), columns, BLOCK=2048)
