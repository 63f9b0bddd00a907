"""The arbiter's buffers: inputs that nobody can predict, private copies, and checks of every output."""

import random
import weakref
from dataclasses import replace

import pytest
import torch

from grader.errors import MachineLacks
from grader.exercise import Array, Case, Suspect
from grader.exercises import find
from grader.judge.checking import buffers as buffers_module
from grader.judge.checking import fused_compare
from grader.judge.checking.buffers import FILLS, Buffers, draw, generator, written_outside
from grader.protocol.arena import GUARD_BYTES

ADD, SOFTMAX = find("vector_add"), find("softmax")
CASE = Case("case", (Array("x", (1000,)), Array("y", (1000,)), Array("out", (1000,), role="out")))
PADDED = Case("padded", (Array("x", (9, 21), row_padding=11), Array("out", (9, 21), role="out", row_padding=3)))


@pytest.fixture(params=["launch by launch", "in one pass"])
def buffers(request, monkeypatch):
    """Buffers, and others compared as on a GPU: all at once first, and launch by launch what was not right."""
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 22)
    monkeypatch.setattr(fused_compare, "saves", lambda device: request.param == "in one pass")
    return Buffers("simulator")


def arena_bytes(buffers, name, layout):
    return bytes(buffers.arenas[name].bytes_at(0, layout.used[name]).tolist())


def filled(buffers, layout):
    """The private inputs, one flat tensor a launch."""
    return [
        torch.cat([buffers._private(launch[array.name]).flatten().clone() for array in layout.case.inputs])
        for launch in layout.launches
    ]


def answer(buffers, layout, of=lambda x, y: x + y):
    """Writes what a worker would, from the inputs that it sees."""
    for launch in layout.launches:
        buffers._view(launch["out"]).copy_(of(buffers._view(launch["x"]), buffers._view(launch["y"])))


@pytest.fixture
def answered(buffers):
    """A layout of three launches, all inputs handed over and all outputs right."""
    layout = buffers.lay(CASE, 3)
    buffers.fill(layout)
    buffers.poison(layout)
    buffers.hand_over()
    answer(buffers, layout)
    return layout


def test_each_deal_and_each_launch_has_inputs_of_its_own(buffers):
    """Nothing is filled twice: not to another launch, and not in the next trial."""
    layout = buffers.lay(CASE, 4)
    buffers.fill(layout)
    first = filled(buffers, layout)
    buffers.fill(layout)
    seen = [*first, *filled(buffers, layout)]
    for at, one in enumerate(seen):
        assert all((one == other).sum() < 20 for other in seen[:at])
        assert (one[:1000] == one[1000:]).sum() < 10, "x and y differ, too"


def test_no_seed_that_others_have_foretells_the_inputs(monkeypatch):
    """Two sets of buffers in a process, with the same seeds, are filled differently."""
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 22)
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        buffers = Buffers("simulator")
        layout = buffers.lay(CASE)
        buffers.fill(layout)
        found.append(filled(buffers, layout)[0])
    assert not torch.equal(*found)
    assert generator("cpu").initial_seed() != generator("cpu").initial_seed()


def test_inputs_reach_the_worker_only_when_they_are_handed_over(buffers):
    """The clock covers the handing over: before it a worker that polls its inputs sees nothing of them."""
    layout = buffers.lay(CASE, 3)
    before = arena_bytes(buffers, "inputs", layout)
    for _ in range(2):
        buffers.fill(layout)
        buffers.poison(layout)
        buffers.wake()
        assert arena_bytes(buffers, "inputs", layout) == before
        buffers.hand_over()
        before = arena_bytes(buffers, "inputs", layout)
        for launch in layout.launches:
            for name in "xy":
                assert torch.equal(buffers._view(launch[name]), buffers._private(launch[name]))


