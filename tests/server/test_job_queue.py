"""Tests of grader.server.job_queue: no accepted job is lost or judged twice, and everybody gets a turn."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from grader.server.job_queue import Answer, JobQueue, Limits, Refused
from tests.server.conftest import Clock

MANY = Limits(per_hour=100, waiting=100)


def submit(queue: JobQueue, student: str, source: str, limits: Limits = MANY, version: str = "1") -> str:
    return queue.submit(student, "softmax", source, version, limits)[0].key


def test_an_accepted_job_outlives_the_process(tmp_path: Path) -> None:
    """A second connection, as after a restart, finds it, and claims what was being judged again."""
    file = tmp_path / "queue.sqlite"
    first = JobQueue(file)  # never closed, as in a process that was killed
    keys = [submit(first, "ann", "a"), submit(first, "bob", "b")]
    claimed = first.claim()
    assert claimed is not None
    assert claimed.key == keys[0]
    with contextlib.closing(JobQueue(file)) as second:
        assert second.resume() == 1
        again = [job for _ in range(3) if (job := second.claim()) is not None]
        assert [(job.key, job.source, job.tries) for job in again] == [(keys[0], "a", 2), (keys[1], "b", 1)]
    first.close()


def test_a_replay_is_the_same_job_and_costs_no_attempt(queue: JobQueue) -> None:
    """While it waits, while it is judged and after its verdict; another student's is another job."""
    once = Limits(per_hour=1, waiting=1)
    key = submit(queue, "ann", "a", once)
    for _ in range(2):
        assert queue.submit("ann", "softmax", "a", "1", once)[1] is False
        assert queue.claim() is None or submit(queue, "ann", "a", once) == key
    queue.finish(key, Answer("passed", 10, 10, "well done"))
    job, is_new = queue.submit("ann", "softmax", "a", "1", once)
    assert (job.key, job.state, is_new) == (key, "done", False)
    assert submit(queue, "bob", "a", once) != key


def test_a_new_version_of_the_exercise_is_a_new_job(queue: JobQueue) -> None:
    """Its verdict may differ."""
    assert submit(queue, "ann", "a") != submit(queue, "ann", "a", version="2")


def test_an_older_text_can_be_sent_again(queue: JobQueue) -> None:
    """It is the newest then, so it counts."""
    for text in ("a", "b"):
        queue.finish(submit(queue, "ann", text), Answer("passed", 10, 10, "well done"))
    assert queue.submit("ann", "softmax", "b", "1", MANY)[1] is False
    job, is_new = queue.submit("ann", "softmax", "a", "1", MANY)
    assert (job.state, is_new) == ("waiting", True)


def test_an_outcome_that_may_change_can_be_asked_for_again(queue: JobQueue) -> None:
    """But it costs an attempt, or an endless loop could be sent forever."""
    twice = Limits(per_hour=2, waiting=1)
    for _ in range(2):
        key = submit(queue, "ann", "a", twice)
        assert queue.claim() is not None
        queue.finish(key, Answer(problem="The judge stopped."), final=False)
    with pytest.raises(Refused, match="2 submissions within an hour"):
        submit(queue, "ann", "a", twice)


def test_attempts_count_for_an_hour(queue: JobQueue, clock: Clock) -> None:
    """The refusal says how long to wait."""
    limits = Limits(per_hour=2, waiting=9)
    submit(queue, "ann", "a", limits)
    clock.now += 600
    submit(queue, "ann", "b", limits)
    with pytest.raises(Refused) as refused:
        submit(queue, "ann", "c", limits)
    assert refused.value.retry_after_s == 3000
    submit(queue, "bob", "c", limits)
    clock.now += 3000
    submit(queue, "ann", "c", limits)


def test_few_of_a_student_may_wait(queue: JobQueue) -> None:
    """A claimed job waits no longer."""
    limits = Limits(per_hour=9, waiting=1)
    submit(queue, "ann", "a", limits)
    with pytest.raises(Refused, match="You have 1 submission waiting already"):
        submit(queue, "ann", "b", limits)
    queue.claim()
    submit(queue, "ann", "b", limits)


