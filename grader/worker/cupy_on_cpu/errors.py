"""The errors that CuPy raises, under their names."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["CUDADriverError", "CompileException"]


class CompileException(Exception):
    """NVRTC did not take a source; the text is its log."""

    def __init__(self, log: str, source: str, name: str, options: Sequence[str], backend: str = "nvrtc") -> None:
        super().__init__(log)
        self.source, self.name, self.options, self.backend = source, name, tuple(options), backend


class CUDADriverError(RuntimeError):
    """The driver refused a call."""
