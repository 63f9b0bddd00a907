"""The arbiter's clock: what it takes off a round, what it refuses to take off, and the order of a trial."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from grader.exercise import Array, Case
from grader.exercises import find
from grader.judge import clock as clocks
from grader.judge import desk as desks
from grader.judge.clock import NO_DRIFT, BaselineFailed, Clock, Curve, Excess, TimedWrong, launches_for, sample
from grader.judge.desk import Desk
from grader.judge.glimpse import Glimpse
from grader.judge.machine import Machine
from grader.judge.pace import Pace
from grader.judge.workers import Round, WorkerFailed
from grader.verdict import Failure, Mismatch

US = 1e-6
CASE = Case("case", (Array("x", (64,)), Array("out", (64,), role="out")))
TWO_OUTPUTS = Case("two", (Array("x", (64,)), Array("a", (64,), role="out"), Array("b", (64,), role="out")))
CLOCK = Clock(
    switch_s=Curve((1e-3, 40e-3), (150 * US, 150 * US)),
    copy_in_s=Curve((0.0, 1e9), (20 * US, 1020 * US)),
    glimpse_s=Curve((0.0, 100.0), (30 * US, 130 * US)),
    jitter_s=40 * US,
    copy_in_jitter_s=90 * US,
)


@pytest.fixture
def small_desk(monkeypatch):
    monkeypatch.setattr(desks, "_HOST_BYTES", 1 << 24)
    return Desk("simulator")


def machine(copy_gbps=1000.0, l2_bytes=1 << 20):
    return Machine("cuda", "GPU", "", "", "", "", l2_bytes, copy_gbps, 800.0)


@dataclass
class Looked:
    """A look of so many copies."""

    copies: int
    take: Callable[[], bytes] = bytes


def a_round(launches_s, spread=None, clock=CLOCK, more=(0.0, 0.0, 0.0), event_s=None):
    """A round that costs what the clock was calibrated to, and `more` in its three parts."""
    copy_in_s = clock.copy_in_s(spread.used["inputs"]) if spread else 0.0
    look = Looked(len(spread.launches) * len(spread.case.outputs) if spread else 0)
    work_s = launches_s + clock.switch_s(launches_s)
    return Round(copy_in_s + more[0], work_s + more[1], clock.glimpse_s(look.copies) + more[2], event_s, look, b"")


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

    def __init__(self, desk, switch_us=150.0):
        self.desk, self.switch_us = desk, switch_us
        self.planned = []

    def plan(self, spread):
        self.desk.log.append("plan")
        self.planned.append(spread)
        self.rounds = 0

    def switch_s(self, event_s):
        return self.switch_us * US + 0.01 * event_s

    def glimpse_s(self, copies):
        return (20 + 2 * copies) * US

    def round(self, name, desk, limit_s):
        assert name == ""
        assert desk.log[-1] == "poison", "a round begins with poisoned outputs"
        desk.log.append("round")
        spread = self.planned[-1]
        self.rounds += 1
        rows = len({launch["out"].offset for launch in spread.launches})
        event_s = 35 * US * len(spread.launches)
        late_s = 5e-3 if self.rounds <= 2 or self.rounds in (5, 6, 7, 8) else 0.0
        claim = None if self.rounds == 9 else event_s
        work_s = event_s + self.switch_s(event_s) + late_s
        return Round(0.0, work_s, self.glimpse_s(rows) + late_s, claim, Looked(rows), b"")


class LoggingDesk(Desk):
    """A desk that notes what is asked of it, and whose copying costs what a test knows."""

    def __init__(self):
        super().__init__("simulator")
        self.log = []

    def deal(self, spread):
        self.log.append("deal")

    def poison(self, spread):
        self.log.append("poison")

    def copy_in_s(self, count):
        return 10 * US + count * 1e-12


@pytest.fixture
def calibrated(monkeypatch):
    monkeypatch.setattr(desks, "_HOST_BYTES", 1 << 24)

    def calibrate(switch_us=150.0):
        desk = LoggingDesk()
        worker = Calibrated(desk, switch_us)
        return Clock.calibrate(desk, machine(copy_gbps=10.0), worker), worker, desk

    return calibrate


def test_calibration_finds_what_a_round_costs_beyond_its_launches(calibrated):
    """Switch, copying and look are found at every size, whatever the first rounds and a late one took."""
    clock, worker, desk = calibrated()
    for launches in (1, 4, 16, 64, 256, 1024):
        event_s = 35 * US * launches
        assert clock.switch_s(event_s) == pytest.approx(worker.switch_s(event_s))
    for copies in (1, 4, 16, 100):
        assert clock.glimpse_s(copies) == pytest.approx(worker.glimpse_s(copies))
    for count in (1 << 12, 1 << 20, desk.arenas["inputs"].size):
        assert clock.copy_in_s(count) == pytest.approx(desk.copy_in_s(count))


def test_calibration_deals_and_plans_for_each_length_of_round(calibrated):
    """Long rounds repeat the launches that have buffers: a thousand launches are timed with sixteen buffers."""
    _, worker, desk = calibrated()
    assert [len(spread.launches) for spread in worker.planned] == [1, 4, 16, 64, 256, 1024]
    assert max(len({launch["out"].offset for launch in spread.launches}) for spread in worker.planned) == 16
    assert [entry for entry in desk.log if entry in ("deal", "plan")] == ["deal", "plan"] * 6


def test_the_calibration_shows_the_clock_how_fast_the_processor_is(calibrated):
    """Else the first that it sees, in a slow spell perhaps, would be as fast as it gets."""
    clock, _, _ = calibrated()
    assert 0 < clock.pace._least_s < 1


def test_the_jitter_stays_well_below_the_switch(calibrated):
    """What is let through without a meaning is a part of what a switch costs, so that no switch hides in it."""
    for switch_us in (150.0, 60.0):
        clock, _, _ = calibrated(switch_us)
        least_s = min(clock.switch_s.values)
        assert 0 < clock.jitter_s <= least_s / 3
        assert 0 < clock.copy_in_jitter_s < least_s
    assert calibrated(1000.0)[0].jitter_s < 50 * US


def test_a_calibrated_clock_reads_what_the_launches_took(calibrated, small_desk):
    """A round that costs what was calibrated gives back its launches' time, though the switch depends on that."""
    clock, worker, desk = calibrated()
    spread = small_desk.lay(CASE, 10)
    launches_s = 8e-3
    one = Round(desk.copy_in_s(spread.used["inputs"]), launches_s + worker.switch_s(launches_s),
                worker.glimpse_s(10), launches_s, Looked(10), b"")  # fmt: skip
    assert clock.read(spread, one).arbiter_s == pytest.approx(launches_s / 10, rel=1e-4)


