"""The look that ends a round: at every output of every launch, at places that nobody can foretell, and only there."""

import bisect
import itertools
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from grader.exercise import Array, Case
from grader.judge.checking import buffers as buffers_module
from grader.judge.checking.buffers import Buffers
from grader.judge.timing.output_probe import LOOKS, OutputProbe
from grader.protocol.arena import GUARD_BYTES, ITEM_BYTES

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
def buffers(monkeypatch):
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 24)
    return Buffers("simulator")


def laid(buffers, arrays, launches):
    return buffers.lay(Case("case", (Array("x", (3,)), *arrays)), launches)


def places(columns):
    """The offset in the arena and the bytes of each place that is looked at, launch by launch for each."""
    return [(offset + row * pitch, item) for offset, pitch, rows, item in columns for row in range(rows)]


def elements(slot):
    """The offset of each element of a tensor of one or two dimensions."""
    item, rows = ITEM_BYTES[slot.dtype], slot.shape[:-1] or (1,)
    stride = slot.strides[0] if len(slot.shape) == 2 else 0
    return {slot.offset + item * (row * stride + column) for row in range(rows[0]) for column in range(slot.shape[-1])}


def by_launch(layout, columns, name="out"):
    """The places that are looked at, in each launch; those in no output are left out."""
    slots = [launch[name] for launch in layout.launches]
    starts, item = [slot.offset for slot in slots], ITEM_BYTES[slots[0].dtype]
    found = [[] for _ in slots]
    for at, _ in places(columns):
        launch = max(0, bisect.bisect(starts, at) - 1)
        element, within = divmod(at - starts[launch], item)
        if within == 0 and 0 <= element < slots[launch].span:
            found[launch].append(at)
    return found


@pytest.mark.parametrize("launches", [1, 2, 3, 10, 16, 17, 18, 40, 90])
@pytest.mark.parametrize("name", SHAPES)
def test_every_place_is_an_element_of_its_launch(buffers, name, launches):
    """Never a guard at its ends, never another launch's output; of each output about as many."""
    array = SHAPES[name]
    layout = laid(buffers, [array], launches)
    for _ in range(3):
        columns = OutputProbe(buffers, layout)._columns
        assert {item for _, item in places(columns)} == {ITEM_BYTES[array.dtype]}
        found = by_launch(layout, columns)
        assert sum(map(len, found)) == len(places(columns)), "some lie in no output"
        assert max(map(len, found)) <= 2 * min(map(len, found)) + 1
        assert sum(map(len, found)) >= min(LOOKS, launches * layout.launches[0]["out"].span)


@pytest.mark.parametrize("launches", [3, 30])
@pytest.mark.parametrize("name", ["few elements", "padded rows of one"])
def test_every_element_may_be_looked_at(buffers, name, launches):
    """There is none, in any launch, that a submission could leave for later."""
    layout = laid(buffers, [SHAPES[name]], launches)
    missed = set().union(*(elements(launch["out"]) for launch in layout.launches))
    for _ in range(300):
        missed -= {at for at, _ in places(OutputProbe(buffers, layout)._columns)}
    assert missed == set()


@pytest.mark.parametrize("launches", [1, 5, 10, 17, 18, 40, 90])
@pytest.mark.parametrize("name", ["a vector", "a matrix", "padded rows"])
def test_few_copies_fetch_it_all(buffers, name, launches):
    """They take time by the clock: one for a launch, or one or two for an element of all of them."""
    look = OutputProbe(buffers, laid(buffers, [SHAPES[name]], launches))
    assert look.copies == len(look._columns) <= 22
    if launches <= 17:
        assert look.copies == launches


