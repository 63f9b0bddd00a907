"""The look that ends a round: at every output of every launch, at places that nobody can foretell, and only there."""

import itertools

import pytest

from grader.exercise import Array, Case
from grader.judge import desk as desks
from grader.judge.desk import Desk
from grader.judge.glimpse import PLACES, Glimpse
from grader.protocol.layout import GUARD_BYTES, ITEM_BYTES

SHAPES = {
    "one element": Array("out", (1,), role="out"),
    "few elements": Array("out", (5,), role="out"),
    "a vector": Array("out", (4001,), role="out"),
    "a matrix": Array("out", (17, 33), role="out"),
    "half precision": Array("out", (17, 33), "float16", "out"),
    "padded rows": Array("out", (17, 33), role="out", row_padding=7),
    "padded rows of one": Array("out", (9, 1), "float16", "out", 15),
}


@pytest.fixture
def desk(monkeypatch):
    monkeypatch.setattr(desks, "_HOST_BYTES", 1 << 24)
    return Desk("simulator")


def laid(desk, arrays, launches):
    return desk.lay(Case("case", (Array("x", (3,)), *arrays)), launches)


def places(columns):
    """The offset in the arena and the bytes of each place that is looked at, launch by launch for each."""
    return [(offset + row * pitch, item) for offset, pitch, rows, item in columns for row in range(rows)]


def elements(slot):
    """The offset of each element of a tensor of one or two dimensions."""
    item, rows = ITEM_BYTES[slot.dtype], slot.shape[:-1] or (1,)
    stride = slot.strides[0] if len(slot.shape) == 2 else 0
    return {slot.offset + item * (row * stride + column) for row in range(rows[0]) for column in range(slot.shape[-1])}


@pytest.mark.parametrize("launches", [1, 2, 3, 10])
@pytest.mark.parametrize("name", SHAPES)
def test_every_place_is_an_element_of_its_launch(desk, name, launches):
    """Never the padding between rows, never a guard, never another launch's output; of each output as many places."""
    array = SHAPES[name]
    spread = laid(desk, [array], launches)
    own = [elements(launch["out"]) for launch in spread.launches]
    looked = [0] * launches
    for _ in range(30):
        for number, (at, item) in enumerate(places(Glimpse(desk, spread)._columns)):
            assert item == ITEM_BYTES[array.dtype]
            launch = number % launches
            assert at in own[launch], f"{at - spread.launches[launch]['out'].offset} bytes from its start"
            looked[launch] += 1
    assert looked == [30 * PLACES] * launches


@pytest.mark.parametrize("name", ["few elements", "padded rows of one"])
def test_every_element_may_be_looked_at(desk, name):
    """There is none, in any launch, that a submission could leave for later."""
    spread = laid(desk, [SHAPES[name]], 3)
    missed = set().union(*(elements(launch["out"]) for launch in spread.launches))
    for _ in range(300):
        missed -= {at for at, _ in places(Glimpse(desk, spread)._columns)}
    assert missed == set()


