"""Measure a course's submissions again, rank them, and publish the standings under pseudonyms."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """Kept for one release: a notebook's `leaderboard(…)` shows what `standings(…)` shows."""

    def __call__(self, exercise: Any = None, source: Any = None) -> None:
        print("`leaderboard(…)` is now `standings(…)`.")
        sys.modules["grader"].standings(exercise, source)


sys.modules[__name__].__class__ = _Callable
