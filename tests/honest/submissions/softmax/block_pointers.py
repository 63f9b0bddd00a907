# honest: tl.make_block_ptr and tl.advance over padded rows
# exercise: softmax
# runs: anywhere
# gates: passes
# needs: triton.language.advance
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    x_block = tl.make_block_ptr(
        base=x_ptr, shape=(rows, columns), strides=(x_stride, 1), offsets=(0, 0), block_shape=(1, BLOCK), order=(1, 0)
    )
    x_block = tl.advance(x_block, (tl.program_id(0), 0))
    x = tl.load(x_block, boundary_check=(1,), padding_option="zero")
    x = tl.where(tl.arange(0, BLOCK)[None, :] < columns, x, -float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    out_block = tl.make_block_ptr(
        out_ptr, (rows, columns), (out_stride, 1), (tl.program_id(0), 0), (1, BLOCK), (1, 0)
    )
    tl.store(out_block, numerator / tl.sum(numerator, axis=1, keep_dims=True), boundary_check=(1,))


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 512, 1), 32)
    kernel[(rows,)](x, out, x.stride(0), out.stride(0), rows, columns, BLOCK=block, num_warps=warps)
