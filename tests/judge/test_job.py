"""A submission's way to its verdict: when it is graded a second time, and with nobody else alive."""

import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from grader.errors import MachineLacks
from grader.exercises import find
from grader.judge import job as jobs
from grader.judge import rules
from grader.judge.gpu.health import TooLittle
from grader.judge.job import Job
from grader.judge.process.pool import Loaded
from grader.judge.process.worker import Round, WorkerFailed
from grader.judge.timing.trial import HeldUp
from grader.verdict import CaseResult, Environment, Failure, Finding, Mismatch, Part, Timing

ADD = find("vector_add")
SOURCE = "import torch\ndef vector_add(x, y, out): torch.add(x, y, out=out)\n"  # which breaks a rule
RULES = [finding.kind for finding in rules.of_source(SOURCE, ADD)]


class Worker:
    log = ""

    def __init__(self, left_s):
        self.closed, self.left_s = False, left_s

    def close(self):
        self.closed = True


class World:
    """A bench and a timer at once; `disputes` says for each attempt whether a gate hangs on the clock in it."""

    device = "cuda"

    def __init__(self, disputes, failures=()):
        self.disputes, self.failures = list(disputes), list(failures)
        self.log, self.workers = [], []
        self.machine = SimpleNamespace(slowness=1.0)
        self.takes_s = 0.0  # to load it
        self.disputed = self.one_queue = False
        self.buffers = SimpleNamespace(fits=lambda case: True, warm=lambda cases: None, short=lambda: False)
        self.pool = SimpleNamespace(
            busy=False,
            profiled=False,
            expect=lambda jobs: None,
            reset=lambda: self.log.append("reset"),
            be_still=lambda: self.log.append("still"),
        )

    def take(self, source, exercise, left_s, one_queue):
        assert all(worker.closed for worker in self.workers), "no submission is alive"
        self.log.append("take one of one queue" if one_queue else "take")
        self.workers.append(Worker(left_s - self.takes_s))
        return Loaded(self.workers[-1], None, beside=self.pool.busy, waited_s=self.takes_s)

    def know_baselines(self):
        assert all(worker.closed for worker in self.workers), "no submission is alive"
        self.log.append("know the baselines")

    def forget(self):
        self.disputed = False
        self.log.append("forget the times")

    def settle(self):
        assert self.workers[-1].closed
        self.disputed = self.disputes.pop(0)
        return [Finding("disturbed", f"attempt {len(self.workers)}")]

    def job(self, monkeypatch):
        job = Job(self, SOURCE, ADD, True, lambda *_: None)
        job.timer = self

        def run(loaded):
            job.cases.append(CaseResult(f"attempt {len(self.workers)}", True))
            failure = self.failures.pop(0) if self.failures else None
            if failure is HeldUp:
                self.one_queue = True
                raise HeldUp
            return failure

        monkeypatch.setattr(job, "_run", run)
        return job


ONCE = ["know the baselines", "take"]
AGAIN = [*ONCE, "still", "forget the times", "take"]


def test_a_submission_is_graded_once_where_no_gate_hangs_on_the_clock(monkeypatch):
    """Findings in the source come first."""
    world = World([False])
    job = world.job(monkeypatch)
    assert job.run() is None
    assert world.log == ONCE
    assert RULES
    assert [finding.kind for finding in job.findings] == [*RULES, "disturbed"]


@pytest.mark.parametrize("second", [False, True])
def test_where_a_gate_hangs_on_the_clock_another_process_is_timed_and_only_that_counts(monkeypatch, second):
    """Once, with nobody else alive: there is no third draw."""
    world = World([True, second])
    job = world.job(monkeypatch)
    assert job.run() is None
    assert world.log == AGAIN
    assert [case.name for case in job.cases] == ["attempt 2"]
    assert [finding.kind for finding in job.findings] == [*RULES, "disturbed"]
    assert job.findings[-1].sentence == "attempt 2"


def test_the_time_of_slow_work_is_divided_by_the_judge_s_own_clock(monkeypatch):
    """Not by a claim of the worker, which may have failed."""
    world = World([False])
    world.machine = SimpleNamespace(
        slowness=1.0, copy_gbps=4000.0, peak_tflops=700.0, gpu="GPU", multiprocessors=132, driver="", torch=""
    )
    world.scales = {case.name: 1 for case in ADD.timed_cases}
    us = {case.name: 4 * ADD.bytes_moved(case) / 4e6 for case in ADD.timed_cases}
    world.timings = lambda cases: [
        Timing(case.name, "submission", us[case.name], 1, 1, 1, 0.25, 7, 16) for case in cases
    ]
    world.environment = lambda record: Environment("cuda", copy_gbps=4000.0, peak_tflops=700.0)
    job = world.job(monkeypatch)

    def fail(name, limit_s):
        raise WorkerFailed(Failure("crash", "It crashed."))

    job._say_why(SimpleNamespace(evidence=fail))
    assert job.breakdown.unit == "time"
    assert job.breakdown.parts[0] == Part("bytes that must move", pytest.approx(0.25))
    job._forget()
    assert job.breakdown is None


