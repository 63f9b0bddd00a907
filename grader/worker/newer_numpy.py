"""What Numba still asks NumPy for, and newer ones have no more: without it Numba compiles nothing."""

from __future__ import annotations

__all__ = ["give_numba_its_names"]


def give_numba_its_names() -> None:
    """`numpy.row_stack` is gone since NumPy 2.5; Numba 0.68 looks it up when it first compiles."""
    import numpy

    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # type: ignore[attr-defined,unused-ignore]
