"""A small checkout: two notebooks, a picture, recorded results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.authoring.build import BuildReport, build
from grader.exercises.load_inline.square_matrix import SQUARE_MATRIX
from grader.exercises.triton.softmax import SOFTMAX

EXERCISES = {"softmax": SOFTMAX, "square_matrix": SQUARE_MATRIX}

SOFTMAX_SOURCE = """\
# %% [markdown]
# # Fuse a softmax
#
# It is worth ⟦ exercise("softmax").max_points ⟧ points. See [the other](../02_load_inline/01_square_a_matrix.ipynb).
#
# ![Two bars, one half as long](../figures/bars.svg)

# %% tags=["hide-input"]
import torch

# %% nbgrader={"grade_id": "softmax", "solution": true}
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    row_of_program = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    denominator = tl.sum(numerator, axis=0)  # reads nothing
    ### END SOLUTION


def softmax(x, out):
    ### BEGIN SOLUTION
    block_size = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK_SIZE=block_size)
    return out
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-softmax", "grade": true, "locked": true, "points": 10}
check(softmax)
"""

SQUARE_SOURCE = '''\
# %% [markdown]
# # Square a matrix

# %% nbgrader={"grade_id": "square_matrix", "solution": true}
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(const float* x, float* out, int width) {
    // BEGIN SOLUTION
    int column_of_thread = blockIdx.x * blockDim.x + threadIdx.x;
    out[column_of_thread] = x[column_of_thread] * x[column_of_thread];
    // END SOLUTION
}
"""


def square_matrix(x, out):
    ### BEGIN SOLUTION
    load_inline("square", cuda_source).launch_square(x, out)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-square_matrix", "grade": true, "locked": true, "points": 5}
check(square_matrix)
'''

ROW = {
    "bench": "softmax",
    "case": "4096 × 8192",
    "metric": "bandwidth_gbps",
    "value": 3850.4,
    "unit": "GB/s",
    "low": 3840.0,
    "high": 3860.0,
    "gpu": "NVIDIA H200",
    "driver": "580",
    "torch": "2.11.0",
    "commit": "abc",
    "command": "make bench",
}


@dataclass(frozen=True)
class Checkout:
    root: Path

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def record(self, *rows: dict[str, object], name: str = "h200.json") -> None:
        self.write(f"benchmarks/results/{name}", json.dumps(rows))

    def build(self, check: bool = False) -> BuildReport:
        return build(check, root=self.root, exercises=EXERCISES)


SOFTMAX_PATH = "source/03_triton/03_fuse_a_softmax.py"
SQUARE_PATH = "source/02_load_inline/01_square_a_matrix.py"
SOFTMAX_BUILT = "course/03_triton/03_fuse_a_softmax.ipynb"
SQUARE_BUILT = "course/02_load_inline/01_square_a_matrix.ipynb"


@pytest.fixture
def tree(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "checkout")
    made.write(SOFTMAX_PATH, SOFTMAX_SOURCE)
    made.write(SQUARE_PATH, SQUARE_SOURCE)
    made.write("source/figures/bars.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
    return made
