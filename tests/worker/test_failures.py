"""An exception's kind and message follow from the texts of CUDA and torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.worker.failures import describe

# Torch 2.11 adds this to every CUDA error.
_HINT = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable "
    "device-side assertions.\n"
)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("CUDA error: an illegal memory access was encountered", "illegal_access", "outside of the buffers"),
        ("CUDA error: misaligned address", "illegal_access", "outside of the buffers"),
        ("CUDA error: device-side assert triggered", "illegal_access", "assertion in a kernel"),
        ("CUDA error: invalid configuration argument", "exception", "invalid configuration"),
        ("CUDA error: too many resources requested for launch", "exception", "too many resources"),
    ],
)
@pytest.mark.parametrize("hint", ["", _HINT])
def test_an_error_of_cuda_is_classified_without_its_hint(text: str, kind: str, words: str, hint: str) -> None:
    """Torch's hint always mentions device-side assertions."""
    said = describe(RuntimeError(text + hint), Path("submission.py"))
    assert said["kind"] == kind
    assert words in said["message"]


def test_a_kernels_line_is_shown_and_not_the_line_that_raised_its_error(tmp_path: Path) -> None:
    """The sentence's line counts if the call that it names is there; otherwise it counts from the source's start."""
    file = tmp_path / "submission.py"
    file.write_text('source = """\n\n  k<<<1, 2048>>>(x);\n"""\n')
    for said, line in (("The launch on line 3 was refused", 3), ("The launch on line 2 was refused", None)):
        assert describe(RuntimeError(said), file)["line"] == line


def test_an_exception_without_a_text_is_named_once() -> None:
    """Triton's assertions have none."""
    assert describe(AssertionError(), Path("submission.py"))["message"] == "AssertionError"


def test_what_the_simulator_saw_of_an_access_is_shown_with_its_line() -> None:
    """A race has a kind of its own, and the text in front of the sentence is left out."""
    for text, kind in (
        ("Race: a, on line 12, and b, on line 4.", "fails_on_gpu"),
        ("Outside: c on line 12.", "illegal_access"),
        ("Misaligned: d on line 12.", "illegal_access"),
    ):
        said = describe(RuntimeError(f"CUDA error: {text}"), Path("submission.py"))
        assert (said["kind"], said["message"], said["line"]) == (kind, text, 12)
    assert describe(RuntimeError("Trace: x"), Path("submission.py"))["kind"] == "exception"
