"""List what a submission launches from CUDA C++ in a case that is too large to run here.

A forked copy of the process calls it on tensors without data, and the library lists each launch and does not run it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from grader.protocol.arena import Slot
from grader.worker.evidence import of_cuda_library
from grader.worker.simulator import cuda_library
from grader.worker.toolchain.forked import Forked
from grader.worker.toolchain.rehearsal import tensor_without_data, without_data


def launches(function: Callable[..., Any], cases: Sequence[tuple[str, Sequence[Slot]]], limit_s: float) -> list[Any]:
    """Return each launch with its "case", and `planned` set: "line", "grid", "threads" and "count"."""

    def work() -> dict[str, Any]:
        found = []
        for name, slots in cases:
            cuda_library.counted(on=2)
            with contextlib.suppress(Exception), without_data():
                function(*map(tensor_without_data, slots))
            found += [each | {"case": name, "planned": True} for each in of_cuda_library(cuda_library.counted(on=2))[0]]
        return {"launches": found}

    answer = (Forked(work).answer(limit_s) if cuda_library.is_used() else None) or {}
    return list(answer.get("launches", ()))
