"""Notebooks graded per minute on one GPU, by `grader classroom autograde` and by nbgrader's own autograding.

On this course's notebooks nbgrader runs every cell, and each `check` starts its own judge. That takes most of the time.
`throughput:bare_ours` and `throughput:bare_stock` compare the two on notebooks of two cells. `throughput:gpus` compares
one GPU with two on the same notebooks.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.classes import Class, make_class, surroundings, texts
from benchmarks.limits import Fault, Limit, folder, keep, kept
from benchmarks.material import MIXED
from benchmarks.rows import Recorder, commit
from grader.hardware import gpus as found_gpus
from grader.words import plural

_LIMIT_S = 560.0
_NEEDED = 8.0  # times the rate of stock nbgrader
_NEEDED_OF_TWO = 1.8  # times the rate of one GPU
_NOTEBOOKS = 60  # for one GPU and two; BENCH_NOTEBOOKS names fewer
_ON_GPUS = ("softmax", "matmul_open", "softmax_long")  # a notebook each: judging takes longer than nbgrader's part


class TimeUp(Exception):
    """The time limit is near. The results so far are saved."""


def grade_stock(made: Class, lines: Path, limit: Limit) -> None:
    """Grade with nbgrader's own autograding, student by student, and add a line for each.

    Running in this process is its fastest form: no command starts, and each notebook has one kernel. Students of an
    earlier call are not graded again.
    """
    done = {(row["assignment"], row["student"]) for row in kept(lines)}
    api = made.api()
    longest = 0.0
    for assignment, student, count in made.handed_in:
        if (assignment, student) in done:
            continue
        if not limit.allows(1.5 * longest + 5):
            return
        begun = time.perf_counter()
        result = api.autograde(assignment, student, force=True)
        seconds = time.perf_counter() - begun
        longest = max(longest, seconds)
        if not result["success"]:
            raise SystemExit(f"nbgrader could not grade {assignment} of {student}: {result.get('log', '')[-2000:]}")
        row = {"assignment": assignment, "student": student, "notebooks": count, "seconds": seconds,
               "score": _score(api, assignment, student)}  # fmt: skip
        keep(lines, row)
        print(row, flush=True)


def grade_ours(made: Class, lines: Path, limit: Limit) -> None:
    """Grade with this project's autograding, and add a line for each assignment with its time.

    The time includes the judge's start. No feedback is written, as by nbgrader's `autograde`.
    """
    from grader.classroom.preprocessor import JudgeCells
    from grader.judge.service import shared_judge

    cells = JudgeCells(config=made.api().config)
    try:
        _grade_ours(made, lines, limit)
    finally:
        shared_judge(cells.device, cells.sandbox).close()


def _grade_ours(made: Class, lines: Path, limit: Limit) -> None:
    from grader.classroom import class_actions

    done = {row["assignment"] for row in kept(lines)}
    for assignment in sorted({assignment for assignment, _, _ in made.handed_in} - done):
        counts = {student: count for each, student, count in made.handed_in if each == assignment}
        begun, last, longest = time.perf_counter(), time.perf_counter(), 0.0

        def tell(text: str, number: int, total: int) -> None:
            nonlocal last, longest
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
            print(f"{text}: {number} of {total} after {now - begun:.1f} s", flush=True)  # noqa: B023
            if not limit.allows(1.5 * longest):
                raise TimeUp

        shutil.rmtree(made.folder / ".regrade", ignore_errors=True)  # begin again: the time is of a whole assignment
        result = class_actions.autograde(made.folder, assignment, force=True, feedback=False, progress=tell)
        seconds = time.perf_counter() - begun
        bad = [each for each in result.students if each.outcome != "graded" or each.reason]
        failed = [f"{each.student}: {each.reason}" for each in bad]
        if failed or len(result.students) != len(counts):
            raise SystemExit("\n".join([f"{assignment} was not graded in full:", *failed]))
        row = {"assignment": assignment, "notebooks": sum(counts.values()), "seconds": seconds,
               "score": sum(each.score for each in result.students)}  # fmt: skip
        keep(lines, row)
        print(row, flush=True)


def _score(api: Any, assignment: str, student: str) -> float:
    with api.gradebook as gradebook:
        return float(gradebook.find_submission(assignment, student).score)


def _run(recorder: Recorder, who: str, grade: Callable[[Class, Path, Limit], None], bare: bool = False) -> None:
    bench = _bench(bare)
    limit, state = Limit(_LIMIT_S), _state(bare)
    lines = state / f"{who}.jsonl"
    with surroundings(state / who):
        own = texts("cuda", exercises=MIXED) if bare else texts("cuda")
        made = make_class(state / who / "course", own, "cuda", stock=who == "stock", bare=bare)
        try:
            grade(made, lines, limit)
        except TimeUp:
            print("stopped at the time limit", flush=True)
    _record(recorder, f"{bench}/{who}", kept(lines), made.notebooks)


def _record(recorder: Recorder, bench: str, rows: list[dict[str, Any]], notebooks: int) -> None:
    case = f"{sum(row['notebooks'] for row in rows)} of {notebooks} notebooks"
    for assignment in sorted({row["assignment"] for row in rows}):
        each = [row["seconds"] / row["notebooks"] for row in rows if row["assignment"] == assignment]
        recorder.add(bench, f"{assignment}, {case}", "seconds_each", "s", median(each), min(each), max(each))
    if rows:
        recorder.add(bench, case, "per_minute", "1/min", _per_minute(rows))
        recorder.add(bench, case, "score", "points", sum(row["score"] for row in rows))


def _per_minute(rows: list[dict[str, Any]]) -> float:
    return float(60 * sum(row["notebooks"] for row in rows) / sum(row["seconds"] for row in rows))


def _bench(bare: bool) -> str:
    return "throughput/bare" if bare else "throughput"


def _state(bare: bool) -> Path:
    """Return this commit's state: another commit's judge takes a different time, also under nbgrader."""
    return folder(f"{_bench(bare)}/{commit()}")


def _compare(recorder: Recorder, bare: bool = False) -> None:
    ours, stock = (kept(_state(bare) / f"{who}.jsonl") for who in ("ours", "stock"))
    if not ours or not stock:
        return
    ratio = _per_minute(ours) / _per_minute(stock)
    of = "notebooks of two cells" if bare else f"the course's notebooks, every cell run; needed: {_NEEDED:g}"
    recorder.add(_bench(bare), of, "ratio_vs_stock", "1", ratio)
    if not bare and ratio < _NEEDED:
        raise Fault(f"throughput: {ratio:.1f} times that of stock nbgrader; {_NEEDED:g} times are required")


def stock(recorder: Recorder) -> None:
    """Rows `throughput/stock`. Called again, it continues with the remaining students.

    Raises:
        Fault: both have been measured, and the ratio is too small.
    """
    _run(recorder, "stock", grade_stock)
    _compare(recorder)


def ours(recorder: Recorder) -> None:
    """Rows `throughput/ours`. Raises as `stock` does."""
    _run(recorder, "ours", grade_ours)
    _compare(recorder)


def bare_stock(recorder: Recorder) -> None:
    """Rows `throughput/bare/stock`, for notebooks of two cells each."""
    _run(recorder, "stock", grade_stock, bare=True)
    _compare(recorder, bare=True)


def bare_ours(recorder: Recorder) -> None:
    """Rows `throughput/bare/ours`."""
    _run(recorder, "ours", grade_ours, bare=True)
    _compare(recorder, bare=True)


def gpus(recorder: Recorder) -> None:
    """Rows `throughput/gpus`: the same notebooks, three per student, on one GPU, on two, and by stock nbgrader.

    The rate leaves out the first student, and with it the judges' start: a class is graded for hours. Stock nbgrader
    grades as many as the time limit allows. On a machine with one GPU, nothing is compared with two. Called again, it
    continues with what is missing.

    Raises:
        Fault: two GPUs are less than 1.8 times as fast as one.
    """
    each, limit = len(_ON_GPUS), Limit(_LIMIT_S)
    students = int(os.environ.get("BENCH_NOTEBOOKS") or _NOTEBOOKS) // each
    count, own = students * each, texts("cuda", students, _ON_GPUS)
    state, rates = folder(f"throughput/gpus/{commit()}"), {}
    known = {(row["notebooks"], row["gpus"]): row for row in kept(state / "rates.jsonl")}
    for indices in ((0,), (0, 1))[: len(found_gpus())]:
        row = known.get((count, len(indices)))
        if row is None:
            with surroundings(state / "home"):
                made = make_class(state / "course", own, "cuda", stock=False)
                seconds, score = _grade_on(made, indices)
            begun = each + len(indices) - 1  # the other judges have begun with the second student
            row = {"notebooks": count, "gpus": len(indices), "rate": 60 * (count - begun) / seconds, "score": score}
            keep(state / "rates.jsonl", row)
        rates[len(indices)] = row["rate"]
        case = f"{count} notebooks on {plural(len(indices), 'GPU')}"
        recorder.add("throughput/gpus", case, "per_minute", "1/min", row["rate"])
        recorder.add("throughput/gpus", case, "score", "points", row["score"])
    if 2 in rates:
        needed = f"{count} notebooks; needed: {_NEEDED_OF_TWO:g}"
        recorder.add("throughput/gpus", needed, "ratio", "1", rates[2] / rates[1])
    lines = state / "stock.jsonl"
    with surroundings(state / "stock"):
        grade_stock(make_class(state / "stock" / "course", own, "cuda", stock=True), lines, limit)
    if rows := kept(lines):
        case = f"{sum(row['notebooks'] for row in rows)} of them by stock nbgrader"
        recorder.add("throughput/gpus", case, "per_minute", "1/min", _per_minute(rows))
        recorder.add("throughput/gpus", "one GPU", "ratio_vs_stock", "1", rates[1] / _per_minute(rows))
    if rates.get(2, 2 * rates[1]) < _NEEDED_OF_TWO * rates[1]:
        raise Fault(f"throughput: two GPUs are {rates[2] / rates[1]:.2f} times as fast as one")


def _grade_on(made: Class, indices: tuple[int, ...]) -> tuple[float, float]:
    """The seconds from the end of the first student's grading to that of the last, and everybody's points."""
    from grader.classroom import class_actions

    told: list[float] = []

    def tell(text: str, number: int, total: int) -> None:
        if text.startswith("grading "):
            told.append(time.perf_counter())
            print(f"{text}: {number} of {total}, GPUs {indices}", flush=True)

    ((assignment, _, _), *_) = made.handed_in
    done = class_actions.autograde(made.folder, assignment, feedback=False, gpus=indices, progress=tell)
    ended = time.perf_counter()
    if bad := [f"{each.student}: {each.reason}" for each in done.students if each.outcome != "graded" or each.reason]:
        raise SystemExit("\n".join(["The notebooks were not graded in full:", *bad]))
    return ended - told[1], sum(each.score for each in done.students)


def throughput(recorder: Recorder) -> None:
    """Run both, and add their ratio in the row `throughput`. Raises as `stock` does."""
    _run(recorder, "ours", grade_ours)
    _run(recorder, "stock", grade_stock)
    _compare(recorder)
