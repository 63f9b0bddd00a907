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
        made.head_start = None if possible is None else SimpleNamespace(begin=says("begin", possible))
        made.functions["f"], made.launches, made.log = says("call"), [(), ()], log
        return made

    return make


def arm(worker, head_start):
    message = {"op": "arm", "name": "f", "round": 1, "head_start": head_start}
    return worker.handle(message, [], SimpleNamespace(send=lambda _: None))


@pytest.mark.parametrize(("head_start", "possible", "order"), [
    (True, True, ["begin", *WORK, "queue", "raised", "wait", "answer"]),
    (True, False, ["begin", "queue", "raised", *WORK, "wait", "answer"]),
    (True, None, ["queue", "raised", *WORK, "wait", "answer"]),
    (False, True, ["queue", "raised", *WORK, "wait", "answer"]),
])  # fmt: skip
def test_with_a_head_start_the_calls_come_before_the_flag_is_raised(worker, head_start, possible, order):
    """Where the GPU can wait and the arbiter says so; the answer comes last either way."""
    made = worker(possible)
    assert arm(made, head_start) == {"done": "arm", "event_s": 1.0}
    assert made.log == order


@pytest.mark.parametrize("where", ["begin", "f"])
def test_what_fails_before_the_flag_has_answered(worker, where):
    """So nobody waits for it."""

    def fail(*_):
        raise RuntimeError("no")

    made = worker(True)
    if where == "f":
        made.functions["f"] = fail
    else:
        made.head_start.begin = fail
    with pytest.raises(RuntimeError):
        arm(made, True)
    assert made.log[-1] == "answer"
    assert "raised" not in made.log
