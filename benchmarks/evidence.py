"""What a release must show on a GPU machine, step by step: tests that need a GPU, and benches.

    python -m benchmarks.evidence OUT [STEP …] [--limit-s N] [--jobs 4] [--gpus 1]

Each step is a process with a time limit of its own and a log, OUT/<step>.log. A step that fails, or hangs, does not
keep the next from running; none starts once the limit is used up. Steps that judge correctness run side by side, those
that time anything run alone on their GPU: each of several has its share of the cores. `tests:PATH` is a step, too; so
are `mistakes:EXERCISE` and `notebook:CHAPTER/NAME`. `--list` names all.
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

__all__ = ["main", "run"]

_GRACE_S = 20.0


def run(steps: Sequence[Step], out: Path, limit_s: float, jobs: int, grace_s: float = _GRACE_S, gpus: int = 1) -> int:
    """Runs them in this order, each on the first GPU that is free for it; returns how many failed, or did not start."""
    out.mkdir(parents=True, exist_ok=True)
    waiting, failed = list(steps), 0
    running: dict[_Share, list[_Running]] = {gpu: [] for gpu in _shares(gpus)}
    ends = time.monotonic() + limit_s
    try:
        while waiting or any(running.values()):
            while waiting and (gpu := _free(waiting[0], running, jobs)) is not None:
                first = waiting.pop(0)
                if (left := ends - time.monotonic()) <= 0:
                    print(f"{first.name:28} not started: the time is used up", flush=True)
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
    """What a step gets of the machine. `visible` is what CUDA_VISIBLE_DEVICES is; None leaves it as it is."""

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
    """The GPU with the least on it that this step can start on now."""

    def may_start(beside: Sequence[_Running]) -> bool:
        shared = not one.quiet and not any(each.step.quiet for each in beside)
        return not beside or (shared and len(beside) < jobs)

    return min((gpu for gpu in running if may_start(running[gpu])), key=lambda gpu: len(running[gpu]), default=None)


class _Running:
    """A step's process, in a session of its own."""

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
        """Asks it to end when its time is up, and kills it when it does not; what it leaves behind is killed."""
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
        """Prints the step's line; returns whether it failed."""
        said = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip(" =") for line in reversed(said) if line.strip(" =")), "")
        code, seconds = self._process.returncode, time.monotonic() - self.begun
        print(f"{self.step.name:28} {seconds:6.1f} s  exit {code:3}  {last[:120]}", flush=True)
        return code != 0


def main(arguments: Sequence[str]) -> int:
    """The command; 1 where a step failed or was not started, 2 where there is no such step."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path, help="the folder of the logs")
    parser.add_argument("steps", nargs="*", help="steps, in the order to be run; all where none is named")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="no step starts later")
    parser.add_argument("--jobs", type=int, default=4, help="steps that judge correctness only: so many at once")
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
    # A shell that puts this into the background has it ignore the signal, and so would every step.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return 1 if run(steps, out, asked.limit_s, asked.jobs, gpus=asked.gpus) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
