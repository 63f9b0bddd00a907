"""Workers ahead of need: what loads, what waits, and what is gone when nobody asks for it any more."""

import contextlib
import os
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader.errors import JudgeStopped
from grader.exercises import find
from grader.judge import arbiter as arbiters
from grader.judge import bench as benches
from grader.judge.gpu import health
from grader.judge.gpu.ceilings import Machine
from grader.judge.gpu.health import TooLittle
from grader.judge.process import pool as pools
from grader.judge.process.pool import Pool
from grader.judge.process.worker import WorkerFailed
from grader.judge.timing.clock import Clock
from grader.judge.timing.trial import HeldUp
from grader.verdict import Failure
from tests.pace import PACE

ADD = find("vector_add")


def source(name):
    """A submission with its own name."""
    return f"def vector_add(x, y, out): {name}"


def until(condition, within_s=10.0):
    """Waits for what other threads bring about."""
    deadline = time.monotonic() + within_s * PACE
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.002)


class Workers:
    """All workers of a test. `start` and `loads` are gates that hold each worker up until they are opened."""

    def __init__(self):
        self.made = []
        self.start, self.loads = threading.Event(), threading.Event()
        self.start.set()
        self.loads.set()
        self.fails = set()  # of the stages, and of the texts of sources
        self.start_up_quiet = []

    def loaded(self):
        return [one.source for one in self.made if one.source]

    def of(self, text):
        return next(one for one in self.made if one.source == text)

    def alive(self):
        return [one for one in self.made if not one.ended]

    def make(self, device, sandbox, quiet):
        worker = FakeWorker(self, device, sandbox, quiet)
        self.made.append(worker)
        return worker


class FakeWorker:
    """Records the pool's calls to a worker. Threads that wait for a killed worker get a WorkerFailed."""

    def __init__(self, workers, device, sandbox, quiet):
        self.workers, self.device, self.sandbox, self.quiet = workers, device, sandbox, quiet
        self.stages = []
        self.source = ""
        self.frozen = self.killed = self.closed = False
        self.holds = []

    @property
    def ended(self):
        return self.killed or self.closed

    def _stage(self, name, gate=None):
        self.stages.append(name)
        for _ in range(2000):  # a failing test does not wait forever
            if self.ended or gate is None or gate.wait(0.002):
                break
        if self.ended or name in self.workers.fails:
            raise WorkerFailed(Failure("crash", name))

    def await_imports(self):
        self._stage("imports", self.workers.start)

    def start_up(self, one_queue):
        self.one_queue = one_queue
        self._stage("start up")

    def warm_up(self, profiler):
        self.profiler = profiler
        self._stage("warm up")

    def greet(self):
        if self.ended:
            raise WorkerFailed(Failure("crash", "ended"))

    def load(self, name, text, entry, limit_s, harness):
        assert (name, harness) == ("submission", ADD.harness)
        self.limit_s = limit_s
        assert not self.source, "a worker is used once"
        if self.ended:
            raise WorkerFailed(Failure("crash", "ended"))
        self.source, self.entry = text, entry
        self._stage(text, self.workers.loads)
        if text in self.workers.fails:
            raise WorkerFailed(Failure("exception", text))

    def rehearse(self, name, cases, limit_s):
        assert (name, cases) == ("submission", [*ADD.cases, *ADD.timed_cases])
        self.stages.append("rehearsal")

    def in_turn(self):
        self.stages.append("in turn")

    def hold(self):
        self.holds.append("hold")

    def release(self):
        self.holds.append("release")

    def freeze(self):
        self.frozen = True

    def thaw(self):
        self.frozen = False

    def kill(self):
        self.killed = True

    def close(self):
        self.killed = self.closed = True


@pytest.fixture
def workers(monkeypatch):
    workers = Workers()
    monkeypatch.setattr(pools, "Worker", workers.make)
    return workers


