"""Buffers that are staged through the host, because processes cannot share a GPU's memory.

In a simulator, the same copies go to and from private memory of the host.
"""

import os
from types import SimpleNamespace

import pytest

from grader.authoring.stubs import solution
from grader.errors import MachineLacks
from grader.exercise import Array, Case
from grader.exercises import EXERCISES
from grader.judge.arbiter import Arbiter
from grader.judge.checking.buffers import Buffers
from grader.judge.gpu import sharing
from grader.judge.service import Judge
from grader.protocol.arena import CudaArena, HostArena, StagedArena
from tests.judge.submissions import SOFTMAX, VECTOR_ADD, changed

CASE = Case("case", (Array("x", (64,)), Array("out", (64,), role="out")))


@pytest.fixture(scope="module")
def arbiter():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADER_MEMORY", "host")
        arbiter = Arbiter("simulator")
    yield arbiter
    arbiter.close()


@pytest.fixture
def worker(arbiter):
    worker = arbiter.bench.pool.fresh()
    worker.map(arbiter.bench.buffers)
    yield worker
    worker.close()


@pytest.mark.parametrize("exercise", ["vector_add", "transpose", "ls_numba_typed"])
def test_a_reference_is_right(arbiter, exercise):
    """Triton, CUDA C++ and Numba read their inputs and write their outputs in memory that the judge does not see."""
    assert arbiter.bench.buffers.staged
    verdict = arbiter.grade(solution(exercise), EXERCISES[exercise])
    assert (verdict.status, verdict.points) == ("passed", EXERCISES[exercise].correctness_points), verdict
    assert not verdict.environment.practice  # nothing was timed


def test_what_is_wrong_is_found_as_ever(arbiter):
    """Outputs that stay unwritten, and writes outside an output, are still poison and overwritten poison."""
    unwritten = arbiter.grade("def vector_add(x, y, out): pass", EXERCISES["vector_add"])
    mismatch = next(case.mismatch for case in unwritten.cases if case.mismatch)
    assert mismatch.unwritten == mismatch.wrong > 0
    outside = arbiter.grade(changed(SOFTMAX, "axis=0), mask=mask)", "axis=0))"), EXERCISES["softmax"])
    assert next(case.mismatch for case in outside.cases if case.mismatch).outside > 0


def test_a_sum_that_is_added_to_nan_is_named(arbiter):
    """The outputs are run again with 0 in them, in the worker's memory too."""
    source = changed(VECTOR_ADD, "tl.store(out_ptr + at, ", "tl.atomic_add(out_ptr + at, ")
    verdict = arbiter.grade(source, EXERCISES["vector_add"])
    suspects = [case.mismatch.suspect for case in verdict.cases if case.mismatch]
    assert suspects
    assert "NaN + x is NaN" in suspects[0]


def test_each_round_begins_with_its_inputs_and_poison(arbiter, worker):
    """New inputs arrive with each draw, and no round sees what an earlier one wrote."""
    buffers = arbiter.bench.buffers
    layout = buffers.lay(CASE, 2)
    worker.plan(layout)
    for _ in range(2):
        buffers.fill(layout)
        buffers.poison(layout)
        worker.round("", buffers, 30.0, False)
        for launch, (copied,) in zip(layout.launches, buffers.answers(layout), strict=True):
            assert (copied == buffers._private(launch["x"]).double()).all()
    buffers.poison(layout)
    worker.load("nothing", "def nothing(x, out): pass", "nothing", 30.0)
    worker.round("nothing", buffers, 30.0, False)
    assert buffers.unwritten(layout)


def test_only_a_trusted_workers_own_answers_are_copied_back(arbiter):
    """Nobody checks what a baseline writes to the outputs; what it measures is in an arena of its own."""
    buffers = arbiter.bench.buffers
    worker = arbiter.bench.pool.fresh()
    try:
        worker.map(buffers, trusted=True)
        layout = buffers.lay(CASE)
        buffers.fill(layout)
        for planned, arrives in ((layout, False), (buffers.apart(layout), True)):
            buffers.poison(layout)
            worker.plan(planned)
            worker.round("", buffers, 30.0, False)
            ((copied,),) = buffers.answers(planned)
            assert bool((copied == buffers._private(layout.launches[0]["x"]).double()).all()) == arrives
    finally:
        worker.close()