def trusted(*more_us, look_us=0.0):
    return [a_round(3e-3, more=(0.0, more * US, look_us * US), event_s=3e-3) for more in more_us]


def in_us(excess):
    return pytest.approx((excess.switch_s / US, excess.look_s / US), abs=1e-6)


def test_the_excess_of_a_trial_is_the_least_of_its_rounds():
    """Noise only adds: what all of our own rounds took longer is the host's."""
    rounds = [*trusted(39, look_us=70.0), *trusted(30, look_us=90.0), *trusted(500, look_us=80.0)]
    assert in_us(CLOCK.excess(rounds, strained=False)) == (30, 70)
    assert in_us(CLOCK.excess(trusted(-30, 10, look_us=-5.0), strained=False)) == (-30, -5)
    assert CLOCK.excess([], strained=False) == NO_DRIFT
    assert CLOCK.excess([], strained=True).strained


def test_rounds_longer_than_any_of_the_calibration_tell_nothing():
    """What a switch to so much work costs was not measured; the shorter ones decide, or nobody."""
    long = a_round(41e-3, more=(0.0, -30 * US, 90 * US), event_s=41e-3)
    assert CLOCK.excess([long], strained=True) == Excess(strained=True)
    assert in_us(CLOCK.excess([long, *trusted(30, look_us=100.0)], strained=False)) == (30, 100)
    within = a_round(39e-3, more=(0.0, -30 * US, 90 * US), event_s=39e-3)
    assert in_us(CLOCK.excess([within], strained=False)) == (-30, 90)


