"""Tests of benchmarks.cohort: the class that it draws, and the penalty that it computes itself."""

import pytest

pytest.importorskip("nbgrader")

from benchmarks.cohort import EXERCISES, deal, penalty, pool


def test_the_same_class_is_drawn_again():
    """Otherwise one and two workers would not grade the same class."""
    assert deal(40) == deal(40)
    assert deal(40) != deal(41)


def test_a_class_has_all_kinds_of_work():
    """Right, wrong, hostile and empty texts, copies, late and resubmitted work, and otherwise unique texts."""
    cohort = deal(100)
    texts = [text for work in cohort.first.values() for text in work.texts.values()]
    assert {text.kind for text in texts} == {"honest", "wrong", "hostile"}
    assert {"stub", "slow", "reference"} <= {text.name for text in texts}
    assert any(work.hours_late for work in cohort.first.values())
    assert 0 < len(cohort.again) < 50
    assert 0.6 * len(texts) < len({(text.exercise, text.source) for text in texts}) < len(texts)


@pytest.mark.parametrize(("hours", "lost"), [(0, 0), (0.1, 1), (24, 1), (24.1, 2), (1000, 10)])
def test_each_day_begun_costs_ten_percent(hours, lost):
    """As the class's late policy says."""
    assert penalty(10, hours) == pytest.approx(lost)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_name_stands_for_one_text(exercise):
    """The recount finds the points of a text by its exercise and name."""
    texts = [text for own in pool(exercise).values() for text in own]
    assert len({text.name for text in texts}) == len({text.source for text in texts}) == len(texts)
    assert {"right", "wrong", "hostile", "empty", "slow"} == {kind for kind, own in pool(exercise).items() if own}
