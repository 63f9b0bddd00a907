"""Ranks follow the ratio to the baseline, with ties by overlap, and only for right results."""

from __future__ import annotations

import dataclasses
import itertools
import math
import subprocess
import sys

import pytest

from grader.exercises import find
from grader.leaderboard.ranking import rank
from grader.verdict import CaseResult, Failure, Finding

SOFTMAX = find("softmax")


def _ranks(entries, exercise=SOFTMAX):
    rows, _ = rank(entries, exercise)
    return [(row.pseudonym, row.rank, row.tied) for row in rows]


def test_the_faster_ranks_before_the_slower(verdict):
    """Entries with disjoint intervals rank by their ratio, in whatever order they come."""
    entries = [("slow", verdict(speed=1.0)), ("fast", verdict(speed=2.0)), ("middle", verdict(speed=1.5))]
    for order in itertools.permutations(entries):
        assert _ranks(order) == [("fast", 1, False), ("middle", 2, False), ("slow", 3, False)]


def test_overlapping_intervals_tie(verdict):
    """Two entries whose intervals overlap share a rank, and the next rank counts both."""
    entries = [("a", verdict(speed=1.50)), ("b", verdict(speed=1.49)), ("c", verdict(speed=1.2))]
    assert _ranks(entries) == [("a", 1, True), ("b", 1, True), ("c", 3, False)]


def test_a_tie_is_with_the_leader_and_does_not_run_on(verdict):
    """In a chain of overlaps the entry that no longer overlaps the leader starts a new group."""
    entries = [(name, verdict(speed=speed)) for name, speed in zip("abcd", (1.50, 1.48, 1.46, 1.44), strict=True)]
    assert _ranks(entries) == [("a", 1, True), ("b", 1, True), ("c", 3, True), ("d", 3, True)]


def test_a_wide_interval_far_below_does_not_jump_a_group(verdict):
    """A noisy slow entry whose interval reaches the leader does not pass a faster one in between."""
    entries = [("a", verdict(speed=2.0)), ("b", verdict(speed=1.5)), ("noisy", verdict(speed=1.46, spread=0.6))]
    assert _ranks(entries) == [("a", 1, False), ("b", 2, True), ("noisy", 2, True)]


def test_noise_lifts_nobody(verdict):
    """An entry that makes its own times noisy keeps its rank, and so do all others."""
    quiet, noisy = verdict(speed=1.25), verdict(speed=1.25, spread=0.5)
    others = [("first", verdict(speed=1.6)), ("second", verdict(speed=1.4)), ("last", verdict(speed=1.0))]
    expected = [("first", 1, False), ("second", 2, False), ("own", 3, False), ("last", 4, False)]
    assert _ranks([*others, ("own", quiet)]) == expected
    assert _ranks([*others, ("own", noisy)]) == expected


def test_a_noisy_leader_ties_with_nobody_far_below(verdict):
    """An interval that reaches down to everyone gives nobody else the first rank, with or without a baseline."""
    noisy, slow = verdict(speed=1.6, spread=0.9), verdict(speed=1.0)
    bare = dataclasses.replace(SOFTMAX, baselines=(), gates=())
    for exercise in (SOFTMAX, bare):
        assert _ranks([("noisy", noisy), ("slow", slow)], exercise) == [("noisy", 1, False), ("slow", 2, False)]


def test_equals_stand_in_one_order(verdict):
    """Entries with equal measurements are listed by their pseudonyms."""
    same = verdict()
    for order in itertools.permutations("abc"):
        assert [row[0] for row in _ranks([(name, same) for name in order])] == ["a", "b", "c"]


def test_cases_are_put_together_by_their_geometric_mean(verdict):
    """Time, its interval and the share of the roofline are over all timed cases."""
    ((row,), _) = rank([("a", verdict(speed=2.0))], SOFTMAX)
    times = [50.0, 100.0, 150.0]
    assert row.time_us.value == pytest.approx(math.prod(times) ** (1 / 3))
    assert row.time_us.low < row.time_us.value < row.time_us.high
    assert math.log(row.time_us.high / row.time_us.value) == pytest.approx(math.log(1.005) / math.sqrt(3))
    assert row.share_of_roofline == pytest.approx(1.2)


