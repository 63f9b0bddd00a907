"""Trials until the gates are settled: repeats, the times that count, and the report."""

import math
import sys
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader.errors import JudgeStopped
from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate
from grader.judge import score
from grader.judge.bench import ProblemSizes
from grader.judge.gpu.ceilings import Machine
from grader.judge.process.worker import WorkerFailed
from grader.judge.timing import timer as timer_module
from grader.judge.timing.clock import NO_DRIFT
from grader.judge.timing.clock_choice import AGREEMENT, Reading
from grader.judge.timing.timer import Timer
from grader.judge.timing.trial import BaselineFailed, HeldUp
from grader.verdict import Failure

ROWS = 1 << 27  # at 4000 GB/s 268 µs: a launch of this case is a little too short
TRIALS = 7  # of a call that nothing prolongs
OWN_S, BASE_S = 100e-6, 120e-6


def case(name, rows=ROWS):
    return Case(name, (Array("x", (rows,)), Array("out", (rows,), role="out")))


def exercise(*cases, at_least=0.95):
    cases = cases or (case("a"),)
    return Exercise(
        id="e", title="", chapter="", notebook="", entry="f", parameters=("x", "out"), backend="triton",
        cases=cases, simulator_cases=cases, timed_cases=cases, plot_cases=cases, oracle=lambda inputs: inputs["x"],
        budget=Budget(0, 0), bytes_moved=lambda case: 8 * case.arrays[0].shape[0],
        operations=lambda case: case.arrays[0].shape[0], correctness_points=1,
        baselines=(Baseline("torch", "torch's", print), Baseline("plotted", "for the plot", print)),
        gates=(Gate("torch", at_least, 2, tuple(one.name for one in cases)),), round_limit_s=9.0,
    )  # fmt: skip


class Worker:
    """A worker with only a plan and an end."""

    def __init__(self, plan_fails=False):
        self.plans, self.closed, self.plan_fails = [], False, plan_fails

    def plan(self, layout):
        if self.plan_fails:
            raise WorkerFailed(Failure("crash", "no plan"))
        self.plans.append(layout)

    def close(self):
        self.closed = True


class Pool:
    """Others that are loaded meanwhile, until they are evicted."""

    def __init__(self):
        self.busy, self.evicted, self.held = False, 0, False

    def evict(self):
        self.busy, self.evicted = False, self.evicted + 1

    @contextmanager
    def still(self):
        self.held = True
        yield
        self.held = False


class World:
    """An arbiter and its clock's readings. `own(n)` and `base(n)` belong to trial n, `alone(n)` to a baseline without
    a submission; n counts from 0, and a warm-up is -1.
    """

    device, practice = "cuda", False

    def __init__(self):
        self.alone, self.sizes, self.pool, self.clock = {}, ProblemSizes(), Pool(), None
        self.calibrations = []  # whether others were alive, for each
        self.machine = Machine("cuda", "GPU", "", "", "", "", 60 << 20, 4000.0, 800.0)
        self.buffers = SimpleNamespace(
            lay=self.lay, fits=self.fits, capacity=lambda case: 100, warm=lambda cases: None, settle=lambda: None
        )
        self.most_rows = 1 << 40
        self.fits_asked = []
        self.watched = 0
        self.faster = 1.0  # than at first, the machine is when it is looked at again
        self.workers = []
        self.dropped = 0
        self.samples = []  # case, whether a submission took part, limit
        self.others = []  # whether others were alive, for each sample
        self.head_starts = []  # whether the submission's calls were to be queued ahead, for each sample
        self.failing = {}  # number of the sample, in all -> what it raises
        self.counts = {}
        self.monitor = self
        self.own = lambda n: Reading(OWN_S, OWN_S)
        self.base = lambda n: Reading(BASE_S, BASE_S, trusted=True)
        self.by_itself = lambda n: Reading(BASE_S, BASE_S, trusted=True)
        self.too_much = lambda calibrations: False  # whether the last clock subtracts too much from trusted rounds

    def lay(self, case, launches):
        assert self.fits(case, launches)
        return SimpleNamespace(case=case, launches=("launch",) * launches)

    def fits(self, case, launches=1):
        self.fits_asked.append(launches)
        return case.arrays[0].shape[0] <= self.most_rows

    def look_at_the_machine_again(self):
        self.machine = replace(self.machine, copy_gbps=self.faster * self.machine.copy_gbps)

    @contextmanager
    def watch(self):
        self.watched += 1
        self.watching = True
        yield "record"
        self.watching = False

    def baseline_worker(self, exercise, baselines):
        if not self.workers or self.workers[-1].closed:
            self.workers.append(Worker())
        return self.workers[-1]

    @property
    def calibrated(self):
        return self.clock is not None

    def forget_clock(self):
        self.clock = None

    def clock_for(self, base):
        assert base is self.workers[-1]
        if self.clock is None:
            self.clock = SimpleNamespace(takes_too_much=lambda trials: self.too_much(len(self.calibrations)))
            self.calibrations.append(self.pool.busy)
        return self.clock

    def drop_baselines(self):
        self.dropped += 1
        self.workers[-1].closed = True

    def aside(self):
        return nullcontext()

    def sample(self, buffers, layout, exercise, peers, clock, limit_s, excesses, aside, head_start, checked=True):
        assert aside == self.aside
        assert buffers is self.buffers
        assert clock is self.clock
        assert self.pool.held, "others wait while something is timed"
        beside = "submission" in peers
        assert not beside or next(iter(peers)) == "submission"
        number = len(self.samples)
        self.samples.append((layout.case.name, beside, limit_s))
        self.others.append(self.pool.busy)
        self.head_starts.append(head_start)
        if number in self.failing:
            raise self.failing[number]
        warms_up = limit_s == timer_module._WARM_UP_LIMIT_S
        assert checked != warms_up
        if warms_up:
            assert not excesses
            self.excesses = excesses
        assert excesses is self.excesses, "the trials of a case share them"
        excesses.append(NO_DRIFT)
        n = -1 if warms_up else self.counts.setdefault((layout.case.name, beside), 0)
        if not warms_up:
            self.counts[layout.case.name, beside] += 1
        base = self.base if beside else self.by_itself
        return {peer: self.own(n) if peer == "submission" else base(n) for peer in peers}

    def rounds(self, case="a", beside=True):
        """How many rounds were timed, warm-ups not counted."""
        return self.counts.get((case, beside), 0)


@pytest.fixture
def world(monkeypatch):
    world = World()
    monkeypatch.setattr(timer_module, "sample", world.sample)
    return world


