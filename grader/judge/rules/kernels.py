"""What the kernels that ran say of the rules. The worker tells their names, so they are a stranger's text: advice."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from grader.exercise import Exercise
from grader.judge.rules.notes import Note, findings, shown
from grader.judge.rules.torch_names import operation
from grader.verdict import Finding

__all__ = ["of_kernels"]

_MOST_ROWS = 64
_MOST_MICROSECONDS = 1e9
_MOST_CHARACTERS = 400
_NOTABLE = 0.3  # of the time of all kernels

_LIBRARY = re.compile(
    r"""^(at|at_cuda_detail|c10|cublas|cublasLt|cutlass|cudnn)::        # torch's own, and those that it brings along
    | ^(thrust|cub)::.*\bat::native\b | \bcublas[A-Z]\w*< | ^nvjet_ | ^cutlass_\d | \bcask_cudnn
    | ^sm\d+_xmma_ | ^(ampere|volta|turing|maxwell)_\w*gemm
    | ^\(anonymous\snamespace\)::softmax_warp_(for|back)ward<
    | ^triton_(poi|per|red|tem|for)_fused_ | ^cupy_\w+__""",  # what torch.compile and CuPy write
    re.VERBOSE,
)
_COPIES = re.compile(r"FillFunctor|direct_copy_kernel|CatArray|^cupy_(copy|fill)__")  # of the library's, and fills


class _Row(NamedTuple):
    name: str
    microseconds: float


def of_kernels(rows: Any, exercise: Exercise) -> tuple[Finding, ...]:
    """What a person should know of the kernels that ran in one call: `{"name", "count", "microseconds"}` each.

    Rows that are anything else are left out. Without any there is nothing to say: the profiler may not work there.
    """
    sound = [row for row in map(_sound, rows[:_MOST_ROWS] if isinstance(rows, list) else []) if row]
    simulated = [row.name for row in sound if row.name.startswith("aten::")]
    notes = [
        Note("simulated library", subject=shown(name))
        for name in simulated
        if operation(name.removeprefix("aten::").partition(".")[0]) in exercise.rules.library
    ]
    ran = [row for row in sound if not row.name.startswith("aten::")]
    if exercise.backend != "torch":  # which asks for no kernel of one's own
        notes += _on_gpu(ran)
    return findings(notes, exercise)


def _on_gpu(rows: list[_Row]) -> list[Note]:
    if not rows:
        return []
    longest = max(rows, key=lambda row: row.microseconds)
    library = [row for row in rows if _LIBRARY.search(row.name)]
    copies = [row for row in rows if row.name.startswith(("Memcpy", "Memset"))]
    copies += [row for row in library if _COPIES.search(row.name)]
    kernels = [row for row in rows if row not in copies]
    if not kernels:
        return [Note("ran no kernel", subject=shown(longest.name))]
    library = [row for row in library if row not in copies]
    total, of_library = (sum(row.microseconds for row in some) for some in (kernels, library))
    share = of_library / total if total else len(library) / len(kernels)
    if share < _NOTABLE:
        return []
    longest = max(library, key=lambda row: row.microseconds)
    return [Note("ran library", subject=shown(longest.name), share=share)]


def _sound(row: Any) -> _Row | None:
    """The row, if it is one."""
    if not isinstance(row, dict):
        return None
    name, microseconds = row.get("name"), row.get("microseconds")
    if not isinstance(name, str) or not name or isinstance(microseconds, bool):
        return None
    if not isinstance(microseconds, int | float) or not 0 <= microseconds <= _MOST_MICROSECONDS:
        return None
    return _Row(name[:_MOST_CHARACTERS].removeprefix("void "), float(microseconds))
