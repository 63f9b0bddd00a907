# honest: autotuned number of warps, key by columns, hopeless ones pruned, a shorter benchmark than the default
# exercise: softmax
# runs: gpu
# gates: passes
import triton
import triton.language as tl
from triton.testing import do_bench


def prune(configs, arguments, **_):
    elements = triton.next_power_of_2(arguments["columns"])
    kept = [config for config in configs if 4 <= elements // (32 * config.num_warps) <= 32]
    return kept or configs[:1]


@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (2, 4, 8, 16, 32)],
    key=["columns"],
    prune_configs_by={"early_config_prune": prune},
    do_bench=lambda call, quantiles: do_bench(call, warmup=2, rep=10, quantiles=quantiles),
)
@triton.heuristics({"BLOCK": lambda arguments: triton.next_power_of_2(arguments["columns"])})
@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + at, numerator / tl.sum(numerator, axis=0), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns)