@pytest.fixture
def all_at_once(monkeypatch):
    """All seven trials in one go, for tests that count rounds; what a few trials settle has tests of its own."""
    monkeypatch.setattr(timer_module, "_FIRST_TRIALS", TRIALS)
    monkeypatch.setattr(Timer, "_few_suffice", lambda self: True)


def timer(world, of=None):
    return Timer(world, of or exercise(), lambda *_: None)


def timed(world, of=None, one_queue=False):
    """A timer that has known the baselines and settled the gates."""
    found = timer(world, of)
    found.one_queue = one_queue
    found.know_baselines()
    found.time_gates(Worker())
    return found


def slow(share, trusted=True):
    return Reading(share * BASE_S, share * BASE_S, trusted)


# A few trials


FEW = 3


@pytest.mark.parametrize(
    ("ratio", "rounds", "outcome"),
    [(1.0, FEW, "passed"), (0.98, TRIALS, "passed"), (0.93, TRIALS, "failed"), (0.9, FEW, "failed")],
)
def test_a_few_trials_suffice_where_the_gate_is_far(world, ratio, rounds, outcome):
    """4 % beyond it, or 4 % short of it; the gate is at 0.95."""
    world.own = lambda n: Reading(BASE_S / ratio, BASE_S / ratio)
    found = timed(world)
    assert world.rounds() == rounds
    assert found.gates(judged=True)[0].outcome == outcome


@pytest.mark.parametrize(("layout", "rounds"), [(1.02, FEW), (1.2, TRIALS)])
def test_a_few_trials_that_leave_a_gate_in_doubt_are_too_few(world, layout, rounds):
    """All of them are beyond the gate, but their interval is not."""
    world.own = lambda n: Reading(OWN_S * (layout if n == 1 else 1.0), OWN_S * (layout if n == 1 else 1.0))
    timed(world)
    assert world.rounds() == rounds


@pytest.mark.parametrize("sample", range(9, 17))
def test_a_baseline_that_fails_once_leaves_no_fewer_trials_than_a_near_gate_needs(world, sample):
    """It may fail in either of the two batches, while a submission is loaded."""
    world.own = lambda n: Reading(BASE_S / 0.98, BASE_S / 0.98)
    world.failing = {sample: BaselineFailed("torch", "out of memory")}
    found = timed(world)
    assert len(found.seconds["a"]["submission"]) >= TRIALS


def test_no_case_has_more_trials_than_there_are(world):
    """One whose clocks part has had them all in the first batch."""
    world.own = lambda n: Reading(BASE_S / 0.98, 0.5 * BASE_S / 0.98)
    timed(world)
    assert world.rounds() == timer_module._MOST_TRIALS


def test_a_slowed_baseline_is_no_reason_to_stop_early(world):
    """This holds although all three trials are equally slow: a submission can slow them all."""
    world.base = lambda n: slow(1.02)
    timed(world)
    assert world.rounds() == TRIALS


def test_all_gates_must_be_far(world):
    """The points of one may be plain, and those of the other hang on more trials."""
    far = exercise()
    near = replace(far, gates=(*far.gates, Gate("plotted", 1.19, 1, ("a",))))
    timed(world, near)
    assert world.rounds() == TRIALS


def test_every_case_has_a_few_before_any_has_more(world):
    """A gate asks for the mean over its cases: only together do they tell whether a few suffice."""
    timed(world, exercise(case("a"), case("b")))
    beside = [name for name, with_own, limit in world.samples if with_own and limit != timer_module._WARM_UP_LIMIT_S]
    assert beside == ["a"] * FEW + ["b"] * FEW


@pytest.mark.parametrize(
    ("trials", "near"),
    [([1.05, 1.2], False), ([0.9, 0.95], False), ([0.95, 1.05], True), ([1.03, 1.2], True), ([0.5, 0.97], True)],
)
def test_a_gate_is_near_unless_all_trials_are_beyond_it_or_all_short_of_it(trials, near):
    """By 4 % or more."""
    seconds = {"a": {"submission": [1.0] * len(trials), "torch": trials}}
    assert score.near(exercise(at_least=1.0), seconds, {}) is near


@pytest.mark.parametrize(
    ("asked", "rounds", "outcome"),
    [
        (0.9, FEW, "passed"),
        (0.99, TRIALS, "passed"),
        (1.01, TRIALS, "failed"),
        (1.1, FEW, "failed"),
        (None, FEW, "failed"),
    ],
)
def test_a_share_of_the_roofline_passes_a_gate_that_the_ratio_does_not(world, asked, rounds, outcome):
    """Where the baseline is at the limit itself; the trials settle the larger of the two."""
    of = exercise(at_least=1.5)
    limit_s = score.ceiling_s(of, case("a").times(2), world.machine)
    world.own = lambda n: Reading(limit_s, limit_s)
    world.base = world.by_itself = lambda n: Reading(limit_s, limit_s, trusted=True)
    found = timed(world, replace(of, gates=(replace(of.gates[0], or_share=asked),)))
    assert found.scales == {"a": 2}
    [gate] = found.gates(judged=True)
    assert (gate.outcome, world.rounds()) == (outcome, rounds)
    assert (gate.ratio, gate.share) == (pytest.approx(1.0), None if asked is None else pytest.approx(1.0))


# A head start


def late_in(rounds, of):
    """A submission's reading in each round: `of`, but late by nine jitters in these."""
    return lambda n: replace(of, arbiter_s=of.arbiter_s + 9 * of.jitter_s) if n in rounds else of


IN_TIME = Reading(OWN_S, OWN_S, jitter_s=0.01 * OWN_S)
SLOW = replace(IN_TIME, arbiter_s=9 * OWN_S, events_s=9 * OWN_S)


@pytest.mark.parametrize("of", [IN_TIME, SLOW])
@pytest.mark.parametrize(("late", "rounds"), [({0, 1}, 2), ({0, 2}, 3), ({1, 2}, 3)])
def test_what_its_own_streams_hold_up_is_to_be_timed_on_one_queue(world, of, late, rounds):
    """As soon as two of the first three rounds of a case are late, however slow it is: now and then one is not."""
    world.own = late_in(late, of)
    with pytest.raises(HeldUp):
        timed(world)
    assert world.rounds() == rounds


@pytest.mark.parametrize("late", [{0}, {2}, {2, 3, 4, 5, 6}, {1, 3, 4, 5, 6}])
def test_who_is_late_from_then_on_only_stays_where_he_is(world, late):
    """One of the first three is not enough."""
    world.own = late_in(late, IN_TIME)
    assert not timed(world).late


