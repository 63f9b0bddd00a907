"""Rank the verdicts of a run by their ratio to the baseline, and give each student a pseudonym."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from grader.exercise import Exercise
from grader.feedback.summary import notes, without_quotes
from grader.verdict import Timing, Verdict
from grader.words import plural

if TYPE_CHECKING:
    from grader.leaderboard.store import Store

_ADJECTIVES = (
    "agile amber ample azure balmy bold brave brisk bronze calm candid clear clever copper coral cosmic crimson crisp "
    "daring dusky eager early emerald fair fleet fond fresh gentle gilded golden grand hazel humble indigo ivory jade "
    "jolly keen kind lively lucid lunar mellow merry mild mint modest noble olive opal patient placid plucky polar "
    "proud quiet rapid rosy ruby rustic sage scarlet silent silver snowy solar spry steady stellar sunny swift teal "
    "tidy umber velvet violet vivid warm wise witty young zesty"
)
_ANIMALS = (
    "alpaca antelope badger bear beaver bison bobcat buzzard camel caribou cheetah condor coyote crane cricket curlew "
    "dingo dolphin dove eagle egret elk ermine falcon ferret finch fox gazelle gecko gibbon goose grouse gull hare "
    "hawk hedgehog heron hornet ibex ibis iguana jackdaw jaguar kestrel kiwi koala lark lemur leopard "
    "linnet llama lynx magpie marmot marten meerkat mole moose newt ocelot orca oriole osprey otter owl panda "
    "panther parrot pelican penguin petrel plover puffin puma quail rabbit raccoon raven robin salmon seal serval "
    "sparrow stork swallow swan swift tapir tern thrush tiger toucan turtle viper vole walrus weasel whale wolf wombat "
    "wren yak zebra"
)


def pseudonym(key: bytes, student: str, taken: Collection[str] = ()) -> str:
    """A name such as "amber-heron-07", not in `taken`, from the HMAC-SHA-256 of the student's name."""
    adjectives, animals = _ADJECTIVES.split(), _ANIMALS.split()
    attempt = 0
    while True:
        message = b"%d\0%s" % (attempt, student.encode("utf-8", "surrogatepass"))
        number = int.from_bytes(hmac.new(key, message, hashlib.sha256).digest())
        number, tail = divmod(number, 100)
        number, animal = divmod(number, len(animals))
        name = f"{adjectives[number % len(adjectives)]}-{animals[animal]}-{tail:02}"
        if name not in taken:
            return name
        attempt += 1


def assign(store: Store, students: Iterable[str]) -> dict[str, str]:
    """The pseudonym of each of these students. New ones are added to the store and never change."""
    wanted, key, kept = sorted(set(students)), store.secret(), store.pseudonyms()
    while missing := [student for student in wanted if student not in kept]:
        new: dict[str, str] = {}
        for student in missing:
            new[student] = pseudonym(key, student, {*kept.values(), *new.values()})
        store.add_pseudonyms(new)  # without names that another process took meanwhile; they get a new one
        kept = store.pseudonyms()
    return {student: kept[student] for student in wanted}


TIES_WITHIN = 0.03  # how much of an interval counts for a tie: wider noise must not change another's rank


