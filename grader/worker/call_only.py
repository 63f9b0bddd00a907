"""A function that can be called, and that has nothing else to find: what it does is kept elsewhere."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["CallOnly"]

_functions: weakref.WeakKeyDictionary[CallOnly, Callable[..., Any]] = weakref.WeakKeyDictionary()


class CallOnly:
    """Calls the function that it was made of. It has no closure, no attribute and no argument of that function."""

    __slots__ = ("__weakref__",)
    __name__ = "function"

    def __init__(self, function: Callable[..., Any]) -> None:
        _functions[self] = function

    def __call__(self, *args: Any) -> Any:
        return _functions[self](*args)
