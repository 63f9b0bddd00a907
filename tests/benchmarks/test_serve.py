"""Tests of benchmarks.serve: losses and repeated work are counted from the queue, the log and the clients."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from benchmarks.limits import Fault
from benchmarks.serve import Client, Seen, _counted, _server, _sources
from grader.server.job_queue import Answer, JobQueue, Limits

LINE = "12:00:00 student00{} vector_add: passed, 4 of 4 points; 0 waiting\n"


def test_the_texts_differ_and_some_are_wrong():
    """Otherwise the judge would have nothing to do, or nothing to find."""
    sources = _sources(6)
    assert len({source for source, _ in sources}) == 6
    assert [right for _, right in sources] == [True, True, False, True, True, False]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course whose server has judged the texts of three students, and stored two verdicts."""
    (tmp_path / "server").mkdir()
    with contextlib.closing(JobQueue(tmp_path / "server" / "queue.sqlite")) as queue:
        for number in range(3):
            queue.submit(f"student00{number}", "vector_add", "x", "1", Limits())
            job = queue.claim()
            assert job is not None
            queue.finish(job.key, Answer("passed", 4, 4, ""))
    (tmp_path / "verdicts").mkdir()
    for name in ("a", "b"):
        (tmp_path / "verdicts" / f"{name}.json").touch()
    return tmp_path


def test_a_run_without_faults_has_none(course: Path) -> None:
    """Each client has its verdict, and each text has one."""
    (course / "log").write_text("".join(map(LINE.format, range(3))), encoding="utf-8")
    drawn = [Client(f"student00{number}", "", "x", True, 0.0, False) for number in range(3)]
    seen = [Seen(client.student, "passed", True, (0.1,), 0, 5.0) for client in drawn]
    found = _counted(drawn, seen, course, course / "log", texts=2, within_s=1.0, kills=0)
    assert found.faults == []
    assert (found.answer_p95_s, found.all_judged_after_s) == (0.1, 5.0)


def test_every_fault_is_found(course: Path) -> None:
    """A client without a verdict, a wrong verdict, a job with two lines, a missing verdict and slow answers."""
    (course / "log").write_text("".join(map(LINE.format, (0, 0, 1, 2))), encoding="utf-8")
    drawn = [Client(f"student00{number}", "", "x", True, 0.0, False) for number in range(3)]
    wrong = Seen("student000", "failed", False, (0.9,), 0, 5.0)
    seen = [wrong, replace(wrong, student="student001", status="refused: no", answers_s=())]
    found = _counted(drawn, seen, course, course / "log", texts=3, within_s=1.0, kills=0)
    assert (found.lost, found.unexpected, found.judged_twice, len(found.faults)) == (2, 1, 1, 5)


def test_a_server_that_does_not_start_ends_the_run(
    course: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its own words, instead of clients that wait."""

    def start(_course: Path, _port: int, log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen([sys.executable, "-S", "-c", "print('It is broken.')"], stdout=out)

    monkeypatch.setattr("benchmarks.serve._start", start)
    with pytest.raises(Fault, match="It is broken"), _server(course, free_port, course / "log"):
        pass