ON_ONE_QUEUE = [*ONCE, "forget the times", "take one of one queue"]


@pytest.mark.parametrize(
    ("then", "log"),
    [(False, []), (True, ["still", "forget the times", "take one of one queue"])],
)
def test_what_its_streams_hold_up_is_timed_on_one_queue_from_then_on(monkeypatch, then, log):
    """Only that counts, and nothing is settled of what does not. Others may go on to load meanwhile."""
    world = World([then, False], [HeldUp])
    job = world.job(monkeypatch)
    assert job.run() is None
    assert world.log == [*ON_ONE_QUEUE, *log]
    attempt = f"attempt {3 if log else 2}"
    assert [case.name for case in job.cases] == [attempt]
    assert [finding.sentence for finding in job.findings[len(RULES) :]] == [attempt]


def test_what_fails_on_one_queue_has_failed(monkeypatch):
    """The earlier attempt does not matter."""
    world = World([False], [HeldUp, Failure("crash", "second")])
    assert world.job(monkeypatch).run().message == "second"
    assert world.log == ON_ONE_QUEUE


@pytest.mark.parametrize("kind", ["implausible", "crash"])
def test_what_failed_is_not_timed_in_another_process(monkeypatch, kind):
    """The clocks do not matter then."""
    world = World([True, False], [Failure(kind, "first")])
    assert world.job(monkeypatch).run() is not None
    assert world.log == ONCE


def test_a_wrong_answer_gets_no_second_draw(monkeypatch):
    """A result that is right only now and then is not repeated because a gate depends on the clock."""
    world = World([True, False])
    job = world.job(monkeypatch)
    monkeypatch.setattr(job, "_run", lambda loaded: job.cases.append(CaseResult("x, while timed", False)))
    job.run()
    assert world.log == ONCE
    assert [case.passed for case in job.cases] == [False]


@pytest.mark.parametrize("said", ["CUDA out of memory.", "Triton Error [CUDA]: out of memory"])
def test_a_gpu_that_the_submission_has_filled_is_its_own_failure(monkeypatch, said):
    """If any of the judge's libraries runs out of memory, there is a verdict and the judge goes on."""
    world = World([False])
    job = world.job(monkeypatch)

    def run(loaded):
        raise RuntimeError(said)

    monkeypatch.setattr(job, "_run", run)
    failure = job.run()
    assert (failure.kind, world.workers[0].closed) == ("limit", True)


def test_a_gpu_that_others_have_filled_is_no_submissions_failure(monkeypatch):
    """Without the submission there is no more memory than with it: the arbiter makes way, and begins again."""
    world = World([False])
    world.buffers.short = lambda: True
    job = world.job(monkeypatch)
    monkeypatch.setattr(jobs, "stays", lambda short: short())

    def run(loaded):
        raise RuntimeError("CUDA out of memory.")

    monkeypatch.setattr(job, "_run", run)
    with pytest.raises(RuntimeError, match="out of memory"):
        job.run()
    assert world.workers[0].closed


def test_a_submission_that_has_ended_is_given_time_to_let_go_before_the_rest_must_fit(monkeypatch):
    """Its memory takes a while to become free; a case without room at that moment is not the machine's fault."""
    world, held = World([False]), []
    world.buffers.short = lambda: bool(held and held.pop())
    world.buffers.fits = lambda case: not held
    job = world.job(monkeypatch)

    def run(loaded):
        held.extend([True, True])
        raise RuntimeError("CUDA out of memory.")

    monkeypatch.setattr(job, "_run", run)
    assert job.run().kind == "limit"


@pytest.mark.parametrize(("capacity", "error"), [(1, TooLittle), (0, MachineLacks)])
def test_cases_that_find_no_room_are_said_before_anything_is_graded(monkeypatch, capacity, error):
    """If they fit the arenas, a judge with smaller ones may have room; if not, none has."""
    world = World([])
    world.buffers.fits, world.buffers.capacity = lambda case: False, lambda case: capacity
    world.pool.evict, world.buffers.rest = (lambda: world.log.append("evict")), (lambda: world.log.append("rest"))
    monkeypatch.setattr(jobs, "stays", lambda short: short())
    with pytest.raises(error, match=r"needs more memory than this machine has free\. If other notebooks") as raised:
        world.job(monkeypatch).run()
    assert type(raised.value) is error
    assert world.log == ["evict", "rest"]


