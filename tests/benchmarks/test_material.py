"""The benches' submissions are what their kind says."""

import ast
import random

import pytest

from benchmarks.classes import check_text, texts
from benchmarks.material import MIXED, Deck, crashing, honest, hostile, slower, unique, wrong
from grader.authoring.stubs import solution
from grader.exercises import EXERCISES, find


@pytest.mark.parametrize("exercise", MIXED)
def test_bugs_are_in_the_reference_solution(exercise):
    """Each mutation changes the current reference solution, and all are different."""
    sources = {text.source for text in wrong(exercise)}
    assert len(sources) == len(wrong(exercise)) >= 2
    assert solution(exercise) not in sources


@pytest.mark.parametrize("exercise", MIXED)
def test_a_unique_text_is_the_same_program(exercise):
    """Another tag changes the text, also inside the kernel. Except for CUDA C++, Python parses the same program."""
    for text in [*honest(exercise), *crashing(exercise)]:
        one, other = (unique(text, tag).source for tag in ("one", "other"))
        assert one != other
        if text.name not in ("syntax",) and "__global__" not in text.source:
            assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(text.source)), text.name
    kernel = unique(honest(exercise)[0], "mine").source
    assert "mine" in (kernel.split("__global__")[0] if "__global__" in kernel else kernel.split("def ")[1])


def test_no_two_students_hand_in_the_same_text():
    """Every text is unique, and a second call makes the same class."""
    own = texts("simulator")
    sources = [text.source for each in own.values() for text in each.values()]
    assert len(own) == 20
    assert len(set(sources)) == len(sources) == 80
    assert texts("simulator") == own


def test_the_slower_twin_differs_in_its_work_alone():
    """The two texts differ in one number."""
    fast, slow = slower(1.0).source, slower(1.03).source
    assert fast != slow
    assert slow.replace("1.03", "1.0") == fast


def test_what_needs_a_gpu_is_not_dealt_without_one():
    """The simulator's texts are a subset of the GPU's."""
    everywhere = {text.name for text in hostile("simulator", 1000)}
    assert everywhere < {text.name for text in hostile("cuda", 1000)}
    assert not any("\n# runs: gpu" in text.source for each in EXERCISES for text in honest(each, "simulator"))


def test_every_text_has_its_turn():
    """A deck deals halves and quarters, and repeats a text only after all others of its kind."""
    texts = [text for pick in (honest, wrong, crashing) for text in pick("softmax", *["simulator"][: pick is honest])]
    deck = Deck(texts, random.Random(1))
    dealt = deck.deal(len(texts) * 4)
    kinds = [text.kind for text in dealt]
    assert (kinds.count("honest"), kinds.count("wrong")) == (len(dealt) // 2, len(dealt) // 4)
    assert {text.name for text in dealt} == {text.name for text in texts}
    deck.drop("raises")
    assert "raises" not in {text.name for text in deck.deal(200)}


@pytest.mark.parametrize("exercise", [find(each) for each in MIXED], ids=lambda exercise: exercise.id)
def test_the_check_of_the_stock_course_is_python(exercise):
    """With its values filled in, the check cell compiles and calls the exercise's function."""
    for device in ("cuda", "cpu"):
        text = check_text(exercise, device)
        ast.parse(text)
        assert f"{exercise.entry}(*inputs, out)" in text
