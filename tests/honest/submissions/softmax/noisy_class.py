# honest: a class with properties, cached plans, warnings on stderr and a log file in the working folder
# exercise: softmax
# runs: anywhere
# gates: passes
import functools
import sys
import warnings
from pathlib import Path

import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + at, numerator / tl.sum(numerator, axis=0), mask=mask)


class Plan:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns

    @functools.cached_property
    def block(self):
        return triton.next_power_of_2(self.columns)

    @property
    def warps(self):
        return min(max(self.block // 512, 1), 32)

    @staticmethod
    @functools.cache
    def of(rows, columns):
        plan = Plan(rows, columns)
        if plan.block != columns:
            warnings.warn(f"{plan.block - columns} lanes of {plan.block} idle", stacklevel=2)
        try:
            with Path("plans.log").open("a", encoding="utf-8") as file:
                print(rows, columns, plan.block, plan.warps, file=file)
        except OSError as error:
            print("no log:", error, file=sys.stderr)
        return plan

    def run(self, x, out):
        _kernel[(self.rows,)](
            x, out, x.stride(0), out.stride(0), self.columns, BLOCK=self.block, num_warps=self.warps
        )


def softmax(x, out):
    Plan.of(*x.shape).run(x, out)
    print(".", end="", file=sys.stderr)
