"""The fingerprint of an exercise changes with every change of the exercise, and only then."""

import functools
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

import grader
from grader.exercise import Budget
from grader.exercises import EXERCISES, find, means
from grader.exercises.triton import products
from grader.leaderboard.board_run import run
from grader.leaderboard.fingerprint import fingerprint
from grader.leaderboard.store import Store

FIELDS = [field.name for field in fields(find("softmax"))]
CHILD = """
import json
from grader.exercises import EXERCISES
from grader.leaderboard.fingerprint import fingerprint
print(json.dumps({name: fingerprint(each) for name, each in EXERCISES.items()}))
"""


def _in_a_child(package=Path(grader.__file__).parent, seed="0"):
    """The fingerprints in another process."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONHASHSEED": seed}
    text = subprocess.run(
        [sys.executable, "-B", "-c", CHILD], env=environment, cwd="/", capture_output=True, text=True, check=True
    ).stdout
    return json.loads(text)


@pytest.fixture
def package(tmp_path):
    """A copy of this package, to be changed."""
    copy = tmp_path / "in" / "site-packages" / "grader"
    shutil.copytree(Path(grader.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def _edit(package, name, old, new):
    text = (package / name).read_text(encoding="utf-8")
    assert old in text
    (package / name).write_text(text.replace(old, new), encoding="utf-8")


def test_it_is_the_same_in_every_process_and_place(package):
    """The hash seed, the package's path and earlier calls of functions do not matter."""
    here = {name: fingerprint(each) for name, each in EXERCISES.items()}
    assert len(set(here.values())) == len(EXERCISES)
    softmax = find("softmax")
    for _ in range(1000):
        softmax.bytes_moved(softmax.cases[0])
    assert fingerprint(softmax) == here["softmax"]
    assert _in_a_child(seed="7") == here
    _edit(package, "exercises/triton/softmax.py", "import torch", "import torch  # a comment")
    assert _in_a_child(package, "8") == here


@pytest.mark.parametrize(
    ("name", "old", "new", "changed"),
    [
        ("exercises/means.py", "0.999", "0.99", {"mean_cuda", "mean_triton"}),
        ("worker/outputs.py", "def copy_out(", "NEW = 1\n\n\ndef copy_out(", {"unblock", "fuse"}),
        ("protocol/channel.py", "def from_bytes(", "NEW = 1\n\n\ndef from_bytes(", {"audit", "time_gpu"}),
    ],
)
def test_a_change_elsewhere_is_one_of_all_that_use_it(package, name, old, new, changed):
    """The module is shared by exercises, imported by a harness, or used by those."""
    _edit(package, name, old, new)
    there = _in_a_child(package)
    found = {exercise for exercise, digest in there.items() if digest != fingerprint(find(exercise))}
    assert changed <= found
    assert "vector_add" not in found


def _a(x):
    return _helper(x)


def _helper(x):
    return x + _BY[0]


def _other_helper(x):
    return x - _BY[0]


_BY = [1]


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_counts(field):
    """Changing any field changes the fingerprint."""
    softmax = find("softmax")
    value = getattr(softmax, field)
    new = (
        _a
        if callable(value)
        else "else"
        if isinstance(value, str)
        else (*value, "else")
        if isinstance(value, tuple)
        else 7
    )
    assert fingerprint(replace(softmax, **{field: new})) != fingerprint(softmax)


@pytest.mark.parametrize("exercise_id", [each.id for each in EXERCISES.values() if each.timed_cases])
def test_budget_gates_cases_and_baselines_of_each_board_count(exercise_id):
    """Changing one of them changes the fingerprint."""
    exercise = find(exercise_id)
    case = exercise.timed_cases[-1]
    array = replace(case.arrays[-1], row_padding=case.arrays[-1].row_padding + 8)
    baseline = exercise.baselines[-1]
    changed = [
        replace(exercise, budget=Budget(absolute=9, relative=9)),
        replace(exercise, gates=(replace(exercise.gates[0], at_least=9.5), *exercise.gates[1:])),
        replace(exercise, timed_cases=(*exercise.timed_cases[:-1], replace(case, arrays=(*case.arrays[:-1], array)))),
        replace(exercise, cases=(*exercise.cases[:-1], replace(exercise.cases[-1], budget=Budget(1, 1)))),
        replace(exercise, baselines=(*exercise.baselines[:-1], replace(baseline, function=_a))),
        replace(exercise, baselines=(*exercise.baselines[:-1], replace(baseline, harness=_a))),
        exercise,
    ]
    assert len({fingerprint(each) for each in changed}) == len(changed)


