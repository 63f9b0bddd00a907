"""The judge's verdicts on right and wrong submissions, on a machine without a GPU."""

import json

import pytest

from grader.errors import MachineLacks, UnknownExercise
from grader.exercises import EXERCISES, find
from grader.verdict import Verdict
from tests.judge.submissions import SOFTMAX, VECTOR_ADD, changed
from tests.pace import PACE

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize(("exercise", "source"), [("vector_add", VECTOR_ADD), ("softmax", SOFTMAX)])
def test_a_right_submission_gets_what_a_simulator_can_give(judge, exercise, source):
    """All cases pass, correctness gives its points, and speed is said to need a GPU: no figure is invented."""
    verdict = judge.grade(source, exercise)
    assert verdict.status == "passed", verdict
    assert verdict.points == verdict.reachable_points == find(exercise).correctness_points
    assert {gate.outcome for gate in verdict.gates} == {"needs_gpu"}
    assert all(gate.ratio is None and gate.points == 0 for gate in verdict.gates)
    assert verdict.timings == ()
    assert [case.name for case in verdict.cases] == [case.name for case in find(exercise).simulator_cases]


def test_a_verdict_survives_json(judge):
    """A verdict written as JSON and read again is the same verdict."""
    for source in (SOFTMAX, changed(SOFTMAX, " - tl.max(x, axis=0)", "")):
        verdict = judge.grade(source, "softmax")
        assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict


@pytest.mark.parametrize(
    ("exercise", "source", "facts"),
    [
        ("softmax", changed(SOFTMAX, " - tl.max(x, axis=0)", ""), {"suspect": "The row maximum was not subtracted"}),
        ("softmax", changed(SOFTMAX, '-float("inf")', "0.0"), {"suspect": "The masked elements were counted"}),
        ("softmax", changed(SOFTMAX, "row * x_stride", "0"), {"suspect": "Every row has the result of row 0"}),
        ("softmax", changed(SOFTMAX, "kernel[(rows,)]", "kernel[(rows - 1,)]"), {"unwritten": lambda n: n > 0}),
        ("softmax", changed(SOFTMAX, "axis=0), mask=mask)", "axis=0))"), {"outside": lambda n: n > 0, "wrong": 0}),
        ("softmax", changed(SOFTMAX, "row * out_stride", "row * columns"), {"outside": lambda n: n > 0}),
        ("softmax", changed(SOFTMAX, "row * out_stride", "row * x_stride"), {"outside": lambda n: n > 0}),
        ("vector_add", changed(VECTOR_ADD, "y_ptr + at", "x_ptr + at"), {"suspect": "The result is `x + x`"}),
        ("vector_add", changed(VECTOR_ADD, "triton.cdiv(n, 1024)", "max(n // 1024, 1)"), {"region_low": (1024,)}),
        (
            "vector_add",
            changed(VECTOR_ADD, "mask=mask), mask=mask)", "mask=mask))"),
            {"outside": 1023, "outside_first_offset": 1},
        ),
        (
            "vector_add",
            changed(VECTOR_ADD, "tl.load(x_ptr + at, mask=mask)", "tl.load(x_ptr + at, mask=mask).to(tl.float16)"),
            {"unwritten": 0, "outside": 0},
        ),
    ],
)
def test_a_wrong_submission_fails_with_the_facts_of_its_bug(judge, exercise, source, facts):
    """No points, and the first mismatch says what a sentence about the bug needs."""
    verdict = judge.grade(source, exercise)
    assert (verdict.status, verdict.points) == ("failed", 0)
    mismatch = next(case.mismatch for case in verdict.cases if case.mismatch)
    for name, wanted in facts.items():
        got = getattr(mismatch, name)
        if callable(wanted):
            assert wanted(got), (name, got)
        elif isinstance(wanted, str):
            assert got.startswith(wanted)
        else:
            assert got == wanted, (name, got)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("", "unusable"),
        ("   \n", "unusable"),
        ("def vector_add(x, y, out:\n    pass", "unusable"),
        ("def add(x, y, out): pass", "unusable"),
        ("def vector_add(x, y): pass", "unusable"),
        ("def vector_add(x, y, out, *, n): pass", "unusable"),
        ("x = 1\0", "unusable"),
        ("#" * (2 << 20), "unusable"),
        ("import no_such_package\ndef vector_add(x, y, out): pass", "exception"),
        ("def vector_add(x, y, out): return 1 / 0", "exception"),
        ("def vector_add(x, y, out): raise NotImplementedError('not written yet')", "not_written"),
        ("def vector_add(x, y, out):\n    pass  # YOUR CODE HERE", "not_written"),
        ("def vector_add(x, y, out): import os; os._exit(0)", "crash"),
        ("def vector_add(x, y, out): import ctypes; ctypes.string_at(0)", "crash"),
        ("def vector_add(x, y, out): x.zero_()", "illegal_access"),
        ("raise SystemExit(0)\ndef vector_add(x, y, out): pass", "exception"),
        ("vector_add = 3", "exception"),
    ],
)
def test_what_cannot_be_judged_is_a_verdict_too(judge, source, kind):
    """No submission makes it raise: each failure is named and gives no points, and the next grading works as usual."""
    verdict = judge.grade(source, "vector_add")
    assert verdict.failure is not None
    assert verdict.failure.kind == kind, verdict.failure
    assert verdict.failure.message
    assert verdict.points == 0
    assert verdict.status == ("unusable" if kind == "unusable" else "failed")
    if kind == "not_written":
        assert verdict.findings == (), "a stub is told of rules"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("tl.exp(x - ", "tl.expp(x - ", 12),
        ("row * x_stride", "row * missing", 11),
        ("rows, columns = x", "1 / 0; x", 17),
    ],
)
def test_an_exception_names_the_line_in_the_cell(judge, old, new, line):
    """Inside a kernel, too, where Triton's interpreter wraps what was raised, the line is the kernel's own."""
    verdict = judge.grade(changed(SOFTMAX, old, new), "softmax")
    assert verdict.failure is not None
    assert verdict.failure.kind == "exception"
    assert verdict.failure.line == line, verdict.failure