def test_rounds_without_events_tell_nothing_of_the_switch():
    """Where a worker claims no time the others decide, or nobody."""
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
        (((45, 0),), (0, 0)),
        (((500, 400), (500, 400), (30, 10)), (0, 0)),
        (((-30, -10), (-200, -90), (-250, -95)), (-200, -90)),
    ],
)
def test_a_drift_of_the_switch_is_believed_up_to_the_jitter(found, drift_us):
    """One beyond it has another reason and no effect, as has a look that took longer: work on the GPU makes both. That
    a round is shorter than calibrated nobody else can bring about.
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
        assert (CLOCK.drift(found).look_s > 0) is strained


@pytest.mark.parametrize(
    ("found_us", "too_much"),
    [((), False), ((-41,), True), ((-39,), False), ((-90, -90, 0), True), ((0, 0, -90), False)],
)
def test_a_clock_that_was_calibrated_in_a_slow_spell_is_found_out(found_us, too_much):
    """What it takes off would be a gift to whoever holds up the baselines until their rounds are as long."""
    assert CLOCK.takes_too_much(trials(*((each, 0) for each in found_us))) is too_much


@pytest.mark.parametrize("launches", [1, 8])
def test_work_hidden_in_the_copying_in_counts_in_full(small_desk, launches):
    """Once it is more than the jitter; within that it is noise."""
    spread = small_desk.lay(CASE, launches)
    for share, counted in ((0.0, 0.0), (0.95, 0.0), (1.05, 1.05), (20.0, 20.0)):
        found = CLOCK.read(spread, a_round(3e-3, spread, more=(share * CLOCK.copy_in_jitter_s, 0.0, 0.0)))
        assert found.arbiter_s == pytest.approx((3e-3 + counted * CLOCK.copy_in_jitter_s) / launches, rel=1e-6)


@pytest.mark.parametrize("launches", [1, 8])
def test_of_a_look_that_takes_longer_what_exceeds_the_jitter_counts(small_desk, launches):
    """Honest looks are late, too: in full it would count against whoever is a microsecond beyond."""
    spread = small_desk.lay(CASE, launches)
    for share, counted in ((0.0, 0.0), (0.95, 0.0), (1.05, 0.05), (20.0, 19.0)):
        found = CLOCK.read(spread, a_round(3e-3, spread, more=(0.0, 0.0, share * CLOCK.jitter_s)))
        assert found.arbiter_s == pytest.approx((3e-3 + counted * CLOCK.jitter_s) / launches, rel=1e-6)


def test_both_hiding_places_count_at_once(small_desk):
    """Work in the copying-in and in the look adds up, but for the jitter of the look."""
    spread = small_desk.lay(CASE)
    found = CLOCK.read(spread, a_round(3e-3, spread, more=(1e-3, 0.0, 1e-3)))
    assert found.arbiter_s == pytest.approx(5e-3 - CLOCK.jitter_s)


def test_a_faster_copying_in_gives_nothing_back(small_desk):
    """A round whose copying-in and look were quick is not taken for a faster one."""
    spread = small_desk.lay(CASE)
    assert CLOCK.read(spread, a_round(3e-3, spread, more=(-1e-3, 0.0, -1e-3))).arbiter_s == pytest.approx(3e-3)


def test_the_look_is_expected_to_cost_as_much_as_its_copies_do(small_desk):
    """Whatever they fetch: two outputs cost what twice as many launches do."""
    spread = small_desk.lay(TWO_OUTPUTS, 5)
    look = Glimpse(small_desk, spread)
    assert look.copies == 10
    honest = Round(CLOCK.copy_in_s(spread.used["inputs"]), 3e-3 + 150 * US, CLOCK.glimpse_s(10), None, look, b"")
    assert CLOCK.read(spread, honest).arbiter_s == pytest.approx(3e-3 / 5)


@pytest.mark.parametrize(("look_us", "counted_us"), [(0.0, 60.0), (50.0, 10.0), (70.0, 0.0), (-10.0, 70.0)])
def test_of_the_look_its_drift_is_taken_off_before_the_jitter(small_desk, look_us, counted_us):
    """What is left beyond the jitter counts; a look that is quick just now has as much less to hide in."""
    spread = small_desk.lay(CASE)
    one = a_round(3e-3, spread, more=(0.0, 0.0, CLOCK.jitter_s + 60 * US))
    found = CLOCK.read(spread, one, Excess(look_s=look_us * US))
    assert found.arbiter_s == pytest.approx(3e-3 + counted_us * US)


def test_the_drift_is_taken_off_and_a_reading_is_for_one_launch(small_desk):
    """Both clocks are divided by the launches, and only the arbiter's knows a drift."""
    spread = small_desk.lay(CASE, 4)
    one = a_round(4e-3, spread, more=(0.0, 30 * US, 0.0), event_s=3.6e-3)
    found = CLOCK.read(spread, one, Excess(30 * US), trusted=True)
    assert found.arbiter_s == pytest.approx(1e-3)
    assert found.events_s == pytest.approx(0.9e-3)
    assert found.trusted
    without = CLOCK.read(spread, a_round(4e-3, spread))
    assert without.events_s is None
    assert not without.trusted


