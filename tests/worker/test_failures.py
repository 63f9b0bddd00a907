"""An exception's kind and sentence, by the texts that CUDA and torch give."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.worker.failures import describe

# What torch 2.11 adds to every error of CUDA's.
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
def test_an_error_of_cuda_is_what_it_says_and_not_what_its_hint_speaks_of(
    text: str, kind: str, words: str, hint: str
) -> None:
    """The hint names device-side assertions, whatever went wrong."""
    said = describe(RuntimeError(text + hint), Path("submission.py"))
    assert said["kind"] == kind
    assert words in said["message"]
