"""A worker loads the scanned text, and keeps the order of a round before and after the flag is raised."""

import inspect
import linecache
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from grader.worker import main
from grader.worker.main import Worker

WORK = ["start", "call", "call", "stop"]


@pytest.fixture
def worker(monkeypatch):
    """Return `make(possible)`: a worker that logs its steps, whose GPU can wait or not (None: has no flag)."""
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
    """The GPU and the judge must allow it. The GPU's answer directly follows the work, and the host's comes last."""
    made = worker(possible)
    assert arm(made, head_start) == {"done": "arm", "event_s": 1.0}
    assert made.log == order


@pytest.mark.parametrize("where", ["wait_raised", "f"])
def test_what_fails_before_the_flag_has_answered(worker, where):
    """It still answers, so that nobody waits for it."""

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


def test_a_failure_on_the_gpu_is_raised_by_the_wait(worker):
    """The GPU's answer cannot be queued after a failure, and its error says less."""

    def fail(*_):
        raise RuntimeError("no answer")

    made = worker(True)
    made.gpu_flag.answer = fail
    with pytest.raises(RuntimeError, match="no answer"):
        arm(made, True)
    assert made.log[-2:] == ["wait", "answer"]


COOKIE = "# -*- coding: unicode_escape -*-"
PROGRAMS = {
    "first line": COOKIE + "\n# \\u000a hidden = 1\n",
    "second line": "\n" + COOKIE + "\n# \\u000a hidden = 1\n",
    "after a comment": "#!/usr/bin/python\n" + COOKIE + "\n# \\u000a hidden = 1\n",
    "after a form feed": "\f\n \t\f" + COOKIE + "\n# \\u000a hidden = 1\n",
    "after a carriage return": "#\r" + COOKIE + "\n# \\u000a hidden = 1\n",
    "utf-7": "# coding=utf_7\n# +AAo-hidden = 1\n",
    "latin-1": "# vim: set fileencoding=latin-1 :\nhidden = 'é' != '\\xe9'\nif not hidden: del hidden\n",
    "unknown": "# positional encoding: sine\n",
}
FUNCTION = "def f():\n    return 'é\f\u2028\x85'\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a worker's folder, from which other processes import its modules."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("submission", None)
    linecache.cache.pop(str(tmp_path / "submission.py"), None)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_text_that_was_scanned_is_the_program_that_runs(folder, program):
    """An encoding in its first lines changes nothing: in this process, in `linecache`, or in another process."""
    source = program + FUNCTION
    function = main._load(source, "f", "submission")
    assert not hasattr(sys.modules["submission"], "hidden")
    assert function() == "é\f\u2028\x85"
    assert inspect.getsource(function) == FUNCTION
    assert function.__code__.co_firstlineno == len(re.split("\r|\n", program))
    other = "import submission; print(hasattr(submission, 'hidden'), submission.f() == 'é\\f\\u2028\\x85')"
    said = subprocess.run([sys.executable, "-c", other], cwd=folder, capture_output=True, text=True, check=True)
    assert said.stdout == "False True\n"


def test_a_submission_that_writes_over_its_file_changes_no_source(folder):
    """Triton compiles what `inspect` finds, which is the scanned text."""
    other = "def f():\n    return 'another program'\n"
    source = f"{FUNCTION}import pathlib\npathlib.Path(__file__).write_text({other!r})\n"
    assert inspect.getsource(main._load(source, "f", "submission")) == FUNCTION


def test_the_last_line_needs_no_line_feed(folder):
    """`inspect` returns a whole line."""
    assert inspect.getsource(main._load("def f(): return 1", "f", "submission")) == "def f(): return 1\n"
