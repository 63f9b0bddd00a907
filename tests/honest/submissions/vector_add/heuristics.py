# honest: triton.heuristics choose the block and whether a mask is needed
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: 1024 if args["n"] >= 1 << 16 else 256,
        "num_warps": lambda args: 4 if args["n"] >= 1 << 16 else 2,
    }
)
@triton.heuristics({"EVEN": lambda args: args["n"] % 1024 == 0})
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))
    else:
        mask = at < n
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    n = x.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
