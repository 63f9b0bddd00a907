"""An error of the submission and the kernel that failed before it: which of them the worker names."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grader.worker import main
from grader.worker.simulator import cuda_library

REFUSED = "The launch on line 4 was refused"


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An extension whose last launch was refused, which the submission has asked about."""
    texts = SimpleNamespace(failure=None, refused=REFUSED.encode())
    library = SimpleNamespace(cuda_on_cpu_failure=lambda: texts.failure, cuda_on_cpu_refused=lambda: texts.refused)
    monkeypatch.setattr(cuda_library, "_libraries", {"cell.so": library})
    return texts


@pytest.mark.parametrize("text", ["", "9", "CUDA error 1", "go returned 9.", "cudaErrorInvalidValue", "bad launch"])
def test_an_error_about_the_launch_says_why_it_was_refused(states: SimpleNamespace, text: str) -> None:
    """The submission's own words come first, and the reason is not repeated."""
    said = cuda_library.in_words(RuntimeError(text))
    assert str(said) == (f"{text}: {REFUSED}" if text else REFUSED)
    assert cuda_library.in_words(said) is said


@pytest.mark.parametrize(
    "text", ["rows are odd", "index 1 is out of bounds for dimension 1 with size 3", "3x1 and 3x3"]
)
def test_a_refusal_that_was_handled_is_not_blamed_for_another_error(states: SimpleNamespace, text: str) -> None:
    """Such an error keeps its type and line. A kernel that failed is named with any error: nothing works after it."""
    error = ValueError(text)
    assert cuda_library.in_words(error) is error
    states.failure = b"Race: thread 1"
    assert str(cuda_library.in_words(error)) == f"{text}: Race: thread 1"


@pytest.mark.parametrize("raised", [RuntimeError, SystemExit])
def test_an_error_that_cannot_be_shown_ends_no_worker(states: SimpleNamespace, raised: type[BaseException]) -> None:
    """It is described as without a kernel."""

    class Bomb(Exception):
        def __str__(self) -> str:
            raise raised

    assert main._said_by_kernel(Bomb()) is None
    assert main._said_by_kernel(KeyboardInterrupt()) is None