@pytest.mark.parametrize(("name", "moves"), [("a vector", True), ("a matrix", True), ("padded rows", False)])
def test_a_contiguous_output_is_looked_at_elsewhere_in_each_launch(desk, name, moves):
    """Some steps on in each of contiguous ones, and round the end; the same element of padded ones. At most two copies
    fetch those of all launches."""
    spread = laid(desk, [SHAPES[name]], 4)
    starts = [launch["out"].offset for launch in spread.launches]
    columns = Glimpse(desk, spread)._columns
    assert PLACES <= len(columns) <= 2 * PLACES
    looked, moving = [at for at, _ in places(columns)], 0
    for first in range(0, len(looked), 4):
        moving += len({at - start for at, start in zip(looked[first : first + 4], starts, strict=True)}) == 4
    assert (moving > PLACES // 2) if moves else (moving == 0)


@pytest.mark.parametrize("launch", [0, 3, 7])
def test_no_part_of_any_output_is_looked_at_less(desk, launch):
    """Each tenth of it gets a tenth of the looks, the ends too: what is left for later there is found as often."""
    spread = laid(desk, [SHAPES["a vector"]], 8)
    start, size = spread.launches[launch]["out"].offset, 4001
    tenths = [0] * 10
    for _ in range(500):
        for at, _ in places(Glimpse(desk, spread)._columns)[launch::8]:
            tenths[10 * (at - start) // 4 // size] += 1
    assert sum(tenths) == 500 * PLACES
    assert all(abs(count - 50 * PLACES) < 6 * (50 * PLACES) ** 0.5 for count in tenths), tenths


def test_where_it_looks_is_drawn_anew(desk):
    """Two looks at the same outputs share next to no place."""
    spread = laid(desk, [SHAPES["a vector"]], 4)
    first, second = (set(places(Glimpse(desk, spread)._columns)) for _ in range(2))
    assert len(first & second) < len(first) / 4


def test_every_output_has_its_own_places(desk):
    """Two outputs of different types are both looked at, in each launch."""
    arrays = [Array("a", (40,), role="out"), Array("b", (6, 10), "float16", "out", 2)]
    spread = laid(desk, arrays, 3)
    seen = places(Glimpse(desk, spread)._columns)
    for launch in spread.launches:
        for name in "ab":
            own = elements(launch[name])
            assert sum(at in own for at, _ in seen) == PLACES


def test_repeated_launches_are_looked_at_once(desk):
    """Those of a calibration share their buffers: sixteen looks suffice for a thousand launches."""
    spread = laid(desk, [SHAPES["a vector"]], 4)
    for times in (1, 3, 64):
        columns = Glimpse(desk, spread.repeated(times))._columns
        assert len(places(columns)) == 4 * PLACES


def test_one_launch_again_and_again_is_one_row(desk):
    """Where only one launch has buffers, it is looked at as if it were the only one."""
    spread = laid(desk, [SHAPES["a vector"]], 1).repeated(5)
    assert {rows for _, _, rows, _ in Glimpse(desk, spread)._columns} == {1}


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_changed_is_nothing_seen(desk, name):
    """The look is the same twice, whatever is written around the outputs, and as long as what it looks at."""
    spread = laid(desk, [SHAPES[name]], 3)
    desk.poison(spread)
    look = Glimpse(desk, spread)
    before = look.take()
    assert len(before) == 3 * PLACES * ITEM_BYTES[SHAPES[name].dtype]
    raw = desk.arenas["outputs"].bytes_at(0, desk.arenas["outputs"].size)
    kept = {launch["out"]: desk._view(launch["out"]).clone() for launch in spread.launches}
    raw.fill_(7)
    for slot, values in kept.items():
        desk._view(slot).copy_(values)
    assert look.take() == before


@pytest.mark.parametrize("launch", [0, 1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_a_changed_output_of_one_launch_is_seen(desk, name, launch):
    """Its elements alone change; the others' stay."""
    spread = laid(desk, [SHAPES[name]], 3)
    desk.poison(spread)
    look = Glimpse(desk, spread)
    before = look.take()
    desk._view(spread.launches[launch]["out"]).fill_(1.0)
    after = look.take()
    item = ITEM_BYTES[SHAPES[name].dtype]
    changed = [at for at in range(0, len(after), item) if after[at : at + item] != before[at : at + item]]
    assert len(changed) == PLACES
    assert {at // item % 3 for at in changed} == {launch}


def test_one_changed_element_is_seen_where_the_look_falls_on_it(desk):
    """A single element that changes is seen as often as it is among the places, and never else."""
    spread = laid(desk, [SHAPES["few elements"]], 3)
    view = desk._view(spread.launches[2]["out"])
    seen = 0
    for turn in range(40):
        look = Glimpse(desk, spread)
        at = spread.launches[2]["out"].offset + 4 * 3
        before = look.take()
        view[3] = turn + 1
        assert (look.take() != before) == (at in {place for place, _ in places(look._columns)})
        seen += look.take() != before
    assert 15 < seen < 40


def test_a_change_of_the_second_output_alone_is_seen(desk):
    """Every output is looked at, not only the first."""
    spread = laid(desk, [Array("a", (40,), role="out"), Array("b", (40,), role="out")], 2)
    look = Glimpse(desk, spread)
    before = look.take()
    desk._view(spread.launches[1]["b"]).fill_(1.0)
    assert look.take() != before


def test_outputs_lie_far_enough_apart_for_one_copy(desk):
    """The premise of a copy with one pitch: launches at equal distances, a guard between two outputs."""
    for array in SHAPES.values():
        starts = [launch["out"].offset for launch in laid(desk, [array], 5).launches]
        distances = {after - before for before, after in itertools.pairwise(starts)}
        assert len(distances) == 1
        assert distances.pop() >= GUARD_BYTES
