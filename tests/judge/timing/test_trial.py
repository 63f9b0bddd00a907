"""A trial: the order in which things happen, whose failure is whose, and what the drift comes from."""

import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader.exercises import find
from grader.judge.checking import buffers as buffers_module
from grader.judge.checking.buffers import Buffers
from grader.judge.gpu.ceilings import HostSpeed
from grader.judge.process.worker import FILL, Round, WorkerFailed
from grader.judge.timing import trial as trials
from grader.judge.timing.trial import BaselineFailed, TimedWrong, sample
from grader.verdict import Failure, Mismatch
from tests.judge.rounds import CASE, CLOCK, US, a_round


@pytest.fixture
def small_buffers(monkeypatch):
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 24)
    return Buffers("simulator")


OWN = replace(find("vector_add"), draw=lambda case, source: {})
PRODUCT = replace(OWN, limited_by="arithmetic")


class Trial:
    """Buffers and the workers of a trial; all note in one log what they do, `broken` by name."""

    def __init__(self, layout, wrong=False):
        self.layout, self.wrong = layout, wrong
        self.exercise = OWN
        self.log = []
        self.limits, self.head_starts = [], []
        self.clock = CLOCK
        self.broken = {}
        self.more_us = {}
        self.launches_s = {}
        self.excesses = []
        self.peers = {"submission": self.Peer(self), "e:torch": self.Peer(self), "e:compile": self.Peer(self)}

    class Peer:
        left_s = 100.0

        def __init__(self, trial):
            self.trial = trial

        def round(self, name, buffers, limit_s, head_start):
            self.trial.log.append(f"round {name}")
            self.trial.head_starts.append(head_start)
            self.trial.limits.append(limit_s)
            if name in self.trial.broken:
                raise self.trial.broken[name]
            more = (0.0, self.trial.more_us.get(name, 0.0) * US, 0.0)
            launches_s = self.trial.launches_s.get(name, 3e-3)
            one = a_round(launches_s, self.trial.layout, more=more, event_s=launches_s)
            return replace(one, probe=replace(one.probe, take=lambda: self.trial.log.append("look") or b""))

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

    def fill(self, layout, own_draw):
        assert own_draw is OWN.draw
        self.log.append("fill")

    def poison(self, layout):
        self.log.append("poison")
        if self.log[-2:] == ["freeze", "poison"] and "poison" in self.broken:
            raise self.broken["poison"]

    def check(self, layout, exercise):
        self.log.append("check")
        return Mismatch("out", (64,), 1, 64) if self.wrong else None

    def sample(self, **named):
        return sample(self, self.layout, self.exercise, self.peers, self.clock, 7.0, self.excesses, self.aside, **named)


@pytest.fixture
def trial(small_buffers):
    return Trial(small_buffers.lay(CASE, 2))


def test_a_trial_goes_in_order(trial):
    """Fresh inputs; the submission, its check, the look again; then each baseline, while the submission stands still
    and before it can see the poison. The judge's own work is set aside, and waited for.
    """
    found = trial.sample()
    filled = ["aside", "fill", "back"]
    own = [*filled, "poison", "round submission", "aside", "check", "settle", "back", "look"]
    beside = [["freeze", "poison", f"round e:{name}", "thaw"] for name in ("torch", "compile")]
    assert trial.log == [*own, *beside[0], *beside[1]]
    assert trial.limits == [7.0] * 3
    assert trial.head_starts == [True] * 3
    assert list(found) == list(trial.peers)
    assert [reading.trusted for reading in found.values()] == [False, True, True]
    assert [reading.arbiter_s for reading in found.values()] == pytest.approx([1.5e-3] * 3)


def test_baselines_alone_are_all_trusted_and_nobody_is_frozen(trial):
    """Without a submission there is none to hold still, and none to doubt."""
    del trial.peers["submission"]
    found = trial.sample()
    assert trial.log == ["aside", "fill", "back", "poison", "round e:torch", "poison", "round e:compile"]
    assert all(reading.trusted for reading in found.values())


