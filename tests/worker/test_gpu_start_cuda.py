"""The worker's start on a GPU, without one: what the driver is told before the context is made."""

import os

import pytest
import torch

from grader.worker import gpu_start


@pytest.mark.parametrize(("one_queue", "told"), [(True, "1"), (False, None)])
def test_the_driver_is_told_of_one_queue_before_the_context_is_made(monkeypatch, one_queue, told):
    """It reads the environment then, and never again."""
    heard = []
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: heard.append(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS")))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(gpu_start.nvcc, "offer", lambda simulated: None)
    gpu_start.start(one_queue)
    assert heard == [told]
