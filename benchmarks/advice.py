"""Compare four tools on ten slow kernels: Nsight Compute's own advice, Nsight Python, torch.profiler and `explain`.

    python -m benchmarks.advice gather [profiler] [ncu] [nsight]    # on a GPU: asks these three, or some of them
    python -m benchmarks.advice table     # writes results/slow/<gpu>.md, with the evidence of benchmarks.slow

`ncu` needs the GPU's performance counters, which a machine's owner may refuse; its message is then recorded. Nsight
Python (`pip install nsight-python`; 0.9.6 is the last version for an `ncu` older than 2026.2) runs `ncu` as well.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.limits import keep, kept
from benchmarks.rows import file_stem
from benchmarks.slow import EVIDENCE, answers, reached, texts
from grader.bottleneck.cause import sentence
from grader.exercises import find
from grader.explore.profiling.counted_call import run_ncu
from grader.hardware import nsight_compute
from tests.slow.corpus import corpus

KERNELS = (
    "vector_add/block_of_32", "softmax/three_passes", "softmax/one_warp_per_row", "transpose/no_tile",
    "transpose/unpadded_tile", "square_matrix/block_of_32", "mean_cuda/atomic_per_element", "grayscale/few_blocks",
    "matmul/one_stage", "vector_add/one_launch_per_part",
)  # fmt: skip
_LIMIT_S = 170.0
_LAUNCHES = 32  # that ncu looks at, in all
_SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "Occupancy", "LaunchStats", "WarpStateStats", "SourceCounters")
_ADVICE = re.compile(r"^\s{4}(?:OPT|WRN)\s+(?P<text>\S.*)$")
_RANGE = re.compile(r"<0,(?P<name>\w+/\w+)>")
_GAIN = re.compile(r"Est\. (?:Local )?Speedup: (?P<percent>[\d.]+)%")
_FIRST = 2  # pieces of advice that the table has, the largest estimate first
_CELL = 300  # characters of a tool's cell
_CALLS = """
import importlib.util, sys, torch
torch.manual_seed(0)
calls = {{}}
for name, path, entry, arrays in {calls!r}:
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    made = [torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for shape, dtype in arrays]
    call = getattr(module, entry)
    call(*made)
    torch.cuda.synchronize()
    calls[name] = call, made
"""
_FOR_NCU = """
    torch.cuda.cudart().cudaProfilerStart()
    with torch.cuda.nvtx.range(name):
        call(*made)
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
"""
_FOR_TORCH = """
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as session:
        call(*made)
        torch.cuda.synchronize()
    rows = [row for row in session.key_averages() if row.device_type.name == "CUDA" and row.self_device_time_total]
    print("<0," + name + ">")
    for row in sorted(rows, key=lambda row: -row.self_device_time_total)[:2]:
        print(f"{row.key[:60]}: {row.count} ×, {row.self_device_time_total:.0f} µs in all", flush=True)
"""
_FOR_NSIGHT = """
import numpy
import nsight
METRICS = {
    "gpu__time_duration.sum": "µs",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "% of DRAM's peak",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "% of L1's peak",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "% of the SMs' peak",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "% occupancy",
}

@nsight.analyze.kernel(configs=[(0,)], metrics=list(METRICS), combine_kernel_metrics=lambda a, b: numpy.maximum(a, b),
                       thermal_mode="off", output="quiet")
def once(config):
    for name, (call, made) in calls.items():
        with nsight.annotate(name):
            call(*made)
            torch.cuda.synchronize()

found = once().to_dataframe()
for name, rows in found.groupby("Annotation", sort=False):
    values = {row.Metric: row.AvgValue for row in rows.itertuples()}
    values["gpu__time_duration.sum"] /= 1000  # from ns
    print("<0," + name + ">" + ", ".join(f"{values[metric]:,.0f} {unit}" for metric, unit in METRICS.items()))
