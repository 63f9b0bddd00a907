"""Building and running have limits of their own, and the sentence says which one was reached."""

from __future__ import annotations

import math
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.exercises import find
from grader.feedback.sentences import explained
from grader.judge.process.worker import Worker, WorkerFailed
from grader.judge.sandbox.process_tree import compiles
from grader.protocol.channel import ChannelTimeout

_NEVER: Any = SimpleNamespace(answered=lambda number: False)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Worker]:
    """Returns a worker that never answers. Its tree has a compiler for the first `built_s` seconds of a fake clock."""
    now = [0.0]

    def clock() -> float:
        now[0] += 0.05
        return now[0]

    fake = SimpleNamespace(perf_counter=clock, sleep=lambda _: None)
    monkeypatch.setattr("grader.judge.process.worker.time", fake)

    def make(built_s: float, share: float = 1.0) -> Worker:
        now[0] = 0.0
        worker = Worker.__new__(Worker)
        process = SimpleNamespace(poll=lambda: None)
        state = {"device": "simulator", "left_s": math.inf, "_doing": "The run", "_watch": lambda: 0.0}
        caged = SimpleNamespace(process=process, compiles=lambda: now[0] < built_s,
                                processor_s=lambda: share * now[0])  # fmt: skip
        vars(worker).update(state, _caged=caged, close=lambda: None)
        return worker

    return make


@pytest.mark.parametrize(
    ("built_s", "said", "least_s", "most_s"),
    [
        (0.0, "The run did not end within 15 s and was stopped.", 15, 16),
        (40.0, "The run did not end within 15 s after 40 s of building and was stopped.", 54, 56),
        (1e9, "Building did not end within 90 s and was stopped.", 90, 92),
    ],
)
def test_the_phase_that_took_too_long_is_named(
    waiting: Callable[..., Worker], built_s: float, said: str, least_s: float, most_s: float
) -> None:
    """A long build leaves a case its time, and an endless one has its own limit."""
    worker = waiting(built_s)
    with pytest.raises(WorkerFailed) as failed:
        worker._await_answer(_NEVER, 1, 15.0, 90.0)
    assert failed.value.failure.message == said
    assert least_s <= _waited(waiting(built_s)) <= most_s


@pytest.mark.parametrize("builds", [True, False])
def test_an_import_that_still_builds_is_not_called_endless(
    waiting: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, builds: bool
) -> None:
    """A cell may build its extension while it is imported, for which headers may take too long."""

    def receive(limit_s: float, **_: Any) -> None:
        raise ChannelTimeout

    worker = waiting(1e9 if builds else 0.0)
    limits = {"_channel": SimpleNamespace(receive=receive), "_doing": "The import of the cell", "_look_s": 0.1}
    vars(worker).update(limits)
    monkeypatch.setattr("grader.judge.process.worker.time.monotonic", lambda: 0.0, raising=False)
    with pytest.raises(WorkerFailed) as failed:
        worker._receive(180.0)
    failure = failed.value.failure
    said = explained(failure, find("mean_cuda"))
    assert failure.message.startswith("Building" if builds else "The import of the cell did not end within 180 s")
    assert ("a loop never ends" in said.meaning) is not builds
    assert ("The compiler was still running" in said.advice) is builds


@pytest.mark.parametrize(("share", "least_s", "most_s"), [(1.0, 15, 16), (0.6, 20, 21), (0.3, 30, 31), (0.0, 15, 16)])
def test_a_case_that_others_hold_up_gets_more_time(
    waiting: Callable[..., Worker], share: float, least_s: float, most_s: float
) -> None:
    """At most twice as much, and none if it does not use the processor at all, as in a deadlock."""
    assert least_s <= _waited(waiting(0.0, share)) <= most_s


def _waited(worker: Worker) -> float:
    worker.left_s = 1e6
    with pytest.raises(WorkerFailed):
        worker._await_answer(_NEVER, 1, 15.0, 90.0)
    return 1e6 - worker.left_s


def test_a_compiler_is_known_by_its_name(tmp_path: Path) -> None:
    """Only processes that are called like a part of a compiler count."""
    for name, counts in (("cc1plus", True), ("other", False)):
        program = shutil.copy(shutil.which("sleep") or "/bin/sleep", tmp_path / name)
        with subprocess.Popen([program, "60"]) as process:
            try:
                named = Path(f"/proc/{process.pid}/comm")
                while named.read_text().strip() != name:  # it has not reached exec yet
                    time.sleep(0.01)
                assert compiles([process.pid]) == counts
            finally:
                process.kill()


def test_only_a_build_that_can_be_seen_is_limited_apart() -> None:
    """On a GPU, Triton compiles within the process; in the simulator it does not compile."""
    assert find("softmax").run_limit_s("simulator") == find("square_matrix").run_limit_s("cuda") == 15
    assert find("softmax").run_limit_s("cuda") == find("softmax").time_limit_s
    assert find("fuse").run_limit_s("simulator") == find("fuse").time_limit_s
