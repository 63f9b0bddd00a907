"""The arbiter's clock: what it takes off a round and what it refuses to take off."""

from types import SimpleNamespace

import pytest

from grader.exercise import Array, Case
from grader.exercises import find
from grader.judge.checking import buffers as buffers_module
from grader.judge.checking.buffers import Buffers
from grader.judge.gpu.ceilings import Machine
from grader.judge.process.worker import Round
from grader.judge.timing.clock import NO_DRIFT, Clock, Curve, Excess, launches_for
from grader.judge.timing.output_probe import OutputProbe
from tests.judge.rounds import CASE, CLOCK, TWO_OUTPUTS, US, Looked, a_round


@pytest.fixture
def small_buffers(monkeypatch):
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 24)
    return Buffers("simulator")


def machine(copy_gbps=1000.0, l2_bytes=1 << 20):
    return Machine("cuda", "GPU", "", "", "", "", l2_bytes, copy_gbps, 800.0)


def test_a_curve_goes_through_its_points_and_straight_on():
    """Between two points it is their line, beyond the last the same line, before the first it is level."""
    curve = Curve.through([(4.0, 40.0), (1.0, 10.0), (2.0, 12.0)])
    assert [curve(at) for at in (1.0, 2.0, 4.0)] == [10.0, 12.0, 40.0]
    assert curve(3.0) == pytest.approx(26.0)
    assert curve(5.0) == pytest.approx(54.0)
    assert curve(0.5) == 10.0
    assert [Curve((1.0,), (7.0,))(at) for at in (0.0, 1.0, 9.0)] == [7.0, 7.0, 7.0]


class Calibrated:
    """A worker that copies, on a machine whose costs are known; its first two rounds, and some others, take longer."""

    def __init__(self, buffers, switch_us=150.0, host_us=40.0):
        self.buffers, self.switch_us, self.host_us = buffers, switch_us, host_us
        self.planned = []

    def plan(self, layout):
        self.buffers.log.append("plan")
        self.planned.append(layout)
        self.rounds = 0

    def switch_s(self, event_s):
        return self.switch_us * US + 0.01 * event_s

    def probe_s(self, copies):
        return (20 + 2 * copies) * US

    def round(self, name, buffers, limit_s, head_start):
        assert name == ""
        assert buffers.log[-1] == "poison", "a round begins with poisoned outputs"
        buffers.log.append("round")
        layout = self.planned[-1]
        self.rounds += 1
        rows = len({launch["out"].offset for launch in layout.launches})
        event_s = 35 * US * len(layout.launches)
        late_s = 5e-3 if self.rounds <= 2 or self.rounds in (5, 6, 7, 8) else 0.0
        claim = None if self.rounds == 9 else event_s
        work_s = event_s + self.switch_s(event_s) + late_s + (0.0 if head_start else self.host_us * US)
        return Round(0.0, work_s, self.probe_s(rows) + late_s, claim, Looked(rows), b"")


class LoggingBuffers(Buffers):
    """Buffers that note what is asked of them, and whose copying costs what a test knows."""

    def __init__(self):
        super().__init__("simulator")
        self.log = []

    def fill(self, layout):
        self.log.append("fill")

    def poison(self, layout):
        self.log.append("poison")

    def copy_in_s(self, count):
        return 10 * US + count * 1e-12


@pytest.fixture
def calibrated(monkeypatch):
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 24)

    def calibrate(switch_us=150.0, host_us=40.0):
        buffers = LoggingBuffers()
        worker = Calibrated(buffers, switch_us, host_us)
        return Clock.calibrate(buffers, machine(copy_gbps=10.0), worker), worker, buffers

    return calibrate


def test_calibration_finds_what_a_round_costs_beyond_its_launches(calibrated):
    """Switch, copying and look are found at every size, whatever the first rounds and a late one took."""
    clock, worker, buffers = calibrated()
    for launches in (1, 4, 16, 64, 256, 1024):
        event_s = 35 * US * launches
        assert clock.switch_s(event_s) == pytest.approx(worker.switch_s(event_s))
    for copies in (1, 4, 16, 100):
        assert clock.probe_s(copies) == pytest.approx(worker.probe_s(copies))
    for count in (1 << 12, 1 << 20, buffers.arenas["inputs"].size):
        assert clock.copy_in_s(count) == pytest.approx(buffers.copy_in_s(count))


