"""The advice of `ncu` is read from what it prints, kernel by kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import advice, slow
from tests.slow.corpus import corpus

_PRINTED = """
==PROF== Connected to process 7
  softmax_kernel (4096, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    NVTX Push/Pop Stack for Thread 7:
     <default domain>
        <0,softmax/three_passes>
    Section: GPU Speed Of Light Throughput
    DRAM Throughput  %  92.1
    INF   This workload is utilizing greater than 80.0% of the available throughput.
    ----- -----
    OPT   Est. Local Speedup: 12.5%
          Only 3 of 32 bytes are used
          in each sector.

    Section: Occupancy
    OPT   Est. Speedup: 50%
          Few warps.
  other (1, 1, 1)x(1, 1, 1)
        <0,transpose/no_tile>
    WRN   The grid is small.
"""


def test_the_largest_estimate_comes_first() -> None:
    """A piece of advice ends with its paragraph; information and figures are left out."""
    parts = advice.by_kernel(_PRINTED)
    assert list(parts) == ["softmax/three_passes", "transpose/no_tile"]
    assert advice.advice_of(parts["softmax/three_passes"]) == [
        "Est. Speedup: 50% Few warps.",
        "Est. Local Speedup: 12.5% Only 3 of 32 bytes are used in each sector.",
    ]
    assert advice.advice_of(parts["transpose/no_tile"]) == ["The grid is small."]


def test_a_long_cell_ends_with_a_sentence() -> None:
    """One without a sentence ends with a word."""
    assert advice._short([f"{'word ' * 30}end. ", "more " * 60]).endswith("end. …")
    assert advice._short(["word " * 100]).endswith("word …")
    assert advice._short(["Short.", "And so on."]) == "Short. And so on."


def test_the_ten_kernels_are_in_the_corpus() -> None:
    """Each has a cause of its own, except for one that has two files."""
    known = {each.name: each.cause for each in corpus()}
    assert len(advice.KERNELS) == 10
    assert len({known[name] for name in advice.KERNELS}) >= 9


def test_a_refusal_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without counters, the table has the tool's own message, and says which tool was missing."""
    monkeypatch.setattr(slow, "EVIDENCE", tmp_path)
    monkeypatch.setattr(advice, "EVIDENCE", tmp_path)
    refused = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters"
    monkeypatch.setattr(advice, "nsight_compute", lambda: None)
    missing = advice._asked(str(tmp_path), "nsight", [])
    lines = {"profiler": "<0,vector_add/block_of_32>add_kernel: 1 ×, 90 µs in all", "ncu": refused, "nsight": missing}
    for tool, printed in lines.items():
        advice.keep(tmp_path / "advice.jsonl", {"tool": tool, "printed": printed})
    text = next(each for each in slow.texts() if each.name == "slow/vector_add/block_of_32")
    claims = {"simulated": False, "gpu": "NVIDIA L4", "runs": [], "codes": None}
    row = {"name": text.name, "sha256": text.sha256, "seconds": 1.0, "claims": claims}
    advice.keep(tmp_path / "nvidia-l4.jsonl", row)
    monkeypatch.setattr(slow, "gpus", lambda: ())
    said = advice.table().read_text()
    assert f"| {refused} | ==ERROR== ncu is not installed. | add_kernel: 1 ×, 90 µs in all | no cause |" in said


def test_a_twin_of_the_corpus_lacks_one_cause_and_a_reference_all() -> None:
    """So the gain that is compared is that of one cause, or of all together."""
    each = next(one for one in corpus() if one.name == "transpose/no_tile")
    causes = tuple(
        slow.Cause(kind, "", "", "code", None, gain) for kind, gain in (("wasted sectors", 3.0), ("spills", 2.0))
    )
    answer = slow.Answer(
        slow.Text("slow/transpose/no_tile", "transpose", ""), causes, (), 900.0, "8192 × 8192", 6.0, 1.0, "L4"
    )
    assert slow.predicted(each, answer) == 6.0
    found = {"slow/transpose/no_tile": answer, "reference/transpose": replace(answer, us=150.0)}
    assert slow.reached(each, found) == 6.0