@pytest.fixture
def pool(workers, monkeypatch):
    """Makes pools as on a machine with so many cores, and closes them."""
    made = []

    def make(cores=16, device="simulator", **options):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
        made.append(Pool(device, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def jobs(*names):
    return [(source(name), ADD) for name in names]


@pytest.mark.parametrize(
    ("cores", "free_bytes", "ahead"),
    [(1, None, 1), (2, None, 1), (4, None, 1), (6, None, 3), (64, None, 8), (64, 5 << 30, 2), (64, 0, 1)],
)
def test_as_many_load_ahead_as_there_is_room_for(pool, workers, cores, free_bytes, ahead):
    """The first in line, up to what cores and GPU memory allow; the others wait their turn."""
    here = pool(cores, free_bytes=free_bytes)
    here.expect(jobs(*"0123456789"))
    until(lambda: len(workers.loaded()) == ahead)
    assert here.busy
    time.sleep(0.05)
    here.close()
    assert set(workers.loaded()) == {source(name) for name in "0123456789"[:ahead]}


@pytest.mark.parametrize(("cores", "at_once"), [(2, 1), (6, 3), (10, 5), (64, 11)])
def test_half_of_the_cores_start_workers_at_once(pool, workers, cores, at_once):
    """To start is work for a core, and who is timed and who loads need theirs; the others start after these."""
    workers.start.clear()
    here = pool(cores)
    here.expect(jobs(*"0123456789"))
    here.refill(3)
    until(lambda: len(workers.made) == at_once)
    time.sleep(0.05)
    assert len(workers.made) == at_once
    workers.start.set()
    until(lambda: len(workers.loaded()) == here._ahead)


def test_they_load_in_the_order_in_which_they_will_be_asked_for(pool, workers):
    """With room for one ahead, each loads when the one before it is taken."""
    here = pool(cores=2)
    for at in range(4):
        here.expect(jobs(*"abcd"[at:]))
        loaded = here.take(source("abcd"[at]), ADD)
        assert loaded.worker.source == source("abcd"[at])
    assert workers.loaded() == [source(name) for name in "abcd"]


def test_the_one_that_loaded_ahead_is_taken(pool, workers):
    """It is loaded once, by a worker that then stands still until its turn."""
    here = pool()
    here.expect(jobs("a", "b"))
    until(lambda: len(workers.loaded()) == 2 and all(workers.of(text).frozen for text, _ in jobs("a", "b")))
    loaded = here.take(source("a"), ADD)
    assert loaded.failure is None
    assert loaded.worker is workers.of(source("a"))
    assert not loaded.worker.frozen
    assert workers.of(source("b")).frozen
    assert sorted(workers.loaded()) == [source("a"), source("b")]
    assert here.busy, "b is ahead still"
    here.expect([])
    assert not here.busy
    assert not loaded.worker.ended, "who was taken is not expected any more, and lives"


@pytest.mark.parametrize(
    ("device", "backend", "rehearsed"),
    [("cuda", "triton", ["b", "c"]), ("cuda", "cuda", ["b", "c"]), ("cuda", "numba", []), ("simulator", "triton", [])],
)
def test_what_has_to_wait_for_its_turn_has_its_kernels_compiled_meanwhile(pool, workers, device, backend, rehearsed):
    """The first one's turn has come, and some backends have no compiler. The worker is stopped afterwards."""
    here = pool(device=device)
    here.expect([(text, replace(exercise, backend=backend)) for text, exercise in jobs("a", "b", "c")])
    until(lambda: len(workers.loaded()) == 3 and all(workers.of(text).frozen for text, _ in jobs("a", "b", "c")))
    assert [name for name in "abc" if "rehearsal" in workers.of(source(name)).stages] == rehearsed


def test_what_is_not_ahead_is_loaded_when_it_is_taken(pool, workers):
    """A single check takes a worker that is ready, loads it, and thaws it."""
    here = pool()
    until(lambda: workers.made and workers.made[0].stages[-1:] == ["warm up"])
    loaded = here.take(source("a"), ADD)
    assert loaded.worker is workers.made[0]
    assert (loaded.worker.source, loaded.worker.frozen) == (source("a"), False)
    assert not here.busy


def test_one_of_one_queue_is_started_when_it_is_taken(pool, workers):
    """The worker ahead has several queues, and stays for the same submission."""
    here = pool()
    here.expect(jobs("a"))
    until(lambda: workers.loaded() == [source("a")])
    loaded = here.take(source("a"), ADD, one_queue=True)
    assert loaded.worker is workers.made[-1]
    assert (loaded.worker.source, loaded.worker.frozen) == (source("a"), False)
    others = [one for one in workers.made if one is not loaded.worker and "start up" in one.stages]
    assert others
    assert not any(one.one_queue for one in others)
    assert here.take(source("a"), ADD).worker is workers.of(source("a"))


def test_the_same_source_for_another_exercise_is_another_job(pool, workers):
    """Nothing is mixed up that differs in the exercise alone."""
    here = pool()
    both = source("a") + "\ndef softmax(x, out): pass"
    here.expect([(both, ADD)])
    until(lambda: workers.loaded() == [both])
    loaded = here.take(both, find("softmax"))
    assert loaded.worker is not workers.of(both)
    assert loaded.worker.entry == "softmax"


def test_a_submission_that_does_not_load_is_told_when_it_is_taken(pool, workers):
    """The failure is kept, and its worker to read the log of."""
    here = pool()
    workers.fails.add(source("a"))
    here.expect(jobs("a"))
    loaded = here.take(source("a"), ADD)
    assert loaded.failure.message == source("a")
    assert loaded.worker is workers.of(source("a"))
    assert loaded.worker.closed, "what it started at import is gone, too"


def test_what_is_refused_unread_is_not_loaded(pool, workers):
    """A source without the function costs no worker."""
    here = pool()
    here.expect([("x = 1", ADD), *jobs("a")])
    until(lambda: workers.loaded() == [source("a")])
    assert len(workers.made) == 1


@pytest.mark.parametrize(("names", "beside"), [("a", False), ("ab", True)])
def test_it_is_known_whether_others_loaded_beside_it(pool, workers, names, beside):
    """They may have taken memory or time that it lacked, also where they are done when it fails."""
    here = pool()
    here.expect(jobs(*names))
    assert here.take(source("a"), ADD).beside is beside
    assert here.take(source("not ahead"), ADD).beside is False


def test_expecting_twice_loads_once(pool, workers):
    """Each request names the next ones again."""
    here = pool()
    for _ in range(3):
        here.expect(jobs("a", "b"))
    until(lambda: len(workers.loaded()) == 2)
    here.close()
    assert sorted(workers.loaded()) == [source("a"), source("b")]


def test_what_is_no_longer_expected_is_ended(pool, workers):
    """Its process at once, its channel when it has loaded; what is expected still stays."""
    here = pool()
    here.expect(jobs("a", "b"))
    until(lambda: len(workers.loaded()) == 2)
    here.expect(jobs("b", "c"))
    assert workers.of(source("a")).killed
    until(lambda: workers.of(source("a")).closed)
    until(lambda: len(workers.loaded()) == 3)
    assert not workers.of(source("b")).ended
    here.expect([])
    until(lambda: all(workers.of(text).closed for text in workers.loaded()))


def test_a_load_that_goes_on_is_ended_with_its_worker(pool, workers):
    """An endless compiler does not keep its core."""
    here = pool()
    workers.loads.clear()
    here.expect(jobs("a"))
    until(lambda: workers.loaded() == [source("a")])
    here.expect([])
    until(lambda: workers.of(source("a")).closed)


@pytest.mark.parametrize("end", ["expect", "evict", "reset"])
def test_what_is_let_go_while_its_worker_starts_never_runs(pool, workers, end):
    """Baselines are timed alone after this: no code of a submission may begin to run then."""
    workers.start.clear()
    here = pool()
    here.expect(jobs("a"))
    until(lambda: workers.made and workers.made[0].stages == ["imports"])
    here.expect([]) if end == "expect" else getattr(here, end)()
    workers.start.set()
    until(lambda: workers.made[0].closed)
    assert workers.loaded() == []


def test_evicted_ones_are_loaded_again_when_their_turn_comes(pool, workers):
    """All workers with submissions end; on request, a submission gets a new worker."""
    here = pool()
    here.expect(jobs("a", "b"))
    until(lambda: len(workers.loaded()) == 2)
    before = [workers.of(text) for text, _ in jobs("a", "b")]
    here.evict()
    assert not here.busy
    assert all(worker.killed for worker in before)
    until(lambda: all(worker.closed for worker in before))
    loaded = here.take(source("a"), ADD)
    assert loaded.failure is None
    assert loaded.worker not in before
    assert loaded.worker.source == source("a")


def test_eviction_leaves_those_that_have_run_nobodys_code(pool, workers):
    """A fresh worker disturbs nobody, and is ready for the next submission."""
    here = pool()
    until(lambda: workers.made and workers.made[0].stages[-1:] == ["warm up"])
    here.evict()
    assert here.take(source("a"), ADD).worker is workers.made[0]


def test_a_reset_ends_the_fresh_ones_too(pool, workers):
    """Workers that started while others ran may be missing resources that these took."""
    here = pool()
    here.expect(jobs("a"))
    here.refill(2)
    until(lambda: len(workers.made) == 3 and all(worker.stages[-1] not in ("imports",) for worker in workers.made))
    before = list(workers.made)
    here.reset()
    until(lambda: all(worker.closed for worker in before))
    assert here.take(source("a"), ADD).worker not in before


def test_a_reset_spares_the_one_in_hand(pool, workers):
    """A worker belongs to its taker."""
    here = pool()
    loaded = here.take(source("a"), ADD)
    here.reset()
    assert not loaded.worker.ended


def test_no_context_is_made_while_something_is_timed(pool, workers):
    """Imports go on, the work on the GPU waits for the quiet to end."""
    here = pool()
    until(lambda: workers.made and workers.made[0].stages[-1:] == ["warm up"])
    with here.quiet:
        here.expect(jobs("a", "b"))
        until(lambda: len(workers.made) == 2 and workers.made[1].stages == ["imports"])
        until(lambda: workers.loaded() == [source("a")])  # by the fresh one, which has its context
        time.sleep(0.1)
        assert workers.made[1].stages == ["imports"]
    until(lambda: len(workers.loaded()) == 2)


def test_while_something_is_timed_all_are_held_and_none_is_made(pool, workers):
    """This holds for loading and starting workers. A worker requested meanwhile is created later."""
    here = pool()
    until(lambda: workers.made and workers.made[0].stages[-1:] == ["warm up"])
    workers.loads.clear()
    here.expect(jobs("a"))
    until(lambda: workers.loaded())
    before = list(workers.made)
    with here.still():
        assert [worker.holds for worker in before] == [["hold"]] * len(before)
        here.expect(jobs("a", "b", "c"))
        time.sleep(0.1)
        assert workers.made == before
    assert [worker.holds for worker in before] == [["hold", "release"]] * len(before)
    until(lambda: len(workers.made) > len(before))
    with pytest.raises(ValueError, match="timed"), here.still():
        raise ValueError("timed")
    assert [worker.holds for worker in before] == [["hold", "release"] * 2] * len(before)
    workers.loads.set()


def test_a_worker_is_told_of_the_quiet_and_how_it_is_caged(pool, workers):
    """It reads no output while something is timed, and it runs in the requested sandbox."""
    here = pool(device="simulator", sandbox=False)
    until(lambda: len(workers.made) == 1)
    worker = workers.made[0]
    assert worker.quiet is here.quiet
    assert (worker.device, worker.sandbox) == ("simulator", False)


def test_a_fresh_worker_is_in_turn_and_not_used_again(pool, workers):
    """The baselines' worker has run nobody's code, and nobody gets it after them."""
    here = pool()
    worker = here.fresh()
    assert worker.stages == ["imports", "start up", "warm up", "in turn"]
    assert here.take(source("a"), ADD).worker is not worker


@pytest.mark.parametrize(("device", "count"), [("simulator", 1), ("cuda", 2)])
def test_there_is_one_ahead_and_one_for_the_baselines(pool, workers, device, count):
    """At the start, and no more however often it is refilled."""
    here = pool(device=device)
    for _ in range(3):
        here.refill()
    until(lambda: len(workers.made) == count)
    here.close()
    assert len(workers.made) == count


def test_a_class_has_more_of_them_until_it_is_over(pool, workers):
    """A submission loaded ahead may have to end; it is loaded again without waiting for imports."""
    here = pool(16)
    here.expect(jobs("a", "b"))
    here.take(source("a"), ADD)
    until(lambda: len(workers.made) == 5 and all("warm up" in worker.stages for worker in workers.made))
    here.trim()
    until(lambda: sum(worker.closed for worker in workers.made) == 1)
    here.trim()
    time.sleep(0.05)
    assert sum(worker.closed for worker in workers.made) == 1


@pytest.mark.parametrize(("cores", "made"), [(2, 1), (16, 2)])
def test_on_few_cores_the_next_worker_starts_later(pool, workers, cores, made):
    """There its start would disturb the one that was taken; the arbiter refills when that one is done."""
    here = pool(cores)
    here.expect(jobs("a"))
    here.take(source("a"), ADD)
    until(lambda: len(workers.made) == made)
    time.sleep(0.05)
    assert len(workers.made) == made


@pytest.mark.parametrize("starting", ["to be fresh", "to load"])
def test_a_pool_that_is_still_neither_loads_nor_starts(pool, workers, starting):
    """Those ahead are ended, and who is starting is waited for, whatever for: imports take a core for seconds."""
    here = pool(16)
    here.expect(jobs("b", "c"))
    until(lambda: len(workers.loaded()) == 2)
    workers.start.clear()
    if starting == "to be fresh":
        here.refill()
    else:
        here.expect(jobs("b", "c", "d", "e"))
    until(lambda: any("warm up" not in worker.stages for worker in workers.made))
    threading.Timer(0.1, workers.start.set).start()
    here.be_still()
    assert all(worker.ended for worker in workers.made if worker.source)
    assert not here.busy
    assert all("warm up" in worker.stages for worker in workers.made)


@pytest.mark.parametrize("stage", ["imports", "start up", "warm up"])
def test_a_worker_that_does_not_come_up_is_closed_and_said(pool, workers, stage):
    """The taker gets the error, no process is left, and the next worker may start."""
    workers.fails.add(stage)
    here = pool()
    for ahead in (False, True):
        if ahead:
            here.expect(jobs("a"))
        with pytest.raises(WorkerFailed, match=stage):
            here.take(source("a"), ADD)
    workers.fails.clear()
    here.reset()
    assert here.take(source("a"), ADD).failure is None
    until(lambda: all(worker.closed for worker in workers.made[:2]))


@pytest.mark.parametrize("profiled", [False, True])
def test_the_profiler_is_made_ready_where_it_is_asked_for(pool, workers, profiled):
    """It takes seconds that a learner need not wait."""
    here = pool(cores=2)
    here.take(source("a"), ADD)
    here.profiled = profiled
    here.refill()
    assert here.take(source("b"), ADD).worker.profiler is profiled


def test_a_worker_with_the_profiler_waits_for_the_next_question_and_is_not_graded_in(pool, workers):
    """The profiler makes each launch longer, so what is timed must not have it."""
    here = pool(cores=2)
    here.profiled = True
    assert not here.take(source("first"), ADD).worker.profiler  # a plain one was ready
    here.refill()
    here.profiled = False
    assert not here.take(source("graded"), ADD).worker.profiler
    here.profiled = True
    made = len(workers.made)
    assert here.take(source("second"), ADD).worker.profiler
    assert len(workers.made) == made


def test_what_was_loaded_ahead_with_the_profiler_is_loaded_again_to_be_graded(pool):
    """An explanation of one submission is interrupted, and then the next one is graded instead of explained."""
    here = pool(cores=16)
    here.profiled = True
    here.reset()
    here.expect([(source("asked"), ADD), (source("next"), ADD)])
    assert here.take(source("asked"), ADD).worker.profiler
    here.profiled = False
    here.expect([(source("next"), ADD)])
    assert not here.take(source("next"), ADD).worker.profiler


def test_a_worker_starts_as_it_was_asked_for(pool, workers):
    """Another question, which comes while it imports, does not change that."""
    here = pool(cores=2)
    here.take(source("a"), ADD)
    workers.start.clear()
    here.refill()
    here.profiled = True
    workers.start.set()
    until(lambda: "warm up" in workers.made[-1].stages)
    assert not workers.made[-1].profiler


@pytest.mark.parametrize("cores", [2, 16])
@pytest.mark.parametrize("held", ["start", "loads"])
def test_closing_ends_everything_at_once(pool, workers, cores, held):
    """Workers that import, that load and that stand ready: after `close` none is left, and it is quick."""
    here = pool(cores)
    getattr(workers, held).clear()
    here.expect(jobs(*"abcdefgh"))
    until(lambda: workers.made if held == "start" else workers.loaded())
    started = time.monotonic()
    here.close()
    assert time.monotonic() - started < 2 * PACE
    assert all(worker.closed for worker in workers.made)


def test_a_worker_that_comes_up_while_the_pool_closes_is_ended_too(pool, workers):
    """At any moment, closing goes through to the end."""
    here, stop, interval = pool(), threading.Event(), sys.getswitchinterval()

    def come_up():
        while not stop.is_set():
            with contextlib.suppress(WorkerFailed):
                here._started(profiled=False, one_queue=False)
            if len(workers.made) > 50:
                workers.made.clear()

    here.close()
    coming = threading.Thread(target=come_up)
    sys.setswitchinterval(1e-6)
    try:
        coming.start()
        for _ in range(1000):
            here.close()
    finally:
        stop.set()
        coming.join()
        sys.setswitchinterval(interval)
    here.close()
    assert all(worker.closed for worker in workers.made)


def children():
    """The pids of this process's children, whichever thread started them."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/self/task/{task}/children") as file:
            found |= set(file.read().split())
    return found


def test_a_pool_of_real_workers_closes_while_they_start():
    """No process outlives it, though none had come up yet."""
    before = children()
    here = Pool("simulator", sandbox=False)
    here.expect(jobs("a"))
    until(lambda: children() > before)
    started = time.monotonic()
    here.close()
    assert time.monotonic() - started < 10 * PACE
    assert children() <= before


# What is measured meanwhile


@pytest.fixture
def bench(workers, pool, monkeypatch):
    """A bench over fake workers, and the list of what was measured in it while the pool was quiet or not."""
    here, measured = pool(), []

    def others_wait():
        free = []

        def take():
            free.append(here.quiet.acquire(blocking=False))
            if free[0]:
                here.quiet.release()

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        return not free[0]

    machine = Machine("cuda", "", "", "", "", "", 0, 1.0)
    monkeypatch.setattr(benches, "resolve", lambda device: device)
    monkeypatch.setattr(benches, "Pool", lambda *arguments: here)
    monkeypatch.setattr(benches.sharing, "memory", lambda device: ("shared", ""))
    monkeypatch.setattr(benches, "Buffers", lambda device, machine, staged: SimpleNamespace(arenas={}, machine=machine))
    monkeypatch.setattr(health, "beside_the_buffers", lambda device: None)
    monkeypatch.setattr(Machine, "measure", lambda device: measured.append(("machine", others_wait())) or machine)
    monkeypatch.setattr(benches.health, "settled", lambda machine, limit_s: "")
    monkeypatch.setattr(Clock, "calibrate", lambda *_: measured.append(("clock", others_wait())) or "clock")
    monkeypatch.setattr(
        FakeWorker, "map", lambda self, buffers, trusted=False: self.stages.append("map"), raising=False
    )
    monkeypatch.setattr(FakeWorker, "load", lambda self, name, *_: self.stages.append(name))
    return benches.Bench("simulator"), measured


@pytest.mark.parametrize(
    ("said", "error"),
    [("CUDA out of memory", TooLittle), ("CUDA_ERROR_OUT_OF_MEMORY", TooLittle), ("x", RuntimeError)],
)
def test_a_judge_that_cannot_begin_leaves_no_workers(bench, workers, monkeypatch, said, error):
    """A full GPU is reported in a sentence; in both cases the started workers end."""

    def fail(device):
        raise RuntimeError(said)

    monkeypatch.setattr(benches, "Monitor", fail)
    with pytest.raises(error):
        benches.Bench("simulator")
    assert all(worker.closed for worker in workers.made)


def test_a_second_look_at_the_machine_keeps_the_higher_ceilings(bench, monkeypatch):
    """Nothing makes a ceiling come out too high; what was at work makes it come out too low."""
    here, _ = bench
    for gbps, tflops, kept in ((2.0, 0.0, (2.0, 0.0)), (1.5, 7.0, (2.0, 7.0)), (0.5, 3.0, (2.0, 7.0))):
        monkeypatch.setattr(
            Machine,
            "measure",
            lambda device, it=(gbps, tflops): replace(here.machine, copy_gbps=it[0], peak_tflops=it[1]),
        )
        here.look_at_the_machine_again()
        assert (here.machine.copy_gbps, here.machine.peak_tflops) == kept
        assert here.buffers.machine is here.machine


def test_machine_and_clock_are_measured_in_quiet(bench):
    """No worker makes its context meanwhile; and the clock is calibrated once, not by each worker of the baselines."""
    here, measured = bench
    here.clock_for(here.baseline_worker(ADD, ADD.baselines))
    here.drop_baselines()
    here.clock_for(here.baseline_worker(ADD, ADD.baselines))
    assert measured == [("machine", True), ("clock", True)]


@pytest.fixture
def calm(monkeypatch):
    """The pauses that are made; nobody waits for them."""
    pauses = []
    monkeypatch.setattr(pools, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
    return pauses


def test_nobody_is_alive_while_the_clock_is_calibrated_nor_was_just_now(bench, workers, calm, monkeypatch):
    """Workers ahead are ended. After any submission's end there is a pause, and the GPU has settled. Without one there
    is no pause.
    """
    here, measured = bench
    settled = []
    monkeypatch.setattr(benches.health, "settled", lambda machine, limit_s: settled.append(len(calm)) or "")
    here.clock_for(here.baseline_worker(ADD, ADD.baselines))
    assert (calm, settled) == ([], [0])
    here.pool.take(source("one"), ADD).worker.close()
    here.pool.expect([(source("two"), ADD)])
    until(lambda: sum("submission" in worker.stages for worker in workers.made) == 2)
    here.clock_for(here.baseline_worker(ADD, ADD.baselines))
    assert len(measured) == 2, "the clock is known"
    here.forget_clock()
    here.clock_for(here.baseline_worker(ADD, ADD.baselines))
    assert (len(measured), len(calm), settled) == (3, 1, [0, 1])
    assert calm[0] >= 0.5
    assert not here.pool.busy
    assert all(worker.ended for worker in workers.made if "submission" in worker.stages)


def test_the_clock_is_not_calibrated_beside_a_submission(bench, calm):
    """That would be a judge's bug: better no verdict than one by a clock that a submission has set."""
    here, measured = bench
    base = here.baseline_worker(ADD, ADD.baselines)
    taken = here.take(source("one"), ADD)
    with pytest.raises(RuntimeError, match="while a submission is alive"):
        here.clock_for(base)
    assert [what for what, _ in measured] == ["machine"]
    taken.worker.close()
    here.clock_for(base)
    assert [what for what, _ in measured] == ["machine", "clock"]


def test_the_clock_is_not_calibrated_while_the_gpu_still_ends_what_was_killed(bench, calm, monkeypatch):
    """A clock that overestimates the switch would favour forged events, so the judge stops."""
    here, measured = bench
    monkeypatch.setattr(benches.health, "settled", lambda machine, limit_s: "A kernel is still there.")
    with pytest.raises(JudgeStopped, match="still there"):
        here.clock_for(here.baseline_worker(ADD, ADD.baselines))
    assert [what for what, _ in measured] == ["machine"]


def test_a_plot_of_what_its_streams_hold_up_is_drawn_on_one_queue(bench, calm, monkeypatch):
    """Its earlier readings do not count."""
    here, _ = bench
    here.device = "cuda"
    here.buffers.fits, here.buffers.rest = (lambda case: True), (lambda: None)
    drawn, timer = [], arbiters.Job(here, "", ADD, True, lambda *_: None).timer
    monkeypatch.setattr(arbiters, "Bench", lambda *_: here)

    def time(cases, baselines, trials, worker):
        drawn.append(worker)
        assert not timer.late, "those of the first are forgotten"
        timer.late.add("old")
        if not timer.one_queue:
            timer.one_queue = True
            raise HeldUp

    monkeypatch.setattr("grader.judge.job.Timer", lambda *_: timer)
    monkeypatch.setattr(timer, "know_baselines", lambda: None)
    monkeypatch.setattr(timer, "time", time)
    monkeypatch.setattr(timer, "timings", lambda cases: ["times"])
    assert arbiters.Arbiter().measure(source("plotted"), ADD) == ["times"]
    assert [worker.one_queue for worker in drawn] == [False, True]
    assert all(worker.closed for worker in drawn)


def test_a_second_try_to_start_one_of_one_queue_is_of_one_queue(bench, workers, monkeypatch):
    """The first did not come up."""
    here, _ = bench
    workers.fails.add("imports")
    monkeypatch.setattr(here.pool, "reset", workers.fails.clear)
    loaded = here.take(source("a"), ADD, one_queue=True)
    assert loaded.failure is None
    assert loaded.worker.one_queue


def test_baselines_load_once_in_each_worker(bench):
    """A second submission finds them loaded; after a drop a new worker loads them again."""
    here, _ = bench
    names = [f"vector_add:{baseline.id}" for baseline in ADD.baselines]
    first = here.baseline_worker(ADD, ADD.baselines[:1])
    assert here.baseline_worker(ADD, ADD.baselines) is first
    assert first.stages[-4:] == ["in turn", "map", *names]
    here.drop_baselines()
    assert first.closed
    second = here.baseline_worker(ADD, ADD.baselines)
    assert second is not first
    assert second.stages[-2:] == names


@pytest.mark.parametrize("ended", [True, False])
def test_a_worker_that_ended_before_it_saw_the_submission_is_no_fault_of_it(pool, workers, ended):
    """The kernel may have killed it when memory was short. It counts as loaded with others, so it is tried again."""
    here = pool(cores=1)
    here.refill()
    until(lambda: len(workers.made) == 1 and "warm up" in workers.made[0].stages)
    if ended:
        workers.made[0].killed = True
    else:
        workers.fails.add(source("a"))
    loaded = here.take(source("a"), ADD)
    assert loaded.failure is not None
    assert loaded.beside == ended