def test_what_is_held_up_on_one_queue_too_is_timed_without_a_head_start(world):
    """Its rounds of one case exceed its events by nine jitters. That case's readings are dropped without a finding.

    The verdict says so.
    """
    late = Reading(1.09 * OWN_S, OWN_S, jitter_s=0.01 * OWN_S)
    in_time = replace(late, arbiter_s=OWN_S)

    def own(n):
        if world.samples[-1][0] == "a":
            return in_time
        return late if world.head_starts[-1] else replace(late, arbiter_s=1.01 * OWN_S)

    world.own = own
    found = timed(world, exercise(case("a"), case("b")), one_queue=True)
    of = {name: [head_start for (case, with_own, _), head_start in zip(world.samples, world.head_starts, strict=True)
                 if with_own and case == name] for name in ("a", "b")}  # fmt: skip
    assert all(of["a"])
    assert of["b"][:3] == [True] * 3, "a warm-up, and two rounds"
    assert not any(of["b"][3:])
    assert {one.arbiter_s for one in found.readings["b"]["submission"]} == {1.01 * OWN_S}
    for name in ("a", "b"):
        assert len(found.readings[name]["submission"]) == len(found.readings[name]["torch"]) >= FEW
    assert found.settle() == []
    assert not found.disputed
    assert "; all its streams shared one queue; its calls came after the clock had started in b" in found.clock()
    kept = copy(found)
    found.forget()
    assert not found.late
    assert found.one_queue, "its next worker has one, too"
    assert kept.late == {"b"}, "who has kept the old ones still has them"


@pytest.mark.parametrize("claim", [0.93, 1.0, None])
def test_who_is_not_held_up_keeps_the_head_start(world, claim):
    """A noisy host makes the clocks part by less; and who claims no time is not held up by it."""
    world.own = lambda n: Reading(OWN_S, None if claim is None else claim * OWN_S, jitter_s=0.01 * OWN_S)
    assert not timed(world).late
    assert all(world.head_starts)


@pytest.mark.parametrize("claim", [BASE_S / 0.94, None])
@pytest.mark.parametrize("forged_from", [2, 3, 4])
def test_a_draw_that_is_lost_is_not_taken_back_by_forging_later(world, forged_from, claim):
    """Only the first rounds of a case are asked, and two must be late: what has counted goes on to count."""
    honest = Reading(BASE_S / 0.94, claim, jitter_s=0.01 * BASE_S)
    world.own = lambda n: replace(honest, events_s=0.5 * BASE_S) if n >= forged_from else honest
    found = timed(world)
    assert not found.late
    assert len(found.readings["a"]["submission"]) == world.rounds()


def test_what_others_have_held_up_is_timed_again_with_a_head_start(world):
    """When these are gone, whatever its times are like: what they left on the GPU may have held it up."""

    def own(n):
        late = 1.2 if world.pool.busy and world.head_starts[-1] else 1.0
        return Reading(late * BASE_S / 0.97, BASE_S / 0.97, jitter_s=0.01 * BASE_S)

    world.own = own
    found = timer(world)
    found.one_queue = True
    found.know_baselines()
    world.pool.busy = True
    evicted = world.pool.evicted
    found.time_gates(Worker())
    assert world.pool.evicted == evicted + 1
    assert not found.late
    assert world.head_starts[-1]
    assert found.clock().endswith("; all its streams shared one queue")


@pytest.mark.parametrize("one_queue", [True, False])
def test_a_verdict_without_a_time_says_so_if_its_streams_shared_a_queue(world, one_queue):
    """A submission that fails only there may be right on several queues."""
    found = timer(world)
    found.one_queue = one_queue
    said = "; all its streams shared one queue" if one_queue else ""
    assert found.clock() == f"none: nothing was timed{said}"


def test_a_gate_that_hangs_on_the_hosts_part_is_no_reason_to_calibrate(world):
    """Without a head start the clocks part by what the host takes: by its events the gate would be passed."""
    late = Reading(BASE_S / 0.94, BASE_S / 0.96, jitter_s=1e-3 * BASE_S)
    world.own = lambda n: late
    found = timed(world, one_queue=True)
    found.settle()
    assert found.late
    assert not found.disputed
    world.own = lambda n: replace(late, jitter_s=0.01 * BASE_S)  # too little to be held up by
    again = timed(world)
    again.settle()
    assert not again.late
    assert again.disputed


def test_forged_events_gain_nothing_by_the_head_start_that_they_lose(world):
    """Only once, and it is the clock that counts, as before."""
    world.own = lambda n: Reading(BASE_S, 0.5 * BASE_S, jitter_s=0.01 * BASE_S)
    found = timed(world, one_queue=True)
    assert world.head_starts.count(False) == timer_module._MOST_TRIALS
    assert found.gates(judged=True)[0].ratio == pytest.approx(1.0)
    assert [finding.kind for finding in found.settle()] == ["clock"]


def test_where_the_hosts_part_is_timed_there_is_no_head_start(world):
    """No round has one."""
    timed(world, replace(exercise(), of_the_host=True))
    assert not any(world.head_starts)


# The baselines alone


def test_the_baselines_alone_are_timed_once(world):
    """The first submission waits for them, with the others out of the way; the second finds them known."""
    world.pool.busy = True
    timer(world).know_baselines()
    assert (world.rounds(beside=False), world.pool.evicted) == (TRIALS, 1)
    assert not any(world.others), "nobody else was alive"
    timer(world).know_baselines()
    assert (world.rounds(beside=False), world.pool.evicted) == (TRIALS, 1)
    timer(world, replace(exercise(), id="another")).know_baselines()
    assert world.rounds(beside=False) == 2 * TRIALS


def test_a_case_that_is_not_known_is_timed(world):
    """To know some of the cases is not to know them all."""
    timer(world).know_baselines()
    timer(world, exercise(case("a"), case("b"))).know_baselines()
    assert world.rounds("b", beside=False) == TRIALS


def test_only_the_gates_baselines_are_timed(world):
    """A baseline that is there for a plot costs a check nothing."""
    found = timed(world)
    assert set(found.readings["a"]) == {"submission", "torch"}
    assert set(world.alone) == {("e", "torch", "a")}