def test_no_reading_is_zero_or_less(small_desk):
    """A round that took less than the switch alone is still a time, which is refused as implausible."""
    spread = small_desk.lay(CASE)
    assert CLOCK.read(spread, Round(0.0, 1 * US, 0.0, None, Looked(0), b"")).arbiter_s > 0


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
    case, desk = Case("case", arrays), SimpleNamespace(capacity=lambda case: capacity)
    launches = launches_for(desk, machine(copy_gbps, l2_bytes), exercise, case)
    moved = launches * exercise.bytes_moved(case)
    enough = moved >= copy_gbps * 1e9 * 5e-3 and moved >= 32 * l2_bytes
    assert 1 <= launches <= min(capacity, 512)
    assert enough or launches == min(capacity, 512)
    assert launches < 3 or moved < 3 * max(copy_gbps * 1e9 * 5e-3, 64 * l2_bytes), "and no longer than that"


def test_a_round_of_products_is_as_long_as_one_of_copies():
    """Arithmetic limits them: by their bytes they would be ten times as many, each to be drawn and checked."""
    exercise, desk = find("matmul"), SimpleNamespace(capacity=lambda case: 1000)
    for case in exercise.timed_cases:
        launches = launches_for(desk, machine(4000.0, 0), exercise, case)
        assert 5e-3 <= launches * exercise.operations(case) / 800e12 < 8e-3


def test_a_case_that_fits_once_is_one_launch():
    """Where not even one more fits, there is one launch and not none."""
    case = find("vector_add").timed_cases[0]
    for capacity in (0, 1):
        desk = SimpleNamespace(capacity=lambda case, n=capacity: n)
        assert launches_for(desk, machine(), find("vector_add"), case) == 1


OWN = replace(find("vector_add"), draw=lambda case, source: {})
PRODUCT = replace(OWN, limited_by="arithmetic")


class Trial:
    """A desk and the workers of a trial; all note in one log what they do, `broken` by name."""

    def __init__(self, spread, wrong=False):
        self.spread, self.wrong = spread, wrong
        self.exercise = OWN
        self.log = []
        self.limits = []
        self.broken = {}
        self.more_us = {}
        self.excesses = []
        self.peers = {"submission": self.Peer(self), "e:torch": self.Peer(self), "e:compile": self.Peer(self)}

    class Peer:
        def __init__(self, trial):
            self.trial = trial

        def round(self, name, desk, limit_s):
            self.trial.log.append(f"round {name}")
            self.trial.limits.append(limit_s)
            if name in self.trial.broken:
                raise self.trial.broken[name]
            more = (0.0, self.trial.more_us.get(name, 0.0) * US, 0.0)
            one = a_round(3e-3, self.trial.spread, more=more, event_s=3e-3)
            return replace(one, look=replace(one.look, take=lambda: self.trial.log.append("look") or b""))

        def freeze(self):
            self.trial.log.append("freeze")

        def thaw(self):
            self.trial.log.append("thaw")

    @contextmanager
    def aside(self):
        self.log.append("aside")
        yield
        self.log.append("back")

    def settle(self):
        self.log.append("settle")

    def deal(self, spread, own_draw):
        assert own_draw is OWN.draw
        self.log.append("deal")

    def poison(self, spread):
        self.log.append("poison")
        if self.log[-2:] == ["freeze", "poison"] and "poison" in self.broken:
            raise self.broken["poison"]

    def check(self, spread, exercise):
        self.log.append("check")
        return Mismatch("out", (64,), 1, 64) if self.wrong else None

    def sample(self, **named):
        return sample(self, self.spread, self.exercise, self.peers, CLOCK, 7.0, self.excesses, self.aside, **named)


@pytest.fixture
def trial(small_desk):
    return Trial(small_desk.lay(CASE, 2))