def test_the_small_copy_is_of_nothing_that_a_worker_maps(buffers, monkeypatch):
    """It has to get its turn on the GPU, and tells nobody anything."""
    buffers.fill(buffers.lay(CASE, 3))
    copies, hand = [], buffers._hand
    monkeypatch.setattr(buffers, "_hand", lambda target, given: copies.append((target, given)) or hand(target, given))
    buffers.wake()
    ((target, given),) = copies
    mapped = [arena.bytes_at(0, arena.size) for arena in buffers.arenas_for(trusted=True).values()]
    for last in (target, given):
        assert not any(0 <= last.data_ptr() - arena.data_ptr() < arena.numel() for arena in mapped)


def test_around_inputs_there_is_nothing_but_nan(buffers):
    """Before, behind and between the rows: who reads there gets no number."""
    layout = buffers.lay(PADDED, 2)
    buffers.fill(layout)
    buffers.hand_over()
    raw = buffers.arenas["inputs"].bytes_at(0, layout.used["inputs"]).view(torch.float32)
    own = torch.zeros_like(raw, dtype=torch.bool)
    for launch in layout.launches:
        slot = launch["x"]
        own[slot.offset // 4 :].as_strided(slot.shape, slot.strides).fill_(True)
    assert int(own.sum()) == 2 * 9 * 21
    assert raw[own].isfinite().all()
    assert raw[~own].isnan().all()
    assert layout.launches[0]["x"].offset >= GUARD_BYTES


def test_what_is_filled_after_a_larger_case_leaves_nothing_of_it(buffers):
    """The guards of a small case are not the numbers of the case before it."""
    for launches in (4, 1):
        layout = buffers.lay(CASE, launches)
        buffers.fill(layout)
        buffers.hand_over()
    raw = buffers.arenas["inputs"].bytes_at(0, layout.used["inputs"]).view(torch.float32)
    assert int(raw.isfinite().sum()) == 2 * 1000


def test_right_answers_are_right(buffers, answered):
    """All launches are right."""
    assert buffers.check(answered, ADD) is None
    assert not buffers.unwritten(answered)


def test_what_is_done_to_the_inputs_changes_no_expectation(buffers, answered):
    """Inputs that are overwritten afterwards leave right answers right, and make wrong ones no better."""
    for launch in answered.launches:
        buffers._view(launch["x"]).zero_()
    assert buffers.check(answered, ADD) is None
    answer(buffers, answered)
    assert buffers.check(answered, ADD).wrong > 0


@pytest.mark.parametrize("launch", [0, 1, 2])
@pytest.mark.parametrize("at", [0, 500, 999])
def test_one_wrong_element_of_one_launch_is_found(buffers, answered, launch, at):
    """Every element of every launch is checked."""
    buffers._view(answered.launches[launch]["out"])[at] += 1.0
    found = buffers.check(answered, ADD)
    assert (found.wrong, found.first_index) == (1, (at,))


def test_an_answer_of_the_launch_before_is_wrong(buffers, answered):
    """To compute one launch and to copy its output to the others gains nothing."""
    first = buffers._view(answered.launches[0]["out"])
    buffers._view(answered.launches[2]["out"]).copy_(first)
    assert buffers.check(answered, ADD).wrong > 900


def test_every_output_is_checked(buffers):
    """An exercise may ask for two; the second counts as the first does."""
    case = Case("two", (Array("x", (10,)), Array("a", (10,), role="out"), Array("b", (10,), role="out")))
    twice = replace(ADD, oracle=lambda given: (given["x"], 2 * given["x"]), suspects=())
    layout = buffers.lay(case, 2)
    buffers.fill(layout)
    buffers.poison(layout)
    for launch in layout.launches:
        for factor, name in enumerate("ab", 1):
            buffers._view(launch[name]).copy_(factor * buffers._private(launch["x"]))
    assert buffers.check(layout, twice) is None
    buffers._view(layout.launches[1]["b"])[3] += 1.0
    assert buffers.check(layout, twice).output == "b"


def test_the_poison_covers_outputs_and_what_is_around_them(buffers):
    """Answers of the round before are gone, and a write next to an output shows."""
    layout = buffers.lay(PADDED, 2)
    buffers.fill(layout)
    assert buffers.arenas["outputs"].bytes_at(0, layout.used["outputs"]).fill_(1).sum() > 0
    buffers.poison(layout)
    assert buffers.unwritten(layout)
    assert set(arena_bytes(buffers, "outputs", layout)) == {0xFF}
    buffers._view(layout.launches[1]["out"])[4, 4] = 1.0
    assert not buffers.unwritten(layout)


BESIDE = {0: [-1, 9 * 21], 3: [-1, 21, 23, 8 * 24 + 21]}  # by the padding of rows of 21: elements that are not its own
FAR = GUARD_BYTES // 4  # elements of a guard


@pytest.mark.parametrize(
    ("padding", "offset"),
    [(0, -FAR), (0, 9 * 21 - 1 + FAR), (3, -FAR), (3, 8 * 24 + 20 + FAR)]
    + [(p, at) for p in BESIDE for at in BESIDE[p]],
)
def test_a_write_beside_an_output_is_found(buffers, padding, offset):
    """At either end of its guards, and between its rows; the right answers do not excuse it."""
    arrays = Array("x", (9, 21)), Array("out", (9, 21), role="out", row_padding=padding)
    layout = buffers.lay(Case("case", arrays), 2)
    buffers.fill(layout)
    buffers.poison(layout)
    for launch in layout.launches:
        buffers._view(launch["out"]).copy_(torch.softmax(buffers._private(launch["x"]).double(), 1))
    assert buffers.check(layout, SOFTMAX) is None
    start = layout.launches[1]["out"].offset
    buffers.arenas["outputs"].bytes_at(start + 4 * offset, 4).fill_(0)
    found = buffers.check(layout, SOFTMAX)
    assert (found.wrong, found.outside) == (0, 1)


def test_what_is_right_is_looked_at_once(buffers, answered, monkeypatch):
    """Right answers of all launches are compared once, together; a wrong answer is found and reported."""
    one_by_one = []
    compare = buffers_module.compare
    monkeypatch.setattr(buffers_module, "compare", lambda *given: one_by_one.append(given[0]) or compare(*given))
    monkeypatch.setattr(
        buffers_module, "written_outside", lambda *_: pytest.fail("all guards were looked at in one go")
    )
    assert buffers.check(answered, ADD) is None
    assert len(one_by_one) == (0 if fused_compare.saves("cpu") else 3)
    buffers._view(answered.launches[2]["out"])[7] = float("nan")
    assert buffers.check(answered, ADD).not_finite == 1
    monkeypatch.undo()
    expected = [(buffers._view(launch["out"]).double() * 0,) for launch in answered.launches]
    assert buffers.check(answered, ADD, expected).wrong > 900, "what is expected need not be the oracle's"


@pytest.mark.parametrize("bytes_", ["odd", "even"])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_every_guard_of_every_launch_is_looked_at(buffers, outputs, bytes_):
    """The first and the last byte count, also after the last launch. No byte of an output counts as a guard."""
    odd = [
        Array(f"out{n}", (3 + 7 * n,), "uint8" if bytes_ == "odd" else "float64", role="out") for n in range(outputs)
    ]
    layout = buffers.lay(Case("case", (Array("x", (10,)), *odd)), 3)
    buffers.poison(layout)
    launches = [[slot for slot in launch.values() if slot.arena == "outputs"] for launch in layout.launches]
    raw = buffers.arenas["outputs"].bytes_at(0, layout.used["outputs"])
    assert buffers_module.untouched(buffers.arenas["outputs"], launches)
    for launch in launches:
        for slot in launch:
            end = slot.offset + slot.bytes
            for at in (slot.offset - GUARD_BYTES, slot.offset - 1, end, end + GUARD_BYTES - 1):
                raw[at] = 254
                assert not buffers_module.untouched(buffers.arenas["outputs"], launches), at
                raw[at] = 255
            raw[slot.offset : end] = 0
    assert buffers_module.untouched(buffers.arenas["outputs"], launches)


def test_guards_at_unequal_distances_are_looked_at_too(buffers):
    """Equal offsets hold as long as the same buffers lay them out; nothing must depend on that."""
    layout = buffers.lay(CASE, 4)
    buffers.poison(layout)
    launches = [[launch["out"]] for number, launch in enumerate(layout.launches) if number != 1]
    raw = buffers.arenas["outputs"].bytes_at(0, layout.used["outputs"])
    assert buffers_module.untouched(buffers.arenas["outputs"], launches)
    raw[launches[1][0].offset - 1] = 0
    assert not buffers_module.untouched(buffers.arenas["outputs"], launches)


def test_what_fits_can_be_laid_and_what_does_not_is_refused(buffers):
    """Launches by launches, up to the last that fits; each arena counts."""
    for arrays in (CASE.arrays, (Array("x", (10,)), Array("out", (40_000,), role="out"))):
        case = Case("case", arrays)
        most = buffers.capacity(case)
        assert most > 1
        assert buffers.fits(case)
        assert buffers.fits(case, most)
        assert not buffers.fits(case, most + 1)
        layout = buffers.lay(case, most)
        assert all(layout.used[name] <= arena.size for name, arena in buffers.arenas.items())
    huge = Case("huge", (Array("x", (1 << 21,)), Array("out", (1,), role="out")))
    assert not buffers.fits(huge)
    with pytest.raises(MachineLacks, match="huge"):
        buffers.lay(huge)


class Buffer:
    """In place of an arena on a GPU: its size alone."""

    @classmethod
    def create(cls, size, sealed):
        found = cls()
        found.size = size
        return found


@pytest.fixture
def free_bytes(monkeypatch):
    """Says how much of a GPU's memory is free, with no GPU at all."""
    monkeypatch.setattr(buffers_module, "CudaArena", Buffer)
    monkeypatch.setattr(buffers_module, "generator", lambda device: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 0)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 0)
    return lambda free: monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 1 << 40))