def test_nobody_looks_at_the_outputs_of_a_warm_up(trial):
    """A first round may compile; what it answers is asked again in each that counts."""
    trial.wrong = True
    trial.sample(checked=False)
    beside = [["freeze", "poison", f"round e:{name}", "thaw"] for name in ("torch", "compile")]
    assert trial.log == ["aside", "fill", "back", "poison", "round submission", *beside[0], *beside[1]]


def test_a_wrong_timed_output_ends_the_trial(trial):
    """The error has the mismatch and its case, and no baseline runs for it."""
    trial.wrong = True
    with pytest.raises(TimedWrong) as raised:
        trial.sample()
    assert raised.value.case == "case"
    assert raised.value.mismatch.wrong == 1
    assert trial.log[-3:] == ["check", "settle", "back"]


def test_outputs_that_changed_after_the_look_end_the_trial(trial, monkeypatch):
    """The probed elements must be unchanged after the check."""
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

    monkeypatch.setattr(trials, "time", SimpleNamespace(perf_counter=lambda: now[0], sleep=rest))
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
    monkeypatch.setattr(trials, "time", rests)
    fill = trial.fill
    monkeypatch.setattr(trial, "fill", lambda *given: now.__setitem__(0, 0.1) or fill(*given))
    trial.sample()
    assert [entry for entry in trial.log if entry.startswith("rest")] == ["rest 0.1"]
    assert trial.log.index("rest 0.1") < trial.log.index("round submission")


def test_what_memory_limits_heats_no_gpu(trial, monkeypatch):
    """A long oracle of such an exercise needs no pause, which would take a fifth of a softmax's grading."""
    now = [0.0]
    rests = SimpleNamespace(perf_counter=lambda: now[0], sleep=lambda seconds: trial.log.append(f"rest {seconds:.3g}"))
    monkeypatch.setattr(trials, "time", rests)
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
    """After any error in a baseline's round, the submission's processes run again."""
    trial.broken["e:torch"] = error
    with pytest.raises((BaselineFailed, RuntimeError)) as raised:
        trial.sample()
    assert trial.log[-2:] == ["round e:torch", "thaw"]
    if isinstance(error, WorkerFailed):
        assert raised.value.args == ("e:torch", "gone")


def test_the_submission_goes_on_after_the_arbiter_failed(trial):
    """This includes a GPU without memory for the poison."""
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
    """A shorter round counts for the submission. Added to the baselines too, it would stay hidden."""
    trial.more_us = dict.fromkeys(trial.peers, -600.0)
    found = trial.sample()
    assert found["submission"].arbiter_s == pytest.approx(1.5e-3)
    for peer in ("e:torch", "e:compile"):
        assert found[peer].arbiter_s == pytest.approx(1.2e-3)
        assert found[peer].events_s == pytest.approx(1.5e-3)


def test_the_processors_pace_is_watched_where_the_submission_stands_still(trial, monkeypatch):
    """Before and after each baseline's round: what it does while it runs could slow the processor, too."""

    slow = {3, 4}

    def is_strained(host_speed):
        trial.log.append("host_speed")
        return trial.log.count("host_speed") in slow

    monkeypatch.setattr(HostSpeed, "is_strained", is_strained)
    trial.sample()
    assert "host_speed" not in trial.log[: trial.log.index("freeze")]
    beside = [
        ["freeze", "poison", "host_speed", f"round e:{name}", "host_speed", "thaw"] for name in ("torch", "compile")
    ]
    assert trial.log[-12:] == [*beside[0], *beside[1]]
    assert trial.excesses[-1].strained, "before and after the second"
    slow.update((6, 7))
    trial.sample()
    assert not trial.excesses[-1].strained, "after the first, and before the second"


def test_a_submission_pays_for_what_holds_the_baselines_up(trial, monkeypatch):
    """It pays for leftover GPU work and for processes that are slow to stop, but not for the judge's own work."""
    own, base = trial.peers["submission"], trial.peers["e:torch"]
    for peer, name, seconds in ((own, "freeze", 0.1), (base, "round", 0.2), (trial, "settle", 0.7)):
        before = getattr(peer, name)

        def late(*arguments, before=before, seconds=seconds):
            time.sleep(seconds)
            return before(*arguments)

        monkeypatch.setattr(peer, name, late)
    begun = time.monotonic()
    trial.sample()
    assert 0.39 < 100.0 - own.left_s <= time.monotonic() - begun - 0.69
    assert base.left_s == 100.0