def test_the_clock_is_calibrated_before_a_submission_is_alive(world):
    """This includes known baselines with a forgotten clock, and exercises without gates on baselines."""
    timer(world).know_baselines()
    timer(world).know_baselines()
    assert len(world.calibrations) == 1
    world.forget_clock()
    samples = len(world.samples)
    timer(world).know_baselines()
    assert (len(world.calibrations), len(world.samples)) == (2, samples)
    world.forget_clock()
    timer(world, replace(exercise(), gates=())).know_baselines()
    assert (len(world.calibrations), len(world.samples)) == (3, samples)


def test_a_clock_that_was_calibrated_in_a_slow_spell_is_calibrated_again(world):
    """This happens once, before a submission is alive. Times by the first clock are dropped."""
    world.too_much = lambda calibrations: calibrations == 1
    timer(world).know_baselines()
    assert len(world.calibrations) == 2
    assert world.rounds(beside=False) == 2 * TRIALS
    world.alone.clear()
    world.too_much = lambda calibrations: True
    timer(world).know_baselines()
    assert len(world.calibrations) == 3


@pytest.mark.parametrize(
    ("clock", "claim", "disputed"),
    [
        (1.04, 1.0, True),  # noise has it fail a gate that its events pass
        (1.0, 1.0, False),  # passed
        (1.04, 1.03, False),  # the clocks agree: it is slow
        (1.30, 1.28, False),  # by its events, too, it fails
        (1.04, 0.85, False),  # no noise takes so much
        (1.04, None, False),
    ],
)
def test_a_gate_that_hangs_on_the_clocks_is_told(world, clock, claim, disputed):
    """If the submission's events would pass it, the submission is graded once more."""
    at_gate = 0.99 * BASE_S / 0.95
    world.own = lambda n: Reading(clock * at_gate, None if claim is None else claim * at_gate)
    found = timed(world)
    assert not found.disputed
    found.settle()
    assert found.disputed is disputed
    found.forget()
    assert not found.disputed


def test_doubt_is_disputed_as_a_lost_gate_is(world):
    """Otherwise forged events would cause a repeat exactly when it can help the forger."""
    world.own = lambda n: Reading(BASE_S / 0.95 * (1.02 if n % 2 else 0.98), 0.97 * BASE_S / 0.95)
    found = timed(world)
    found.settle()
    assert found.gates(judged=True)[0].outcome == "doubt"
    assert found.disputed


def test_one_gate_that_hangs_on_the_clocks_is_enough(world):
    """Another gate that is failed by both clocks takes nothing from it."""
    of = exercise()
    of = replace(of, gates=(*of.gates, replace(of.gates[0], at_least=4.0)))
    world.own = lambda n: Reading(1.03 * BASE_S / 0.95, 0.99 * BASE_S / 0.95)
    found = timed(world, of)
    found.settle()
    assert [gate.outcome for gate in found.gates(judged=True)] == ["failed", "failed"]
    assert found.disputed


@pytest.mark.parametrize(("claim", "disputed"), [(0.99, True), (1.03, False)])
def test_a_gate_hangs_on_the_clocks_by_the_baselines_that_count(world, claim, disputed):
    """A baseline slowed by the submission counts as alone, so the gate is lost or not claimed."""
    world.base = lambda n: slow(1.06)
    world.own = lambda n: Reading(1.04 * BASE_S / 0.95, claim * BASE_S / 0.95)
    found = timed(world)
    found.settle()
    assert found.gates(judged=True)[0].outcome == "failed"
    assert found.disputed is disputed


# How many trials, and under which conditions


@pytest.mark.usefixtures("all_at_once")
def test_a_first_round_warms_up_and_is_not_counted(world):
    """It may compile, so it has time, and what it took is forgotten; the others have the exercise's limit."""
    world.own = lambda n: Reading(1.0, 1.0) if n < 0 else Reading(OWN_S, OWN_S)
    found = timed(world)
    assert [limit for _, beside, limit in world.samples if beside] == [timer_module._WARM_UP_LIMIT_S] + TRIALS * [9.0]
    assert found.seconds == {"a": {"submission": [OWN_S] * TRIALS, "torch": [BASE_S] * TRIALS}}
    assert found.record == "record"
    assert world.watched == 1


def test_doubt_brings_more_trials_and_they_end(world):
    """A ratio around the gate is timed up to 28 times; one that is settled is not."""
    world.own = lambda n: Reading(*[BASE_S / 0.95 * (1.02 if n % 2 else 0.98)] * 2)
    found = timed(world)
    assert world.rounds() == 28
    assert found.gates(judged=True)[0].outcome == "doubt"


@pytest.mark.usefixtures("all_at_once")
def test_doubt_ends_by_the_case_that_has_the_fewest_trials(world):
    """Clocks that disagree in one case bring that case more rounds, and no earlier end: pairs count, not rounds."""

    def own(n):
        seconds = BASE_S / 0.95 * (1.02 if n % 2 else 0.98)
        return Reading(seconds, (0.5 if world.samples[-1][0] == "a" else 1.0) * seconds)

    world.own = own
    found = timed(world, exercise(case("a"), case("b")))
    assert (world.rounds("a"), world.rounds("b")) == (49, 28)
    assert found.gates(judged=True)[0].outcome == "doubt"


@pytest.fixture
def interval():
    """How long a thread keeps the interpreter outside of the timing."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.003)
    yield 0.003
    sys.setswitchinterval(before)


def test_no_thread_takes_the_interpreter_while_the_clock_spins(world, interval):
    """The switch interval is long during a sample, and as before after it, also where that fails."""
    own, seen = world.own, []
    world.own = lambda n: seen.append(sys.getswitchinterval()) or own(n)
    timed(world)
    assert min(seen) >= 0.5
    assert sys.getswitchinterval() == pytest.approx(interval)
    world.failing[len(world.samples)] = WorkerFailed(Failure("crash", "gone"))
    with pytest.raises(WorkerFailed):
        timer(world).time_gates(Worker())
    assert sys.getswitchinterval() == pytest.approx(interval)


@pytest.mark.parametrize(("ours", "disputed"), [(30.0, True), (2.0, False), (1.0, False), (0.5, False)])
def test_on_a_host_that_stands_still_for_all_a_lost_gate_is_disputed(world, ours, disputed):
    """Where the rounds of our own workers are as much too long as the submission's; not where only the latter are."""
    world.own = lambda n: Reading(30 * OWN_S, OWN_S)
    world.base = lambda n: Reading(ours * BASE_S, BASE_S, trusted=True)
    found = timed(world)
    found.settle()
    assert found.gates(judged=True)[0].outcome == "failed"
    assert found.disputed is disputed