@pytest.mark.parametrize(
    ("card_gib", "arena_gib", "large_fits"), [(8, 1.13, False), (24, 3.38, True), (141, 10.66, True), (400, 12, True)]
)
def test_arenas_leave_room_on_every_card(free_bytes, card_gib, arena_gib, large_fits):
    """Two arenas, private inputs of the same size, and the float64 copies of the largest fitting case fit the free
    memory. An arena has at most 12 GiB on any card.
    """
    free = int(0.94 * card_gib * (1 << 30))
    free_bytes(free)
    buffers = Buffers("cuda")
    arena = buffers.arenas["inputs"].size
    assert buffers.arenas["outputs"].size == arena == pytest.approx(arena_gib * (1 << 30), rel=0.01)
    after = free - 2 * arena
    free_bytes(after)
    for elements, fits in ((1 << 23, True), (1 << 27, large_fits)):
        case = Case("case", (Array("x", (elements,)), Array("y", (elements,)), Array("out", (elements,), role="out")))
        most = buffers.capacity(case)
        assert most >= 1
        assert buffers.fits(case, most) is fits
        assert not fits or 6 * 8 * elements + buffers.lay(case, most).used["inputs"] < after


_GIB = 1 << 30
_BESIDE = 7 * _GIB  # of a judge at work, without its arenas: contexts, workers, oracles
_AT_REST = 5 * _GIB


