"""The environment is set before the CUDA context is made; no GPU is needed."""

import os

import pytest
import torch

from grader.worker import gpu_start


@pytest.mark.parametrize(("one_queue", "told"), [(True, "1"), (False, None)])
def test_one_queue_is_set_before_the_context_is_made(monkeypatch, one_queue, told):
    """The driver reads the environment then and never again."""
    heard = []
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: heard.append(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS")))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(gpu_start.nvcc, "offer", lambda simulated: None)
    gpu_start.start(one_queue)
    assert heard == [told]