@pytest.mark.parametrize("still_for", [2, 10, 20])
def test_a_host_that_stood_still_in_the_first_rounds_costs_nobody_a_gate(world, still_for):
    """Its events say so, though they do not count: more rounds tell, and these may not be forged either."""
    world.own = lambda n: Reading(30 * BASE_S if n < still_for else OWN_S, OWN_S)
    found = timed(world)
    assert found.gates(judged=True)[0].outcome == "passed"
    assert world.rounds() <= timer_module._MOST_TRIALS


def test_who_claims_to_be_fast_and_is_far_too_slow_is_timed_to_the_end_and_fails(world):
    """As if the host stood still in every round."""
    world.own = lambda n: Reading(30 * BASE_S, OWN_S)
    found = timed(world)
    assert found.gates(judged=True)[0].outcome == "failed"
    assert world.rounds() == timer_module._MOST_TRIALS


@pytest.mark.usefixtures("all_at_once")
def test_the_merely_slow_are_timed_to_the_end(world):
    """Below the gate, but not far: it is timed as others are."""
    world.own = lambda n: Reading(2 * BASE_S, 2 * BASE_S)
    timed(world)
    assert world.rounds() == TRIALS


NOISY = Reading(1.06 * OWN_S, OWN_S)  # the clocks disagree: noise, or a claim of too little


@pytest.mark.usefixtures("all_at_once")
@pytest.mark.parametrize("noisy_first", range(30))
def test_while_the_clocks_disagree_there_are_more_rounds_but_not_for_ever(world, noisy_first):
    """Noise passes, and they end when one round in seven is quiet; where it does not, four times the trials are all."""
    world.own = lambda n: NOISY if n < noisy_first else Reading(OWN_S, OWN_S)
    timed(world)
    enough = next(n for n in range(TRIALS, 99) if n - noisy_first >= max(2, math.ceil(n / 7)))
    assert world.rounds() == min(enough, 4 * TRIALS)


@pytest.mark.parametrize("noisy_first", range(25))
def test_when_the_rounds_end_early_the_events_count(world, noisy_first):
    """The rounds that are added are enough for honest work to count by its events, or they go on."""
    world.own = lambda n: NOISY if n < noisy_first else Reading(OWN_S, OWN_S)
    found = timed(world)
    assert found.seconds["a"]["submission"] == [OWN_S] * world.rounds()
    assert found.clock().startswith("CUDA events: ")


def test_noise_in_later_trials_does_not_undo_the_first(world):
    """In doubt there are more trials; where noise parts the clocks in those, there are more of them, too."""
    own_s = BASE_S / 0.95
    world.base = lambda n: slow(1.02 if n % 2 else 0.98)
    world.own = lambda n: Reading(own_s if n < 3 or n > 12 else 1.06 * own_s, own_s)
    found = timed(world)
    assert found.seconds["a"]["submission"] == [own_s] * world.rounds()
    assert found.clock().startswith("CUDA events: ")


def test_baselines_alone_need_no_agreement(world):
    """Their events count as they are."""
    world.by_itself = lambda n: Reading(2 * BASE_S, BASE_S, trusted=True)
    timer(world).know_baselines()
    assert world.rounds(beside=False) == TRIALS


def wide(n):
    return Reading(*[OWN_S * (1.1 if n % 2 else 0.9)] * 2)


@pytest.mark.usefixtures("all_at_once")
def test_a_wide_interval_with_others_at_work_is_timed_again_without_them(world):
    """First there are more trials; if it is as wide still, the others go and only what follows counts."""
    found, worker = timer(world), Worker()
    found.know_baselines()
    world.pool.busy = True
    world.own = lambda n: wide(n) if world.pool.busy else Reading(OWN_S, OWN_S)
    found.time_gates(worker)
    assert world.pool.evicted == 2
    assert world.rounds() == 3 * TRIALS
    assert found.seconds["a"]["submission"] == [OWN_S] * TRIALS
    assert [busy for busy in world.others if busy] == [True] * (2 * TRIALS + 2)


@pytest.mark.usefixtures("all_at_once")
def test_baselines_that_others_slow_are_timed_again_without_them(world):
    """A narrow interval of slowed baselines is no better."""
    found = timer(world)
    found.know_baselines()
    world.pool.busy = True
    world.base = lambda n: slow(1.05 if world.pool.busy else 1.0)
    found.time_gates(Worker())
    assert world.pool.evicted == 2
    assert found.seconds["a"]["torch"] == [BASE_S] * TRIALS
    assert found.settle() == []


def test_more_trials_that_narrow_the_interval_leave_the_others_alone(world):
    """Nobody is loaded a second time for nothing."""
    found = timer(world)
    found.know_baselines()
    world.pool.busy = True
    world.own = lambda n: wide(n) if n < 2 else Reading(OWN_S, OWN_S)
    found.time_gates(Worker())
    assert (world.pool.evicted, world.pool.busy) == (1, True)
    assert world.rounds() == 2 * TRIALS
    assert len(found.seconds["a"]["submission"]) == 2 * TRIALS


@pytest.mark.usefixtures("all_at_once")
@pytest.mark.parametrize(("busy", "own"), [(False, wide), (True, lambda n: Reading(OWN_S, OWN_S))])
def test_a_narrow_interval_or_an_idle_pool_settles_it_at_once(world, busy, own):
    """A width that is the submission's own is not timed away, and a narrow one needs nothing."""
    found = timer(world)
    found.know_baselines()
    world.pool.busy, world.own = busy, own
    found.time_gates(Worker())
    assert (world.rounds(), world.pool.evicted) == (TRIALS, 1)


# What a slowed baseline gains


@pytest.mark.usefixtures("all_at_once")
def test_undisturbed_baselines_count_as_they_were(world):
    """Nothing is timed again or reported; half a percent does not count as slow."""
    world.base = lambda n: slow(1.005)
    found = timed(world)
    assert found.settle() == []
    assert found.seconds["a"]["torch"] == [1.005 * BASE_S] * TRIALS
    assert world.rounds(beside=False) == TRIALS


@pytest.mark.parametrize(("slowed", "said"), [(1, False), (3, False), (4, True), (7, True)])
def test_rounds_of_a_slowed_baseline_count_as_alone(world, slowed, said):
    """Slowing a baseline gains nothing: its time alone counts for those rounds. A finding says so if they are most."""
    world.base = lambda n: slow(1.05 if n < slowed else 1.0)
    found = timed(world)
    world.pool.busy = True
    findings = found.settle()
    assert found.seconds["a"]["torch"] == pytest.approx([BASE_S] * TRIALS)
    assert world.rounds(beside=False) == 2 * TRIALS, "timed alone anew"
    assert not any(world.others), "after the others had gone"
    assert [finding.kind for finding in findings] == ["disturbed"] * said