@pytest.mark.parametrize(("free_gib", "judges", "least_gib"), [(139, 4, 6), (78, 2, 5)])
def test_judges_that_share_a_gpu_have_what_they_need_all_at_once(free_bytes, free_gib, judges, least_gib):
    """Each starts while those before it rest; then all of them are at work, with private inputs as large as can be."""
    free, wanted = free_gib * _GIB, 0
    for _ in range(judges):
        free_bytes(free)
        size = Buffers("cuda").arenas["inputs"].size
        assert size >= least_gib * _GIB, "rounds move gigabytes, so that they last milliseconds and pass through the L2"
        free -= 2 * size + _AT_REST
        wanted += 3 * size + _BESIDE
    assert wanted <= free_gib * _GIB


def test_memory_is_short_where_private_inputs_find_no_room(free_bytes, monkeypatch):
    """As large as the arena, less what is held already; in the simulator memory is the host's."""
    free_bytes(20 * _GIB)
    buffers = Buffers("cuda")
    size = buffers.arenas["inputs"].size
    for free, held, short in ((size + 1, 0, False), (size - 1, 0, True), (size - 1, 2, False)):
        free_bytes(free)
        monkeypatch.setattr(buffers, "_secret", torch.empty(held, dtype=torch.uint8) if held else None)
        assert buffers.short() is short
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 20)
    free_bytes(0)
    assert not Buffers("simulator").short()


