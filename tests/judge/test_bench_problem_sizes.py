"""How large a case is timed, and when that changes."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader.judge.bench import ProblemSizes
from tests.judge.timing.test_timer import ROWS, World, case, exercise

MACHINE = World().machine
SMALL = exercise(case("a", ROWS // 4))  # 8 times its rows are long enough


@pytest.fixture
def sizes():
    return ProblemSizes()


def room(rows):
    """Buffers in which this many rows fit."""
    return SimpleNamespace(fits=lambda case, launches: case.arrays[0].shape[0] <= rows)


def scale(sizes, buffers, machine=MACHINE):
    return sizes.scale(SMALL, SMALL.timed_cases[0], machine, buffers)


def outgrown(sizes, buffers, machine=MACHINE):
    return sizes.outgrown(SMALL, SMALL.timed_cases[0], machine, buffers)


def test_a_size_is_found_once(sizes):
    """It does not change when more fits later."""
    assert scale(sizes, room(8 * ROWS)) == 8
    assert scale(sizes, room(0)) == 8
    assert not outgrown(sizes, room(0))
    assert scale(sizes, room(0)) == 8


def test_what_memory_has_kept_small_grows_when_there_is_room(sizes):
    """It grows as far as memory allows, and reports each growth once."""
    assert scale(sizes, room(ROWS // 2)) == 2
    assert not outgrown(sizes, room(ROWS // 2))
    assert outgrown(sizes, room(ROWS))
    assert scale(sizes, room(0)) == 4
    assert not outgrown(sizes, room(ROWS))
    assert outgrown(sizes, room(8 * ROWS))
    assert not outgrown(sizes, room(8 * ROWS))
    assert scale(sizes, room(0)) == 8


def test_it_never_shrinks(sizes):
    """Others who let go of memory and take it again do not choose the size."""
    assert scale(sizes, room(ROWS)) == 4
    assert not outgrown(sizes, room(0))
    assert scale(sizes, room(0)) == 4


def test_a_later_measurement_of_the_machine_changes_nothing(sizes):
    """A faster one would ask for longer launches: those before and after are timed at the same size."""
    faster = replace(MACHINE, copy_gbps=40_000.0)
    assert scale(sizes, room(1 << 40)) == 8
    assert not outgrown(sizes, room(1 << 40), faster)


def test_what_nobody_has_timed_has_no_size_to_grow_from(sizes):
    """Asking does not create one."""
    assert not outgrown(sizes, room(0))
    assert scale(sizes, room(ROWS)) == 4


def test_what_takes_longer_than_the_ceiling_grows_less(sizes):
    """Its launches are as long at a smaller size."""
    slower = replace(SMALL, over_ceiling=2.0)
    assert sizes.scale(slower, SMALL.timed_cases[0], MACHINE, room(1 << 40)) == 4


def test_no_array_grows_beyond_what_an_int_counts(sizes):
    """On a GPU that is so fast that a long launch would need more: most submissions count in 32 bits."""
    faster = replace(MACHINE, copy_gbps=40_000.0)
    found = scale(sizes, room(1 << 40), faster)
    assert found * ROWS // 4 < 1 << 31 <= 2 * found * ROWS // 4
