"""A submission gets arrays of the library that its cell imports."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from grader.worker.arrays import language
from grader.worker.simulator.cupy_module import module


@pytest.mark.parametrize(
    ("held", "wanted"),
    [({}, "torch"), ({"np": numpy}, "torch"), ({"cp": module("cupy")}, "cupy")],
)
def test_the_language_is_that_of_what_was_imported(held: dict[str, Any], wanted: str) -> None:
    """Modules count, and so do the origins of other names."""
    scope = dict(held)
    exec("def entry(): pass", scope)
    assert language(scope["entry"]) == wanted


def test_numba_is_known_by_its_module() -> None:
    """`from numba import cuda` is enough; Numba's package for GPUs has another name."""
    for name in ("numba.cuda", "numba_cuda.numba.cuda"):
        made = type(numpy)(name)
        scope = {"cuda": made}
        exec("def entry(): pass", scope)
        assert language(scope["entry"]) == "numba"  # type: ignore[arg-type]