def test_larger_private_inputs_take_the_place_of_the_old_ones(buffers, monkeypatch):
    """There is no moment in which the GPU holds both, though the old ones were ready to be handed over."""
    buffers.copy_in_s(1 << 12)
    old, alive = weakref.ref(buffers._secret.untyped_storage()), []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *given, **options: alive.append(old()) or empty(*given, **options))
    buffers.copy_in_s(1 << 16)
    assert alive
    assert not any(alive)


def test_the_copying_in_is_calibrated_where_private_inputs_of_that_size_find_no_room(buffers, monkeypatch):
    """Other judges may hold the memory: the time is that of as many bytes of the outputs. Other errors are errors."""
    copied, make_room = [], buffers._make_room
    hand_over = buffers.hand_over

    def make_some_room(count):
        if count > 1 << 16:
            buffers._secret = None
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 12.00 GiB.")
        make_room(count)

    monkeypatch.setattr(buffers, "_make_room", make_some_room)
    monkeypatch.setattr(buffers, "hand_over", lambda: copied.append(buffers._given.numel()) or hand_over())
    assert 0 < buffers.copy_in_s(1 << 12) < 5
    assert 0 < buffers.copy_in_s(buffers.arenas["inputs"].size) < 5
    assert set(copied) == {1 << 12, buffers.arenas["inputs"].size}
    monkeypatch.setattr(buffers, "_make_room", lambda count: (_ for _ in ()).throw(RuntimeError("CUDA error")))
    with pytest.raises(RuntimeError, match="CUDA error"):
        buffers.copy_in_s(1 << 12)


def test_on_a_gpu_the_oracle_must_fit_too(buffers, monkeypatch):
    """Private inputs and the comparison in float64 need memory beyond the arenas; torch's unused cache is available."""
    buffers.torch_device = "cuda"
    need = 6 * 8 * 1000 + buffers.lay(CASE).used["inputs"]
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 5000)
    for free, reserved, fits in ((need + 1, 5000, True), (need - 1, 5000, False), (1, 5000 + need, True)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda free=free: (free, 1 << 40))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda reserved=reserved: reserved)
        assert buffers.fits(CASE) is fits
        assert not buffers.fits(CASE, buffers.capacity(CASE) + 1)


def test_no_two_tensors_share_a_byte(buffers):
    """Neither of a launch nor of two; a guard lies before, between and behind them, in the arena."""
    layout = buffers.lay(CASE, 4)
    for arena in ("inputs", "outputs"):
        slots = sorted(
            (slot.offset, slot.offset + slot.bytes)
            for launch in layout.launches
            for slot in launch.values()
            if slot.arena == arena
        )
        ends = [0, *(end for _, end in slots)]
        starts = [*(start for start, _ in slots), layout.used[arena]]
        assert all(start - end >= GUARD_BYTES for end, start in zip(ends, starts, strict=True))