def test_a_trial_goes_in_order(trial):
    """Fresh inputs; the submission, its check, the look again; then each baseline, while the submission stands still
    and before it can see the poison. The judge's own work is set aside, and waited for.
    """
    found = trial.sample()
    dealt = ["aside", "deal", "back"]
    own = [*dealt, "poison", "round submission", "aside", "check", "settle", "back", "look"]
    beside = [["freeze", "poison", f"round e:{name}", "thaw"] for name in ("torch", "compile")]
    assert trial.log == [*own, *beside[0], *beside[1]]
    assert trial.limits == [7.0] * 3
    assert list(found) == list(trial.peers)
    assert [reading.trusted for reading in found.values()] == [False, True, True]
    assert [reading.arbiter_s for reading in found.values()] == pytest.approx([1.5e-3] * 3)


def test_baselines_alone_are_all_trusted_and_nobody_is_frozen(trial):
    """Without a submission there is none to hold still, and none to doubt."""
    del trial.peers["submission"]
    found = trial.sample()
    assert trial.log == ["aside", "deal", "back", "poison", "round e:torch", "poison", "round e:compile"]
    assert all(reading.trusted for reading in found.values())


def test_nobody_looks_at_the_outputs_of_a_warm_up(trial):
    """A first round may compile; what it answers is asked again in each that counts."""
    trial.wrong = True
    trial.sample(checked=False)
    beside = [["freeze", "poison", f"round e:{name}", "thaw"] for name in ("torch", "compile")]
    assert trial.log == ["aside", "deal", "back", "poison", "round submission", *beside[0], *beside[1]]


def test_a_wrong_timed_output_ends_the_trial(trial):
    """The mismatch and its case are told, and no baseline runs for it."""
    trial.wrong = True
    with pytest.raises(TimedWrong) as raised:
        trial.sample()
    assert raised.value.case == "case"
    assert raised.value.mismatch.wrong == 1
    assert trial.log[-3:] == ["check", "settle", "back"]


def test_outputs_that_changed_after_the_look_end_the_trial(trial, monkeypatch):
    """What the clock's look saw must be what is there after the check."""
    late = WorkerFailed(Failure("wrong_answer", "late"))
    monkeypatch.setattr(Round, "must_be_unchanged", lambda self: (_ for _ in ()).throw(late))
    with pytest.raises(WorkerFailed, match="late"):
        trial.sample()
    assert trial.log[-3:] == ["check", "settle", "back"]


@pytest.mark.parametrize(("check_s", "rest_s"), [(0.0, 0.0), (0.04, 0.0), (0.1, 0.1), (3.0, 0.2)])
def test_after_a_heavy_oracle_the_gpu_rests_before_the_first_baseline(trial, monkeypatch, check_s, rest_s):
    """While the submission stands still: a baseline that the judge's own work slowed would count as disturbed."""
    now = [0.0]
    trial.exercise = PRODUCT

    def rest(seconds):
        trial.log.append(f"rest {seconds:.3g}")

    monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=lambda: now[0], sleep=rest))
    check = trial.check
    monkeypatch.setattr(trial, "check", lambda *given: now.__setitem__(0, check_s) or check(*given))
    trial.sample()
    assert [entry for entry in trial.log if entry.startswith("rest")] == [f"rest {rest_s:.3g}"] * bool(rest_s)
    assert not rest_s or trial.log.index(f"rest {rest_s:.3g}") == trial.log.index("freeze") + 1


def test_after_heavy_inputs_the_gpu_rests_before_the_submission(trial, monkeypatch):
    """Both begin on a GPU that has rested: near its power limit the baseline would be the cooler one else."""
    now = [0.0]
    trial.exercise = PRODUCT
    rests = SimpleNamespace(perf_counter=lambda: now[0], sleep=lambda seconds: trial.log.append(f"rest {seconds:.3g}"))
    monkeypatch.setattr(clocks, "time", rests)
    deal = trial.deal
    monkeypatch.setattr(trial, "deal", lambda *given: now.__setitem__(0, 0.1) or deal(*given))
    trial.sample()
    assert [entry for entry in trial.log if entry.startswith("rest")] == ["rest 0.1"]
    assert trial.log.index("rest 0.1") < trial.log.index("round submission")


def test_what_memory_limits_heats_no_gpu(trial, monkeypatch):
    """A long oracle of such an exercise is no reason to wait: that would be a fifth of a softmax's grading."""
    now = [0.0]
    rests = SimpleNamespace(perf_counter=lambda: now[0], sleep=lambda seconds: trial.log.append(f"rest {seconds:.3g}"))
    monkeypatch.setattr(clocks, "time", rests)
    check = trial.check
    monkeypatch.setattr(trial, "check", lambda *given: now.__setitem__(0, 0.1) or check(*given))
    trial.sample()
    assert not [entry for entry in trial.log if entry.startswith("rest")]