def test_one_slow_round_of_many_counts_as_alone_and_nothing_is_timed_anew(world):
    """An outlier does not mean a warm GPU: the baseline's earlier time alone still holds."""
    world.own = lambda n: Reading(*[BASE_S / 0.95 * (1.02 if n % 2 else 0.98)] * 2)
    world.base = lambda n: slow(2.0 if n in (3, 9) else 1.0)
    found = timed(world)
    assert world.rounds() == 28
    assert found.settle() == []
    assert found.seconds["a"]["torch"] == [BASE_S] * 28
    assert world.rounds(beside=False) == TRIALS


def test_a_gpu_that_slowed_down_by_itself_is_no_disturbance(world):
    """A baseline is compared with its time alone afterwards: a warm GPU is slow for all."""
    world.base = lambda n: slow(1.05)
    found = timed(world)
    world.by_itself = lambda n: slow(1.045)
    assert found.settle() == []
    assert found.seconds["a"]["torch"] == [1.05 * BASE_S] * TRIALS


def test_a_baseline_slowed_against_its_new_time_counts_by_that(world):
    """The time alone that counts is the one taken after the submission's end."""
    world.base = lambda n: slow(1.5)
    found = timed(world)
    world.by_itself = lambda n: slow(1.04)
    assert [finding.kind for finding in found.settle()] == ["disturbed"]
    assert found.seconds["a"]["torch"] == pytest.approx([1.04 * BASE_S] * TRIALS)
    assert found.gates(judged=True)[0].ratio == pytest.approx(1.04 * BASE_S / OWN_S)


@pytest.mark.parametrize(("times", "counts"), [(1.009, 1.0), (1.006, 1.0), (1.004, 1.004)])
def test_a_baseline_that_is_a_little_slower_throughout_counts_as_alone(world, times, counts):
    """All rounds together are slow, though no single one is. The report does not mention it."""
    world.base = lambda n: slow(times)
    found = timed(world)
    assert found.settle() == []
    assert found.seconds["a"]["torch"] == pytest.approx([counts * BASE_S] * len(found.seconds["a"]["torch"]))


def test_a_baseline_that_is_a_little_slower_now_and_then_counts_as_measured(world):
    """Its middle round is what it takes alone."""
    world.base = lambda n: slow(1.009 if n % 3 == 2 else 1.0)
    found = timed(world)
    found.settle()
    assert max(found.seconds["a"]["torch"]) == pytest.approx(1.009 * BASE_S)


def test_one_slow_round_alone_moves_nothing(world):
    """A baseline's time alone is a median."""
    world.by_itself = lambda n: slow(3.0 if n == 2 else 1.0)
    world.base = lambda n: slow(1.05)
    found = timed(world)
    found.settle()
    assert found.seconds["a"]["torch"] == pytest.approx([BASE_S] * TRIALS)


@pytest.mark.usefixtures("all_at_once")
def test_the_submissions_own_slow_rounds_are_its_own(world):
    """Only baselines are compared with their time alone."""
    world.own = lambda n: Reading(3 * BASE_S, 3 * BASE_S)
    found = timed(world)
    assert found.settle() == []
    assert found.seconds["a"]["submission"] == [3 * BASE_S] * TRIALS


@pytest.mark.parametrize(("own_us", "retimed"), [(97, False), (98, True), (166, True), (169, False), (300, False)])
def test_baselines_are_timed_anew_only_where_a_gate_hangs_on_it(world, own_us, retimed):
    """Some baselines vary by a few percent. Far from the gate that does not matter, passed or failed. The round still
    counts as alone, so that slowing the baseline gains nothing there either.
    """
    world.own = lambda n: Reading(own_us * 1e-6, own_us * 1e-6)
    world.base = lambda n: slow(1.02)
    found = timed(world, exercise(at_least=0.95))
    world.pool.busy = True
    assert [finding.kind for finding in found.settle()] == ["disturbed"] * retimed
    assert (world.rounds(beside=False) == TRIALS) is not retimed
    assert found.seconds["a"]["torch"] == pytest.approx([BASE_S] * TRIALS)


def test_rounds_that_are_timed_once_more_are_in_the_record(world):
    """Wide, with others at work: more rounds, and then again without them, all while NVML is watched."""
    watched = []
    world.own = lambda n: watched.append(world.watching) or wide(n)
    found = timer(world)
    found.know_baselines()
    world.pool.busy = True
    found.time_gates(Worker())
    assert len(watched) > TRIALS
    assert all(watched)
    assert world.watched == 1


def test_far_from_its_gates_nobody_is_loaded_a_second_time(world):
    """A wide interval, or slowed baselines, with others at work: that decides nothing there."""
    found = timer(world)
    found.know_baselines()
    world.pool.busy = True
    world.own, world.base = lambda n: Reading(*[0.5 * wide(n).events_s] * 2), lambda n: slow(1.05)
    found.time_gates(Worker())
    assert (world.rounds(), world.pool.busy) == (TRIALS, True)


def test_a_submission_that_failed_in_its_first_case_is_not_far_from_its_gates(world):
    """Cases that were not timed say nothing."""
    of = exercise(case("a"), case("b"))
    found = timer(world, of)
    found.know_baselines()
    world.base = lambda n: slow(1.05)
    world.failing = {len(world.samples) + TRIALS + 2: WorkerFailed(Failure("crash", "gone"))}
    with pytest.raises(WorkerFailed):
        found.time_gates(Worker())
    assert [finding.kind for finding in found.settle()] == ["disturbed"]


def test_nothing_timed_is_nothing_to_settle(world):
    """A submission that failed before the clock is settled without a word."""
    assert timer(world).settle() == []
    assert world.samples == []


@pytest.mark.parametrize(("claim", "said"), [(0.5, True), (0.89, True), (0.91, False), (1.0, False), (None, False)])
def test_events_that_claim_much_less_than_the_clock_are_told(world, claim, said):
    """Forged, or work on a stream that is not joined: a person should look."""
    world.own = lambda n: Reading(OWN_S, None if claim is None else claim * OWN_S)
    findings = timed(world).settle()
    assert [finding.kind for finding in findings] == ["clock"] * said
    assert not said or f"{claim:.2f}" in findings[0].sentence