def test_what_one_that_was_loaded_ahead_held_is_waited_for(monkeypatch):
    """Its memory takes a while to become free, which is not the machine's fault."""
    world, looks = World([False]), iter([False, False, True])
    world.buffers.fits = lambda case: next(looks, True)
    world.pool.evict = world.buffers.rest = lambda: None
    assert world.job(monkeypatch).run() is None
    assert next(looks, "asked each time") == "asked each time"


def test_what_the_judge_itself_held_when_memory_ran_out_is_not_counted_as_somebody_elses(monkeypatch):
    """The frames that the error came through hold tensors; they are gone by the time that memory is looked at."""
    world, held = World([False]), weakref.WeakSet()
    world.buffers.short = lambda: bool(held)
    job = world.job(monkeypatch)
    monkeypatch.setattr(jobs, "stays", lambda short: short())

    def run(loaded):
        tensor = torch.empty(1)
        held.add(tensor)
        raise RuntimeError("CUDA out of memory.")

    monkeypatch.setattr(job, "_run", run)
    assert job.run().kind == "limit"


def test_a_grading_has_one_time_for_all_that_it_waits_for(monkeypatch):
    """Import, cases and timing: a limit that is reached late leaves nothing for a second attempt."""
    world = World([False])
    world.pool.busy, world.takes_s = True, 29.0
    job = world.job(monkeypatch)

    def run(loaded):
        assert loaded.worker.left_s == pytest.approx(ADD.wall_limit_s - 29.0)
        loaded.worker.left_s = -0.1
        return Failure("timeout", "late")

    monkeypatch.setattr(job, "_run", run)
    assert job.run().message == "late"
    assert world.log == ONCE


def test_a_second_attempt_has_what_the_first_has_left(monkeypatch):
    """This applies if others were alive, because they may have caused the failure."""
    world, left = World([False, False]), []
    world.pool.busy, world.takes_s = True, 10.0
    job = world.job(monkeypatch)

    def run(loaded):
        left.append(loaded.worker.left_s)
        loaded.worker.left_s -= 20.0
        return Failure("timeout", "too slow") if len(left) == 1 else None

    monkeypatch.setattr(job, "_run", run)
    assert job.run() is None
    assert left == [pytest.approx(ADD.wall_limit_s - spent) for spent in (10.0, 40.0)]


def test_further_workers_have_what_is_left_too():
    """They look for what an earlier call has left, for example; a submission cannot make that longer than its limit."""
    world, given = World([]), []

    class Another(Worker):
        def in_turn(self, left_s, whole_s):
            given.append(left_s)
            self.left_s = left_s

        def load(self, *args, **options):
            self.left_s -= 20.0

        def map(self, buffers):
            self.left_s -= 10.0

    world.pool.fresh = lambda: Another(0.0)
    job = Job(world, SOURCE, ADD, True, lambda *_: None)
    for _ in range(2):
        with job._another_worker():
            pass
    assert given == [job.whole_s, pytest.approx(job.whole_s - 30.0)]


def test_right_work_that_is_repeated_has_half_of_its_time_again_once(monkeypatch):
    """If the clocks differ or its streams start late, the submission gets time for a repeat, but only once."""
    world, left = World([True, False]), []
    job = world.job(monkeypatch)

    def run(loaded):
        left.append(loaded.worker.left_s)
        loaded.worker.left_s -= 60.0 if len(left) == 1 else 40.0
        if len(left) == 1:
            raise HeldUp
        job.cases.append(CaseResult("right", True))

    monkeypatch.setattr(job, "_run", run)
    assert job.run() is None
    assert left == [pytest.approx(ADD.wall_limit_s - spent) for spent in (0.0, 45.0, 85.0)]


@pytest.mark.parametrize(("device", "times"), [("cuda", 1), ("simulator", 2)])
def test_a_slow_host_and_a_simulator_give_more_time(device, times):
    """As measured when the judge began."""
    world = World([])
    world.device, world.machine.slowness = device, 3.0
    assert Job(world, SOURCE, ADD, False, lambda *_: None).whole_s == 3.0 * times * ADD.wall_limit_s


def test_an_error_of_the_judges_own_is_no_submissions_failure(monkeypatch):
    """It ends the judge, as it did: nobody is blamed for it."""
    world = World([False])
    job = world.job(monkeypatch)

    def run(loaded):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(job, "_run", run)
    with pytest.raises(RuntimeError, match="a bug of ours"):
        job.run()


