"""Tests of grader.server.judge_loop: texts and work from the exchange, each judged once, with a board that follows."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from grader.classroom.term.due_dates import extend, set_due_date
from grader.errors import GraderError, JudgeStopped
from grader.server.job_queue import Job, JobQueue, Limits
from grader.server.judge_loop import JudgeLoop, LiveBoard, Settings
from grader.verdict import Failure
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, solve
from tests.server.conftest import Clock, bare_course

MANY = Limits(per_hour=100, waiting=100)
pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader 0.9.6 misspells an argument, and leaves a file open


@pytest.fixture
def loop(quick_gradebooks: None, judge: ObedientJudge, queue: JobQueue, tmp_path: Path) -> JudgeLoop:
    """The loop of a course without notebooks; its lines are in `loop.told`."""
    return _loop(bare_course(tmp_path), queue, tmp_path)


def _loop(course: Path, queue: JobQueue, tmp_path: Path) -> JudgeLoop:
    told: list[str] = []
    board = LiveBoard(course, tmp_path / "site", every_s=0)
    made = JudgeLoop(Settings(course, sandbox=False), queue, board, told.append)
    made.told, made.board = told, board  # type: ignore[attr-defined]
    return made


def text(points: float, note: str = "") -> str:
    return f"def softmax(x, out):\n    pass  # points: {points} {note}\n"


def send(queue: JobQueue, student: str, source: str) -> str:
    return queue.submit(student, "softmax", source, "1", MANY)[0].key


def done(queue: JobQueue, key: str, student: str) -> Job:
    job = queue.job(key, student)
    assert job is not None
    assert job.answer is not None
    return job


def softmax_board(tmp_path: Path) -> Any:
    boards = json.loads((tmp_path / "site" / "standings.json").read_text(encoding="utf-8"))["boards"]
    return next(board for board in boards if board["exercise"] == "softmax")


def standings(tmp_path: Path) -> list[Any]:
    board = softmax_board(tmp_path)
    return [*board["rows"], *board["unranked"]]


def test_a_text_gets_a_verdict_and_a_place_on_the_board(loop: Any, queue: JobQueue, tmp_path: Path) -> None:
    """Under a pseudonym."""
    key = send(queue, "ann", text(10))
    assert loop.judge_next() is True
    assert loop.judge_next() is False
    loop.board.publish()
    job = done(queue, key, "ann")
    assert (job.state, job.answer.status, job.answer.points, job.answer.max_points) == ("done", "passed", 10, 10)
    assert "10 of 10 points" in job.answer.report
    assert loop.told == ["ann softmax: passed, 10 of 10 points; 0 waiting"]
    (entry,) = standings(tmp_path)
    assert "ann" not in json.dumps(entry)


def test_equal_texts_are_judged_once(loop: Any, queue: JobQueue, judge: ObedientJudge, tmp_path: Path) -> None:
    """Both students get the verdict and an entry."""
    keys = {student: send(queue, student, text(4)) for student in ("ann", "bob")}
    while loop.judge_next():
        pass
    loop.board.publish()
    assert judge.sources == [text(4)]
    assert [done(queue, key, student).answer.points for student, key in keys.items()] == [4, 4]
    assert len(standings(tmp_path)) == 2


def test_a_newer_text_replaces_the_entry(loop: Any, queue: JobQueue, tmp_path: Path) -> None:
    """As everywhere, the newest submission counts."""
    for points in (3, 10):
        send(queue, "ann", text(points))
        loop.judge_next()
    loop.board.publish()
    assert len(standings(tmp_path)) == 1


def test_a_judge_that_stops_is_asked_again(loop: Any, queue: JobQueue, judge: ObedientJudge) -> None:
    """Each try asks twice; then the learner reads why, and may send the same text again."""
    key = send(queue, "ann", text(10))
    judge.errors = [JudgeStopped("It ended.")] * 2
    assert loop.judge_next() is True
    assert queue.waiting() == 1
    judge.errors = [JudgeStopped("It ended.")] * 4
    while loop.judge_next():
        pass
    assert done(queue, key, "ann").answer.problem == "It ended."
    assert queue.submit("ann", "softmax", text(10), "1", MANY)[1] is True
    loop.judge_next()
    assert done(queue, key, "ann").answer.points == 10


def test_a_verdict_of_a_busy_machine_can_be_asked_for_again(loop: Any, queue: JobQueue, judge: ObedientJudge) -> None:
    """It is not kept: a timeout may have been the machine's fault."""
    judge.failure = Failure("timeout", "It took too long.")
    key = send(queue, "ann", text(0))
    loop.judge_next()
    judge.failure = None
    assert send(queue, "ann", text(0)) == key
    loop.judge_next()
    assert len(judge.sources) == 2