def test_a_slowed_baseline_and_a_forged_claim_are_both_told(world):
    """One finding does not hide the other."""
    world.own, world.base = lambda n: Reading(OWN_S, 0.5 * OWN_S), lambda n: slow(1.5)
    assert {finding.kind for finding in timed(world).settle()} == {"clock", "disturbed"}


# A baseline that fails


@pytest.mark.usefixtures("all_at_once")
@pytest.mark.parametrize("when", [8, 11])
def test_a_baseline_that_fails_once_is_tried_again(world, when):
    """A fresh worker for the baselines, everything from the start, and no trace of the first try."""
    found, worker = timer(world), Worker()
    found.know_baselines()
    world.failing[when] = BaselineFailed("e:torch", "gone")
    world.own = lambda n: Reading(OWN_S, OWN_S) if len(world.samples) > when + 1 else Reading(BASE_S, BASE_S)
    found.time_gates(worker)
    assert world.dropped == 1
    assert not worker.closed
    assert len(world.workers) == 2
    assert found.seconds == {"a": {"submission": [OWN_S] * TRIALS, "torch": [BASE_S] * TRIALS}}


def test_a_baseline_that_cannot_run_beside_a_submission_is_the_submissions_limit(world):
    """It fails twice with the submission and not once alone: the submission ends, with a sentence that names it."""
    found, worker = timer(world), Worker()
    found.know_baselines()
    alive = []
    world.by_itself = lambda n: alive.append(not worker.closed) or slow(1.0)
    world.failing = {8: BaselineFailed("e:torch", "gone"), 9: BaselineFailed("e:torch", "out of memory")}
    with pytest.raises(WorkerFailed) as raised:
        found.time_gates(worker)
    assert raised.value.failure.kind == "limit"
    assert "e:torch" in raised.value.failure.message
    assert "out of memory" in raised.value.failure.message
    assert worker.closed
    assert alive
    assert not any(alive), "the baselines ran alone after its end"


def test_a_baseline_that_does_not_run_alone_either_is_no_fault_of_the_submission(world):
    """Then no verdict is possible, and the error says so."""
    found, worker = timer(world), Worker()
    found.know_baselines()
    world.failing = {number: BaselineFailed("e:torch", "no driver") for number in range(8, 12)}
    with pytest.raises(JudgeStopped, match="no driver"):
        found.time_gates(worker)


def test_without_a_submission_a_baseline_has_two_tries(world):
    """Alone, the second failure stops the judge."""
    world.failing = {0: BaselineFailed("e:torch", "gone")}
    timer(world).know_baselines()
    assert world.rounds(beside=False) == TRIALS
    world.failing = {number: BaselineFailed("e:torch", "gone") for number in (9, 10)}
    world.alone.clear()
    with pytest.raises(JudgeStopped, match="e:torch"):
        timer(world).know_baselines()
    assert world.dropped == 3


def test_a_baselines_worker_that_takes_no_plan_is_a_failed_baseline(world):
    """If it died between two submissions, that is not the current submission's failure."""
    world.workers = [Worker(plan_fails=True)]
    timer(world).know_baselines()
    assert world.dropped == 1
    assert world.rounds(beside=False) == TRIALS


def test_a_failing_submission_is_not_tried_again(world):
    """Its failure is its verdict."""
    found = timer(world)
    found.know_baselines()
    world.failing = {10: WorkerFailed(Failure("crash", "gone"))}
    with pytest.raises(WorkerFailed, match="gone"):
        found.time_gates(Worker())
    assert (len(world.samples), world.dropped) == (11, 0)


# The floor, and the size that is timed


def test_faster_than_the_hardware_is_implausible(world):
    """A time below the floor is refused with both figures; one at the floor is believed."""
    floor_s = score.floor_s(exercise(), case("a", 2 * ROWS), world.machine)
    world.own = lambda n: Reading(0.98 * floor_s, 0.98 * floor_s)
    failure = timed(world).implausible()
    assert failure.kind == "implausible"
    assert f"{0.98e6 * floor_s:.1f} µs" in failure.message
    assert f"{1e6 * floor_s:.1f} µs" in failure.message
    world.own = lambda n: Reading(1.02 * floor_s, 1.02 * floor_s)
    assert timed(world).implausible() is None


@pytest.mark.parametrize(("faster", "refused"), [(1.0, True), (1.01, True), (1.05, False)])
def test_before_a_time_is_refused_the_machine_is_looked_at_again(world, faster, refused):
    """Its ceilings may have been measured while somebody else was at work."""
    floor_s = score.floor_s(exercise(), case("a", 2 * ROWS), world.machine)
    world.own, world.faster = lambda n: Reading(0.98 * floor_s, 0.98 * floor_s), faster
    assert (timed(world).implausible() is not None) is refused


def test_a_plausible_time_needs_no_second_look_at_the_machine(world):
    """That takes a while."""
    world.own, world.faster = lambda n: Reading(1e-3, 1e-3), 2.0
    assert timed(world).implausible() is None
    assert world.machine.copy_gbps == 4000.0


def test_one_implausible_case_is_enough(world):
    """Plausible times elsewhere excuse nothing."""
    of = exercise(case("a"), case("b", 4 * ROWS))
    floor_s = score.floor_s(of, case("b", 4 * ROWS), world.machine)
    world.own = lambda n: Reading(0.98 * floor_s, 0.98 * floor_s)
    failure = timed(world, of).implausible()
    assert failure.message.startswith("b in ")


def test_a_baseline_that_is_too_fast_is_not_the_submissions_fault(world):
    """Only the submission's time is compared with the floor."""
    world.own = lambda n: Reading(1e-3, 1e-3)
    world.base = world.by_itself = lambda n: slow(1e-3)
    assert timed(world).implausible() is None


@pytest.mark.parametrize("rows", [1 << 10, 1 << 20, 3 << 24, ROWS, 1 << 30])
def test_a_timed_case_grows_until_a_launch_is_long(world, rows):
    """At the ceiling a launch takes 480 µs or more, and less than twice that; one that does so stays."""
    of = exercise(case("a", rows))
    found = timed(world, of)
    scale = found.scales["a"]
    long_s = score.ceiling_s(of, case("a", scale * rows), world.machine)
    assert long_s >= 480e-6
    assert scale == 1 or long_s < 2 * 480e-6
    assert found.timings(of.timed_cases)[0].scale == scale


