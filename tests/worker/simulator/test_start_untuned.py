"""`triton.autotune` in the simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

_TUNED = """
import inspect

import torch
import triton
import triton.language as tl
from grader.worker.simulator.start import take_first

take_first()
take_first()
timed = []

def tuned(**more):
    configs = [triton.Config({"BLOCK": size}) for size in (32, 64)]

    @triton.autotune(configs=configs, key=["n"], **more)
    @triton.jit
    def kernel(out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, BLOCK, mask=i < n)

    out = torch.zeros(100)
    kernel[lambda chosen: (triton.cdiv(100, chosen["BLOCK"]),)](out, 100)
    return out.unique().tolist()

if "warmup" in inspect.signature(triton.autotune).parameters:
    assert tuned(warmup=1, rep=1) == tuned(use_cuda_graph=True) == [32.0]
ran = []
tuned(pre_hook=lambda *_, **__: ran.append(1), do_bench=lambda call, quantiles: [call() or 1.0 for _ in range(9)][:3])
assert len(ran) == 3  # of each configuration, and the launch
print(tuned(), tuned(do_bench=lambda call, quantiles: (timed.append(1), [3.0 - len(timed)] * 3)[1]), len(timed))
"""


def test_the_first_configuration_is_taken(tmp_path: Path) -> None:
    """No driver is needed, and the old options for Triton's clock change nothing. A learner's own clock is called."""
    script = tmp_path / "tuned.py"
    script.write_text(_TUNED, encoding="utf-8")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[0] == "[32.0] [64.0] 2"
