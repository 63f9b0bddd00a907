# right: an autotuner that asks for Triton's clock by `warmup` and `rep`, and that a class keeps
# runs: anywhere
import triton
import triton.language as tl


class Adder:
    @staticmethod
    @triton.autotune(
        configs=[triton.Config({"BLOCK": b}, num_warps=w, maxnreg=128) for b in (512, 1024) for w in (2, 4)],
        key=["n"],
        prune_configs_by={"perf_model": lambda **given: given["BLOCK"], "top_k": 2},
        warmup=2,
        rep=5,
    )
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @triton.jit
    def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))
        else:
            tl.store(out_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def vector_add(x, y, out):
    Adder.kernel[lambda chosen: (triton.cdiv(x.numel(), chosen["BLOCK"]),)](x, y, out, x.numel())
