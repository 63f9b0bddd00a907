"""The kernels of the bench `means` compute means, and one of them is the notebook's element-by-element kernel."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.means import element_kernel

ROOT = Path(__file__).resolve().parents[2]

RUN = """
import sys, tempfile
from pathlib import Path
import torch
from benchmarks.kernels import load
from benchmarks.means import shape, ways
from grader.exercises import find

x = torch.rand(1501)
with tempfile.TemporaryDirectory() as folder:
    reference = load(find("mean_triton"), Path(folder))
    kernel = reference.__globals__["sums_kernel"]
    peers = {"reference": reference, "shape": shape(kernel, x, 3, 256, 4)} | ways(x, 3, 256)
    for name, peer in peers.items():
        for _ in range(2):  # a second launch finds the first one's leftovers
            out = torch.full((1,), float("nan"))
            peer(x, out)
            assert torch.allclose(out, x.mean(), atol=1e-6), (name, out, x.mean())
print(len(peers))
"""


def test_every_way_gives_the_mean_repeatedly() -> None:
    """In the interpreter each is right, also on its second launch, for a size that does not fill a block."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "5"


def test_the_kernel_that_circulates_is_the_notebooks() -> None:
    """The bench times the kernel that a learner has read."""
    text = inspect.getsource(getattr(element_kernel, "fn", element_kernel))
    body = text[text.index("    first = ") :]
    assert body in (ROOT / "source" / "03_triton" / "02_reduce_to_a_mean.py").read_text(encoding="utf-8")
