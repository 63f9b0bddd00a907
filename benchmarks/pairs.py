"""How many pairs of submissions that are 3 % apart the judge ranks right."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.limits import Fault, Limit, folder, keep, kept
from benchmarks.material import Text, slower, unique
from benchmarks.rows import Recorder, commit
from grader.exercise import Exercise
from grader.exercises import find
from grader.explore.hopper.language_views import load_file
from grader.judge.score import Interval, interval

if TYPE_CHECKING:
    from grader.judge.bench import Bench

_PAIRS = 100
_APART = 1.03
_OFF = 0.2  # allowed error of the true difference, in percent
_ADJUSTMENTS = 6
_RIGHT_OF_100 = 95


def imported(source: str, entry: str, scratch: Path) -> Callable[..., None]:
    """Import the function `entry` of a submission into this process: only for the benches' own texts."""
    path = scratch / f"bench_{abs(hash(source))}.py"
    path.write_text(source, encoding="utf-8")
    return getattr(load_file(path), entry)  # type: ignore[no-any-return]


def counted(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Count pairs of a faster and a slower submission: all, ranked right, told apart (no tie), told apart wrongly.

    `rows` hold their ratios as (middle, low, high).
    """
    fast, slow = [row["fast"] for row in rows], [row["slow"] for row in rows]
    both = list(zip(fast, slow, strict=True))
    return {
        "pairs": len(both),
        "ranked_right": sum(f[0] > s[0] for f, s in both),
        "told_apart": sum(f[1] > s[2] for f, s in both),
        "told_apart_wrongly": sum(s[1] > f[2] for f, s in both),
    }


def pairs(recorder: Recorder) -> None:
    """Rows `clock/pairs`: two submissions 3 % apart are timed 100 times each, every time in a new worker.

    Correctness cases are left out. Called again, it continues from the saved state.

    Raises:
        Fault: fewer than 95 of 100 pairs are ranked right.
    """
    from grader.judge.bench import Bench

    limit, state = Limit(240), folder(f"clock/{commit()}") / "pairs.jsonl"
    exercise = find("vector_add")
    fast, slow, apart = _tuned_once(exercise, state)
    rows = [row for row in kept(state) if "fast" in row]
    bench = Bench("cuda")
    try:
        jobs = list(_in_turn(fast, slow, _PAIRS - len(rows)))
        pair: dict[str, tuple[float, float, float]] = {}
        for number, (which, text) in enumerate(jobs):
            if not limit.allows(5):
                break
            ahead = [(each.source, exercise) for _, each in jobs[number : number + 9]]
            pair[which] = astuple(_judged(bench, exercise, text.source, ahead))
            if len(pair) == 2:
                rows.append(dict(pair))
                keep(state, rows[-1])
                pair.clear()
    finally:
        bench.close()
        recorder.add("clock/pairs", "true difference, CUDA events", "slower_by", "%", *astuple(apart))
        found = counted(rows)
        for metric, value in found.items():
            recorder.add("clock/pairs", f"{len(rows)} pairs", metric, "1", value)
        if rows:
            seen = [100 * (row["fast"][0] / row["slow"][0] - 1) for row in rows]
            case = f"{len(rows)} pairs"
            recorder.add("clock/pairs", case, "judged_slower_by", "%", median(seen), min(seen), max(seen))
    if len(rows) < _PAIRS or found["ranked_right"] * 100 < _RIGHT_OF_100 * len(rows):
        raise Fault(f"clock/pairs: {found['ranked_right']} of {len(rows)} pairs are ranked right, {_PAIRS} were wanted")


def _in_turn(fast: Text, slow: Text, count: int) -> Iterator[tuple[str, Text]]:
    chance = random.SystemRandom()
    for _ in range(count):
        both = [("fast", fast), ("slow", slow)]
        chance.shuffle(both)
        for which, text in both:
            yield which, unique(text, f"{chance.getrandbits(64):x}")


def _judged(bench: Bench, exercise: Exercise, source: str, ahead: Sequence[tuple[str, Exercise]]) -> Interval:
    """Return the ratio as the judge computes it for a verdict."""
    from grader.judge.timing.timer import Timer

    timer = Timer(bench, exercise, lambda *_: None)
    timer.one_queue = True  # it uses one stream, so a worker with one queue would not help
    timer.know_baselines()
    bench.pool.expect(list(ahead))
    loaded = bench.take(source, exercise)
    try:
        if loaded.failure is not None:
            raise SystemExit(f"A submission of the pair does not load: {loaded.failure}")
        loaded.worker.in_turn(exercise.wall_limit_s)
        loaded.worker.map(bench.buffers)
        timer.time_gates(loaded.worker)
    finally:
        loaded.worker.close()
    timer.settle()
    bench.pool.refill()
    (gate,) = timer.gates(judged=True)
    assert gate.ratio is not None
    assert gate.low is not None
    assert gate.high is not None
    return Interval(gate.ratio, gate.low, gate.high)


def _tuned_once(exercise: Exercise, state: Path) -> tuple[Text, Text, Interval]:
    """Return the pair that `state` holds, or a new one, which is then saved there."""
    first = next((row for row in kept(state) if "times" in row), None)
    if first is None:
        times, apart = _tuned(exercise)
        first = {"times": times, "apart": astuple(apart)}
        keep(state, first)
    return slower(1.0), slower(first["times"]), Interval(*first["apart"])


def _tuned(exercise: Exercise) -> tuple[float, Interval]:
    """Find how much more work makes a submission 3 % slower. Return that factor, and the percent by CUDA events.

    Raises:
        Fault: no factor comes close.
    """
    fast, times, wanted = slower(1.0), _APART, 100 * (_APART - 1)
    for _ in range(_ADJUSTMENTS):
        apart = _apart(exercise, fast, slower(times))
        if abs(apart.middle - wanted) <= _OFF:
            return times, apart
        times += (wanted - apart.middle) / 100
    raise Fault(f"clock/pairs: no two submissions are {wanted:.0f} % apart here; the last were {apart.middle:.2f} %")


def _apart(exercise: Exercise, fast: Text, slow: Text) -> Interval:
    import torch

    from benchmarks.timing import HEAD_START_CYCLES, in_turn

    (case,) = exercise.timed_cases
    tensors = [torch.randn(array.shape, device="cuda") for array in case.arrays]
    with tempfile.TemporaryDirectory() as scratch:
        calls = {
            text.name: _bound(imported(text.source, exercise.entry, Path(scratch)), tensors) for text in (fast, slow)
        }
        times = in_turn(calls, HEAD_START_CYCLES)
    return interval([100 * (b / a - 1) for a, b in zip(times[fast.name], times[slow.name], strict=True)])


def _bound(function: Callable[..., None], tensors: list[Any]) -> Callable[[], None]:
    return lambda: function(*tensors)