def test_students_take_turns(queue: JobQueue) -> None:
    """A student who sends three does not hold up another who sends one; the places say so."""
    for student, source in [("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b1")]:
        submit(queue, student, source)
    assert [job.place for job in queue.recent("ann")] == [4, 3, 1]
    assert [(job.source, job.state, job.tries) for job in queue.upcoming(3)] == [
        ("a1", "waiting", 0), ("b1", "waiting", 0), ("a2", "waiting", 0),
    ]  # fmt: skip
    order = [job.source for _ in range(4) if (job := queue.claim()) is not None]
    assert order == ["a1", "b1", "a2", "a3"]
    assert [job.place for job in queue.recent("ann")] == [0, 0, 0]


def test_a_job_that_ends_the_process_is_given_up(queue: JobQueue) -> None:
    """After three tries the next job gets its turn."""
    key = submit(queue, "ann", "poison")
    for _ in range(3):
        assert queue.claim() is not None
        queue.resume()
    other = submit(queue, "bob", "b")
    claimed = queue.claim()
    assert claimed is not None
    assert claimed.key == other
    job = queue.job(key, "ann")
    assert job is not None
    assert job.answer == Answer(problem="The judge stopped on this submission: ask your instructor.")


def test_work_from_the_exchange_is_entered_once(queue: JobQueue) -> None:
    """A newer submission is entered again."""
    assert queue.enter_work("ann", "03_triton", "10:00") is True
    assert queue.enter_work("ann", "03_triton", "10:00") is False
    assert queue.enter_work("ann", "03_triton", "11:00") is True
    assert [job.kind for job in queue.recent("ann")] == ["work", "work"]


def test_work_that_a_busy_machine_failed_is_tried_again(queue: JobQueue, clock: Clock) -> None:
    """After a pause that grows, three times in all, and behind the others."""
    tries = []
    for minutes in (0, 1, 2, 100):
        clock.now += 60 * minutes - 1
        assert minutes == 0 or queue.enter_work("ann", "03_triton", "10:00") is False
        clock.now += 1
        queue.enter_work("ann", "03_triton", "10:00")
        if (job := queue.claim()) is not None:
            tries.append(job.tries)
            queue.finish(job.key, Answer("graded"), final=False)
    assert tries == [1, 2, 3]
    queue.enter_work("bob", "03_triton", "10:00")
    done = queue.claim()
    assert done is not None
    queue.finish(done.key, Answer("graded"))
    clock.now += 10_000
    assert queue.enter_work("bob", "03_triton", "10:00") is False


def test_a_job_is_its_students_alone_and_its_text_is_forgotten(queue: JobQueue, tmp_path: Path) -> None:
    """The file is closed to other users, too."""
    key = submit(queue, "ann", "the secret text")
    assert queue.job(key, "bob") is None
    assert queue.recent("bob") == []
    queue.claim()
    queue.finish(key, Answer("passed", 10, 10, "well done"))
    job = queue.job(key, "ann")
    assert job is not None
    assert job.to_dict() == {
        "id": key, "exercise": "softmax", "state": "done", "place": 0, "status": "passed", "points": 10,
        "max_points": 10, "report": "well done", "problem": "",
    }  # fmt: skip
    assert stat.S_IMODE((tmp_path / "queue.sqlite").stat().st_mode) == 0o600


def test_a_full_disk_loses_one_request_only(queue: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that cannot be committed does not stay open."""
    real, failures = queue._connection, [sqlite3.OperationalError("database or disk is full")]

    class Full:
        """A connection whose first COMMIT fails."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def execute(self, statement: str, *values: Any) -> Any:
            if statement == "COMMIT" and failures:
                raise failures.pop()
            return real.execute(statement, *values)

    monkeypatch.setattr(queue, "_connection", Full())
    with pytest.raises(sqlite3.OperationalError):
        submit(queue, "ann", "a")
    assert queue.waiting() == 0
    submit(queue, "ann", "a")
    assert queue.waiting() == 1


def test_many_at_once_are_all_accepted_and_each_is_claimed_once(tmp_path: Path) -> None:
    """Through two connections, as of the web server and the process that judges."""
    file = tmp_path / "queue.sqlite"
    with contextlib.closing(JobQueue(file)) as one, contextlib.closing(JobQueue(file)) as other:
        claimed: list[str] = []

        def send(number: int) -> None:
            for text in range(5):
                submit(one, f"student{number}", f"text {text}")

        def take() -> None:
            while len(claimed) < 40:
                if (job := other.claim()) is not None:
                    claimed.append(job.key)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        threads.append(threading.Thread(target=take))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(claimed)) == 40
