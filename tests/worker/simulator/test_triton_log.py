"""Kernels whose results are right in the simulator: races are named, and right kernels are left alone."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
KERNELS = Path(__file__).parent / "triton_kernels"
_NAMES = sorted(path.stem for path in KERNELS.glob("*.py"))


@functools.cache
def _observed() -> dict[str, Any]:
    """Return what each kernel was seen to do. All run in one process, because each process imports torch."""
    script = Path(__file__).parent / "run_triton_kernels.py"
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", _NAMES)
def test_a_race_is_named_and_a_right_kernel_is_not(name: str) -> None:
    """The first line of a file is `# says: …`, which names the bug, or `# right: …`."""
    key, _, value = (KERNELS / f"{name}.py").read_text().splitlines()[0].removeprefix("# ").partition(": ")
    found = _observed()[name]
    assert found["right"]
    messages = [each["message"] for each in found["observed"]]
    if key == "right":
        assert messages == []
    else:
        assert value in messages[0]
        assert not re.search(r"\binterpreter\b|\bwarning\b", messages[0])


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("race_load_add_store", "fails_on_gpu", 10),
        ("tuned_sum", "fails_on_gpu", None),
        ("stray_load", "note", 10),
        ("stray_store", "illegal_access", 10),
    ],
)
def test_a_race_fails_and_a_stray_read_is_a_note(name: str, kind: str, line: int | None) -> None:
    """A read outside of a tensor takes no points, because a GPU may let it pass. All else is wrong there."""
    first = _observed()[name]["observed"][0]
    assert (first["kind"], first["line"]) == (kind, line)


def test_there_are_enough_of_both() -> None:
    """At least fifteen races of different kinds, and ten right kernels."""
    starts = [name.partition("_")[0] for name in _NAMES]
    assert starts.count("race") + starts.count("tuned") >= 15
    assert starts.count("right") >= 10
