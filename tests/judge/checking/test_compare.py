"""Outputs against an oracle: which ones are right, and how the rest differ."""

import pytest
import torch

from grader.exercise import Budget, Suspect
from grader.judge.checking.compare import compare, poisoned, suspected, uncontradicted, within
from grader.protocol.arena import POISON_BYTE
from grader.verdict import CaseResult, Failure, Mismatch

BUDGET = Budget(absolute=1e-6, relative=1e-3)


def test_the_budget_is_absolute_plus_relative():
    """An error within the budget passes, the next larger one does not."""
    expected = torch.tensor([0.0, 100.0, -100.0], dtype=torch.float64)
    allowed = expected + torch.tensor([1e-6, 0.1, -0.1], dtype=torch.float64)
    assert compare("out", allowed, expected, BUDGET) is None
    mismatch = compare("out", expected + torch.tensor([2e-6, 0.0, 0.2]), expected, BUDGET)
    assert mismatch is not None
    assert (mismatch.wrong, mismatch.first_index) == (2, (0,))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_no_wildcards(value):
    """Neither is right where a finite value is expected, whatever the budget."""
    mismatch = compare("out", torch.tensor([value]), torch.tensor([1.0], dtype=torch.float64), Budget(1e300, 1e300))
    assert mismatch is not None
    assert (mismatch.wrong, mismatch.not_finite) == (1, 1)


def test_an_infinity_is_right_where_it_is_expected():
    """Infinity of the same sign, and nothing else, answers an expected infinity."""
    expected = torch.tensor([float("inf"), -float("inf"), 1.0], dtype=torch.float64)
    assert compare("out", expected.float(), expected, BUDGET) is None
    got = torch.tensor([float("inf"), 3.0e38, 1.0])
    assert within(got, expected, BUDGET).tolist() == [True, False, True]
    assert not within(-expected[:1], expected[:1], BUDGET).any()


def test_unwritten_elements_are_told_from_nan():
    """The poison is not a NaN that arithmetic makes."""
    got = torch.full((4,), float("nan"))
    got.view(torch.uint8)[:8].fill_(POISON_BYTE)
    assert poisoned(got).tolist() == [True, True, False, False]
    mismatch = compare("out", got, torch.ones(4, dtype=torch.float64), BUDGET)
    assert mismatch is not None
    assert (mismatch.unwritten, mismatch.not_finite, mismatch.got) == (2, 2, "never written")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_of_integers_unwritten_is_said_where_it_explains_all_that_is_wrong(dtype):
    """The poison is a value like any other there (255, -1): an element that holds it may have been written."""
    expected = torch.arange(6, dtype=torch.float64)
    poison = torch.full((48,), POISON_BYTE, dtype=torch.uint8).view(dtype)[:6]
    got = expected.to(dtype)
    got[4:] = poison[4:]
    mismatch = compare("out", got, expected, BUDGET)
    assert mismatch is not None
    assert (mismatch.wrong, mismatch.unwritten, mismatch.got) == (2, 2, "never written")
    got[1] = 77
    mismatch = compare("out", got, expected, BUDGET)
    assert mismatch is not None
    assert (mismatch.wrong, mismatch.unwritten, mismatch.got) == (3, 0, "77")


def test_an_integer_that_holds_the_poison_is_right_where_that_is_expected():
    """White is a colour."""
    white = torch.full((3,), POISON_BYTE, dtype=torch.uint8)
    assert compare("out", white, white.double(), BUDGET) is None


def test_the_region_of_wrong_elements_is_their_bounding_box():
    """The smallest and largest index in each dimension, so that a sentence can say where the bug shows."""
    expected = torch.zeros(8, 10, dtype=torch.float64)
    got = expected.float()
    got[3:5, 7:] = 1.0
    mismatch = compare("out", got, expected, BUDGET)
    assert mismatch is not None
    assert (mismatch.region_low, mismatch.region_high, mismatch.wrong) == ((3, 7), (4, 9), 6)
    assert mismatch.worst_error == 1.0