@pytest.mark.parametrize(("host_us", "found_us"), [(40.0, 40.0), (-5.0, 0.0)])
def test_the_hosts_way_to_the_first_launch_is_taken_off_where_it_is_in_the_round(calibrated, host_us, found_us):
    """It does not count in rounds that were queued ahead: a submission that can queue its calls gets no credit."""
    clock, _, buffers = calibrated(host_us=host_us)
    assert clock.host_s == pytest.approx(found_us * US)
    layout = buffers.lay(CASE, 10)
    one = a_round(5e-3, layout, clock, event_s=5e-3)
    for found, taken_off_s in ((clock, 0.0), (clock.of_the_host, found_us * US)):
        assert found.read(layout, one).arbiter_s == pytest.approx((5e-3 - taken_off_s) / 10, rel=1e-3)
        assert found.switch_excess_s(one) == pytest.approx(-taken_off_s, abs=1e-9)


def test_calibration_deals_and_plans_for_each_length_of_round(calibrated):
    """Long rounds repeat the launches that have buffers: a thousand launches are timed with sixteen buffers."""
    _, worker, buffers = calibrated()
    assert [len(layout.launches) for layout in worker.planned] == [1, 4, 16, 64, 256, 1024]
    assert max(len({launch["out"].offset for launch in layout.launches}) for layout in worker.planned) == 16
    assert [entry for entry in buffers.log if entry in ("fill", "plan")] == ["fill", "plan"] * 6


def test_the_calibration_shows_the_clock_how_fast_the_processor_is(calibrated):
    """Otherwise its first call, perhaps in a slow period, would define the fastest speed."""
    clock, _, _ = calibrated()
    assert 0 < clock.host_speed._least_s < 1


def test_the_jitter_stays_well_below_the_switch(calibrated):
    """The tolerance is a part of the cost of a switch, so that no switch hides in it."""
    for switch_us in (150.0, 60.0):
        clock, _, _ = calibrated(switch_us)
        least_s = min(clock.switch_s.values)
        assert 0 < clock.jitter_s <= least_s / 3
        assert 0 < clock.copy_in_jitter_s < least_s
    assert calibrated(1000.0)[0].jitter_s < 50 * US


def test_a_calibrated_clock_reads_what_the_launches_took(calibrated, small_buffers):
    """A round that costs what was calibrated gives back its launches' time, though the switch depends on that."""
    clock, worker, buffers = calibrated()
    layout = small_buffers.lay(CASE, 10)
    launches_s = 8e-3
    one = Round(buffers.copy_in_s(layout.used["inputs"]), launches_s + worker.switch_s(launches_s),
                worker.probe_s(10), launches_s, Looked(10), b"")  # fmt: skip
    assert clock.read(layout, one).arbiter_s == pytest.approx(launches_s / 10, rel=1e-4)


def trusted(*more_us, look_us=0.0):
    return [a_round(3e-3, more=(0.0, more * US, look_us * US), event_s=3e-3) for more in more_us]


def in_us(excess):
    return pytest.approx((excess.switch_s / US, excess.probe_s / US), abs=1e-6)


def test_the_excess_of_a_trial_is_the_least_of_its_rounds():
    """Noise only adds: what all of our own rounds took longer is the host's."""
    rounds = [*trusted(39, look_us=70.0), *trusted(30, look_us=90.0), *trusted(500, look_us=80.0)]
    assert in_us(CLOCK.excess(rounds, strained=False)) == (30, 70)
    assert in_us(CLOCK.excess(trusted(-30, 10, look_us=-5.0), strained=False)) == (-30, -5)
    assert CLOCK.excess([], strained=False) == NO_DRIFT
    assert CLOCK.excess([], strained=True).strained


def test_rounds_longer_than_any_of_the_calibration_tell_nothing():
    """The cost of a switch to so much work is unknown; the shorter rounds decide, or none."""
    long = a_round(41e-3, more=(0.0, -30 * US, 90 * US), event_s=41e-3)
    assert CLOCK.excess([long], strained=True) == Excess(strained=True)
    assert in_us(CLOCK.excess([long, *trusted(30, look_us=100.0)], strained=False)) == (30, 100)
    within = a_round(39e-3, more=(0.0, -30 * US, 90 * US), event_s=39e-3)
    assert in_us(CLOCK.excess([within], strained=False)) == (-30, 90)


def test_rounds_without_events_tell_nothing_of_the_switch():
    """If a worker claims no valid time, the others decide, or none."""
    silent = a_round(3e-3, more=(0.0, -20 * US, 0.0))
    assert CLOCK.excess([silent], strained=False).switch_s == 0.0
    assert CLOCK.excess([silent, *trusted(30)], strained=False).switch_s == pytest.approx(30 * US)