class Interval(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """A ranked entry; its numbers are geometric means over the timed cases.

    `time_us` is for one launch, `ratio` is the baseline's time divided by it. `remarks` are notes that do not change
    the rank; they never quote the submission.
    """

    rank: int
    tied: bool
    pseudonym: str
    time_us: Interval
    ratio: Interval | None
    share_of_roofline: float | None
    remarks: tuple[str, ...] = ()

    @property
    def speed(self) -> Interval:
        """The key of the ranking: the ratio, or launches per microsecond without a baseline."""
        time = self.time_us
        return self.ratio or Interval(1 / time.value, 1 / time.high, 1 / time.low)


@dataclass(frozen=True)
class Unranked:
    """An entry without a rank. Its texts never quote the submission."""

    pseudonym: str
    reason: str
    remarks: tuple[str, ...] = ()


def rank(
    entries: Iterable[tuple[str, Verdict | None]], exercise: Exercise
) -> tuple[tuple[Row, ...], tuple[Unranked, ...]]:
    """Rank the (pseudonym, verdict) pairs of one run; the verdict is None if nothing could be graded.

    Only entries whose cases are all right are ranked, fastest first. An entry ties with the first of the group above it
    if their intervals overlap, each limited to its value ± 3 %; otherwise it starts a new group. So no entry ranks
    above a faster one. Unranked entries are sorted by their share of wrong cases.
    """
    rows: list[Row] = []
    unranked: list[tuple[float, Unranked]] = []
    for pseudonym, verdict in entries:
        reason = _reason(verdict, exercise)
        if verdict is None or reason:
            unranked.append((_distance(verdict), Unranked(pseudonym, reason, _remarks(verdict))))
        else:
            rows.append(row_of(pseudonym, verdict, exercise))
    rows.sort(key=lambda row: (-row.speed.value, row.pseudonym))
    placed = zip(rows, places([row.speed for row in rows]), strict=True)
    ranked = [replace(row, rank=place, tied=tied) for row, (place, tied) in placed]
    return tuple(ranked), tuple(entry for _, entry in sorted(unranked, key=lambda pair: (pair[0], pair[1].pseudonym)))


def places(speeds: Sequence[Interval]) -> list[tuple[int, bool]]:
    """The rank of each speed, which come fastest first, and whether it is shared."""
    groups: list[list[Interval]] = []
    for speed in speeds:
        if groups and _ties(speed, groups[-1][0]):
            groups[-1].append(speed)
        else:
            groups.append([speed])
    found: list[tuple[int, bool]] = []
    for group in groups:
        found += [(len(found) + 1, len(group) > 1)] * len(group)
    return found


def _ties(behind: Interval, leader: Interval) -> bool:
    high = min(behind.high, behind.value * (1 + TIES_WITHIN))
    return high >= max(leader.low, leader.value * (1 - TIES_WITHIN))


def _distance(verdict: Verdict | None) -> float:
    """The share of an entry's cases that are wrong; 1 without a verdict."""
    if verdict is None or not verdict.cases:
        return 1.0
    return sum(not case.passed for case in verdict.cases) / len(verdict.cases)


def _reason(verdict: Verdict | None, exercise: Exercise) -> str:
    """Why an entry has no rank; empty if it has one."""
    if verdict is None or verdict.status == "unusable":
        return "could not be graded"
    if verdict.status == "not_judged":
        return "not judged; needs a GPU"
    failures = [verdict.failure, *(case.failure for case in verdict.cases)]
    if any(failure is not None and failure.kind == "not_written" for failure in failures):
        return "not written yet"
    if any(failure is not None and failure.kind == "implausible" for failure in failures):
        return "held for review"
    right = sum(case.passed for case in verdict.cases)
    if verdict.failure is not None or not right or right < len(verdict.cases):
        return f"{right} of {plural(len(verdict.cases), 'case')} right"
    if verdict.environment.device != "cuda":
        return "all right; speed needs a GPU"
    if timings_of(verdict, exercise, "submission") is None:
        return "not timed"
    if exercise.baselines and timings_of(verdict, exercise, exercise.baselines[0].id) is None:
        return "not timed"
    return ""


def row_of(pseudonym: str, verdict: Verdict, exercise: Exercise) -> Row:
    """The row of a timed verdict, without a rank."""
    timings = timings_of(verdict, exercise, "submission") or []
    time = _mean_us(timings)
    return Row(
        rank=0,
        tied=False,
        pseudonym=pseudonym,
        time_us=time,
        ratio=_ratio(verdict, exercise, time),
        share_of_roofline=_share([timing.share_of_roofline for timing in timings]),
        remarks=_remarks(verdict),
    )


def _share(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return math.prod(known) ** (1 / len(known)) if known and len(known) == len(shares) else None


def _remarks(verdict: Verdict | None) -> tuple[str, ...]:
    return tuple(without_quotes(note) for note in notes(verdict)) if verdict is not None else ()


def _ratio(verdict: Verdict, exercise: Exercise, time: Interval) -> Interval | None:
    """The ratio to the exercise's first baseline.

    The judge's ratio is used if a gate has one over all timed cases: it is per trial, so drift cancels. Otherwise it is
    the ratio of the times, with independent errors.
    """
    if not exercise.baselines:
        return None
    baseline = exercise.baselines[0].id
    timed = {case.name for case in exercise.timed_cases}
    if any(gate.baseline == baseline and set(gate.cases) == timed for gate in exercise.gates):
        for result in verdict.gates:
            ratio, low, high = result.ratio, result.low, result.high
            if result.baseline != baseline or ratio is None or low is None or high is None:
                continue
            if 0 < ratio < math.inf:
                return _interval(ratio, low, high)
    base = _mean_us(timings_of(verdict, exercise, baseline) or [])
    value = base.value / time.value
    down = math.hypot(math.log(base.value / base.low), math.log(time.high / time.value))
    up = math.hypot(math.log(base.high / base.value), math.log(time.value / time.low))
    return _interval(value, value * math.exp(-down), value * math.exp(up))


def _interval(value: float, low: float, high: float) -> Interval:
    """The value with its interval, or with an empty one if the interval is invalid: noise can give an end below 0."""
    return Interval(value, low, high) if 0 < low <= value <= high < math.inf else Interval(value, value, value)


def timings_of(verdict: Verdict, exercise: Exercise, peer: str) -> list[Timing] | None:
    """A peer's timings of the timed cases, in order; None if one is missing or not a positive number."""
    by_case = {timing.case: timing for timing in verdict.timings if timing.peer == peer}
    found = [by_case[case.name] for case in exercise.timed_cases if case.name in by_case]
    numbers = [n for t in found for n in (t.median_us, t.share_of_roofline) if n is not None]
    whole = bool(found) and len(found) == len(exercise.timed_cases)
    return found if whole and all(math.isfinite(n) and n > 0 for n in numbers) else None


def _mean_us(timings: Sequence[Timing]) -> Interval:
    return mean_of([_interval(timing.median_us, timing.low_us, timing.high_us) for timing in timings])


def mean_of(intervals: Sequence[Interval]) -> Interval:
    """The geometric mean of values with independent errors."""
    value = math.exp(math.fsum(math.log(each.value) for each in intervals) / len(intervals))
    down = math.hypot(*(math.log(each.value / each.low) for each in intervals)) / len(intervals)
    up = math.hypot(*(math.log(each.high / each.value) for each in intervals)) / len(intervals)
    return _interval(value, value * math.exp(-down), value * math.exp(up))
