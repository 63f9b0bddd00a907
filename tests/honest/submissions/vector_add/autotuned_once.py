# honest: triton.autotune with one configuration and no key
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.autotune([triton.Config(dict(B=1024), num_warps=4, num_stages=2)], key=[])
@triton.jit
def kernel(x, y, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z + o, tl.load(x + o, o < n) + tl.load(y + o, o < n), o < n)


def vector_add(x, y, out):
    def grid(config):
        return (triton.cdiv(out.numel(), config["B"]),)

    kernel[grid](x, y, out, out.numel())
