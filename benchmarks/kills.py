"""Kills `grader leaderboard run` at random moments, runs it again, and compares with an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from benchmarks.census import census, descendants, own_temp
from benchmarks.limits import Fault, Limit, folder, keep, kept
from benchmarks.material import Text, crashing, honest, slower, unique, wrong
from benchmarks.rows import Recorder
from grader.exercises import find
from grader.leaderboard.ranking import rank
from grader.leaderboard.store import Run, Store
from grader.verdict import Verdict

EXERCISE = "vector_add"
_KILLS = 10
_KILLS_A_RUN = 3  # at most: a run that was killed and continued may be killed again
_LIMIT_S = 560.0
_ORPHANS_LIMIT_S = 30.0  # a grading in progress may end normally after its caller has died
_CLOSING_LIMIT_S = 10.0
_PROJECT = Path(__file__).parents[1]

Standing = dict[str, Any]  # {"facts": student -> what counts of the verdict, "ranks": student -> rank}


def submissions(count: int = 24) -> dict[str, Text]:
    """Return texts of mixed kinds by student. The right ones differ so much in speed that no gate depends on luck."""
    ladder = [slower(times) for times in (1.5, 2.0, 3.0, 4.0)]
    kinds = [honest(EXERCISE)[0], *wrong(EXERCISE), *crashing(EXERCISE), *ladder]
    chosen = [kinds[number % len(kinds)] for number in range(count)]
    return {f"s{number:02}": unique(text, f"student {number}") for number, text in enumerate(chosen)}


def write_course(path: Path, texts: dict[str, Text]) -> None:
    """Write a folder of `<student>.py` files for `grader leaderboard run --course`."""
    path.mkdir(parents=True, exist_ok=True)
    for student, text in texts.items():
        (path / f"{student}.py").write_text(text.source, encoding="utf-8")


def _command(course: Path, store: Path, device: str) -> list[str]:
    options = ["--course", str(course), "--store", str(store), "--device", device]
    return [sys.executable, "-m", "grader", "leaderboard", "run", EXERCISE, *options]


def _start(course: Path, store: Path, device: str) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        _command(course, store, device), env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def _to_the_end(course: Path, store: Path, device: str, limit_s: float) -> float:
    begun = time.monotonic()
    process = _start(course, store, device)
    if not _ends_within(process, limit_s):
        _kill(process)
        raise SystemExit(f"A leaderboard run did not end within {limit_s:.0f} s.")
    return time.monotonic() - begun


def _ends_within(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    try:
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return False
    if process.returncode:
        raise SystemExit(f"A leaderboard run ended with {process.returncode}:\n{said.decode()[-2000:]}")
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _finished(store: Store) -> list[Run]:
    return [run for run in store.finished_runs() if run.exercise == EXERCISE]


def _has_finished(path: Path) -> bool:
    if not path.exists():
        return False
    with Store(path, create=False) as store:
        return bool(_finished(store))


def _standing(path: Path) -> Standing:
    with Store(path, create=False) as store:
        runs = _finished(store)
        if len(runs) != 1:
            raise SystemExit(f"{path} should hold one finished run, but holds {len(runs)}.")
        entries = {entry.student: entry.verdict for entry in store.entries(runs[0].id)}
    rows, _ = rank(list(entries.items()), find(EXERCISE))
    return {
        "facts": {student: _facts(verdict) for student, verdict in sorted(entries.items())},
        "ranks": {row.pseudonym: row.rank for row in rows},
    }


def _facts(verdict: Verdict | None) -> dict[str, Any] | None:
    """Return the parts of a verdict that must be the same in every run: all but times."""
    if verdict is None:
        return None
    return {
        "status": verdict.status,
        "points": verdict.points,
        "failure": verdict.failure.kind if verdict.failure else "",
        "cases": {case.name: case.failure.kind if case.failure else case.passed for case in verdict.cases},
        "gates": {gate.baseline: gate.outcome for gate in verdict.gates},
    }


def differences(wanted: Standing, found: Standing) -> list[str]:
    """Describe verdicts that differ, missing students, and pairs that rank the other way round. Ties do not count."""
    said = []
    for student in sorted(wanted["facts"] | found["facts"]):
        theirs, ours = wanted["facts"].get(student, "missing"), found["facts"].get(student, "missing")
        if theirs != ours:
            said.append(f"{student}: undisturbed {theirs}, after a kill {ours}")
    before, after = wanted["ranks"], found["ranks"]
    both = sorted(before.keys() & after.keys())
    for one in both:
        for other in both:
            if before[one] < before[other] and after[one] > after[other]:
                said.append(f"{one} ranked before {other}, but after a kill behind")
    if before.keys() != after.keys():
        said.append(f"ranked undisturbed: {sorted(before)}, after a kill: {sorted(after)}")
    return said


@dataclass(frozen=True)
class Trial:
    """One run with its kills. `orphans_s`: seconds until the last process of a killed run had ended."""

    killed_after_s: list[float]
    orphans_s: float
    left: list[str]  # sentences about what was left behind
    differs: list[str]  # how the verdicts and ranks differ


def undisturbed(course: Path, work: Path, device: str, limit_s: float) -> tuple[Standing, float]:
    """Return verdicts and ranks of an undisturbed run, and its seconds."""
    store = work / "undisturbed.sqlite"
    store.unlink(missing_ok=True)
    seconds = _to_the_end(course, store, device, limit_s)
    return _standing(store), seconds


def _last_ends(limit_s: float) -> tuple[float, list[str]]:
    """Wait for all descendants to end. Return the seconds, and the command lines of those that still run."""
    begun = time.monotonic()
    while (left := descendants()) and time.monotonic() - begun < limit_s:
        time.sleep(0.1)
    return time.monotonic() - begun, list(left.values())


def trial(course: Path, work: Path, device: str, wanted: Standing, kills_at_s: Sequence[float], limit_s: float
          ) -> Trial:  # fmt: skip
    """Kill a run and its process group after so many seconds, once or several times; then let it end, and compare.

    A run that has finished before the kill is not started again: that would be a new run.
    """
    sentences: list[str] = []
    killed, ends = [], [0.0]
    store = work / f"killed-{os.getpid()}-{time.time_ns()}.sqlite"
    with own_temp() as temp:
        for kill_at_s in kills_at_s:
            process = _start(course, store, device)
            if _ends_within(process, kill_at_s):
                break
            _kill(process)
            killed.append(kill_at_s)
            seconds, left = _last_ends(_ORPHANS_LIMIT_S)
            ends.append(seconds)
            sentences += [f"left running after the kill: {command[:120]}" for command in left]
            if _has_finished(store):  # killed after its last line in the store, before its end
                break
        else:
            _to_the_end(course, store, device, limit_s)
        _, left = _last_ends(_CLOSING_LIMIT_S)
        sentences += [f"left running after the next run: {command[:120]}" for command in left]
        found = census(temp)
        if found.folders or found.disk_kib > 64:
            names = ", ".join(sorted(path.name for path in temp.iterdir()))
            sentences.append(f"temp folders left after the next run: {found.folders}, {found.disk_kib} KiB: {names}")
    return Trial(killed, max(ends), sentences, differences(wanted, _standing(store)))


def moments(whole_s: float, count: int, chance: random.Random) -> list[float]:
    """Draw when to kill a run that takes so long, then when to kill the run that continues it, and so on."""
    found: list[float] = []
    for _ in range(count):
        found.append(chance.uniform(0.05, 0.95) * (whole_s - sum(found)))
    return found


def kills(recorder: Recorder, device: Literal["cuda", "simulator"] = "cuda") -> None:
    """Rows `soak/kills`: ten kills, up to three per run. Called again, it continues from the saved state.

    Raises:
        Fault: a verdict or a rank differs after a kill, or something was left behind.
    """
    limit, state = Limit(_LIMIT_S), folder("kills")
    lines, course = state / "kills.jsonl", state / "course"
    texts = submissions()
    write_course(course, texts)
    rows = kept(lines)
    first = next((row for row in rows if "standing" in row), None)
    if first is None:
        standing, seconds = undisturbed(course, state, device, limit.left())
        first = {"standing": standing, "seconds": seconds}
        keep(lines, first)
    done = [row for row in rows if "killed_after_s" in row]
    chance, whole_s = random.SystemRandom(), first["seconds"]
    while (left := _KILLS - _killed(done)) > 0:
        at = moments(whole_s, min(left, _KILLS_A_RUN), chance)
        if not limit.allows(2.2 * whole_s + len(at) * _ORPHANS_LIMIT_S):
            break
        found = vars(trial(course, state, device, first["standing"], at, limit.left()))
        keep(lines, found)
        print(found, flush=True)
        done.append(found)
    faults = [sentence for row in done for sentence in (*row["left"], *row["differs"])]
    case = f"{_killed(done)} of {_KILLS} kills, {len(texts)} submissions"
    recorder.add("soak/kills", case, "runs", "1", len(done))
    recorder.add("soak/kills", case, "same_verdicts", "1", sum(not row["differs"] for row in done))
    recorder.add("soak/kills", case, "undisturbed_s", "s", whole_s)
    ends = [row["orphans_s"] for row in done]
    if ends:
        recorder.add("soak/kills", case, "last_process_ended_after_s", "s", median(ends), min(ends), max(ends))
    recorder.add("soak/kills", case, "faults", "1", len(faults))
    if faults:
        raise Fault("\n".join(["kills:", *faults]))


def _killed(done: Sequence[dict[str, Any]]) -> int:
    return sum(len(row["killed_after_s"]) for row in done)
