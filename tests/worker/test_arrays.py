"""A submission gets arrays of the library that its cell imports."""

from __future__ import annotations

import functools
from typing import Any

import numpy
import pytest
import torch

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


@pytest.mark.parametrize(
    "text",
    [
        "entry = functools.partial(functools.partial(work, 1), 2)",
        "class Work:\n    def __call__(self): pass\nentry = Work()",
        "class Work:\n    def run(self): pass\nentry = Work().run",
        "entry = torch.no_grad()(work)",
        "entry = functools.cache(work)",
        "entry = functools.wraps(work)(work)",
    ],
)
def test_an_entry_may_be_any_callable(text: str) -> None:
    """A partial, an object, a method, and what a decorator has made, even of the function itself."""
    scope = {"cp": module("cupy"), "functools": functools, "torch": torch}
    exec(f"def work(*arguments): pass\n{text}", scope)
    assert language(scope["entry"]) == "cupy"  # type: ignore[arg-type]


def test_numba_is_known_by_its_module() -> None:
    """`from numba import cuda` is enough; Numba's package for GPUs has another name."""
    for name in ("numba.cuda", "numba_cuda.numba.cuda"):
        made = type(numpy)(name)
        scope = {"cuda": made}
        exec("def entry(): pass", scope)
        assert language(scope["entry"]) == "numba"  # type: ignore[arg-type]
