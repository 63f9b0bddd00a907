"""What a kernel that ran on the CPU did wrong, asked of every extension that was built for it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

__all__ = ["synchronize", "watch"]

_failures: dict[str, Callable[[], bytes | None]] = {}  # by path of the extension


def synchronize() -> None:
    """What `torch.cuda.synchronize` is to a GPU: raises what a kernel of an earlier call did wrong.

    Raises:
        RuntimeError: a kernel failed (a barrier that some threads miss, …), or its launch was refused and the
            launcher did not ask for the error.
    """
    for failure in _failures.values():
        if text := failure():
            raise RuntimeError(text.decode())


def watch(extension: Any) -> None:
    """Remembers how to ask the extension whether a kernel failed."""
    path = extension if isinstance(extension, str) else extension.__file__
    ask = ctypes.CDLL(path).cuda_on_cpu_failure
    ask.restype = ctypes.c_char_p
    _failures[path] = ask
