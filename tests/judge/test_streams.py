"""Streams of a submission's own: which of them wait for the inputs."""

import pytest

from grader.judge.streams import unjoined

MADE = "side = torch.cuda.Stream()\n"


@pytest.mark.parametrize("made", [MADE, "s = cupy.cuda.Stream(non_blocking=True)", "cudaStreamCreate(&s);",
                                  "TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));"])  # fmt: skip
@pytest.mark.parametrize(("waits", "said"), [
    ("", True), ("side.wait_stream(main)", False), ("side.wait_event(ready)", False),
    ("cudaStreamWaitEvent(s, before, 0);", False), ("torch.cuda.synchronize()", False),
    ("cudaDeviceSynchronize();", False),
])  # fmt: skip
def test_a_stream_that_waits_for_nobody_is_told(made, waits, said):
    """In Python and in C++; one word that makes it wait is enough to say nothing."""
    assert unjoined(f"{made}\n{waits}") is said


@pytest.mark.parametrize("source", [
    "", "x + y", "with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):",
    "stream = torch.cuda.current_stream()", "cuda.external_stream(handle)",
])  # fmt: skip
def test_who_makes_no_stream_has_none(source):
    """The current stream, by whatever name, has the inputs."""
    assert not unjoined(source)
