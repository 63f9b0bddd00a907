"""The rungs of a matrix product multiply correctly, and the swept settings fit the hardware."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.matmuls import FUSED, LAST, SIZES, Setting, settings
from grader.exercises.triton.products import PLOT_CASES

ROOT = Path(__file__).resolve().parents[2]

_RUNGS = """
import sys
from pathlib import Path
import torch
from grader.worker.simulator.start import take_first
take_first()
from benchmarks.matmuls import FUSED, LAST, Setting, _globals, _persistent, rungs
a, b = torch.randint(-3, 4, (200, 72)).half(), torch.randint(-3, 4, (72, 136)).half()
product = a.float() @ b.float()
ladder = rungs(Path(sys.argv[1]))
known = _globals(ladder[LAST])
for even in (True, False):
    setting = Setting(64, 32, 16, 4, 3, 8, even)
    ladder[f"swept, {even}"] = lambda *arrays, chosen=setting: _persistent(known, chosen, *arrays)
for name, rung in ladder.items():
    out = torch.full((200, 136), float("nan")).half()
    rung(a, b, out)
    leaky = "leaky" in name
    expected = torch.nn.functional.leaky_relu(product, 0.01) if leaky else product
    assert torch.allclose(out.float(), expected, 1e-3, 0), name
print(*ladder, sep="|")
"""


def test_every_rung_multiplies(tmp_path: Path) -> None:
    """This runs in the interpreter, with sizes that fit no tile. The solutions have the names that the bench uses."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _RUNGS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    names = done.stdout.strip().split("|")
    assert {FUSED, LAST, "one tile per program", "grouped order", "autotuned"} < set(names)


def test_swept_settings_fit_a_hopper_gpu() -> None:
    """No setting needs more shared memory or registers than the GPU has, and the best known one is included."""
    swept = list(settings())
    assert Setting(128, 256, 64, 8, 4, 8, True) in swept
    assert Setting(128, 256, 64, 4, 3, 8, True) not in swept  # 256 sums per thread
    assert not Setting(128, 256, 64, 8, 5, 8, True).fits  # a fifth stage has no room
    assert len({str(setting) for setting in swept}) == len(swept) < 100


@pytest.mark.parametrize("size", SIZES)
def test_each_size_has_a_budget(size: int) -> None:
    """The bench compares with the budget of the exercise's plot case of that size."""
    assert any(case.arrays[0].shape == (size, size) and case.budget is not None for case in PLOT_CASES)