def _with(oracle):
    return fingerprint(replace(find("softmax"), oracle=oracle))


def _closes_over(value):
    return lambda x: x + value


def _default(x, by=1):
    return x + by


def _other_default(x, by=2):
    return x + by


def _keyword(x, *, by=1):
    return x + by


def _other_keyword(x, *, by=2):
    return x + by


def _within(x):
    def inner(y):
        return y in {"one", "two", "three"}

    return inner(x)


def _other_within(x):
    def inner(y):
        return y in {"one", "two", "four"}

    return inner(x)


class _Scale:
    by = 1

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.of(x)

    def of(self, x):
        return x * self.factor * self.by


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x.real, lambda x: x.imag),
        (_closes_over(1), _closes_over(2)),
        (_closes_over({"a": [1, 2]}), _closes_over({"a": [1, 3]})),
        (_closes_over(_closes_over(1)), _closes_over(_closes_over(2))),
        (_default, _other_default),
        (_keyword, _other_keyword),
        (_within, _other_within),
        (functools.partial(_default, by=3), functools.partial(_default, by=4)),
        (functools.partial(_default), functools.partial(_other_default)),
        (functools.cache(_default), functools.cache(_other_default)),
        (_Scale(1), _Scale(2)),
        (_Scale(1).of, _Scale(2).of),
        (_closes_over(re.compile("a")), _closes_over(re.compile("a", re.I))),
        (_closes_over(1), _closes_over(1.0)),
        (_closes_over(True), _closes_over(1)),
    ],
)
def test_code_defaults_closures_and_objects_count(one, other):
    """A function is more than its text."""
    assert _with(one) == _with(one)
    assert _with(one) != _with(other)


@pytest.mark.parametrize(
    ("target", "name", "new"),
    [
        (sys.modules[__name__], "_helper", _other_helper),
        (sys.modules[__name__], "_BY", [2]),
        (_Scale, "by", 2),
        (_Scale, "of", lambda self, x: x),
    ],
)
def test_what_a_function_uses_counts(monkeypatch, target, name, new):
    """The change is in a helper, in a value that it uses, or in a class and its methods."""
    before = (_with(_a), _with(_Scale(1)))
    monkeypatch.setattr(target, name, new)
    assert (_with(_a), _with(_Scale(1))) != before


def test_a_helper_of_ours_counts(monkeypatch):
    """The change is in modules that matrix products and means are made of."""
    for module, exercise_id in ((products, "matmul"), (means, "mean_cuda")):
        exercise = find(exercise_id)
        before = fingerprint(exercise)
        used = [name for name in exercise.oracle.__globals__ if callable(getattr(module, name, None))]
        changed = 0
        for name in used:
            with monkeypatch.context() as patch:
                patch.setitem(exercise.oracle.__globals__, name, _a)
                changed += fingerprint(exercise) != before
        assert fingerprint(exercise) == before
        assert changed, exercise_id


def test_what_has_no_hash_is_said():
    """If it were left out, its changes would go unnoticed."""
    with pytest.raises(TypeError, match=r"An exercise uses a _io\.StringIO"):
        _with(_closes_over(io.StringIO()))
    assert _with(_closes_over(random.SystemRandom())) == _with(_closes_over(random.SystemRandom()))


@pytest.mark.parametrize("exercise_id", ["matmul", "ls_numba_typed"])
def test_a_run_does_not_go_on_with_another_budget(tmp_path, monkeypatch, course, judge, text_of, exercise_id):
    """The budget of these exercises is not in a module of their own."""
    exercise = find(exercise_id)
    monkeypatch.setattr("grader.leaderboard.board_run.handed_in", lambda folder, exercise: [])
    with Store(tmp_path / "s.sqlite") as store:
        store.start_run(exercise_id, fingerprint(exercise))
        assert run(exercise_id, tmp_path, store, judge).resumed
        store.start_run(exercise_id, fingerprint(exercise))
        changed = replace(exercise, budget=Budget(absolute=1, relative=1))
        monkeypatch.setattr("grader.leaderboard.board_run.find", lambda exercise_id: changed)
        assert not run(exercise_id, tmp_path, store, judge).resumed