def test_launches_that_repeat_have_the_same_slots(buffers):
    """For calibration: many launches with few buffers, and the plan names them all."""
    layout = buffers.lay(CASE, 3)
    repeated = layout.repeated(4)
    assert len(repeated.plan()) == len(repeated.launches) == 12
    assert repeated.plan()[:3] == repeated.plan()[9:] == layout.plan()
    assert [slot["arena"] for slot in layout.plan()[0]] == ["inputs", "inputs", "outputs"]
    assert repeated.used == layout.used


def test_the_time_of_copying_in_is_a_time(buffers):
    """It works for a few bytes and for all, and keeps the current inputs."""
    layout = buffers.lay(CASE)
    buffers.fill(layout)
    before = filled(buffers, layout)
    size = buffers.arenas["inputs"].size
    assert 0 < buffers.copy_in_s(1 << 12) < 5
    assert 0 < buffers.copy_in_s(layout.used["inputs"]) < 5
    assert torch.equal(filled(buffers, layout)[0], before[0])
    assert 0 < buffers.copy_in_s(size) < 5


def test_between_two_gradings_the_judge_lets_go_of_the_private_inputs(buffers):
    """Their memory is the learner's then, and the next grading draws its own."""
    layout = buffers.lay(CASE)
    buffers.fill(layout)
    buffers.hand_over()
    held = weakref.ref(buffers._secret)
    buffers.rest()
    assert held() is None
    buffers.rest()
    buffers.fill(layout)
    buffers.poison(layout)
    buffers.wake()
    buffers.hand_over()
    answer(buffers, layout)
    assert buffers.check(layout, ADD) is None


# Fills, and what an exercise draws itself


def test_an_exercise_may_draw_its_inputs_itself(buffers):
    """It draws again for every launch, from the judge's randomness; the guards stay as usual."""

    def own(case, source, machine):
        return {"x": torch.randint(3, 9, (9, 21), generator=source).float()}

    layout = buffers.lay(PADDED, 3)
    seen = []
    for _ in range(2):
        buffers.fill(layout, own)
        seen += filled(buffers, layout)
    assert all(set(one.tolist()) == {3, 4, 5, 6, 7, 8} for one in seen)
    assert all(not torch.equal(one, other) for at, one in enumerate(seen) for other in seen[:at])
    buffers.hand_over()
    raw = buffers.arenas["inputs"].bytes_at(0, layout.used["inputs"]).view(torch.float32)
    assert int(raw.isfinite().sum()) == 3 * 9 * 21
    buffers.fill(layout)
    assert all(len(set(one.tolist())) > 100 for one in filled(buffers, layout))


def is_below(values):
    return bool((values < -100).all())


@pytest.mark.parametrize("fill", ["normal|below", "below|normal"])
def test_one_of_two_fills_is_drawn_for_each_array_of_each_launch(buffers, fill):
    """All four pairs of two arrays occur: one array's fill does not predict the other's."""
    layout = buffers.lay(Case("case", CASE.arrays, fill), 5)
    pairs = set()
    for _ in range(30):
        buffers.fill(layout)
        pairs |= {tuple(is_below(buffers._private(launch[name])) for name in "xy") for launch in layout.launches}
    assert pairs == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize("name", FILLS)
def test_a_single_fill_is_always_that_one(monkeypatch, name):
    """No other fill is drawn where one is named."""
    drawn = []
    monkeypatch.setattr(
        buffers_module, "FILLS", {key: lambda values, source, key=key: drawn.append(key) or values for key in FILLS}
    )
    for _ in range(20):
        draw(Array("x", (4, 4)), name, generator("cpu"))
    assert drawn == [name] * 20


def test_no_seed_of_python_foretells_the_fill():
    """A submission that seeds `random`, or knows how it was seeded, does not know which fill is drawn."""
    found = set()
    for _ in range(40):
        random.seed(0)
        found.add(is_below(draw(Array("x", (8,)), "normal|below", generator("cpu"))))
    assert found == {False, True}