def test_the_ratio_is_the_judges_where_it_has_one(verdict):
    """A gate over all timed cases gives the ratio and the interval that the report shows."""
    given = verdict(speed=1.5)
    gates = tuple(dataclasses.replace(gate, ratio=1.77, low=1.7, high=1.8) for gate in given.gates)
    ((row,), _) = rank([("a", dataclasses.replace(given, gates=gates))], SOFTMAX)
    assert row.ratio == (1.77, 1.7, 1.8)


def _with_gate(verdict, *numbers):
    gates = (
        dataclasses.replace(gate, **dict(zip(("ratio", "low", "high"), numbers, strict=True))) for gate in verdict.gates
    )
    return dataclasses.replace(verdict, gates=tuple(gates))


@pytest.mark.parametrize(("low", "high"), [(-0.1, 1.1), (0.0, 1.1), (0.6, 1.1), (0.3, 0.4), (0.3, math.inf),
                                           (math.nan, 1.1), (0.3, math.nan)])  # fmt: skip
def test_a_ratio_without_a_sound_interval_ranks_by_itself(verdict, low, high):
    """Few and noisy samples can give an end below 0: the entry keeps its rank, with the ratio as both ends."""
    entries = [("a", verdict()), ("noisy", _with_gate(verdict(speed=0.5), 0.5, low, high))]
    (_, noisy), unranked = rank(entries, SOFTMAX)
    assert unranked == ()
    assert (noisy.pseudonym, noisy.rank, noisy.ratio) == ("noisy", 2, (0.5, 0.5, 0.5))


@pytest.mark.parametrize("ratio", [0.0, -1.0, math.nan, math.inf])
def test_a_ratio_that_is_none_is_that_of_the_times(verdict, ratio):
    """Values that the judge cannot have measured are not shown."""
    ((row,), _) = rank([("a", _with_gate(verdict(speed=1.5), ratio, 0.1, 2.0))], SOFTMAX)
    assert row.ratio.value == pytest.approx(1.5)


@pytest.mark.parametrize("peer", ["submission", SOFTMAX.baselines[0].id])
@pytest.mark.parametrize("ends", [(-3.0, 400.0), (0.0, 400.0), (math.nan, math.nan), (1e-323, 400.0)])
def test_a_time_without_a_sound_interval_is_ranked(verdict, peer, ends):
    """An honest entry with noisy times is timed nevertheless, and so is one with a noisy baseline."""
    given = verdict(speed=1.5)
    times = (
        dataclasses.replace(time, low_us=ends[0], high_us=ends[1]) if time.peer == peer else time
        for time in given.timings
    )
    given = dataclasses.replace(given, timings=tuple(times))
    for exercise in (SOFTMAX, dataclasses.replace(SOFTMAX, gates=())):
        (row,), unranked = rank([("a", given)], exercise)
        assert unranked == ()
        for each in (row.time_us, row.ratio, row.speed):
            assert 0 < each.low <= each.value <= each.high < math.inf
        assert row.ratio.value == pytest.approx(1.5)


def test_without_such_a_gate_the_ratio_is_of_the_times(verdict):
    """An exercise whose gates cover other cases has the ratio of the geometric means."""
    exercise = dataclasses.replace(SOFTMAX, gates=())
    ((row,), _) = rank([("a", verdict(speed=1.5))], exercise)
    assert row.ratio.value == pytest.approx(1.5)
    assert row.ratio.low < 1.5 < row.ratio.high


def test_without_a_baseline_the_time_ranks(verdict):
    """An exercise without a baseline has no ratio; less time ranks first."""
    exercise = dataclasses.replace(SOFTMAX, baselines=(), gates=())
    rows, _ = rank([("slow", verdict(speed=1.0)), ("fast", verdict(speed=2.0))], exercise)
    assert [(row.pseudonym, row.rank, row.ratio) for row in rows] == [("fast", 1, None), ("slow", 2, None)]


def test_a_failed_speed_gate_still_ranks(verdict):
    """A right but slow entry is on the board: only the cases decide."""
    assert _ranks([("a", verdict(speed=0.2, status="failed"))]) == [("a", 1, False)]


