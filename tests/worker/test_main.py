"""A worker: which text it makes a module of; what a round does before the flag is raised, and what after."""

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
    """A worker's own, from which other processes import what it loaded."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("submission", None)
    linecache.cache.pop(str(tmp_path / "submission.py"), None)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_text_that_was_scanned_is_the_program_that_runs(folder, program):
    """Whatever encoding its first lines declare: in this process, for what reads source again, and in another one."""
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
    """Triton compiles what `inspect` finds: it is the text that was scanned."""
    other = "def f():\n    return 'another program'\n"
    source = f"{FUNCTION}import pathlib\npathlib.Path(__file__).write_text({other!r})\n"
    assert inspect.getsource(main._load(source, "f", "submission")) == FUNCTION


def test_the_last_line_needs_no_line_feed(folder):
    """What reads it again gets a whole line."""
    assert inspect.getsource(main._load("def f(): return 1", "f", "submission")) == "def f(): return 1\n"