def test_two_numbers_that_differ_are_shown_with_the_digits_that_differ():
    """Six digits, or as many as tell what was got from what was expected."""
    budget = Budget(absolute=1e-15, relative=1e-15)
    shown = {}
    for off in (0.5, 1e-7, 1e-11):
        expected = torch.tensor([0.0536195], dtype=torch.float64)
        found = compare("out", expected * (1 + off), expected, budget)
        assert found is not None
        shown[off] = found.got, found.expected
    assert shown[0.5] == ("0.0804293", "0.0536195")
    for got, expected in shown.values():
        assert got != expected
        assert float(expected) == pytest.approx(0.0536195)


def test_writes_outside_are_wrong_even_if_the_output_is_right():
    """A kernel that is right and writes past its output is not right."""
    mismatch = compare("out", torch.ones(3), torch.ones(3, dtype=torch.float64), BUDGET, outside=[3, 4])
    assert mismatch is not None
    assert (mismatch.wrong, mismatch.outside, mismatch.outside_first_offset) == (0, 2, 3)


def test_a_suspect_is_named_only_where_its_bug_would_show():
    """Return the sentence of the first bug with this output, unless the bug gives the right output."""
    suspects = (Suspect("doubled", lambda a: 2 * a["x"]), Suspect("squared", lambda a: a["x"] ** 2))
    x = torch.tensor([1.0, 3.0])
    expected = torch.tensor([1.0, 27.0], dtype=torch.float64)
    assert suspected(x**2, expected, {"x": x}, suspects) == "squared"
    assert suspected(x + 7, expected, {"x": x}, suspects) == ""
    assert suspected(x**2, (x**2).double(), {"x": x}, suspects) == ""


def test_a_suspect_that_fails_is_skipped_and_printed(capfd):
    """An author's slip does not stop a learner's check; the next suspect is tried."""
    expected = torch.ones(3, dtype=torch.float64)
    suspects = [Suspect("broken", lambda a: a["X"]), Suspect("wrong shape", lambda a: torch.zeros(5))]
    suspects.append(Suspect("doubled", lambda a: 2 * a["expected"]))
    assert suspected(2 * torch.ones(3), expected, {}, suspects) == "doubled"
    said = capfd.readouterr().err
    assert "Suspect 1 of this exercise fails: " in said
    assert f"{__file__}, line " in said
    assert "KeyError: 'X'" in said
    assert "Suspect 2 of this exercise fails: " in said


def test_a_suspect_is_dropped_where_a_case_is_wrong_that_its_bug_spares():
    """Infinities in a large case are not an overflow of sums if a small case without overflow is wrong."""
    overflow, other = Suspect("overflow", lambda a: None, spares=("small", "tiny")), Suspect("other", lambda a: None)
    zero = Suspect("zero", lambda a: None, breaks=("middle",))

    def wrong(name, sentence):
        return CaseResult(name, False, mismatch=Mismatch("out", (64,), 1, 64, suspect=sentence))

    def told(*cases):
        return [case.mismatch and case.mismatch.suspect for case in uncontradicted(cases, (overflow, other, zero))]

    large, small = wrong("large", "overflow"), wrong("small", "")
    assert told(large, CaseResult("small", True)) == ["overflow", None]
    assert told(small, large) == ["", ""]
    assert told(wrong("small", "other"), large, wrong("middle", "other")) == ["other", "", "other"]
    assert told(wrong("large", "zero"), CaseResult("small", True)) == ["zero", None]
    assert told(wrong("large", "zero"), CaseResult("middle", True)) == ["", None], "a zero would break it"
    failed = CaseResult("small", False, failure=Failure("timeout", "late"))
    assert told(large, failed, CaseResult("tiny", False)) == ["overflow", None, None], "neither was compared"