@pytest.mark.parametrize(
    ("measured", "busy", "again"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_wrong_answer_about_a_time_is_asked_again_where_others_were_alive(monkeypatch, measured, busy, again):
    """A neighbour's kernel may have changed the time between the truth and the answer, but it cannot change a count."""
    world = World([False, False])
    world.pool.busy = busy
    job = world.job(monkeypatch)
    job.exercise = replace(ADD, cases=tuple(replace(case, measured=measured) for case in ADD.cases))
    wrong = CaseResult(ADD.cases[0].name, False, mismatch=Mismatch("out", (), 1, 1, None, "3.0", "2.0", 1.0))
    results = [wrong, CaseResult(ADD.cases[0].name, True)]
    monkeypatch.setattr(job, "_run", lambda loaded: job.cases.append(results.pop(0)))
    job.run()
    assert world.log == ([*ONCE, "reset", "forget the times", "take"] if again else ONCE)
    assert [case.passed for case in job.cases] == [again]


def test_a_clock_is_for_gates_alone(monkeypatch):
    """Where nothing is timed the GPU may be busy: no baseline is started, and no clock calibrated."""
    world = World([False])
    job = Job(world, SOURCE, replace(ADD, gates=()), True, lambda *_: None)
    job.timer = world
    monkeypatch.setattr(job, "_run", lambda loaded: None)
    job.run()
    assert world.log == ["take"]


def test_a_second_failure_stands(monkeypatch):
    """In the other process, too, it counts."""
    world = World([True, True], [None, Failure("implausible", "second")])
    assert world.job(monkeypatch).run().message == "second"
    assert world.log == AGAIN


@pytest.mark.parametrize(
    ("made", "device", "said"),
    [("s = torch.cuda.Stream()", "cuda", True), ("s = torch.cuda.Stream()", "simulator", False), ("", "cuda", False)],
)
@pytest.mark.parametrize("suspect", ["", "The exercise's own."])
def test_a_wrong_answer_from_a_stream_that_waits_for_nobody_is_told(made, device, said, suspect):
    """Where what came out does not say more; without a GPU there are no streams."""
    world, nothing = World([]), lambda *_: None
    world.device = device
    wrong = replace(Mismatch("out", (), 1, 1), suspect=suspect)
    world.buffers = SimpleNamespace(lay=nothing, fill=nothing, poison=nothing, check=lambda *_: wrong,
                                 unwritten=lambda layout: False)  # fmt: skip
    job = Job(world, f"{SOURCE}{made}\n", ADD, True, nothing)
    one = Round(0, 0, 0, None, None, b"")
    found = job._case(SimpleNamespace(plan=nothing, round=lambda *_: one), ADD.cases[0]).mismatch
    assert found.suspect == suspect if suspect else ("stream of its own" in found.suspect) is said


@pytest.mark.parametrize(
    ("wrong", "not_finite", "outside", "own", "told"),
    [(4, 4, 0, "", True), (4, 3, 0, "", False), (0, 0, 2, "", False), (4, 4, 0, "The exercise's own.", False)],
)
@pytest.mark.parametrize("overflow", ["", "Overflow: 32 bits."])
def test_an_unset_element_explains_only_a_wholly_nan_error(wrong, not_finite, outside, own, told, overflow):
    """Right work may read one and not use it, so it explains neither finite values nor writes outside the output.

    An overflow was seen, where a suspect is guessed, so it takes the place of one; an element must be wrong.
    """
    world, nothing = World([]), lambda *_: None
    world.device = "simulator"
    found = Mismatch("out", (), wrong, 8, not_finite=not_finite, outside=outside, suspect=own)
    world.buffers = SimpleNamespace(lay=nothing, fill=nothing, poison=nothing, zero=nothing, check=lambda *_: found,
                                 unwritten=lambda layout: False)  # fmt: skip
    job = Job(world, SOURCE, ADD, True, nothing)
    one = Round(0, 0, 0, None, None, b"", cause="Shared memory.", overflow=overflow)
    mismatch = job._case(SimpleNamespace(plan=nothing, round=lambda *_: one), ADD.cases[0]).mismatch
    assert mismatch.suspect == ("Shared memory." if told else overflow if wrong and overflow else own)


@pytest.mark.parametrize(
    ("said", "again"),
    [("BlockingIOError: [Errno 11] Resource temporarily unavailable", True), ("ValueError: no", False)],
)
def test_what_a_machine_says_that_is_used_up_may_be_the_doing_of_others(monkeypatch, said, again):
    """It is tried again without them; what is wrong with the submission itself is not."""
    world = World([False, False])
    world.pool.busy = True
    job = world.job(monkeypatch)
    failures = [Failure("exception", said), None]
    monkeypatch.setattr(job, "_run", lambda loaded: failures.pop(0))
    job.run()
    assert bool(failures) != again