def test_a_newer_verdict_on_the_same_text_replaces_the_first(loop: Any, judge: ObedientJudge, tmp_path: Path) -> None:
    """On the board, too, where a busy machine would have the last word otherwise."""
    reasons = []
    for failure in (Failure("implausible", "Too fast."), Failure("timeout", "Too slow."), Failure("not_written", "")):
        judge.failure = failure
        loop.board.enter("ann", judge.grade(text(0), "softmax"))
        loop.board.publish()
        (entry,) = standings(tmp_path)
        reasons.append(entry["reason"])
    assert reasons == ["held for review", "0 of 0 cases right", "not written yet"]


def test_late_work_changes_no_board(
    classroom: Classroom, queue: JobQueue, clock: Clock, judge: ObedientJudge, tmp_path: Path
) -> None:
    """Neither a text nor work from the exchange, except within an extension; the learner and the board say so."""
    loop: Any = _loop(classroom.folder, queue, tmp_path)
    set_due_date(classroom.folder, ASSIGNMENT, "2026-03-01 12:00+00:00")

    def reasons(student: str, when: str, *, work: bool = False) -> tuple[str, int]:
        """The report, and how many are on the board, after a submission that is not written."""
        judge.failure = Failure("not_written", "")
        clock.now = datetime.fromisoformat(f"{when}+00:00").timestamp()
        if work:
            classroom.hand_in(student, solve(0), when=f"{when}:00.000000 UTC")
            queue.enter_work(student, ASSIGNMENT, when)
        else:
            send(queue, student, text(0, when))
        loop.judge_next()
        loop.board.publish(now=True)
        (job, *_) = queue.recent(student)
        assert job.answer is not None
        return job.answer.report, len(softmax_board(tmp_path)["unranked"])

    assert reasons("ann", "2026-03-01 11:00")[1] == 1
    assert softmax_board(tmp_path)["due"] == "2026-03-01T12:00+00:00"
    report, shown = reasons("bob", "2026-03-01 13:00")
    assert report.endswith("this was for practice, and changes neither points nor the leaderboard.")
    assert shown == 1
    assert reasons("bob", "2026-03-01 13:00", work=True)[1] == 1
    extend(classroom.folder, ASSIGNMENT, "bob", 2)
    assert reasons("bob", "2026-03-01 13:30", work=True)[1] == 2


def test_a_student_who_is_hidden_leaves_the_pages(loop: Any, queue: JobQueue, tmp_path: Path) -> None:
    """At once, not after the next submission."""
    for student in ("ann", "bob"):
        send(queue, student, text(10))
        loop.judge_next()
    loop.board.publish()
    assert len(standings(tmp_path)) == 2
    loop.board.store.set_hidden("ann", True)
    loop.board.publish()
    assert len(standings(tmp_path)) == 1


def test_an_exercise_that_is_gone_spoils_no_other_job(loop: Any, queue: JobQueue, judge: ObedientJudge) -> None:
    """The judge is not asked to load it."""
    key = send(queue, "ann", text(10))
    queue.submit("bob", "gone", text(10), "1", MANY)
    loop.judge_next()
    assert done(queue, key, "ann").answer.points == 10
    assert "gone" not in {exercise for group in judge.expected for _, exercise in group}


