"""The GPU runs out of memory: what the judge frees, repeats and reports."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from grader.errors import JudgeStopped, MachineLacks
from grader.exercises import find
from grader.judge import arbiter as arbiters
from grader.judge.arbiter import Arbiter
from grader.judge.bench import Bench
from grader.judge.gpu import health
from grader.judge.gpu.health import TooLittle, out_of_memory, stays, with_room

FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 12.00 GiB. 11.70 GiB is free.")


@pytest.mark.parametrize(
    ("error", "it_is"),
    [
        (FULL, True),
        (RuntimeError("Triton Error [CUDA]: out of memory"), True),
        (RuntimeError("the CUDA driver answered CUDA_ERROR_OUT_OF_MEMORY"), True),
        (JudgeStopped("The baseline torch failed: CUDA out of memory"), True),
        ("numba.cuda: Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", True),
        ("cupy.cuda.cufft.CuFFTError: CUFFT_ALLOC_FAILED", True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`", False),
    ],
)
def test_whoever_finds_no_memory_says_so_in_its_own_words(error, it_is):
    """torch, Triton, the driver, CUDA's libraries, and a worker of the judge's own."""
    assert out_of_memory(error) is it_is


class Work:
    """Fails with each of these in turn, and then finds 7."""

    def __init__(self, *errors):
        self.errors, self.log = list(errors), []

    def __call__(self, again):
        self.log.append("again" if again else "work")
        if self.errors:
            raise self.errors.pop(0)
        return 7

    def make_way(self):
        self.log.append("make way")


def test_what_finds_memory_is_done_once():
    """And nobody's code is ended for it."""
    work = Work()
    assert with_room(work, work.make_way) == 7
    assert work.log == ["work"]


@pytest.mark.parametrize("error", [FULL, JudgeStopped("The baseline torch failed: CUDA out of memory")])
def test_what_finds_none_is_done_again_when_way_was_made(error):
    """It is repeated once; then a message says that memory is short."""
    work = Work(error)
    assert with_room(work, work.make_way) == 7
    assert work.log == ["work", "make way", "again"]
    work = Work(error, error)
    with pytest.raises(TooLittle, match=r"Too little of the GPU's memory is free for the grader. Close"):
        with_room(work, work.make_way)
    assert work.log == ["work", "make way", "again", "make way"]


@pytest.mark.parametrize("error", [RuntimeError("a bug of ours"), JudgeStopped("noise"), MachineLacks("out of memory")])
def test_other_errors_are_not_tried_again(error):
    """This includes an error that already says what the machine is missing."""
    work = Work(error)
    with pytest.raises(type(error)):
        with_room(work, work.make_way)
    assert work.log == ["work"]


def test_memory_that_comes_back_is_waited_for():
    """The memory of an ended worker becomes free after a while."""
    looks = iter([True, True, False])
    assert not stays(lambda: next(looks))
    assert stays(lambda: True, limit_s=0.1)


def test_workers_ahead_get_what_the_buffers_leave(monkeypatch):
    """Two arenas and private inputs are counted before the first of them is made."""
    monkeypatch.setattr(health, "available", lambda: 100 << 30)
    assert health.beside_the_buffers("cuda") == (100 << 30) - 3 * health.arena_bytes(100 << 30)
    assert health.beside_the_buffers("simulator") is None


class Ready(Bench):
    """A bench without a GPU and without processes; it notes what it gives back."""

    def __init__(self):
        note = self.log = []
        self.device, self.sandbox = "cuda", False
        self.buffers = SimpleNamespace(rest=lambda: note.append("rest"), fits=lambda case: True)
        self.pool = SimpleNamespace(
            profiled=False,
            still=nullcontext,
            calm=lambda: note.append("nobody else"),
            refill=lambda: note.append("refill"),
            trim=lambda: note.append("trim"),
        )
        self._baselines, self._clock = SimpleNamespace(close=lambda: note.append("no baselines")), None
        self._loaded = set()


def ready(monkeypatch):
    """An arbiter on such a bench, and the bench's notes."""
    bench = Ready()
    monkeypatch.setattr(arbiters, "Bench", lambda *_: bench)
    return Arbiter(), bench.log


WAY = ["no baselines", "nobody else", "rest"]


@pytest.mark.parametrize("in_class", [True, False])
def test_a_grading_that_runs_out_of_memory_is_begun_again_with_nobody_elses_code_alive(monkeypatch, in_class):
    """It starts a new job, and nothing else loads meanwhile. Workers for a class stay no longer than the class."""
    (arbiter, log), upcoming = ready(monkeypatch), [("next", find("softmax"))] * in_class

    class Job:
        def __init__(self, *given):
            pass

        def run(self, others):
            log.append(f"run beside {len(others)}")
            if log == [f"run beside {len(upcoming)}"]:
                raise FULL

        def verdict(self, failure):
            raise ZeroDivisionError  # ends the test here

    monkeypatch.setattr(arbiters, "Job", Job)
    source = "def vector_add(x, y, out): pass"
    with pytest.raises(ZeroDivisionError):
        arbiter.grade(source, find("vector_add"), upcoming=upcoming)
    end = ["refill", "rest"] if in_class else ["refill", "trim", "rest"]
    assert log == [f"run beside {in_class:d}", *WAY, "run beside 0", *end]


def test_a_plot_that_runs_out_of_memory_twice_says_what_is_lacking(monkeypatch):
    """And leaves nothing behind but workers."""
    arbiter, log = ready(monkeypatch)
    monkeypatch.setattr(Arbiter, "_measure", lambda *given: log.append("measure") or (_ for _ in ()).throw(FULL))
    with pytest.raises(TooLittle):
        arbiter.measure("", find("vector_add"))
    assert [entry for entry in log if entry != "no baselines"] == ["measure", *WAY[1:], "measure", *WAY[1:]]
