"""What numba-cuda asks NumPy for, and NumPy 2.5 has no more: a GPU machine may have one that is not ours to choose."""

from __future__ import annotations

__all__ = ["give_numba_its_names"]


def give_numba_its_names() -> None:
    """`numpy.row_stack` is gone since NumPy 2.5; numba-cuda 0.30 looks it up when it first compiles."""
    import numpy

    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # type: ignore[attr-defined,unused-ignore]