@pytest.mark.parametrize("error", [GraderError, ZeroDivisionError])
def test_without_a_leaderboard_there_are_verdicts(
    loop: Any, queue: JobQueue, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The instructor reads what is wrong with it."""

    def fail(*_: Any) -> None:
        raise error("The disk is full.")

    monkeypatch.setattr(loop.board, "enter", fail)
    key = send(queue, "ann", text(10))
    loop.judge_next()
    assert done(queue, key, "ann").answer.points == 10
    assert loop.told[0] == "The leaderboard is not up to date: The disk is full."


def test_a_board_that_is_measured_is_waited_for(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two measurements on one GPU would disturb each other; the line says what it waits for."""
    busy = loop.board.store.lock()
    busy.__enter__()
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            busy.__exit__(None, None, None)

    monkeypatch.setattr("grader.server.judge_loop.time.sleep", wait)
    with loop._alone():
        assert len(waited) == 3
        with pytest.raises(GraderError, match="Another leaderboard run"), loop.board.store.lock():
            pass
        with pytest.raises(BlockingIOError):  # as another process sees it
            _flock(loop._settings.course / "logs" / ".lock")
    assert len(loop.told) == 1
    _flock(loop._settings.course / "logs" / ".lock")


def _flock(file: Path) -> None:
    with file.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_points_that_are_no_number_are_no_verdict(loop: Any, queue: JobQueue) -> None:
    """JSON could not hold them."""
    key = send(queue, "ann", text(float("nan")))
    while loop.judge_next():
        pass
    assert done(queue, key, "ann").answer.problem == "The judge gave no points; this is a bug in the grader."


def test_a_report_can_be_sent(loop: Any, queue: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a surrogate pair, which a submission may print, cannot be encoded."""
    monkeypatch.setattr("grader.server.judge_loop.as_text", lambda *_: "well \ud800 done")
    key = send(queue, "ann", text(10))
    loop.judge_next()
    assert done(queue, key, "ann").answer.report.startswith("well ? done\n\nThis was for practice")


def test_a_bug_of_the_grader_ends_one_job_only(
    loop: Any, queue: JobQueue, judge: ObedientJudge, capsys: pytest.CaptureFixture[str]
) -> None:
    """The learner reads a sentence, and the traceback is in the server's output."""
    judge.errors = [ZeroDivisionError("secret detail")]
    keys = [send(queue, "ann", text(1)), send(queue, "bob", text(2))]
    while loop.judge_next():
        pass
    assert done(queue, keys[0], "ann").answer.problem == (
        "The grader failed (ZeroDivisionError): tell your instructor."
    )
    assert done(queue, keys[1], "bob").answer.points == 2
    assert "secret detail" in capsys.readouterr().err


def test_work_in_the_exchange_is_graded_and_its_feedback_released(
    classroom: Classroom, queue: JobQueue, judge: ObedientJudge, tmp_path: Path
) -> None:
    """Once: neither a second look nor a restart enters it again, but a newer submission is."""
    exchange = classroom.folder.with_name("course-exchange") / "gpu-course"

    def submit(when: str, points: float) -> None:
        handed_in = classroom.hand_in("ann", solve(points), when=when).parent
        handed_in.rename(exchange / "inbound" / f"ann+{ASSIGNMENT}+{when}+abc")

    def look() -> int:
        again = _loop(classroom.folder, queue, tmp_path)
        again.watch()
        return queue.waiting()

    loop = _loop(classroom.folder, queue, tmp_path)
    submit("2026-03-01 10:00:00.000000 UTC", 4)
    loop.watch()
    assert look() == 1
    assert loop.judge_next() is True
    (job,) = queue.recent("ann")
    assert (job.exercise, job.kind) == (ASSIGNMENT, "work")
    assert job.answer is not None
    assert (job.answer.status, job.answer.points) == ("graded", 4)
    assert classroom.grade("ann")[0] == 4
    assert [page.name for page in (exchange / "feedback").rglob("*.html")]
    assert look() == 0
    submit("2026-03-02 10:00:00.000000 UTC", 7)
    assert look() == 1
    loop.judge_next()
    assert classroom.grade("ann")[0] == 7


@pytest.mark.parametrize("reason", ["the judge stops", "a busy machine"])
def test_work_that_failed_for_a_passing_reason_is_graded_again(
    classroom: Classroom, queue: JobQueue, clock: Clock, judge: ObedientJudge, tmp_path: Path, reason: str
) -> None:
    """After a pause, without a new submission, and at most three times."""
    loop = _loop(classroom.folder, queue, tmp_path)
    classroom.hand_in("ann", solve(4))

    def look() -> bool:
        loop._watched_at -= 60
        loop.watch()
        return bool(loop.judge_next())

    if reason == "a busy machine":
        judge.failure = Failure("timeout", "It took too long.")
    else:
        judge.errors = [JudgeStopped("It ended.")] * 2
    assert look() is True
    judge.failure = None
    assert look() is False
    clock.now += 60
    assert look() is True
    assert classroom.grade("ann") == (4, False)
    clock.now += 10_000
    assert look() is False
    judge.failure = Failure("timeout", "It took too long.")
    classroom.hand_in("ann", solve(5))
    tries = 0
    for _ in range(5):
        tries += look()
        clock.now += 10_000
    assert tries == 3


def test_an_exchange_that_cannot_be_read_stops_nothing(
    loop: Any, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says why."""

    def fail(*_: Any) -> None:
        raise PermissionError("no access")

    Path(loop._api.exchange_root).mkdir()
    monkeypatch.setattr(loop._api, "get_released_assignments", fail)
    loop.watch()
    assert loop.told == ["The exchange cannot be read now (PermissionError: no access)."]
    send(queue, "ann", text(3))
    assert loop.judge_next() is True


def test_an_exchange_that_was_removed_comes_back(
    classroom: Classroom, queue: JobQueue, clock: Clock, judge: ObedientJudge, tmp_path: Path
) -> None:
    """The log names each change once; graded work is not graded again, and work that waited meanwhile is not lost."""
    exchange = classroom.folder.with_name("course-exchange")
    loop: Any = _loop(classroom.folder, queue, tmp_path)

    def submit(student: str, points: float) -> None:
        when = "2026-03-01 10:00:00.000000 UTC"
        handed_in = classroom.hand_in(student, solve(points), when=when).parent
        handed_in.rename(exchange / "gpu-course" / "inbound" / f"{student}+{ASSIGNMENT}+{when}+abc")

    def look() -> int:
        for _ in range(2):
            loop._watched_at -= 60
            loop.watch()
        return queue.waiting()

    def said() -> list[str]:
        return [line for line in loop.told if line.startswith("The exchange")]

    submit("ann", 4)
    assert look() == 1
    loop.judge_next()
    submit("bob", 7)
    assert look() == 1
    kept = shutil.copytree(exchange, tmp_path / "kept")
    missing = f"The exchange {exchange} is missing: put it back, or create it with `grader classroom init`."
    emptied = f"The exchange {exchange} has no assignment any more: put its files back, or release them again."
    shutil.rmtree(exchange)
    assert look() == 1
    assert said() == [missing]
    while loop.judge_next():
        pass
    exchange.mkdir()
    assert look() == 0
    assert said() == [missing, emptied]
    shutil.copytree(kept, exchange, dirs_exist_ok=True)
    clock.now += 60
    assert look() == 1
    assert said() == [missing, emptied, "The exchange can be read again."]
    assert loop.judge_next() is True
    clock.now += 10_000
    assert look() == 0
    assert [classroom.grade(student)[0] for student in ("ann", "bob")] == [4, 7]
    assert [sum(f"points: {points}" in text for text in judge.sources) for points in (4, 7)] == [1, 1]


def test_a_gradebook_that_is_locked_is_waited_for(loop: Any, queue: JobQueue) -> None:
    """For longer than SQLite's five seconds, after which the verdict would be lost."""
    with _locked(loop) as other:
        threading.Timer(6.0, other.rollback).start()
        key = send(queue, "ann", text(10))
        loop.judge_next()
        assert done(queue, key, "ann").answer.points == 10
        assert loop.told == ["ann softmax: passed, 10 of 10 points; 0 waiting"]


def test_a_gradebook_that_stays_locked_loses_no_submission(loop: Any, queue: JobQueue, judge: ObedientJudge) -> None:
    """It waits in the queue, and its verdict is kept."""
    database = loop._api.coursedir
    database.db_url = database.db_url.replace("timeout=60", "timeout=0.1")
    key = send(queue, "ann", text(10))
    with _locked(loop):
        assert loop.judge_next() is True
        assert queue.waiting() == 1
        assert "will be judged again, because" in loop.told[0]
    loop.judge_next()
    assert done(queue, key, "ann").answer.points == 10
    assert len(judge.sources) == 1


@contextlib.contextmanager
def _locked(loop: Any) -> Iterator[sqlite3.Connection]:
    """The gradebook's lock, as another program holds it."""
    file = loop._settings.course / "gradebook.db"
    with contextlib.closing(sqlite3.connect(file, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield other
