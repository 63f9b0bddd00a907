"""Compare three tools on ten slow kernels: Nsight Compute's own advice, torch.profiler and `explain`.

    python -m benchmarks.advice gather    # on a GPU: asks the two tools
    python -m benchmarks.advice table     # writes results/slow/<gpu>.md, with the evidence of benchmarks.slow

`ncu` needs the GPU's performance counters, which a machine's owner may refuse; its message is then recorded.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.limits import folder, keep, kept
from benchmarks.slow import answers, reached, texts
from grader.bottleneck.cause import sentence
from grader.exercises import find
from grader.results import RESULTS
from tests.slow.corpus import corpus

__all__ = ["KERNELS", "advice_of", "main", "table"]

KERNELS = (
    "vector_add/one_element_per_program", "vector_add/one_launch_per_part", "softmax/three_passes",
    "softmax/one_warp_per_row", "softmax/row_per_thread", "mean_triton/one_program", "transpose/no_tile",
    "transpose/unpadded_tile", "mean_cuda/atomic_per_element", "matmul/dot_in_float32",
)  # fmt: skip
_LIMIT_S = 120.0
_LAUNCHES = 2  # that ncu looks at
_ADVICE = re.compile(r"^\s{4}(?:OPT|WRN)\s+(?P<text>\S.*)$")
_GAIN = re.compile(r"Est\. (?:Local )?Speedup: (?P<percent>[\d.]+)%")
_FIRST = 2  # pieces of advice that the table has, the largest estimate first
_CALL = """
import sys, torch
sys.path.insert(0, {folder!r})
import submission
torch.manual_seed(0)
made = [torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for shape, dtype in {arrays!r}]
submission.{entry}(*made)
torch.cuda.synchronize()
"""
_FOR_NCU = """
torch.cuda.cudart().cudaProfilerStart()
submission.{entry}(*made)
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStop()
"""
_FOR_TORCH = """
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as session:
    submission.{entry}(*made)
    torch.cuda.synchronize()
rows = [row for row in session.key_averages() if row.device_type.name == "CUDA" and row.self_device_time_total]
for row in sorted(rows, key=lambda row: -row.self_device_time_total)[:2]:
    print(f"{{row.key[:60]}}: {{row.count}} ×, {{row.self_device_time_total:.0f}} µs in all")
"""


def gather(names: Sequence[str] = KERNELS) -> None:
    """Ask `ncu` and torch.profiler about each kernel, on the largest timed case, and keep what they say."""
    known = {row["name"] for row in kept(_path())}
    by_name = {each.name: each for each in corpus()}
    for name in names:
        if name in known:
            continue
        each = by_name[name]
        exercise = find(each.exercise)
        case = exercise.timed_cases[-1]
        with tempfile.TemporaryDirectory() as place:
            Path(place, "submission.py").write_text(each.source, encoding="utf-8")
            arrays = [(array.shape, array.dtype) for array in case.arrays]
            call = _CALL.format(folder=place, arrays=arrays, entry=exercise.entry)
            said = {
                "ncu": _asked(place, ["ncu", "--set", "full", "--profile-from-start", "off", "--launch-count",
                                      str(_LAUNCHES)], call + _FOR_NCU.format(entry=exercise.entry)),
                "profiler": _asked(place, [], call + _FOR_TORCH.format(entry=exercise.entry)),
            }  # fmt: skip
        keep(_path(), {"name": name, "case": case.name, **said})
        print(
            name, *(advice_of(said["ncu"]) or [said["ncu"][-300:]]), said["profiler"][-300:], sep="\n    ", flush=True
        )


def _asked(place: str, tool: Sequence[str], script: str) -> str:
    """Return what a tool prints about the script, or why there is nothing."""
    if tool and shutil.which(tool[0]) is None:
        return f"{tool[0]} is not installed."
    path = Path(place, "call.py")
    path.write_text(script, encoding="utf-8")
    try:
        ended = subprocess.run([*tool, sys.executable, str(path)], capture_output=True, text=True, timeout=_LIMIT_S,
                               cwd=place, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"It did not end within {_LIMIT_S:.0f} s."
    return (ended.stdout + ended.stderr)[-40_000:]


def advice_of(printed: str) -> list[str]:
    """The pieces of advice that `ncu` prints, each in one line, the one with the largest estimated gain first."""
    found: list[str] = []
    open_one = False
    for line in printed.splitlines():
        if (begun := _ADVICE.match(line)) is not None:
            found.append(begun["text"].strip())
            open_one = True
        elif open_one and line.startswith(" " * 10) and line.strip():
            found[-1] += " " + line.strip()
        else:
            open_one = False
    return sorted(dict.fromkeys(found), key=lambda text: -_percent(text))


def _percent(text: str) -> float:
    said = _GAIN.search(text)
    return float(said["percent"]) if said else 0.0


def table() -> Path:
    """Write the table, and return its path."""
    asked = {row["name"]: row for row in kept(_path())}
    every, slow_ones = texts(), {each.name: each for each in corpus()}
    found = answers(every)
    gpu = next(answer.gpu for answer in found.values())
    lines = [
        f"# Ten slow kernels, and what three tools tell about them ({gpu})",
        "",
        "`python -m benchmarks.advice` wrote this page. The gain is that of the same work without the cause.",
        "",
        "| Kernel and cause | Gain | `ncu` | torch.profiler | `explain` |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in KERNELS:
        answer, row = found.get(f"slow/{name}"), asked.get(name)
        if answer is None or row is None:
            continue
        brings = reached(slow_ones[name], found)
        cells = [
            f"`{name}`: {slow_ones[name].cause}",
            f"{brings:.1f}×" if brings else "",
            " ".join(advice_of(row["ncu"])[:_FIRST]) or _refusal(row["ncu"]),
            row["profiler"].strip().replace("\n", "; "),
            " ".join(sentence(cause) for cause in answer.with_gpu[:_FIRST]) or "no cause",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    path = RESULTS / "slow" / f"{gpu.lower().replace(' ', '-')}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _refusal(printed: str) -> str:
    errors = [line for line in printed.splitlines() if line.startswith("==ERROR==")]
    return errors[0] if errors else printed.strip().split("\n")[-1][:200]


def _path() -> Path:
    return folder("slow") / "advice.jsonl"


def main(arguments: Sequence[str]) -> Any:
    """The command."""
    if list(arguments) == ["gather"]:
        return gather()
    if list(arguments) == ["table"]:
        return print(table())
    raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
