# honest: four blocks a program by tl.static_range, loads first, stores after
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    begin = tl.program_id(0) * (BLOCK * TIMES)
    for i in tl.static_range(TIMES):
        at = begin + i * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        total = tl.load(x_ptr + at, mask=mask)
        total += tl.load(y_ptr + at, mask=mask)
        tl.store(out_ptr + at, total, mask=mask)


def vector_add(x, y, out, block=512, times=4):
    n = x.numel()
    add_kernel[(triton.cdiv(n, block * times),)](x, y, out, n, BLOCK=block, TIMES=times, num_warps=4)
