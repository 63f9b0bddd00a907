"""A class of mixed quality, graded end to end without a GPU, and its gradebook compared with an independent recount.

    python -m benchmarks.cohort 30 100 300 --workers 1 2 [--threads 4] [--cores 8] [--kill] [--forked]

Each class hands in eight exercises in three chapters, is graded on a local Dask cluster, hands in again in part, and
gets feedback. A line of `results/cohort.jsonl` per size and number of workers says how long that took. `--kill` ends
the grading and one worker with SIGKILL when half of the verdicts are there, and checks that none is lost. `--forked`
forks the judges' processes, without a sandbox, as the tests do: starting them takes most of the time otherwise.
`--cores` gives each worker cores of its own, so that two have twice as many as one.

The recount judges each text that the class was dealt from alone, without store or workers, and adds up the points and
penalties itself.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.classes import Class, make_class, surroundings
from benchmarks.limits import folder, keep, kept
from benchmarks.material import Text, crashing, honest, unique
from benchmarks.rows import commit
from grader.authoring.stubs import unsolved
from grader.exercises import find
from grader.judge.service import Judge
from grader.results import RESULTS
from tests.forked import fork_servers, use
from tests.mistakes import corpus as mistakes

EXERCISES = ("unblock", "fuse", "square_matrix", "grayscale", "transpose", "vector_add", "vector_width", "widen")
ROWS = RESULTS / "cohort.jsonl"
_DUE = datetime(2026, 1, 1)
_KINDS = {"right": 0.5, "wrong": 0.2, "hostile": 0.1, "empty": 0.1, "copied": 0.05, "slow": 0.05}
_LATE, _RESUBMITTED = 0.15, 0.1
_PERCENT_PER_DAY = 10.0
_EACH = 4  # texts of a kind per exercise: the recount judges each
_SLOW_S = 3
_RESTART_S = 300  # for a killed worker, on a busy machine
_LONG = ("endless", "sleep", "while True")  # such a text takes the whole time limit


@dataclass(frozen=True)
class Work:
    """A student's submission: a text per exercise, and how late it is."""

    texts: dict[str, Text]
    hours_late: float = 0.0


@dataclass(frozen=True)
class Cohort:
    """The first submissions of a class, and those of the students who submit again after the first grading."""

    first: dict[str, Work]
    again: dict[str, Work]

    @property
    def last(self) -> dict[str, Work]:
        """The submissions that count."""
        return self.first | self.again


def pool(exercise: str) -> dict[str, list[Text]]:
    """The texts of an exercise by kind. A text's name is unique within its exercise."""
    corpus = [each for each in mistakes.corpus() if each.exercise == exercise and each.runs != "gpu"]
    quick = [each for each in corpus if not any(word in each.source for word in _LONG)]
    right = [Text(each.name, exercise, "honest", each.source) for each in quick if each.right]
    wrong = [Text(each.name, exercise, "wrong", each.source) for each in quick if not each.right]
    reference = honest(exercise, "simulator")[0]
    wait = f"import time\n\ntime.sleep({_SLOW_S})\n"
    return {
        "right": [reference, *right][:_EACH],
        "wrong": wrong[:_EACH],
        "hostile": [each for each in crashing(exercise) if each.name != "stub"][:_EACH],
        "empty": [Text("stub", exercise, "wrong", unsolved(exercise))],
        "slow": [replace(reference, name="slow", source=wait + reference.source)],
    }


def deal(students: int, seed: int = 1) -> Cohort:
    """Draw a class. The same arguments give the same class."""
    chance, texts = random.Random(f"{seed} {students}"), {exercise: pool(exercise) for exercise in EXERCISES}
    names = [f"student{number:03}" for number in range(students)]
    first = {name: _work(name, texts, chance) for name in names}
    again = {name: _work(f"{name} again", texts, chance) for name in names if chance.random() < _RESUBMITTED}
    return Cohort(first, again)


def penalty(points: float, hours_late: float) -> float:
    """The points that late work loses, computed here again."""
    return points * min(1.0, math.ceil(max(0.0, hours_late) / 24) * _PERCENT_PER_DAY / 100)


def _work(tag: str, texts: dict[str, dict[str, list[Text]]], chance: random.Random) -> Work:
    drawn = {}
    for exercise, own in texts.items():
        kind = chance.choices(list(_KINDS), list(_KINDS.values()))[0]
        if kind == "copied":
            drawn[exercise] = unique(own["right"][0], "copied")
        else:
            text = chance.choice(own[kind])
            drawn[exercise] = text if kind == "empty" else unique(text, tag)
    return Work(drawn, chance.uniform(0.1, 100) if chance.random() < _LATE else 0.0)


