"""Seconds of a warm check without a GPU, in this tree and in an older one.

    python -m benchmarks.warm_checks BEFORE [--edits N] [EXERCISE …]

`BEFORE` is a checkout of the older commit, in a folder with the commit's name. Each tree grades its own reference
solution, each time as a new text. The two take turns, so that both meet the same machine. Between its checks each has
some seconds, in which its next worker imports, as it does while a learner types. Each exercise adds two lines to
`results/warm_checks/<cores>-cores.jsonl`, one per tree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

from benchmarks.limits import keep
from benchmarks.rows import commit
from grader.results import RESULTS

EXERCISES = ("mean_cuda", "square_matrix", "softmax", "ls_numba_baseline", "ls_cupy_typed")  # every language
_EDITS = 5
_PAUSE_S = 6.0  # from a check's end to the next, as in `loop`
# It runs in the measured tree, whose package it imports. A line on stdin asks for a check; its answer is a line.
_SESSION = """
import json, sys, time
import torch
from grader.authoring.stubs import solution
from grader.judge.service import Judge

exercise, source = sys.argv[1], solution(sys.argv[1])
with Judge("simulator") as judge:
    for edit, _ in enumerate(sys.stdin):
        begun = time.perf_counter()
        verdict = judge.grade(f"{source}\\n# edit {edit}\\n", exercise)
        seconds = time.perf_counter() - begun
        answer = {"seconds": seconds, "status": verdict.status, "torch": torch.__version__}
        print("answer", json.dumps(answer), flush=True)
"""


class Session:
    """A learner's session in one tree: its judge grades one exercise again and again, without a GPU."""

    def __init__(self, tree: Path, exercise: str) -> None:
        folders = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        others = [each for each in folders if not Path(each, "grader").is_dir()]  # no other tree's package
        path = os.pathsep.join([str(tree), *others])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SESSION, exercise], cwd=tree, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        self.torch = ""
        self._ready = 0.0  # by the monotonic clock

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]

    def check(self) -> float:
        """Return the seconds of one check. Raises SystemExit if it ended, or if the reference is not right."""
        time.sleep(max(0.0, self._ready - time.monotonic()))
        print(file=self._process.stdin, flush=True)
        for line in self._process.stdout or ():
            word, _, answer = line.partition(" ")
            if word == "answer":
                found: dict[str, Any] = json.loads(answer)
                if found["status"] != "passed":
                    raise SystemExit(f"The reference solution was judged {found['status']}.")
                self.torch, self._ready = found["torch"], time.monotonic() + _PAUSE_S
                return float(found["seconds"])
        raise SystemExit(f"The session ended with status {self._process.wait()}.")


def measure(before: Path, after: Path, exercise: str, edits: int) -> list[dict[str, Any]]:
    """Return a row per tree: the seconds of `edits` checks in turn. A first one of each session is not measured."""
    with Session(before, exercise) as old, Session(after, exercise) as new, ThreadPoolExecutor(2) as threads:
        for first in [threads.submit(old.check), threads.submit(new.check)]:
            first.result()
        seconds = [(old.check(), new.check()) for _ in range(edits)]
    shared = {"exercise": exercise, "cpu": _cpu(), "cores": len(os.sched_getaffinity(0)), "torch": old.torch,
              "date": datetime.now(UTC).date().isoformat()}  # fmt: skip
    return [
        {"tree": name, **shared, "warm_s": [round(each, 2) for each in warm], "median_s": round(median(warm), 2),
         "commit": which}
        for name, which, warm in zip(
            ("before", "after"), (before.name, commit()), zip(*seconds, strict=True), strict=True
        )
    ]  # fmt: skip


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return ""


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm_checks")
    parser.add_argument("before", type=Path, metavar="BEFORE", help="a checkout, in a folder with its commit's name")
    parser.add_argument("exercises", nargs="*", default=EXERCISES, metavar="EXERCISE")
    parser.add_argument("--edits", type=int, default=_EDITS, help="how many warm checks to measure")
    asked = parser.parse_intermixed_args(arguments)
    cores = len(os.sched_getaffinity(0))
    lines = RESULTS / "warm_checks" / f"{cores}-cores.jsonl"
    lines.parent.mkdir(parents=True, exist_ok=True)
    for exercise in asked.exercises:
        for row in measure(asked.before.resolve(), RESULTS.parents[1], exercise, asked.edits):
            keep(lines, row)
            print(f"{exercise:20} {row['tree']:7} {row['median_s']:6.2f} s of {row['warm_s']}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
