"""CUDA C++ on a machine without a GPU: the source is rewritten into C++ that runs blocks and threads on the CPU.

`translate` rewrites what C++ has no syntax for; the headers under `include/` supply the rest of CUDA. Blocks run one
after another, the threads of a block take turns on fibers, so results are reproducible. What is UB on a GPU and often
goes unnoticed there is reported: a barrier that some threads miss, lanes that meet at different shuffles, a write past
the dynamic shared memory. Shared memory starts as NaN, and every second block runs its threads backwards, so that a
missing `__syncthreads` tends to show as a wrong result.

Not simulated: half precision, tensor cores, cooperative groups, CUB, inline PTX, threads that spin until another
block has done something, and time.
"""

from __future__ import annotations

from pathlib import Path

from grader.worker.cuda_on_cpu.diagnostics import first_error
from grader.worker.cuda_on_cpu.lines import install_line_marks, line_mark
from grader.worker.cuda_on_cpu.rewrite import translate

__all__ = ["COMPILER_FLAGS", "INCLUDE", "first_error", "install_line_marks", "line_mark", "translate"]

INCLUDE = Path(__file__).parent / "include"

COMPILER_FLAGS = (
    "-O1",
    "-std=c++20",
    "-fno-strict-aliasing",  # float* read as float4* is everyday CUDA
    "-fno-gnu-unique",  # a cell that is run again must not share statics with its earlier build
    "-U_FORTIFY_SOURCE",  # its longjmp refuses to change stacks
)