def recount(cohorts: Sequence[Cohort], at_once: int, sandbox: bool) -> dict[tuple[str, str], float]:
    """The points of each text that was dealt, by exercise and name: judged alone, in `at_once` judges.

    Points that an earlier call found for this commit are read from the bench's state.
    """
    lines = folder("cohort") / f"{commit()}.jsonl"
    points = {(row["exercise"], row["name"]): row["points"] for row in kept(lines)}
    dealt = {
        (exercise, text.name)
        for cohort in cohorts
        for work in (*cohort.first.values(), *cohort.again.values())
        for exercise, text in work.texts.items()
    }
    texts = {(exercise, text.name): text for exercise in EXERCISES for own in pool(exercise).values() for text in own}
    todo, lock = sorted(dealt - points.keys()), threading.Lock()

    def work() -> None:
        with Judge("simulator", sandbox=sandbox) as judge:
            while True:
                with lock:
                    if not todo:
                        return
                    key = todo.pop()
                found = judge.grade(texts[key].source, key[0]).points
                with lock:
                    points[key] = found
                    keep(lines, {"exercise": key[0], "name": key[1], "points": found})

    with ThreadPoolExecutor() as threads:
        for done in [threads.submit(work) for _ in range(min(at_once, len(todo)))]:
            done.result()  # raises what ended it
    return points


@dataclass(frozen=True)
class Graded:
    """A graded class: seconds, everybody's points, and what a kill left behind (zeros without one)."""

    grading_s: float
    feedback_s: float
    points: dict[str, float]
    worker_mib: float
    at_kill: int = 0
    lost: int = 0


def grade(cohort: Cohort, cluster: Any, where: Path, kill: bool) -> Graded:
    """Grade a class before and after some submit again, then write feedback."""
    from grader.classroom import class_actions

    made = make_class(where, {name: work.texts for name, work in cohort.first.items()}, "simulator", stock=False)
    config = made.folder / "nbgrader_config.py"
    config.write_text(config.read_text(encoding="utf-8").replace('method = "none"', 'method = "per day"'))
    chapters = sorted({find(exercise).chapter for exercise in EXERCISES})
    with made.api().gradebook as gradebook:
        for chapter in chapters:
            gradebook.update_or_create_assignment(chapter, duedate=_DUE)
    for name, work in cohort.first.items():
        _write_time(made, name, work, chapters)
    address, begun, at_kill, lost = cluster.scheduler_address, time.perf_counter(), 0, 0
    if kill:
        at_kill, lost = _killed(made, cluster, chapters, len(_texts(cohort.first)))
    for chapter in chapters:
        class_actions.autograde(made.folder, chapter, cluster=address, feedback=False, progress=_tell)
    for name, work in cohort.again.items():
        _hand_in_again(made, name, work, chapters)
    for chapter in chapters:
        class_actions.autograde(made.folder, chapter, cluster=address, feedback=False, progress=_tell)
    graded = time.perf_counter()
    for chapter in chapters:
        class_actions.autograde(made.folder, chapter, cluster=address, progress=_tell)
    ended = time.perf_counter()
    found = dict.fromkeys(cohort.first, 0.0)
    with made.api().gradebook as gradebook:
        for chapter in chapters:
            for entry in gradebook.assignment_submissions(chapter):
                found[entry.student.id] += entry.score - _penalties(entry)
    return Graded(graded - begun, ended - graded, found, _worker_mib(cluster), at_kill, lost)


def _tell(text: str, done: int, total: int) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text} ({done} of {total})", flush=True)


def _texts(work: dict[str, Work]) -> set[tuple[str, str]]:
    return {(exercise, text.source) for each in work.values() for exercise, text in each.texts.items()}


def _killed(made: Class, cluster: Any, chapters: Sequence[str], texts: int) -> tuple[int, int]:
    """Begin to grade in another process, and kill it and a worker once half of the texts have verdicts.

    Returns:
        How many verdicts there were, and how many of them are gone or changed after the next grading.
    """
    from grader.classroom import class_actions

    command = [sys.executable, "-m", "grader", "classroom", "autograde", str(made.folder)]
    options = ["--cluster", cluster.scheduler_address, "--no-feedback"]
    store = made.folder / "verdicts"
    for chapter in chapters:
        process = subprocess.Popen([*command, chapter, *options], start_new_session=True, stdout=subprocess.DEVNULL)
        while process.poll() is None and len(list(store.glob("*/*.json"))) < texts / 2:
            time.sleep(0.2)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            next(iter(cluster.workers.values())).process.process.kill()  # its nanny starts another one
            process.wait()
            break
    before = {path: path.read_bytes() for path in store.glob("*/*.json")}
    cluster.wait_for_workers(len(cluster.workers), timeout=_RESTART_S)
    for chapter in chapters:
        class_actions.autograde(made.folder, chapter, cluster=cluster.scheduler_address, feedback=False, progress=_tell)
    return len(before), sum(not path.exists() or path.read_bytes() != was for path, was in before.items())


def _penalties(entry: Any) -> float:
    return sum(notebook.late_submission_penalty or 0.0 for notebook in entry.notebooks)


def _write_time(made: Class, student: str, work: Work, chapters: Sequence[str], days_earlier: int = 1) -> None:
    early = _DUE - timedelta(days=days_earlier)
    when = _DUE + timedelta(hours=work.hours_late) if work.hours_late else early
    for chapter in chapters:
        file = made.folder / "submitted" / student / chapter / "timestamp.txt"
        file.write_text(f"{when:%Y-%m-%d %H:%M:%S.%f} UTC", encoding="utf-8")


