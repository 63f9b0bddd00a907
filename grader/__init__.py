"""Learn to program a GPU, and be graded by a judge that can be trusted.

What a notebook imports: `check`, `benchmark`, `leaderboard`, `progress` and `device`. Nothing is loaded before it is
used. In a notebook on a machine without a GPU, importing this package also gets the simulators ready, so that the
kernels that a learner writes run there too; import it before torch and triton.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from grader.version import __version__

if TYPE_CHECKING:
    from grader.notebook import benchmark, check, progress

    device: str

__all__ = ["__version__", "benchmark", "check", "device", "leaderboard", "progress"]


def __getattr__(name: str) -> Any:
    if name in ("benchmark", "check", "progress"):
        import grader.notebook

        return getattr(grader.notebook, name)
    if name == "device":
        from grader.notebook.notebook_machine import device

        return device()
    raise AttributeError(f"module 'grader' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _CallableModule(ModuleType):
    """`grader.leaderboard` is a package of ours and, for a notebook, a function."""

    def __call__(self, exercise: Any = None, source: Any = None) -> None:
        """Shows the standings of an exercise, of which `exercise` is the id or the function."""
        from grader.notebook import leaderboard as show

        show(exercise, source)


class _Package(ModuleType):
    @property
    def leaderboard(self) -> ModuleType:
        import importlib

        module = importlib.import_module("grader.leaderboard")
        if type(module) is ModuleType:
            module.__class__ = _CallableModule
        return module

    @leaderboard.setter
    def leaderboard(self, module: ModuleType) -> None:
        """The import of the package sets it; the getter finds it by its name."""


sys.modules[__name__].__class__ = _Package

if "ipykernel" in sys.modules:
    from grader.notebook.notebook_machine import simulate_in_notebook

    simulate_in_notebook()
