# slow: makes the autotuner in each call
# cause: built in each call
# blind: missed
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


def vector_add(x, y, out):
    n = x.numel()
    configs = [triton.Config({"BLOCK": size}) for size in (512, 1024)]
    tuned = triton.autotune(configs=configs, key=["n"])(add)
    tuned[lambda chosen: (triton.cdiv(n, chosen["BLOCK"]),)](x, y, out, n)
