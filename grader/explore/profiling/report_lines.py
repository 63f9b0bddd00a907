"""Read the counters of each source line of the longest kernel in a report, with Nsight Compute's module `ncu_report`.

This file is a program, because NVIDIA's library is best kept out of the learner's process. It prints JSON, which is
null if none of the folders nor this Python has the module. With `--names` it lists the metrics that have values by
instruction:

    python -m grader.explore.profiling.report_lines [--names] REPORT [FOLDER …]
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from grader.bottleneck.counters import TIME
from grader.bottleneck.line_counters import EXECUTED, GLOBAL, IDEAL, SHARED, STALL
from grader.worker.toolchain.compiler_errors import CELL

FILE = "submission.py"
_LEARNERS = (FILE, CELL)  # the files of line information whose lines are those of the learner's text
_COUNTED = {name for each in (GLOBAL, SHARED) for name in (each, IDEAL.format(each))}


def main(*words: str) -> None:
    """Print the counters, or the names."""
    path, *folders = (word for word in words if word != "--names")
    module = _module(folders)
    report = module.load_report(path) if module is not None else None
    if report is None:
        print(json.dumps(None))
    elif "--names" in words:
        print("\n".join(names(longest(report))))
    else:
        print(json.dumps(read(longest(report))))


def _module(folders: Sequence[str]) -> Any:
    """The module in the first folder whose library this Python can load, else an installed one, else None."""
    for folder in (*folders, ""):
        sys.path[:0] = [folder]
        try:
            return importlib.import_module("ncu_report")
        except ImportError:
            del sys.path[0]
    return None


def longest(report: Any) -> Any:
    """The launch that took longest."""
    ranges = [report.range_by_idx(at) for at in range(report.num_ranges())]
    actions = [each.action_by_idx(at) for each in ranges for at in range(each.num_actions())]
    return max(actions, key=lambda action: action.metric_by_name(TIME).as_double())


def names(action: Any) -> list[str]:
    """The metrics that have values by instruction, each with the number of values and their sum."""
    found = {name: by_address(action, name) for name in sorted(action.metric_names())}
    return [f"{name} {len(values)} {sum(values.values()):g}" for name, values in found.items() if values]


def read(action: Any) -> dict[str, Any]:
    """The sums over all instructions, and over those of each of the learner's lines.

    A metric that the report lacks is missing. Each metric has next to it how often its instructions were executed.
    """
    totals: defaultdict[str, float] = defaultdict(float)
    lines: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    executed = by_address(action, EXECUTED)
    for name in action.metric_names():
        if name not in _COUNTED and not name.startswith(STALL):
            continue
        for address, value in by_address(action, name).items():
            if not value:
                continue
            line = _line(action, address)
            for sums in (totals,) if line is None else (totals, lines[line]):
                sums[name] += value
                sums[f"{EXECUTED} of {name}"] += executed.get(address, 0.0)
    return {"totals": totals, "lines": lines}


def by_address(action: Any, name: str) -> dict[int, float]:
    """A metric's values by the address of the instruction; empty if it has none."""
    metric = action.metric_by_name(name)
    addresses = metric.correlation_ids() if metric is not None else None
    if addresses is None:
        return {}
    return {addresses.as_uint64(at): metric.as_double(at) for at in range(metric.num_instances())}


def _line(action: Any, address: int) -> int | None:
    place = action.source_info(address)
    return place.line() if place is not None and place.file_name().rpartition("/")[2] in _LEARNERS else None


if __name__ == "__main__":
    main(*sys.argv[1:])