def test_the_carrier_of_the_inputs_cannot_be_written_by_a_worker():
    """Only the judge's mapping is writable, as in the shared arena."""
    buffers = Buffers("simulator", staged=True)
    inputs = buffers.arenas["inputs"]
    assert isinstance(inputs, HostArena)
    with pytest.raises(PermissionError):
        HostArena(inputs.fd, inputs.size, read_only=False)
    assert isinstance(buffers.arenas["outputs"], StagedArena)


def test_a_failure_is_a_verdict_and_the_next_is_graded(arbiter):
    """A worker that ends in mid-round leaves nothing behind."""
    assert arbiter.grade("def vector_add(x, y, out): import os; os._exit(0)", EXERCISES["vector_add"]).points == 0
    assert arbiter.grade(VECTOR_ADD, EXERCISES["vector_add"]).status == "passed"


def test_the_machine_is_tried_unless_a_variable_says_host(monkeypatch):
    """Both are tried: whether memory can be shared, then whether the GPU can wait for a flag."""
    monkeypatch.delenv("GRADER_MEMORY", raising=False)
    answers = {"share": "", "wait": ""}
    monkeypatch.setattr(sharing, "cannot_share", lambda: answers["share"])
    monkeypatch.setattr(sharing, "cannot_wait", lambda: answers["wait"])
    assert sharing.memory("cuda") == ("shared", "")
    answers["wait"] = "no waits"
    assert sharing.memory("cuda") == ("host", "no waits")
    answers["share"] = "no sharing"
    assert sharing.memory("cuda") == ("host", "no sharing")
    assert sharing.memory("simulator") == ("shared", "")
    monkeypatch.setenv("GRADER_MEMORY", "host")
    assert sharing.memory("cuda")[0] == "host"
    monkeypatch.setenv("GRADER_MEMORY", "shared")
    with pytest.raises(MachineLacks, match="GRADER_MEMORY"):
        sharing.memory("cuda")


def test_without_a_driver_both_trials_give_a_reason(monkeypatch):
    """An exception of the driver or of old bindings is a reason, not an error."""

    def refuses(*args, **options):
        raise RuntimeError(f"the CUDA driver returned CUDA_ERROR_{refused}")

    refused = "NOT_SUPPORTED"
    monkeypatch.setattr(CudaArena, "create", refuses)
    assert "CUDA_ERROR_NOT_SUPPORTED" in sharing.cannot_share()
    refused = "OUT_OF_MEMORY"  # another program may hold it: this does not choose the clock
    assert sharing.cannot_share() == ""
    arena = SimpleNamespace(size=4096)
    monkeypatch.setattr(CudaArena, "open", refuses)
    monkeypatch.setattr(CudaArena, "create", lambda size: arena)
    for refused, said in (("OPERATING_SYSTEM", "OPERATING_SYSTEM"), ("INVALID_VALUE", "")):
        arena.fd = os.memfd_create("arena")
        assert sharing.cannot_share()[-len(refused) :] == said


@pytest.mark.gpu
def test_a_gpus_private_memory_holds_what_was_carried():
    """Both directions, and a read-only arena that can still be filled."""
    ours = StagedArena(HostArena.create(1 << 22, sealed=False), on_gpu=True)
    theirs = StagedArena(HostArena(ours.fd, ours.size, read_only=True), on_gpu=True)
    ours.bytes_at(0, 1 << 20).fill_(9)
    ours.push(1 << 20)
    theirs.pull(1 << 20)
    assert int(theirs.bytes_at(0, 1 << 20).sum()) == 9 << 20
    ours.clear()
    assert int(ours.bytes_at(0, 1 << 20).sum()) == 0


@pytest.fixture(scope="module")
def practice_judge():
    """A judge on the GPU that stages all buffers, as on WSL 2."""
    with pytest.MonkeyPatch.context() as patch, Judge("cuda") as judge:
        patch.setenv("GRADER_MEMORY", "host")
        yield judge


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)
def test_the_reference_earns_every_point_by_the_practice_clock(practice_judge, exercise):
    """Only the verdict tells the clocks apart."""
    verdict = practice_judge.grade(solution(exercise.id), exercise.id)
    assert (verdict.status, verdict.points) == ("passed", exercise.max_points), verdict
    assert verdict.environment.practice == bool(exercise.gates)
    assert verdict.clock.startswith("practice clock") == bool(exercise.gates)