@pytest.mark.parametrize("part", ["tail", "head", "middle"])
@pytest.mark.parametrize(("launches", "late"), [(1, 1 / 190), (5, 1 / 38), (10, 1 / 19)])
def test_a_part_of_a_launch_that_comes_late_is_always_seen(buffers, launches, late, part):
    """With few launches, a part of one that is as long as the comb's distance is always probed."""
    layout = laid(buffers, [SHAPES["a vector"]], launches)
    length = int(late * 4001) + 1
    first = {"tail": 4001 - length, "head": 0, "middle": 1234}[part]
    for _ in range(200):
        last = by_launch(layout, OutputProbe(buffers, layout)._columns)[-1]
        start = layout.launches[-1]["out"].offset
        assert any(first <= (at - start) // 4 < first + length for at in last)


@pytest.mark.parametrize(("period", "late"), [(2, {0}), (2, {1}), (3, {1}), (4, {0, 1, 2}), (4, {0}), (6, {0, 3}),
                                              (8, {0}), (8, {3, 4})])  # fmt: skip
@pytest.mark.parametrize("launches", [1, 5, 10])
def test_no_pattern_of_the_last_launch_is_in_step_with_a_comb(buffers, launches, period, late):
    """Some of every few elements, in that launch alone: what a kernel can leave for later at no cost."""
    layout = laid(buffers, [Array("out", (50_000,), role="out")], launches)
    start, missed = layout.launches[-1]["out"].offset, 0
    for _ in range(100):
        last = by_launch(layout, OutputProbe(buffers, layout)._columns)[-1]
        missed += late.isdisjoint((at - start) // 4 % period for at in last)
    assert missed == 0


def test_the_last_launch_is_not_known_to_be_looked_at_last(buffers):
    """Otherwise it would have more time."""
    layout = laid(buffers, [SHAPES["a vector"]], 5)
    start = layout.launches[-1]["out"].offset
    turns = [[at >= start for at, *_ in OutputProbe(buffers, layout)._columns].index(True) for _ in range(200)]
    assert all(turns.count(turn) > 15 for turn in range(5))


@pytest.mark.parametrize("name", ["a vector", "a matrix", "padded rows"])
def test_of_many_launches_each_is_looked_at_elsewhere(buffers, name):
    """Some steps on in each, and round the end; at six places, however many launches there are."""
    layout = laid(buffers, [SHAPES[name]], 60)
    own = by_launch(layout, OutputProbe(buffers, layout)._columns)
    assert {len(each) for each in own} == {6}
    found = {at - launch["out"].offset for each, launch in zip(own, layout.launches, strict=True) for at in each}
    assert len(found) > 100


@pytest.mark.parametrize(("launch", "launches"), [(3, 8), (0, 24), (20, 24)])
def test_no_part_of_any_output_is_looked_at_less(buffers, launch, launches):
    """Each tenth of it gets a tenth of the looks, the ends too: what is left for later there is found as often."""
    layout = laid(buffers, [SHAPES["a vector"]], launches)
    start, size = layout.launches[launch]["out"].offset, 4001
    tenths = [0] * 10
    for _ in range(300):
        for at in by_launch(layout, OutputProbe(buffers, layout)._columns)[launch]:
            tenths[10 * (at - start) // 4 // size] += 1
    mean = sum(tenths) / 10
    assert mean >= 30 * LOOKS / launches
    assert all(abs(count - mean) < 6 * mean**0.5 for count in tenths), tenths


@pytest.mark.parametrize("launches", [1, 5])
def test_no_element_is_looked_at_less(buffers, launches):
    """The first and the last are met as often as any other: nobody gains by leaving those for later."""
    layout = laid(buffers, [Array("out", (997,), role="out")], launches)
    start, looks, counts = layout.launches[0]["out"].offset, 0, [0] * 997
    for _ in range(600):
        for at in by_launch(layout, OutputProbe(buffers, layout)._columns)[0]:
            counts[(at - start) // 4] += 1
            looks += 1
    mean = looks / 997
    assert all(abs(sum(counts[at : at + 10]) - 10 * mean) < 7 * (10 * mean) ** 0.5 for at in range(0, 990, 10)), counts


def test_where_it_looks_is_drawn_anew(buffers):
    """Several probes of the same outputs share few places."""
    layout = laid(buffers, [SHAPES["a vector"]], 4)
    looks = [set(places(OutputProbe(buffers, layout)._columns)) for _ in range(8)]
    assert len(set.union(*looks)) > sum(map(len, looks)) / 2


def test_every_output_has_its_own_places(buffers):
    """Two outputs of different types are both looked at, in each launch."""
    arrays = [Array("a", (40,), role="out"), Array("b", (6, 10), "float16", "out", 2)]
    layout = laid(buffers, arrays, 3)
    seen = places(OutputProbe(buffers, layout)._columns)
    for launch in layout.launches:
        for name in "ab":
            own = elements(launch[name])
            assert sum(at in own for at, _ in seen) >= 16


def test_repeated_launches_are_looked_at_once(buffers):
    """Those of a calibration share their buffers: sixteen looks suffice for a thousand launches."""
    layout = laid(buffers, [SHAPES["a vector"]], 4)
    for times in (1, 3, 64):
        columns = OutputProbe(buffers, layout.repeated(times))._columns
        assert LOOKS <= len(places(columns)) <= 1.6 * LOOKS


def test_one_launch_again_and_again_is_one_row(buffers):
    """If only one launch has buffers, it is probed like a single launch."""
    layout = laid(buffers, [SHAPES["a vector"]], 1).repeated(5)
    assert len(OutputProbe(buffers, layout)._columns) == 1


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_changed_is_nothing_seen(buffers, name):
    """The look is the same twice, whatever is written around the outputs, and as long as what it looks at."""
    layout = laid(buffers, [SHAPES[name]], 3)
    buffers.poison(layout)
    look = OutputProbe(buffers, layout)
    before = look.take()
    assert len(before) == len(places(look._columns)) * ITEM_BYTES[SHAPES[name].dtype]
    raw = buffers.arenas["outputs"].bytes_at(0, buffers.arenas["outputs"].size)
    spans = [slice(launch["out"].offset, launch["out"].offset + launch["out"].bytes) for launch in layout.launches]
    kept = [raw[span].clone() for span in spans]
    raw.fill_(7)
    for span, values in zip(spans, kept, strict=True):
        raw[span] = values
    assert look.take() == before


@pytest.mark.parametrize("launch", [0, 1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_a_changed_output_of_one_launch_is_seen(buffers, name, launch):
    """Its elements alone change; the others' stay."""
    layout = laid(buffers, [SHAPES[name]], 3)
    buffers.poison(layout)
    look = OutputProbe(buffers, layout)
    before = look.take()
    buffers._view(layout.launches[launch]["out"]).fill_(1.0)
    after = look.take()
    item = ITEM_BYTES[SHAPES[name].dtype]
    changed = {at // item for at in range(0, len(after), item) if after[at : at + item] != before[at : at + item]}
    own = elements(layout.launches[launch]["out"])
    assert changed == {number for number, (at, _) in enumerate(places(look._columns)) if at in own}
    assert changed


def test_one_changed_element_is_seen_where_the_look_falls_on_it(buffers):
    """A single element that changes is seen as often as it is among the places, and never else."""
    layout = laid(buffers, [SHAPES["few elements"]], 90)
    view = buffers._view(layout.launches[2]["out"])
    seen = 0
    for turn in range(40):
        look = OutputProbe(buffers, layout)
        at = layout.launches[2]["out"].offset + 4 * 3
        before = look.take()
        view[3] = turn + 1
        assert (look.take() != before) == (at in {place for place, _ in places(look._columns)})
        seen += look.take() != before
    assert 15 < seen < 40


def test_a_change_of_the_second_output_alone_is_seen(buffers):
    """Every output is looked at, not only the first."""
    layout = laid(buffers, [Array("a", (40,), role="out"), Array("b", (40,), role="out")], 2)
    look = OutputProbe(buffers, layout)
    before = look.take()
    buffers._view(layout.launches[1]["b"]).fill_(1.0)
    assert look.take() != before


@pytest.fixture
def copied(monkeypatch):
    """The places that a fake copy engine reads, as offsets."""
    found = []

    class Driver:
        CUDA_MEMCPY2D = SimpleNamespace
        CUmemorytype = SimpleNamespace(CU_MEMORYTYPE_DEVICE="device", CU_MEMORYTYPE_HOST="host")

        def cuMemcpy2DAsync(self, copy, stream):
            found.extend(copy.srcDevice + row * copy.srcPitch for row in range(copy.Height))
            return (0,)

        def cuStreamSynchronize(self, stream):
            return (0,)

    bindings = ModuleType("cuda.bindings")
    bindings.driver = Driver()
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *size, pin_memory, **how: zeros(*size, **how))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
    return found


@pytest.mark.parametrize("launches", [1, 5, 40])
def test_where_it_will_look_nothing_is_read_before(buffers, copied, launches):
    """It is rehearsed elsewhere: what was read is faster to read again, and so a submission could find it."""
    layout = laid(buffers, [Array("out", (50_000,), role="out")], launches)
    on_gpu = SimpleNamespace(torch_device="cuda", arenas={"outputs": SimpleNamespace(address=0)})
    look = OutputProbe(on_gpu, layout)
    real = {at for at, _ in places(look._columns)}
    assert len(copied) >= len(real) / 2, "it is rehearsed, with as many copies"
    assert len(real & set(copied)) < len(real) / 8
    copied.clear()
    assert len(look.take()) == 4 * len(real)
    assert set(copied) == real


def test_outputs_lie_far_enough_apart_for_one_copy(buffers):
    """The premise of a copy with one pitch: launches at equal distances, a guard between two outputs."""
    for array in SHAPES.values():
        starts = [launch["out"].offset for launch in laid(buffers, [array], 5).launches]
        distances = {after - before for before, after in itertools.pairwise(starts)}
        assert len(distances) == 1
        assert distances.pop() >= GUARD_BYTES
