"""The judge as a process of its own: what its end costs the caller, and what stays behind."""

import os
import signal
import threading
import time

import pytest

from grader.errors import JudgeStopped
from grader.judge import sandbox
from grader.judge.service import Judge
from tests.judge.submissions import VECTOR_ADD

ENDLESS = "def vector_add(x, y, out):\n    while True: pass"


def children(pid: int) -> set[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return {int(child) for child in file.read().split()}


def descendants(pid: int) -> set[int]:
    found = children(pid)
    return found.union(*(descendants(child) for child in found)) if found else found


def gone(pids: set[int], within_s: float = 10) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_ends_the_work_and_the_next_call_works():
    """Ctrl-C in the middle of a check: no process stays, and the next check gets its verdict."""
    with Judge("simulator") as judge:
        judge.grade(VECTOR_ADD, "vector_add")
        assert judge._process is not None
        family = descendants(judge._process.pid) | {judge._process.pid}
        threading.Timer(2.0, signal.raise_signal, (signal.SIGINT,)).start()
        with pytest.raises(KeyboardInterrupt):
            judge.grade(ENDLESS, "vector_add")
        assert gone(family)
        assert judge.grade(VECTOR_ADD, "vector_add").status == "passed"


def test_a_judge_that_is_killed_is_one_sentence_and_the_next_call_works():
    """Whatever ends the judge's process, the caller gets an error to show and can go on."""
    with Judge("simulator") as judge:
        judge.grade(VECTOR_ADD, "vector_add")
        assert judge._process is not None
        process = judge._process
        threading.Timer(2.0, process.kill).start()
        with pytest.raises(JudgeStopped):
            judge.grade(ENDLESS, "vector_add")
        assert judge.grade(VECTOR_ADD, "vector_add").status == "passed"


def test_nothing_stays_behind(monkeypatch, tmp_path):
    """After `close` there is no process, no descriptor and no folder of a worker that was not there before."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    descriptors = len(os.listdir("/proc/self/fd"))
    judge = Judge("simulator")
    for source in (VECTOR_ADD, "def vector_add(x, y, out): import os; os._exit(3)"):
        judge.grade(source, "vector_add")
    assert judge._process is not None
    family = descendants(judge._process.pid) | {judge._process.pid}
    judge.close()
    assert gone(family)
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_progress_is_told_case_by_case():
    """The caller hears of the stages in order, and how many there are."""
    told = []
    with Judge("simulator") as judge:
        judge.grade(VECTOR_ADD, "vector_add", progress=lambda *stage: told.append(stage))
    counted = [done for stage, done, _ in told if stage.startswith("checking")]
    assert counted == list(range(len(counted)))
    assert len(counted) == told[-1][2] > 3


def test_the_workers_environment_is_its_own(monkeypatch, tmp_path):
    """Nothing of the caller's environment goes along but the way to compilers and libraries."""
    monkeypatch.setenv("GRADEBOOK_PASSWORD", "secret")
    environment = sandbox.environment(tmp_path)
    assert "GRADEBOOK_PASSWORD" not in environment
    assert environment["HOME"] == str(tmp_path)