def test_a_timed_case_grows_only_as_far_as_a_few_launches_fit(world):
    """It grows until memory ends; several launches must fit, not one."""
    world.most_rows = 1 << 22
    found, worker = timer(world, exercise(case("a", 1 << 20))), Worker()
    found.know_baselines()
    found.time_gates(worker)
    assert found.scales == {"a": 4}
    assert worker.plans[0].case.arrays[0].shape == (1 << 22,)
    assert min(world.fits_asked) >= 2


def test_a_size_that_others_memory_kept_small_grows_when_there_is_room(world):
    """With the next submission, and then the baselines are timed alone at the new size."""
    of = exercise(case("a", ROWS // 4))
    world.most_rows = ROWS
    assert timed(world, of).scales == {"a": 4}
    small = world.alone[of.id, "torch", "a"]
    assert timed(world, of).scales == {"a": 4}
    assert world.alone[of.id, "torch", "a"] is small
    world.most_rows = 2 * ROWS
    assert timed(world, of).scales == {"a": 8}
    assert world.alone[of.id, "torch", "a"] is not small


def test_how_far_a_case_grows_is_found_when_no_submission_is_alive(world):
    """A submission that holds memory does not change the size, nor does a later measurement of the machine."""
    found = timer(world)
    found.know_baselines()
    world.fits_asked.clear()
    world.buffers.fits = lambda case, launches=1: world.fits_asked.append(launches) or False
    world.machine = replace(world.machine, copy_gbps=40_000.0)
    world.lay = lambda case, launches: SimpleNamespace(case=case, launches=("launch",) * launches)
    world.buffers.lay = world.lay
    found.time_gates(Worker())
    assert found.scales == {"a": 2}
    assert world.fits_asked == []


def test_what_is_timed_is_the_case_that_grew(world):
    """Worker and baselines get the same grown case; bandwidth is of its bytes."""
    found, worker = timer(world), Worker()
    found.know_baselines()
    found.time_gates(worker)
    assert found.scales == {"a": 2}
    assert [layout.case.arrays[0].shape for layout in (*worker.plans, *world.workers[-1].plans)] == [(2 * ROWS,)] * 3
    own = next(one for one in found.timings(exercise().timed_cases) if one.peer == "submission")
    assert own.bandwidth_gbps == pytest.approx(8 * 2 * ROWS / OWN_S / 1e9)
    assert own.launches_per_trial == len(worker.plans[0].launches) == found.launches["a"]


def test_a_plot_shows_the_sizes_that_it_names(world):
    """Without gates nothing grows."""
    found, worker = timer(world), Worker()
    found.gated = False
    found.time(exercise().plot_cases, exercise().baselines, 6, worker)
    assert found.scales == {"a": 1}
    assert worker.plans[0].case.arrays[0].shape == (ROWS,)
    assert set(found.readings["a"]) == {"submission", "torch", "plotted"}


# Reports


def mixed(events):
    """In the first `events` rounds the worker's claim is within the agreement, in the others it is half."""
    return lambda n: Reading(OWN_S, OWN_S if n < events else 0.5 * OWN_S)


@pytest.mark.usefixtures("all_at_once")
@pytest.mark.parametrize(
    ("own", "begins", "clock"),
    [
        (mixed(7), "CUDA events: ", "events"),
        (mixed(5), "CUDA events in 5 of 7 rounds", "events"),
        (mixed(2), "CUDA events in 2 of 7 rounds", "arbiter"),
        (mixed(1), "CUDA events in 1 of 28 rounds", "arbiter"),
        (lambda n: Reading(OWN_S, 0.5 * OWN_S), "the judge's own: ", "arbiter"),
        (lambda n: Reading(OWN_S, None), "the judge's own: ", "arbiter"),
    ],
)
def test_the_verdict_says_which_clock_counted(world, own, begins, clock):
    """In a sentence with the agreement's share, and by the clock of most rounds in the timing."""
    world.own = own
    found = timed(world)
    assert found.clock().startswith(begins)
    assert f"{100 * AGREEMENT:g} %" in found.clock()
    assert {one.peer: one.clock for one in found.timings(exercise().timed_cases)} == {
        "submission": clock, "torch": "events",
    }  # fmt: skip


def test_the_verdict_says_where_no_clock_counted(world):
    """In a simulator, and where nothing was timed."""
    found = timer(world)
    assert found.clock() == "none: nothing was timed"
    world.device = "simulator"
    assert found.clock() == "none: a simulator has no speed"


def test_gates_without_times_are_not_reached_or_need_a_gpu(world):
    """A submission that was not timed, or is wrong, has no gate passed or failed."""
    found = timer(world)
    assert [gate.outcome for gate in found.gates(judged=True)] == ["not_reached"]
    world.device = "simulator"
    assert [gate.outcome for gate in found.gates(judged=True)] == ["needs_gpu"]
    world.device = "cuda"
    found = timed(world)
    assert [gate.outcome for gate in found.gates(judged=False)] == ["not_reached"]
    assert [gate.outcome for gate in found.gates(judged=True)] == ["passed"]


def test_what_is_forgotten_does_not_count(world):
    """A second attempt begins without the readings of the first."""
    found = timed(world)
    found.forget()
    assert found.seconds == {}
    assert found.clock() == "none: nothing was timed"


# The score's own figures


@pytest.mark.parametrize(("peak_tflops", "seconds"), [(1e6, 1e-3 / 1.25), (1.0, 4e-3 / 1.25)])
def test_the_floor_is_memory_or_arithmetic_whichever_takes_longer(peak_tflops, seconds):
    """Bytes over bandwidth, operations over peak, a quarter below either: a cache and a boost are allowed for."""
    machine = Machine("cuda", "GPU", "", "", "", "", 0, 4000.0, peak_tflops)
    of = replace(exercise(), bytes_moved=lambda case: 4 * 10**9, operations=lambda case: 4 * 10**9)
    assert score.floor_s(of, case("a"), machine) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("facts", "share"),
    [({}, 0.5), ({"limited_by": "arithmetic"}, 0.2), ({"limited_by": "arithmetic", "work": lambda case: 7}, None)],
)
def test_a_share_is_of_the_ceiling_that_limits(facts, share):
    """Bytes over a copy's bandwidth, or operations over a product's speed; None if the exercise gives neither."""
    machine = Machine("cuda", "GPU", "", "", "", "", 0, 4000.0, 500.0)
    of = replace(exercise(), bytes_moved=lambda case: 2 * 10**9, operations=lambda case: 10**11, **facts)
    (found,) = score.timings(
        of, [case("a")], {"a": {"submission": [1e-3]}}, machine, {"a": 1}, {("a", "submission"): False}
    )
    assert found.share_of_roofline == (pytest.approx(share) if share else None)