def test_a_fill_that_does_not_exist_is_an_error():
    """A misspelt fill does not become "normal"."""
    with pytest.raises(KeyError):
        draw(Array("x", (8,)), "norml", generator("cpu"))


@pytest.mark.parametrize(("dtype", "high"), [("int32", 1 << 16), ("int64", 1 << 16), ("uint8", 256)])
def test_whole_numbers_are_drawn_over_their_range(dtype, high):
    """A fill is for floating-point types; whole numbers are uniform."""
    found = draw(Array("x", (100_000,), dtype), "below", generator("cpu"))
    assert found.dtype == getattr(torch, dtype)
    assert 0 <= int(found.min()) < high / 100
    assert high * 0.99 < int(found.max()) < high


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_floating_point_inputs_have_the_type_that_is_asked_for(dtype):
    """In every type of the course, contiguous, and of its shape."""
    found = draw(Array("x", (3, 5), dtype), "normal", generator("cpu"))
    assert (found.dtype, found.shape, found.is_contiguous()) == (getattr(torch, dtype), (3, 5), True)


GREY = find("grayscale")


@pytest.fixture
def grey(buffers):
    """A layout of one image, its input handed over and its output right."""
    layout = buffers.lay(next(case for case in GREY.simulator_cases if case.name == "37 × 53"))
    buffers.fill(layout)
    buffers.poison(layout)
    buffers.hand_over()
    (launch,) = layout.launches
    assert buffers.unwritten(layout)
    buffers._view(launch["out"]).copy_(GREY.oracle({"image": buffers._view(launch["image"]).double()}))
    return layout


def test_bytes_are_checked_as_floats_are(buffers, grey):
    """A right image passes; one byte that is off by one is found, and so is one that was written behind the image."""
    (launch,) = grey.launches
    out = buffers._view(launch["out"])
    assert buffers.check(grey, GREY) is None
    assert not buffers.unwritten(grey)
    out[3, 5] ^= 1
    assert buffers.check(grey, GREY).first_index == (3, 5)
    out[3, 5] ^= 1
    slot = launch["out"]
    for offset in (-1, slot.bytes):
        around = buffers.arenas["outputs"].bytes_at(slot.offset + offset, 1)
        around.fill_(7)
        mismatch = buffers.check(grey, GREY)
        assert (mismatch.wrong, mismatch.outside, mismatch.outside_first_offset) == (0, 1, offset)
        around.fill_(255)


def test_bytes_that_nobody_wrote_are_told_from_those_of_a_bug(buffers, grey):
    """All 255 is an output that was not written, unless a known bug writes just that."""
    (launch,) = grey.launches
    buffers._view(launch["out"]).fill_(255)
    assert buffers.unwritten(grey)
    mismatch = buffers.check(grey, GREY)
    assert (mismatch.suspect, mismatch.unwritten) == ("", mismatch.wrong)
    all_white = replace(GREY, suspects=(Suspect("It is all white.", lambda a: 0 * a["image"][..., 0] + 255),))
    mismatch = buffers.check(grey, all_white)
    assert (mismatch.suspect, mismatch.unwritten) == ("It is all white.", 0)


def test_the_lowest_values_are_lower_than_usual_stand_ins_for_minus_infinity() -> None:
    """Each is near -1e30, and some are lower than the others."""
    found = draw(Array("x", (1000,)), "lowest", generator("cpu"))
    assert (found < -1e29).all()
    assert 1 < len(found.unique()) < 3


def test_outputs_begin_as_zero_within_their_guards() -> None:
    """Zeros are written to the tensors only."""
    buffers = Buffers("simulator")
    layout = buffers.lay(Case("small", (Array("x", (3,)), Array("out", (2, 3), role="out", row_padding=2))))
    buffers.poison(layout)
    buffers.zero(layout)
    slot = layout.launches[0]["out"]
    assert not buffers._view(slot).any()
    assert written_outside(buffers.arenas["outputs"], slot) == []
