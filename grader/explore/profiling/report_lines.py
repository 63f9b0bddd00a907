"""Read the counters of each source line of the longest kernel in a report, with Nsight Compute's module `ncu_report`.

This file is a program, because NVIDIA's library is best kept out of the learner's process. It prints JSON, which is
null if neither a folder nor this Python has the module:

    python -m grader.explore.profiling.report_lines REPORT [FOLDER …]
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
_LEARNERS = (FILE, CELL)  # the names that line information has for the learner's text
_COUNTED = {name for each in (GLOBAL, SHARED) for name in (each, IDEAL.format(each))}


def main(path: str, *folders: str) -> None:
    """Print the counters."""
    module = _module(folders)
    print(json.dumps(None if module is None else read(longest(module.load_report(path)))))


def _module(folders: Sequence[str]) -> Any:
    """The module in the first folder whose library this Python can load, else an installed one, else None."""
    for folder in (*folders, ""):
        sys.path.insert(0, folder)
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


def read(action: Any) -> dict[str, Any]:
    """The sums over all instructions, and over those of each of the learner's lines.

    `EXECUTED of METRIC` says how often the instructions with a value of the metric were executed.
    """
    totals: defaultdict[str, float] = defaultdict(float)
    lines: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    executed = _by_address(action, EXECUTED)
    for name in action.metric_names():
        if name not in _COUNTED and not name.startswith(STALL):
            continue
        for address, value in _by_address(action, name).items():
            if not value:
                continue
            line = _line(action, address)
            for sums in (totals,) if line is None else (totals, lines[line]):
                sums[name] += value
                sums[f"{EXECUTED} of {name}"] += executed.get(address, 0.0)
    return {"totals": totals, "lines": lines}


def _by_address(action: Any, name: str) -> dict[int, float]:
    """A metric's values by the address of the instruction."""
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