def test_a_failing_submission_is_its_own_failure(trial):
    """It is not taken for a failing baseline."""
    trial.broken["submission"] = WorkerFailed(Failure("crash", "gone"))
    with pytest.raises(WorkerFailed, match="gone"):
        trial.sample()


@pytest.mark.parametrize("error", [WorkerFailed(Failure("crash", "gone")), RuntimeError("CUDA error")])
def test_the_submission_goes_on_after_a_baseline_failed(trial, error):
    """Whatever happens in a baseline's round, the submission's processes are not left standing."""
    trial.broken["e:torch"] = error
    with pytest.raises((BaselineFailed, RuntimeError)) as raised:
        trial.sample()
    assert trial.log[-2:] == ["round e:torch", "thaw"]
    if isinstance(error, WorkerFailed):
        assert raised.value.args == ("e:torch", "gone")


def test_the_submission_goes_on_after_the_arbiter_failed(trial):
    """Also where the GPU has no memory left for the poison."""
    trial.broken["poison"] = RuntimeError("out of memory")
    with pytest.raises(RuntimeError, match="out of memory"):
        trial.sample()
    assert trial.log[-2:] == ["poison", "thaw"]


def test_the_drift_comes_from_the_baselines_alone(trial):
    """A switch that takes longer for all is taken off; a submission that is longer by itself is longer."""
    trial.more_us = {"submission": 30.0, "e:torch": 30.0, "e:compile": 35.0}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5e-3)
    trial.excesses.clear()
    trial.more_us = {"submission": 30.0}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.515e-3)
    trial.excesses.clear()
    trial.more_us = {"e:torch": 30.0, "e:compile": 35.0}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.485e-3)
    trial.excesses.clear()
    trial.more_us = {"submission": -30.0, "e:torch": 0.0, "e:compile": 0.0}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.485e-3)


def test_that_a_clock_runs_short_shows_in_the_baselines_readings(trial):
    """What they take less is believed of the submission; were it added to theirs, too, nobody would find it out."""
    trial.more_us = dict.fromkeys(trial.peers, -600.0)
    found = trial.sample()
    assert found["submission"].arbiter_s == pytest.approx(1.5e-3)
    for peer in ("e:torch", "e:compile"):
        assert found[peer].arbiter_s == pytest.approx(1.2e-3)
        assert found[peer].events_s == pytest.approx(1.5e-3)


def test_the_processors_pace_is_watched_where_the_submission_stands_still(trial, monkeypatch):
    """Before and after each baseline's round: what it does while it runs could slow the processor, too."""

    slow = {3, 4}

    def is_strained(pace):
        trial.log.append("pace")
        return trial.log.count("pace") in slow

    monkeypatch.setattr(Pace, "is_strained", is_strained)
    trial.sample()
    assert "pace" not in trial.log[: trial.log.index("freeze")]
    beside = [["freeze", "poison", "pace", f"round e:{name}", "pace", "thaw"] for name in ("torch", "compile")]
    assert trial.log[-12:] == [*beside[0], *beside[1]]
    assert trial.excesses[-1].strained, "before and after the second"
    slow.update((6, 7))
    trial.sample()
    assert not trial.excesses[-1].strained, "after the first, and before the second"


def test_a_spell_of_the_host_makes_no_submission_slower(trial, monkeypatch):
    """While the processor is slow, what the baselines' rounds take longer is taken off the submission's."""
    trial.more_us = {"submission": 75.0, "e:torch": 70.0, "e:compile": 80.0}
    monkeypatch.setattr(Pace, "is_strained", lambda pace: False)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5375e-3)
    trial.excesses.clear()
    monkeypatch.setattr(Pace, "is_strained", lambda pace: True)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5025e-3)


def test_a_slow_round_of_a_baseline_makes_no_submission_faster(trial):
    """The middle one of three trials' drifts counts: one slow round is no spell of the host, two in a row are."""
    trial.sample()
    trial.sample()
    trial.more_us = {"e:torch": 30.0, "e:compile": 35.0}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5e-3)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.485e-3)
    trial.more_us = {}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.485e-3)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5e-3)