def _hand_in_again(made: Class, student: str, work: Work, chapters: Sequence[str]) -> None:
    """Replace a submission as `collect` does: texts, and a time that differs from the first one's."""
    for exercise, text in work.texts.items():
        about = find(exercise)
        path = made.folder / "submitted" / student / about.chapter / f"{about.notebook}.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise:
                cell["source"] = text.source
        path.write_text(json.dumps(notebook), encoding="utf-8")
    _write_time(made, student, work, chapters, days_earlier=0)


@contextlib.contextmanager
def _cluster(workers: int, threads: int, cores: int, forks: tuple[str, str] | None) -> Iterator[Any]:
    """A local cluster of worker processes, each replaced when it dies, with `cores` of its own each, or all if 0."""
    distributed: Any = importlib.import_module("distributed")
    os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    made = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=threads, processes=True, dashboard_address=None, memory_limit=0
    )
    with made, distributed.Client(made, set_as_default=False) as client:
        client.register_plugin(_starting(cores, forks), name="starting")
        yield made


def _starting(cores: int, forks: tuple[str, str] | None) -> Any:
    """A plugin that gives each worker, also a replaced one, its cores and its way to fork judges' processes."""
    distributed: Any = importlib.import_module("distributed")

    class Starting(distributed.WorkerPlugin):  # type: ignore[misc, name-defined]
        def setup(self, worker: Any) -> None:
            if cores:
                own = sorted(os.sched_getaffinity(0))[worker.name * cores :][:cores]
                for thread in os.listdir("/proc/self/task"):
                    os.sched_setaffinity(int(thread), own)
            if forks:
                use(*forks)

    return Starting()


def _worker_mib(cluster: Any) -> float:
    """The most memory that a worker of the cluster has held."""
    distributed: Any = importlib.import_module("distributed")
    with distributed.Client(cluster, set_as_default=False) as client:
        return float(max(client.run(_peak_mib).values()))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str]) -> int:
    """Print and record a line per class; return 1 if a gradebook differs from the recount, or a kill lost something."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cohort", description=__doc__)
    parser.add_argument("students", type=int, nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, default=1, help="submissions that a worker judges at once")
    parser.add_argument("--cores", type=int, default=0, help="of each worker's own; by default all share all")
    parser.add_argument("--kill", action="store_true", help="kill the grading and a worker half-way")
    parser.add_argument("--forked", action="store_true", help="fork judges and workers, without a sandbox")
    parser.add_argument("--recount-only", action="store_true", help="judge the texts alone, and stop")
    asked = parser.parse_args(arguments)
    faults = 0
    with contextlib.ExitStack() as stack:
        forks = stack.enter_context(fork_servers()) if asked.forked else None
        if forks:
            use(*forks)
        cohorts = {students: deal(students) for students in asked.students}
        at_once = max(1, len(os.sched_getaffinity(0)) // 2)
        points = recount(list(cohorts.values()), at_once, sandbox=not asked.forked)
        if asked.recount_only:
            return 0
        for workers in asked.workers:
            for cohort in cohorts.values():
                with (
                    tempfile.TemporaryDirectory() as scratch, surroundings(Path(scratch)),
                    _cluster(workers, asked.threads, asked.cores, forks) as cluster,
                ):  # fmt: skip
                    found = grade(cohort, cluster, Path(scratch, "course"), asked.kill)
                row = _row(cohort, workers, asked, found, points)
                keep(ROWS, row)
                print(json.dumps(row), flush=True)
                faults += row["differ"] + row["lost"]
    return 1 if faults else 0


def _row(
    cohort: Cohort, workers: int, asked: argparse.Namespace, found: Graded, points: dict[tuple[str, str], float]
) -> dict[str, Any]:
    differ = [
        name for name, work in cohort.last.items()
        if not math.isclose(_expected(work, points), found.points.get(name, math.nan), abs_tol=1e-6)
    ]  # fmt: skip
    if differ:
        print({name: (_expected(cohort.last[name], points), found.points.get(name)) for name in differ[:5]}, flush=True)
    students = len(cohort.first)
    return {
        "students": students, "submissions": len(EXERCISES) * (students + len(cohort.again)),
        "texts": len(_texts(cohort.first) | _texts(cohort.again)),
        "workers": workers, "threads": asked.threads, "forked": asked.forked,
        "grading_s": round(found.grading_s, 1), "feedback_s": round(found.feedback_s, 1),
        "peak_mib": round(_peak_mib()), "worker_peak_mib": round(found.worker_mib),
        "differ": len(differ), "killed_at": found.at_kill, "lost": found.lost,
        "cores": asked.cores * workers or len(os.sched_getaffinity(0)), "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }  # fmt: skip


def _expected(work: Work, points: dict[tuple[str, str], float]) -> float:
    """The points that a student should have, after the penalty of each notebook."""
    own = [points[exercise, text.name] for exercise, text in work.texts.items()]
    return sum(each - penalty(each, work.hours_late) for each in own)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
