"""The kernels that the notebook's softmaxes launch, with their times. Rows `kernels`, metric `time_us`."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.rows import Recorder
from grader.explore import list_kernels


def _eager(x: Any) -> Any:
    numerator = (x - x.amax(dim=1, keepdim=True)).exp()
    return numerator / numerator.sum(dim=1, keepdim=True)


def profiles(recorder: Recorder) -> None:
    """The titles are those of `list_kernels(…, title=…)` in 03_triton/03_fuse_a_softmax."""
    x = torch.randn(4096, 1024, device="cuda")
    for title, found in (
        ("eager softmax", list_kernels(_eager, x)),
        ("torch.softmax", list_kernels(torch.softmax, x, 1)),
    ):
        for row in found.records(title):
            recorder.add(row["bench"], row["case"], row["metric"], "µs", row["value"])