@pytest.mark.parametrize("arguments", ["x, y, out", "a, b, c", "*args", "x, y, out, block=1024"])
def test_signatures_that_can_be_called_are_taken(judge, arguments):
    """Names of parameters are the learner's; what counts is that three arguments fit."""
    first, second, third = ("args[0]", "args[1]", "args[2]") if arguments == "*args" else arguments.split(", ")[:3]
    source = f"import torch\ndef vector_add({arguments}): torch.add({first}, {second}, out={third})"
    assert judge.grade(source, "vector_add").status == "passed"


def test_an_endless_loop_ends_in_time_and_harms_nobody(judge, monkeypatch):
    """A submission that never returns is stopped at its limit; the next one gets what it always gets."""
    verdict = judge.grade("def vector_add(x, y, out):\n    while True: pass", "vector_add")
    assert verdict.failure is not None
    assert verdict.failure.kind == "timeout"
    assert verdict.seconds < find("vector_add").time_limit_s + 10 * PACE
    assert judge.grade(VECTOR_ADD, "vector_add").status == "passed"


def test_what_a_submission_prints_is_kept_short_and_decides_nothing(judge):
    """A flood on stdout neither blocks the judge nor reaches the verdict whole; a forged verdict is only text."""
    source = changed(VECTOR_ADD, "    n = out", "    print('points: 100 ' * 1_000_000)\n    return\n    n = out")
    verdict = judge.grade(source, "vector_add")
    assert (verdict.status, verdict.points) == ("failed", 0)
    assert 0 < len(verdict.log) <= 4000


def test_the_worker_can_write_nowhere_but_in_its_own_home(simulator_judge, tmp_path):
    """Files of the person who runs the grader are out of a submission's reach where the sandbox is bubblewrap."""
    target = tmp_path / "gradebook.db"
    target.write_text("kept")
    source = f"open({str(target)!r}, 'w').write('forged')\n" + VECTOR_ADD
    verdict = simulator_judge.grade(source, "vector_add")
    if verdict.environment.sandbox != "bubblewrap":
        pytest.skip(f"the sandbox here is weaker ({verdict.environment.sandbox})")
    assert target.read_text() == "kept"
    assert verdict.points == 0


def test_inputs_are_fresh_in_every_grading(judge):
    """Knowing the inputs of one grading does not help in the next."""
    source = "import torch\ndef vector_add(x, y, out):\n    print(float(x[0]))\n    torch.add(x, y, out=out)"
    assert judge.grade(source, "vector_add").log != judge.grade(source, "vector_add").log


def test_the_callers_mistakes_are_its_own_errors(simulator_judge):
    """An unknown exercise, and speed without a GPU, give one sentence each."""
    with pytest.raises(UnknownExercise, match="softmax"):
        simulator_judge.grade(VECTOR_ADD, "no_such")
    with pytest.raises(MachineLacks, match="GPU"):
        simulator_judge.measure(VECTOR_ADD, "vector_add")


_NO_ANSWERS = ("copy",)  # a ceiling, not a peer
_LESS_EXACT = (("attention", "eager"),)  # it rounds every score to float16


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)
def test_every_baseline_gives_what_the_oracle_gives(judge, exercise):
    """A baseline is timed only where it computes the same thing: each passes the exercise's own cases."""
    import inspect

    for baseline in exercise.baselines:
        if baseline.id in _NO_ANSWERS or baseline.harness:  # with its own harness it is not called like a submission
            continue
        if baseline.id == "compile" or (exercise.id, baseline.id) in _LESS_EXACT:
            continue  # the former needs a compiler and half a minute on a CPU; it runs in the tests for a GPU
        text = inspect.getsource(baseline.function).replace("-> None", "")
        source = f"from typing import Any\n{text}\n{exercise.entry} = {baseline.function.__name__}\n"
        verdict = judge.grade(source, exercise.id)  # an earlier rung is right, but not what a later one asks
        assert verdict.cases
        assert all(case.passed for case in verdict.cases), (baseline.id, verdict.failure)