NAN = float("nan")


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"wrong": 3}, "6 of 9 cases right"),
        ({"gpu": ""}, "all right; speed needs a GPU"),
        ({"gpu": "", "wrong": 10}, "0 of 10 cases right"),
        ({"status": "unusable"}, "could not be graded"),
        ({"gpu": "", "status": "not_judged"}, "not judged; needs a GPU"),
        ({"failure": Failure("not_written", "not written yet")}, "not written yet"),
        ({"failure": Failure("timeout", "too slow")}, "9 of 9 cases right"),
        ({"failure": Failure("implausible", "not believed")}, "held for review"),
        ({"speed": None}, "not timed"),
        ({"speed": NAN}, "not timed"),
    ],
)
def test_what_is_not_right_and_timed_has_no_rank(verdict, keywords, reason):
    """Every unranked entry has a reason in the leaderboard's own words."""
    rows, (entry,) = rank([("a", verdict(**keywords))], SOFTMAX)
    assert rows == ()
    assert entry.reason == reason


def test_findings_change_no_rank_and_are_told_without_names(verdict):
    """A flagged entry keeps its rank; its notes are shown, without the submission's own words."""
    finding = Finding("rule", "Line 3 calls `by_ann.softmax`. It takes no points; your instructor sees this note.", 3)
    notes = ("Another process (pid 7, `ann-job`) used the GPU while this was timed; times may be off.",)
    flagged = verdict("1", speed=1.6, findings=(finding,), notes=notes)
    rows, _ = rank([("a", flagged), ("b", verdict("2", speed=1.5))], SOFTMAX)
    assert [(row.pseudonym, row.rank) for row in rows] == [("a", 1), ("b", 2)]
    assert rows[0].remarks == (
        "Rules: Line 3 calls ….",
        "Timing: Another process (pid 7, …) used the GPU while this was timed; times may be off.",
    )
    assert rows[1].remarks == ()


def test_the_most_right_come_first_among_those_without_a_rank(verdict):
    """Without a GPU nobody has a rank, and right answers are never below wrong ones."""
    entries = [("a", None), ("b", verdict(gpu="", wrong=2)), ("c", verdict(gpu="", wrong=1)), ("d", verdict(gpu=""))]
    _, unranked = rank(entries, find("softmax"))
    assert [entry.pseudonym for entry in unranked] == ["d", "c", "b", "a"]
    assert unranked[0].reason == "all right; speed needs a GPU"


def test_an_entry_without_a_rank_has_its_findings_too(verdict):
    """A claim that is held for review also shows the other findings."""
    held = verdict(failure=Failure("implausible", "not believed"), findings=(Finding("clock", "The clocks differ."),))
    _, (entry,) = rank([("a", held)], SOFTMAX)
    assert (entry.reason, entry.remarks) == ("held for review", ("Clock: The clocks differ.",))


def test_one_case_that_was_not_timed_is_no_rank(verdict):
    """A time over fewer cases is not comparable, so it is not shown."""
    given = verdict()
    fewer = tuple(time for time in given.timings if time.case != SOFTMAX.timed_cases[0].name)
    assert rank([("a", dataclasses.replace(given, timings=fewer))], SOFTMAX)[0] == ()


def test_a_case_that_was_wrong_while_timed_is_no_rank(verdict):
    """A result that was right at first and wrong while it was timed is not ranked."""
    given = verdict()
    cases = (*given.cases, CaseResult("4096 × 4096, while timed", False))
    _, (entry,) = rank([("a", dataclasses.replace(given, cases=cases))], SOFTMAX)
    assert entry.reason == "9 of 10 cases right"


def test_what_could_not_be_read_has_no_rank():
    """A submission without a verdict is an entry too."""
    assert rank([("a", None)], SOFTMAX)[1][0].reason == "could not be graded"


def test_ranking_needs_neither_torch_nor_a_database():
    """Ranking needs neither torch nor SQLAlchemy, and does not import them."""
    code = "import sys; import grader.leaderboard.ranking; print({'torch', 'sqlalchemy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.gpu
def test_a_verdict_of_a_real_gpu_is_ranked():
    """A GPU's verdict on the reference solution has a rank, a ratio, and a time within its interval."""
    from grader.authoring import stubs
    from grader.judge.service import Judge

    with Judge("cuda") as judge:
        verdict = judge.grade(stubs.solution("vector_add"), "vector_add")
    (row,), unranked = rank([("a", verdict)], find("vector_add"))
    assert unranked == ()
    assert row.rank == 1
    assert 0 < row.time_us.low <= row.time_us.value <= row.time_us.high
    assert 0.5 < row.ratio.low <= row.ratio.value <= row.ratio.high < 2
    assert 0.5 < row.share_of_roofline < 1.2
