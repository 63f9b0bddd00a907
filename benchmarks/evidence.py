"""Runs the evidence for a release on a GPU machine, step by step: tests that need a GPU, and benches.

    python -m benchmarks.evidence OUT [STEP …] [--limit-s N] [--jobs 4] [--gpus 1]

Each step is a process with its own time limit and log, OUT/<step>.log. If a step fails or hangs, the next one still
runs; none starts after `--limit-s`. Steps that only check correctness run in parallel. A step that times anything runs
alone on its GPU, with its share of the cores. `--list` names all steps. `tests:PATH`, `mistakes:EXERCISE` and
`notebook:CHAPTER/NAME` are steps as well.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.steps import ROOT, START_AND_WRITE_S, Step, known, step
from grader.hardware import toolkit

_GRACE_S = 20.0


def run(steps: Sequence[Step], out: Path, limit_s: float, jobs: int, grace_s: float = _GRACE_S, gpus: int = 1) -> int:
    """Run the steps in order, each on the first free GPU. Return how many failed or did not start."""
    out.mkdir(parents=True, exist_ok=True)
    waiting, failed = list(steps), 0
    running: dict[_Share, list[_Running]] = {gpu: [] for gpu in _shares(gpus)}
    ends = time.monotonic() + limit_s
    try:
        while waiting or any(running.values()):
            while waiting and (gpu := _free(waiting[0], running, jobs)) is not None:
                first = waiting.pop(0)
                if (left := ends - time.monotonic()) <= 0:
                    print(f"{first.name:28} not started: no time is left", flush=True)
                    failed += 1
                else:
                    running[gpu].append(_Running(first, out, min(first.limit_s, left), grace_s, gpu))
            time.sleep(0.05)
            for gpu, beside in running.items():
                ended = [one for one in beside if one.has_ended()]
                running[gpu] = [one for one in beside if one not in ended]
                failed += sum(one.report() for one in ended)
    finally:
        for one in itertools.chain(*running.values()):
            one.kill()
    return failed


@dataclass(frozen=True)
class _Share:
    """The part of the machine for one step. `visible`: the value of CUDA_VISIBLE_DEVICES; None leaves it unchanged."""

    visible: str | None
    cores: frozenset[int]


def _shares(gpus: int) -> list[_Share]:
    cores = sorted(os.sched_getaffinity(0))
    if gpus == 1:
        return [_Share(None, frozenset(cores))]
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = names if len(names) >= gpus else [str(number) for number in range(gpus)]
    ends = [at * len(cores) // gpus for at in range(gpus + 1)]
    return [_Share(names[at], frozenset(cores[ends[at] : ends[at + 1]] or cores)) for at in range(gpus)]


def _free(one: Step, running: Mapping[_Share, Sequence[_Running]], jobs: int) -> _Share | None:
    """Return the least busy GPU on which this step can start now, or None."""

    def may_start(beside: Sequence[_Running]) -> bool:
        shared = not one.quiet and not any(each.step.quiet for each in beside)
        return not beside or (shared and len(beside) < jobs)

    return min((gpu for gpu in running if may_start(running[gpu])), key=lambda gpu: len(running[gpu]), default=None)


class _Running:
    """A step's process, in its own session."""

    def __init__(self, step: Step, out: Path, limit_s: float, grace_s: float, gpu: _Share) -> None:
        self.step, self.begun = step, time.monotonic()
        self._log = out / (re.sub(r"[^\w.-]+", "_", step.name) + ".log")
        self._interrupt_at, self._kill_at = self.begun + limit_s, self.begun + limit_s + grace_s
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        own = dict(step.environment)
        if gpu.visible is not None:
            own["CUDA_VISIBLE_DEVICES"] = gpu.visible
        if "BENCH_LIMIT_S" in own:
            own["BENCH_LIMIT_S"] = str(min(float(own["BENCH_LIMIT_S"]), max(1.0, limit_s - START_AND_WRITE_S)))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *step.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, **toolkit(os.environ), "PYTHONUNBUFFERED": "1", "PYTHONPATH": paths, **own},
                preexec_fn=lambda: os.sched_setaffinity(0, gpu.cores),
            )  # fmt: skip

    def has_ended(self) -> bool:
        """Whether it has ended. When its time is up, interrupt it, then kill it. Kill whatever it leaves behind."""
        if self._process.poll() is None:
            if time.monotonic() >= self._kill_at:
                self.kill()
            elif time.monotonic() >= self._interrupt_at:
                self._interrupt_at = self._kill_at
                self._process.send_signal(signal.SIGINT)
            return False
        self.kill()
        return True

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def report(self) -> bool:
        """Print the step's line, and return whether it failed."""
        said = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip(" =") for line in reversed(said) if line.strip(" =")), "")
        code, seconds = self._process.returncode, time.monotonic() - self.begun
        print(f"{self.step.name:28} {seconds:6.1f} s  exit {code:3}  {last[:120]}", flush=True)
        return code != 0


def main(arguments: Sequence[str]) -> int:
    """The command. Return 1 if a step failed or was not started, 2 if a step is unknown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path, help="the folder of the logs")
    parser.add_argument("steps", nargs="*", help="steps in order; by default all")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="no step starts after so many seconds")
    parser.add_argument("--jobs", type=int, default=4, help="how many correctness steps may run at once")
    parser.add_argument("--gpus", type=int, default=1, help="how many GPUs to use")
    parser.add_argument("--list", action="store_true", help="print the steps and what they run")
    asked = parser.parse_args(arguments)
    out = asked.out.absolute()
    try:
        steps = [step(name, out) for name in asked.steps] or known(out)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    if asked.list:
        for each in steps:
            print(f"{each.name:28} {each.limit_s:5.0f} s  {' '.join(each.command)[:200]}")
        return 0
    # A shell that runs this in the background makes it ignore the signal, and every step would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return 1 if run(steps, out, asked.limit_s, asked.jobs, gpus=asked.gpus) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
