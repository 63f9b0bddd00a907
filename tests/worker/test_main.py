"""A worker's round: what it does before the flag is raised, and what after."""

from types import SimpleNamespace

import pytest

from grader.worker import main
from grader.worker.main import Worker

WORK = ["start", "call", "call", "stop"]


@pytest.fixture
def worker(monkeypatch):
    """One that notes in `log` what it does; `make(possible)`: whether its GPU can wait, or None where there is none."""
    log = []

    def says(word, found=None):
        return lambda *_: log.append(word) or found

    def make(possible):
        own = SimpleNamespace(**{word: says(word) for word in ("start", "stop", "wait")}, seconds=lambda: 1.0)
        monkeypatch.setattr(main, "watch", lambda device: own)
        made = Worker("cuda")
        made.flag = SimpleNamespace(queue=says("queue"), wait_raised=says("raised"), answer=says("answer"))
        made.gpu_flag = None
        if possible is not None:
            made.gpu_flag = SimpleNamespace(wait_raised=says("gpu waits", possible), answer=says("gpu answers"))
        made.functions["f"], made.launches, made.log = says("call"), [(), ()], log
        return made

    return make


def arm(worker, head_start):
    message = {"op": "arm", "name": "f", "round": 1, "head_start": head_start}
    return worker.handle(message, [], SimpleNamespace(send=lambda _: None))


@pytest.mark.parametrize(("head_start", "possible", "order"), [
    (True, True, ["gpu waits", *WORK, "gpu answers", "queue", "raised", "wait", "answer"]),
    (True, False, ["gpu waits", "queue", "raised", *WORK, "gpu answers", "wait", "answer"]),
    (True, None, ["queue", "raised", *WORK, "wait", "answer"]),
    (False, True, ["queue", "raised", *WORK, "gpu answers", "wait", "answer"]),
])  # fmt: skip
def test_with_a_head_start_the_calls_come_before_the_flag_is_raised(worker, head_start, possible, order):
    """Where the GPU can wait and the arbiter says so. The host's answer comes last; the GPU's, where there is one,
    is put right behind the work: what the host takes to see its end does not count.
    """
    made = worker(possible)
    assert arm(made, head_start) == {"done": "arm", "event_s": 1.0}
    assert made.log == order


@pytest.mark.parametrize("where", ["wait_raised", "f"])
def test_what_fails_before_the_flag_has_answered(worker, where):
    """So nobody waits for it."""

    def fail(*_):
        raise RuntimeError("no")

    made = worker(True)
    if where == "f":
        made.functions["f"] = fail
    else:
        made.gpu_flag.wait_raised = fail
    with pytest.raises(RuntimeError):
        arm(made, True)
    assert made.log[-1] == "answer"
    assert not {"raised", "gpu answers"} & {*made.log}


def test_what_failed_on_the_gpu_is_told_by_who_waits_for_it(worker):
    """The GPU's answer cannot be queued then, and says less."""

    def fail(*_):
        raise RuntimeError("no answer")

    made = worker(True)
    made.gpu_flag.answer = fail
    with pytest.raises(RuntimeError, match="no answer"):
        arm(made, True)
    assert made.log[-2:] == ["wait", "answer"]
