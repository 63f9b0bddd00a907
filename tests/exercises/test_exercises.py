"""What must hold of every exercise, also of those that are yet to be written."""

import ast
import inspect
import textwrap

import pytest
import torch

from grader.authoring.reference import solution
from grader.errors import UnknownExercise
from grader.exercises import EXERCISES, find
from grader.judge.compare import suspected
from grader.judge.inputs import FILLS, draw, generator

each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)


def all_cases(exercise):
    return (*exercise.cases, *exercise.simulator_cases, *exercise.timed_cases, *exercise.plot_cases)


@each
def test_gates_name_baselines_and_timed_cases_that_exist(exercise):
    """A gate over a case that is never timed could never be judged."""
    timed = {case.name for case in exercise.timed_cases}
    for gate in exercise.gates:
        assert exercise.baseline(gate.baseline).label
        assert set(gate.cases) <= timed
        assert gate.points > 0


@each
def test_being_right_is_worth_something_and_speed_too(exercise):
    """The points are those of the cases and of the gates, and both are there."""
    assert exercise.correctness_points > 0
    assert exercise.max_points > exercise.correctness_points


@each
def test_cases_call_the_entry_point(exercise):
    """Every case has the parameters' arrays in their order, one output at least, a known fill and a name of its own."""
    for cases in (exercise.cases, exercise.simulator_cases, exercise.timed_cases, exercise.plot_cases):
        assert len({case.name for case in cases}) == len(cases) > 0
    for case in all_cases(exercise):
        assert tuple(array.name for array in case.arrays) == exercise.parameters
        assert case.outputs
        assert set(case.fill.split("|")) <= set(FILLS)
        assert exercise.bytes_moved(case) > 0


@each
def test_sizes_that_fit_no_block_are_among_the_cases(exercise):
    """On a GPU and in the simulator some row is longer than 32 and no multiple of 32: a missing mask shows there."""
    for cases in (exercise.cases, exercise.simulator_cases):
        assert any(case.arrays[0].shape[-1] > 32 and case.arrays[0].shape[-1] % 32 for case in cases)


@each
def test_baselines_stand_on_their_own(exercise):
    """A baseline's text is sent to a worker: it refers to nothing outside, and takes the entry point's arguments."""
    for baseline in exercise.baselines:
        assert len(inspect.signature(baseline.function).parameters) == len(exercise.parameters)
        tree = ast.parse(textwrap.dedent(inspect.getsource(baseline.function)))
        scope = {"__builtins__": __builtins__, "Any": object}
        exec(compile(tree, "baseline", "exec"), scope)
        case = next(case for case in exercise.simulator_cases if case.arrays[0].shape[-1] > 32)
        tensors = [draw(array, case.fill, generator("cpu")) for array in case.arrays]
        if baseline.id != "compile":  # compiling takes half a minute here; the tests on a GPU run it
            scope[baseline.function.__name__](*tensors)


@each
def test_every_suspect_is_recognised_by_its_own_output(exercise):
    """What a suspect's bug would write leads, in some case, to that suspect's sentence and to no other."""
    for suspect in exercise.suspects:
        named = set()
        for case in exercise.simulator_cases:
            inputs = {array.name: draw(array, case.fill, generator("cpu")) for array in case.inputs}
            double = {name: value.double() for name, value in inputs.items()}
            expected, bug = exercise.oracle(double), suspect.output(double)
            if bug is not None and not torch.allclose(bug, expected, rtol=1e-3, equal_nan=True):
                named.add(suspected(bug.float(), expected, inputs, exercise.suspects))
        assert suspect.sentence in named, suspect.sentence


@each
def test_the_solution_defines_the_entry_point(exercise):
    """The reference solution has a function of the entry's name and parameters."""
    functions = {node.name: node for node in ast.parse(solution(exercise.id)).body if isinstance(node, ast.FunctionDef)}
    assert [argument.arg for argument in functions[exercise.entry].args.args] == list(exercise.parameters)


def test_ids_are_found_and_others_are_refused_with_those_that_exist():
    """`find` answers with the exercise; a wrong id is told which ones there are."""
    for exercise_id, exercise in EXERCISES.items():
        assert find(exercise_id) is exercise
        assert exercise.id == exercise_id
    with pytest.raises(UnknownExercise, match="softmax"):
        find("sofmax")
