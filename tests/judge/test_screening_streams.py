"""Streams of a submission's own: which of them wait for the inputs."""

import pytest

from grader.judge.screening import waits_for_nobody

MADE = "side = torch.cuda.Stream()\n"


@pytest.mark.parametrize("made", [MADE, "s = cupy.cuda.Stream(non_blocking=True)",
                                  "auto s = at::cuda::getStreamFromPool();",
                                  "TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));"])  # fmt: skip
@pytest.mark.parametrize(("waits", "said"), [
    ("", True), ("side.wait_stream(main)", False),
    ("side.wait_stream(torch.cuda.current_stream())", False), ("torch.cuda.current_stream().wait_stream(side)", True),
    ("side.wait_event(ready)", False),
    ("cudaStreamWaitEvent(s, before, 0);", False), ("side.synchronize()", True),
])  # fmt: skip
def test_a_stream_that_waits_for_nobody_is_told(made, waits, said):
    """In Python and in C++. To wait for it afterwards is another matter."""
    assert bool(waits_for_nobody(f"{made}\n{waits}")) is said


@pytest.mark.parametrize("source", [
    "", "x + y", "with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):",
    "stream = torch.cuda.current_stream()", "cuda.external_stream(handle)", "cupy.cuda.Stream()",
    "cudaStreamCreate(&s);",
])  # fmt: skip
def test_a_stream_that_waits_by_itself_is_none(source):
    """The current stream, by whatever name, has the inputs; a blocking one waits for the default stream."""
    assert not waits_for_nobody(source)