def trials(*found, strained=False):
    return [Excess(switch * US, look * US, strained) for switch, look in found]


@pytest.mark.parametrize(
    ("found", "drift_us"),
    [
        (((30, 0),), (30, 0)),
        (((30, 0), (20, 0)), (20, 0)),
        (((30, 0), (500, 0), (20, 0)), (30, 0)),
        (((45, 0),), (40, 0)),
        (((500, 400), (500, 400), (30, 10)), (40, 0)),
        (((-30, -10), (-200, -90), (-250, -95)), (-200, -90)),
    ],
)
def test_a_drift_of_the_switch_is_believed_up_to_the_jitter(found, drift_us):
    """None is subtracted from the probe: work on the GPU lengthens both. Nothing but a slow calibration makes rounds
    shorter than calibrated.
    """
    assert in_us(CLOCK.drift(trials(*found))) == drift_us


@pytest.mark.parametrize(
    ("found", "drift_us"),
    [(((60, 70),), (60, 70)), (((60, 70), (50, 75), (500, 1)), (60, 70)), (((500, 400),), (80, 80)),
     (((-30, -10),), (-30, -10))],
)  # fmt: skip
def test_where_the_processor_is_slow_twice_as_much_is_believed_and_of_the_look_as_well(found, drift_us):
    """That is a spell of the host: its part of everything takes longer."""
    assert in_us(CLOCK.drift(trials(*found, strained=True))) == drift_us


def test_a_spell_is_most_of_the_last_trials():
    """The processor is slow for a moment now and then; in a spell it is so all the time."""
    slow, fast = trials((70, 70), strained=True), trials((70, 70))
    for found, strained in ((slow, True), (fast, False), (slow + fast, False), (slow + fast + slow, True),
                            (fast + slow + fast, False)):  # fmt: skip
        assert CLOCK.drift(found).strained is strained
        assert (CLOCK.drift(found).probe_s > 0) is strained


@pytest.mark.parametrize(
    ("found_us", "too_much"),
    [((), False), ((-41,), True), ((-39,), False), ((-90, -90, 0), True), ((0, 0, -90), False)],
)
def test_a_clock_that_was_calibrated_in_a_slow_spell_is_found_out(found_us, too_much):
    """It would subtract too much once a submission delays the baselines until their rounds are as long."""
    assert CLOCK.takes_too_much(trials(*((each, 0) for each in found_us))) is too_much


@pytest.mark.parametrize("launches", [1, 8])
def test_work_hidden_in_the_copying_in_counts_in_full(small_buffers, launches):
    """Once it is more than the jitter; within that it is noise."""
    layout = small_buffers.lay(CASE, launches)
    for share, counted in ((0.0, 0.0), (0.95, 0.0), (1.05, 1.05), (20.0, 20.0)):
        found = CLOCK.read(layout, a_round(3e-3, layout, more=(share * CLOCK.copy_in_jitter_s, 0.0, 0.0)))
        assert found.arbiter_s == pytest.approx((3e-3 + counted * CLOCK.copy_in_jitter_s) / launches, rel=1e-6)


@pytest.mark.parametrize("launches", [1, 8])
def test_of_a_look_that_takes_longer_what_exceeds_the_jitter_counts(small_buffers, launches):
    """Honest probes are late, too: counted in full, a microsecond too many would cost the whole jitter."""
    layout = small_buffers.lay(CASE, launches)
    for share, counted in ((0.0, 0.0), (0.95, 0.0), (1.05, 0.05), (20.0, 19.0)):
        found = CLOCK.read(layout, a_round(3e-3, layout, more=(0.0, 0.0, share * CLOCK.jitter_s)))
        assert found.arbiter_s == pytest.approx((3e-3 + counted * CLOCK.jitter_s) / launches, rel=1e-6)


def test_both_hiding_places_count_at_once(small_buffers):
    """Work in the copying-in and in the look adds up, but for the jitter of the look."""
    layout = small_buffers.lay(CASE)
    found = CLOCK.read(layout, a_round(3e-3, layout, more=(1e-3, 0.0, 1e-3)))
    assert found.arbiter_s == pytest.approx(5e-3 - CLOCK.jitter_s)


def test_a_faster_copying_in_gives_nothing_back(small_buffers):
    """A round whose copying-in and look were quick is not taken for a faster one."""
    layout = small_buffers.lay(CASE)
    assert CLOCK.read(layout, a_round(3e-3, layout, more=(-1e-3, 0.0, -1e-3))).arbiter_s == pytest.approx(3e-3)


