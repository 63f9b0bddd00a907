"""The environment is set before the driver starts and the CUDA context is made."""

import os
import subprocess
import sys

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


def test_its_imports_do_not_start_the_driver():
    """Importing Inductor calls `cuInit`, and the driver reads the environment then: later settings have no effect."""
    asked = "import sys, grader.worker.gpu_start; print('torch._inductor.compile_fx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.gpu
def test_the_driver_has_not_started_before_the_context_is_made():
    """Asked of the driver itself: it knows no device yet."""
    asked = """
import ctypes, grader.worker.gpu_start
print(ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(ctypes.c_int())))
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"  # CUDA_ERROR_NOT_INITIALIZED
