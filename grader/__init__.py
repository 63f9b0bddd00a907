"""Learn to program a GPU, and be graded by a judge that can be trusted.

A notebook imports `check`, `explain`, `benchmark`, `continue_from`, `standings`, `progress` and `device` from here.
Nothing is loaded before it is used. In a notebook on a machine without a GPU, importing this package also sets up the
simulators, so that a learner's kernels run there too. Import it before torch and triton.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from grader.version import __version__

if TYPE_CHECKING:
    from grader.notebook import benchmark, check, continue_from, explain, progress, standings

    device: str

__all__ = ["__version__", "benchmark", "check", "continue_from", "device", "explain", "progress", "standings"]


def __getattr__(name: str) -> Any:
    if name in ("benchmark", "check", "continue_from", "explain", "progress", "standings"):
        import grader.notebook

        return getattr(grader.notebook, name)
    if name == "device":
        from grader.notebook.notebook_machine import device

        return device()
    raise AttributeError(f"module 'grader' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


# Triton 3.9 fuses multiplications with additions, as it always did, but warns in every process that this will change.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

if "ipykernel" in sys.modules:
    from grader.notebook.notebook_machine import simulate_in_notebook

    simulate_in_notebook()