def test_the_look_is_expected_to_cost_as_much_as_its_copies_do(small_buffers):
    """The number of copies counts, not their target: two outputs cost as much as twice as many launches."""
    layout = small_buffers.lay(TWO_OUTPUTS, 5)
    look = OutputProbe(small_buffers, layout)
    assert look.copies == 10
    honest = Round(CLOCK.copy_in_s(layout.used["inputs"]), 3e-3 + 150 * US, CLOCK.probe_s(10), None, look, b"")
    assert CLOCK.read(layout, honest).arbiter_s == pytest.approx(3e-3 / 5)


@pytest.mark.parametrize(("look_us", "counted_us"), [(0.0, 60.0), (50.0, 10.0), (70.0, 0.0), (-10.0, 70.0)])
def test_of_the_look_its_drift_is_taken_off_before_the_jitter(small_buffers, look_us, counted_us):
    """The rest beyond the jitter counts; a probe that is quick now leaves less room to hide in."""
    layout = small_buffers.lay(CASE)
    one = a_round(3e-3, layout, more=(0.0, 0.0, CLOCK.jitter_s + 60 * US))
    found = CLOCK.read(layout, one, Excess(probe_s=look_us * US))
    assert found.arbiter_s == pytest.approx(3e-3 + counted_us * US)


def test_the_drift_is_taken_off_and_a_reading_is_for_one_launch(small_buffers):
    """Both clocks are divided by the launches, and only the arbiter's knows a drift."""
    layout = small_buffers.lay(CASE, 4)
    one = a_round(4e-3, layout, more=(0.0, 30 * US, 0.0), event_s=3.6e-3)
    found = CLOCK.read(layout, one, Excess(30 * US), trusted=True)
    assert found.arbiter_s == pytest.approx(1e-3)
    assert found.events_s == pytest.approx(0.9e-3)
    assert found.trusted
    without = CLOCK.read(layout, a_round(4e-3, layout))
    assert without.events_s is None
    assert not without.trusted


def test_no_reading_is_zero_or_less(small_buffers):
    """A round that took less than the switch alone is still a time, which is refused as implausible."""
    layout = small_buffers.lay(CASE)
    assert CLOCK.read(layout, Round(0.0, 1 * US, 0.0, None, Looked(0), b"")).arbiter_s > 0


@pytest.mark.parametrize(
    ("elements", "capacity", "copy_gbps", "l2_bytes"),
    [
        (1 << 25, 1000, 4000.0, 60 << 20),
        (1 << 22, 1000, 400.0, 60 << 20),  # the L2 asks for more launches than the clock
        (1 << 20, 1000, 4000.0, 0),
        (1 << 10, 2000, 4000.0, 0),
        (1 << 25, 3, 4000.0, 0),
    ],
)
def test_a_round_is_long_turns_the_l2_over_and_fits(elements, capacity, copy_gbps, l2_bytes):
    """Launches enough for 5 ms and many times the L2, unless they are as many as fit, or as may be at most."""
    exercise = find("vector_add")
    arrays = (Array("x", (elements,)), Array("y", (elements,)), Array("out", (elements,), role="out"))
    case, buffers = Case("case", arrays), SimpleNamespace(capacity=lambda case: capacity)
    launches = launches_for(buffers, machine(copy_gbps, l2_bytes), exercise, case)
    moved = launches * exercise.bytes_moved(case)
    enough = moved >= copy_gbps * 1e9 * 5e-3 and moved >= 32 * l2_bytes
    assert 1 <= launches <= min(capacity, 512)
    assert enough or launches == min(capacity, 512)
    assert launches < 3 or moved < 3 * max(copy_gbps * 1e9 * 5e-3, 64 * l2_bytes), "and no longer than that"


def test_a_round_of_products_is_as_long_as_one_of_copies():
    """Arithmetic limits them: by their bytes they would be ten times as many, each to be drawn and checked."""
    exercise, buffers = find("matmul"), SimpleNamespace(capacity=lambda case: 1000)
    for case in exercise.timed_cases:
        launches = launches_for(buffers, machine(4000.0, 0), exercise, case)
        assert 5e-3 <= launches * exercise.operations(case) / 800e12 < 8e-3


def test_a_case_that_fits_once_is_one_launch():
    """If no second launch fits, a round is one launch."""
    case = find("vector_add").timed_cases[0]
    for capacity in (0, 1):
        buffers = SimpleNamespace(capacity=lambda case, n=capacity: n)
        assert launches_for(buffers, machine(), find("vector_add"), case) == 1
