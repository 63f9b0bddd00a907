# honest: recursion over halves of the rows, with a generator and an exception of its own
# exercise: softmax
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl


class TooLong(ValueError):
    pass


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + at, numerator / tl.sum(numerator, axis=0), mask=mask)


def pieces(x, out, most):
    if x.shape[0] > most:
        half = x.shape[0] // 2
        yield from pieces(x[:half], out[:half], most)
        yield from pieces(x[half:], out[half:], most)
    elif x.shape[0]:
        yield x, out


def launch(x, out):
    block = triton.next_power_of_2(x.shape[1])
    if block > 32768:
        raise TooLong(f"{x.shape[1]} columns")
    warps = min(max(block // 512, 1), 32)
    kernel[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=block, num_warps=warps)


def softmax(x, out):
    try:
        for piece in pieces(x, out, most=max(64, x.shape[0] // 4)):
            launch(*piece)
    except TooLong:
        print("rows are too long for one block")
        raise
