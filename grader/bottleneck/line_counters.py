"""Put the hardware counters of each source line into sentences about the learner's lines that matter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from grader.bottleneck.counters import WAITS
from grader.words import clean

__all__ = ["EXECUTED", "GLOBAL", "IDEAL", "SHARED", "STALL", "by_line"]

GLOBAL, SHARED, IDEAL = "memory_l2_theoretical_sectors_global", "memory_l1_wavefronts_shared", "{}_ideal"
STALL = "smsp__pcsamp_warps_issue_stalled_"
EXECUTED = "inst_executed"  # `inst_executed of METRIC` sums only the instructions that have a value of the metric
_NO_MODULE = (
    "Counters by line were not read: NVIDIA's Python module `ncu_report` was not found, or is not for this Python. "
    "`pip install ncu-report` installs it."
)
_NOT_WAITING = {"selected", "not_selected"}
_LEAST = 0.1  # share of a line that is worth a sentence
_WIDTH = 50  # characters of a line that are shown
_CODE = re.compile(r"\w")  # not a lone brace, where a kernel waits for its stores

_Values = Mapping[str, float]


def by_line(read: Mapping[str, Any] | None, source: str) -> tuple[str, ...]:
    """Return what the counters say about at most three lines of `source`, each sentence with its metric.

    `read` is what `grader.explore.profiling.report_lines` prints, None if NVIDIA's module is missing.
    """
    if read is None:
        return (_NO_MODULE,)
    texts = dict(enumerate(source.split("\n"), start=1))
    lines = {int(line): values for line, values in read["lines"].items() if _CODE.search(texts.get(int(line), ""))}
    found = (
        _excess(GLOBAL, "access to global memory touches {:.1f} sectors", "sectors", lines, read["totals"]),
        _excess(SHARED, "access to shared memory takes {:.1f} turns", "turns", lines, read["totals"]),
        _waits(lines, read["totals"]),
    )
    shown = {line: clean(texts[line].strip().replace("`", "'"), _WIDTH) for line in lines}
    return tuple(f"Line {line} (`{shown[line]}`): {said}." for line, said in filter(None, found))


def _excess(
    metric: str, what: str, units: str, lines: Mapping[int, _Values], totals: _Values
) -> tuple[int, str] | None:
    """Return the line with the most units beyond the ideal number, and a clause about it."""
    ideal, executed = IDEAL.format(metric), f"{EXECUTED} of {metric}"
    complete = {line: values for line, values in lines.items() if ideal in values and values.get(executed)}
    line = max(complete, key=lambda line: complete[line][metric] - complete[line][ideal], default=None)
    if line is None:
        return None
    values, total = complete[line], totals[metric]
    if values[metric] - values[ideal] < _LEAST * total:
        return None
    took, enough = values[metric] / values[executed], values[ideal] / values[executed]
    share = f"the line has {values[metric] / total:.0%} of all {units}"
    return line, f"a warp's {what.format(took)} on average where {enough:.1f} would do; {share} (`{metric}`)"


def _waits(lines: Mapping[int, _Values], totals: _Values) -> tuple[int, str] | None:
    """Return the line with the most samples of waiting warps, and a clause about it."""
    total = _stalls(totals).total()
    stalls = {line: _stalls(values) for line, values in lines.items()}
    line = max(stalls, key=lambda line: stalls[line].total(), default=None)
    if line is None or not total or stalls[line].total() < _LEAST * total:
        return None
    ((reason, _),) = stalls[line].most_common(1)
    why = f", most often for {WAITS[reason]}" if reason in WAITS else ""
    return line, f"warps wait here in {stalls[line].total() / total:.0%} of all stall samples{why} (`{STALL}{reason}`)"


def _stalls(values: _Values) -> Counter[str]:
    """Samples of waiting warps by reason. `…_not_issued` counts some of the same samples again."""
    reasons = {name.removeprefix(STALL): int(value) for name, value in values.items() if name.startswith(STALL)}
    return Counter(
        {name: n for name, n in reasons.items() if name not in _NOT_WAITING and not name.endswith("_not_issued")}
    )