def test_where_no_baseline_is_short_enough_to_tell_a_drift_a_round_that_fills_does(trial):
    """A trusted worker runs it while the submission is stopped, and it gives no reading."""
    trial.more_us = {"submission": 30.0, "e:torch": -200.0, "e:compile": -200.0, FILL: 30.0}
    trial.launches_s = {"e:torch": 0.1, "e:compile": 0.2}
    found = trial.sample()
    assert trial.log[-4:] == ["freeze", "poison", f"round {FILL}", "thaw"]
    assert list(found) == list(trial.peers)
    assert found["submission"].arbiter_s == pytest.approx(1.5e-3)
    trial.launches_s = {"e:torch": 0.1}
    trial.sample()
    assert trial.log[-2:] == ["round e:compile", "thaw"], "one that is short enough tells it"
    del trial.peers["submission"]
    trial.launches_s = {"e:torch": 0.1, "e:compile": 0.2}
    trial.sample()
    assert trial.log[-1] == "round e:compile", "alone, nobody needs to know"


def test_a_fill_that_fails_is_no_fault_of_the_submission(trial):
    trial.launches_s = {"e:torch": 0.1, "e:compile": 0.2}
    trial.broken[FILL] = WorkerFailed(Failure("crash", "gone"))
    with pytest.raises(BaselineFailed, match="gone"):
        trial.sample()


def test_a_spell_of_the_host_makes_no_submission_slower(trial, monkeypatch):
    """While the processor is slow, what the baselines' rounds take longer is taken off the submission's."""
    trial.more_us = {"submission": 75.0, "e:torch": 70.0, "e:compile": 80.0}
    monkeypatch.setattr(HostSpeed, "is_strained", lambda host_speed: False)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5175e-3)
    trial.excesses.clear()
    monkeypatch.setattr(HostSpeed, "is_strained", lambda host_speed: True)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5025e-3)


def test_a_slow_round_of_a_baseline_makes_no_submission_faster(trial):
    """The median of three trials' drifts counts: one slow round changes nothing, two in a row do."""
    trial.sample()
    trial.sample()
    trial.more_us = {"e:torch": 30.0, "e:compile": 35.0}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5e-3)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.485e-3)
    trial.more_us = {}
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.485e-3)
    assert trial.sample()["submission"].arbiter_s == pytest.approx(1.5e-3)


@pytest.mark.parametrize("of_the_host", [True, False])
def test_what_the_host_takes_is_timed_of_everybody_or_of_nobody(trial, of_the_host):
    """Submission, baselines, and the round that only fills outputs: all are queued ahead, or none is."""
    trial.exercise = replace(OWN, of_the_host=of_the_host)
    trial.launches_s = dict.fromkeys(("e:torch", "e:compile"), 80e-3)  # too long to tell a drift
    trial.sample()
    assert trial.head_starts == [not of_the_host] * 4


@pytest.mark.parametrize("own_head_start", [True, False])
def test_a_submission_that_cannot_be_queued_gets_no_credit_for_the_hosts_part(trial, own_head_start):
    """Its calls are made after the flag, the baselines' before; by the clock that is no shorter than the others'."""
    trial.clock = replace(CLOCK, host_s=40 * US)
    found = trial.sample(own_head_start=own_head_start)
    assert trial.head_starts == [own_head_start, True, True]
    assert [reading.arbiter_s for reading in found.values()] == pytest.approx([1.5e-3] * 3)


def test_where_the_hosts_part_is_timed_everybody_gets_the_same_credit(trial):
    """It lies in all rounds, and what it takes as a rule is taken off all of them."""
    more_us = 70.0  # more than the drift takes off
    trial.exercise, trial.clock = replace(OWN, of_the_host=True), replace(CLOCK, host_s=more_us * US)
    trial.more_us = dict.fromkeys(trial.peers, more_us)
    found = trial.sample()
    assert [reading.arbiter_s for reading in found.values()] == pytest.approx([1.5e-3] * 3)