"""
_MANY = "vector_add/one_launch_per_part"  # 4,096 launches: Nsight Python would repeat every one
_TOOLS = ("profiler", "ncu", "nsight")


def gather(tools: Sequence[str] = _TOOLS, names: Sequence[str] = KERNELS) -> None:
    """Ask each tool about each kernel, on the last timed case, and keep what it prints."""
    by_name = {each.name: each for each in corpus()}
    with tempfile.TemporaryDirectory() as place:
        calls = []
        for name in names:
            exercise = find(by_name[name].exercise)
            path = Path(place, f"{name.replace('/', '_')}.py")
            path.write_text(by_name[name].source, encoding="utf-8")
            arrays = [(array.shape, array.dtype) for array in exercise.timed_cases[-1].arrays]
            calls.append((name, str(path), exercise.entry, arrays))
        for tool in tools:
            printed = _asked(place, tool, calls)
            EVIDENCE.mkdir(exist_ok=True)
            keep(_path(), {"tool": tool, "printed": printed})
            print(tool, printed[-3000:], sep="\n", flush=True)


def _asked(place: str, tool: str, calls: Sequence[tuple[Any, ...]]) -> str:
    """Return what a tool prints about the calls, or why there is nothing."""
    program, command = nsight_compute(), []
    if tool != "profiler" and program is None:
        return "==ERROR== ncu is not installed."
    if tool == "ncu":
        command = [str(program), "--nvtx", "--profile-from-start", "off", "--launch-count", str(_LAUNCHES)]
        command += [word for section in _SECTIONS for word in ("--section", section)]
    if tool == "nsight":
        if find_spec("nsight") is None:
            return "==ERROR== nsight-python is not installed."
        os.environ["PATH"] = os.pathsep.join((str(Path(str(program)).parent), os.environ.get("PATH", os.defpath)))
        calls = [each for each in calls if each[0] != _MANY]
    body = {"profiler": _FOR_TORCH, "ncu": _FOR_NCU, "nsight": _FOR_NSIGHT}[tool]
    path = Path(place, "calls.py")
    path.write_text(_CALLS.format(calls=calls) + body, encoding="utf-8")
    return run_ncu(command, [str(path)], place, _LIMIT_S)


def by_kernel(printed: str) -> dict[str, str]:
    """Divide what a tool prints by the ranges that are named after the files."""
    found: dict[str, str] = {}
    parts = _RANGE.split(printed)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        found[name] = found.get(name, "") + text
    return found


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
    printed = {row["tool"]: row["printed"] for row in kept(_path())}
    of_ncu, of_nsight, of_torch = (by_kernel(printed.get(tool, "")) for tool in ("ncu", "nsight", "profiler"))
    of_nsight.setdefault(_MANY, "not asked, as it repeats every launch")
    slow_ones, found = {each.name: each for each in corpus()}, answers(texts())
    gpu = next(answer.gpu for answer in found.values())
    lines = [
        f"# Ten slow kernels, and what four tools tell about them ({gpu})",
        "",
        "`python -m benchmarks.advice` wrote this page. The gain is that of the same work without the cause.",
        f"`ncu` had the sections {', '.join(_SECTIONS)}.",
        "Its two pieces of advice with the largest estimates are shown. A cell has at most 300 characters.",
        "Nsight Python gives numbers and no advice: of several kernels, each is the largest.",
        "",
        "| Kernel and cause | Gain | `ncu` | Nsight Python | torch.profiler | `explain` |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in KERNELS:
        answer = found.get(f"slow/{name}")
        if answer is None:
            continue
        brings = reached(slow_ones[name], found)
        cells = [
            f"`{name}`: {slow_ones[name].cause}",
            f"{brings:.1f}×" if brings else "",
            _short(advice_of(of_ncu.get(name, ""))[:_FIRST]) or _nothing(printed.get("ncu", ""), name in of_ncu),
            _short([of_nsight.get(name, "").strip()]) or _nothing(printed.get("nsight", ""), name in of_nsight),
            _short([of_torch.get(name, "").strip().replace("\n", "; ")]),
            _short([sentence(cause) for cause in answer.with_gpu[:_FIRST]]) or "no cause",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    path = EVIDENCE / f"{file_stem(f'NVIDIA {gpu}')}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _short(pieces: Sequence[str]) -> str:
    """Return the pieces in one text, cut off after a sentence, or else after a word, if it is too long."""
    text = " ".join(pieces)
    if len(text) <= _CELL:
        return text
    end = text.rfind(". ", _CELL // 3, _CELL) + 1 or text.rfind(" ", 0, _CELL)
    return f"{text[:end]} …"


def _nothing(printed: str, asked: bool) -> str:
    """Return why there is no advice: none was given, or the tool's own message."""
    said = [line for line in printed.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    return "no advice" if asked else (said[0] if said else "not reached in time")


def _path() -> Path:
    return EVIDENCE / "advice.jsonl"


def main(arguments: Sequence[str]) -> Any:
    """The command."""
    if arguments[:1] == ["gather"] and set(arguments[1:]) <= set(_TOOLS):
        return gather(arguments[1:] or _TOOLS)
    if list(arguments) == ["table"]:
        return print(table())
    raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
