"""Rules for the notebooks' structure and prose that a program can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from grader.exercises import CHAPTERS, EXERCISES

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.relative_to(ROOT / "source").as_posix() for path in (ROOT / "source").rglob("*/*.py"))
NOTEBOOKS = ["README.py", *LESSONS]
TO_READ = {"03_triton/08_compare_languages.py"}  # they have no exercise, and say so


def _cells(course: dict[str, Any], name: str, kind: str | None = None) -> list[Any]:
    cells = course[name.replace(".py", ".ipynb")].cells
    return [cell for cell in cells if kind is None or cell.cell_type == kind]


def _text(course: dict[str, Any], name: str) -> str:
    return "\n\n".join(cell.source for cell in _cells(course, name, "markdown"))


def _is_solution(cell: Any) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def test_every_exercise_has_its_lesson() -> None:
    """The lessons are exactly the notebooks that the exercises name, and those that are only read."""
    assert sorted({f"{e.chapter}/{e.notebook}.py" for e in EXERCISES.values()} | TO_READ) == LESSONS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_code_cell_holds_at_most_ten_lines(course: dict[str, Any], name: str) -> None:
    """Only solution cells may be longer."""
    long = {cell.id: len(cell.source.splitlines()) for cell in _cells(course, name, "code") if not _is_solution(cell)}
    assert {id_: lines for id_, lines in long.items() if lines > 10} == {}


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_a_function_of_a_solution_holds_at_most_thirty_lines(exercise_id: str) -> None:
    """This holds for Python functions and for CUDA C++ kernels: longer ones should be split."""
    from grader.authoring import stubs

    text = stubs.solution(exercise_id)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 30
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for body in re.split(r"\n}\n", node.value):
                assert len(body.splitlines()) <= 30


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_opens_with_what_is_done_learned_and_needed(course: dict[str, Any], name: str) -> None:
    """The first cell says what the lesson covers, how long it takes and whether a GPU is needed."""
    opening = _cells(course, name)[0].source
    words = Path(name).stem.split("_")[1:]
    assert set(words) <= set(opening.splitlines()[0].removeprefix("# ").lower().split())
    for part in ("**You will** ", "**You will learn**", "**You need** ", "minutes", "GPU"):
        assert part in opening, part


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_closes_with_what_was_done_a_self_check_and_the_next(course: dict[str, Any], name: str) -> None:
    """The last cell has three to five questions with folded answers, then a link."""
    closing = _cells(course, name)[-1].source
    assert closing.startswith("## In this notebook you have")
    assert "## Check yourself" in closing
    questions = re.findall(r"<details><summary>(.+?\?)</summary>\n\n(.+?)\n\n</details>", closing, re.DOTALL)
    assert 3 <= len(questions) <= 5
    assert closing.count("<details>") == len(questions)
    assert all(len(answer.split()) >= 5 for _, answer in questions)
    assert re.search(r"\*\*Next:\*\* .*\[.+\]\(.+\.ipynb\)", closing)


@pytest.mark.parametrize("name", LESSONS)
def test_the_steps_stand_in_the_course_order(course: dict[str, Any], name: str) -> None:
    """The order is exercise, check, benchmark if speed is graded, and extra credit."""
    text = "\n".join(cell.source for cell in _cells(course, name))
    gated = any(e.gates for e in EXERCISES.values() if f"{e.chapter}/{e.notebook}.py" == name)
    timed = ("## How fast ", "\nbenchmark(") if gated else ()
    solved = () if name in TO_READ else ("## Exercise: ", "\ncheck(", *timed)
    places = [text.index(step) for step in (*solved, "## Extra credit")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", sorted(TO_READ))
def test_a_lesson_for_reading_says_so(course: dict[str, Any], name: str) -> None:
    """The first cell says that there is no exercise, and none is there."""
    assert "it has no exercise" in " ".join(_cells(course, name)[0].source.split())
    assert not any(map(_is_solution, _cells(course, name)))


@pytest.mark.parametrize("name", LESSONS)
def test_every_comparison_follows_a_prediction(course: dict[str, Any], name: str) -> None:
    """The cell before a comparison asks for a prediction and names its unit, and the prose announces it."""
    cells = _cells(course, name)
    compared = 0
    for number, cell in enumerate(cells):
        if cell.cell_type == "code" and re.search(r"^\s*compare\(", cell.source, re.MULTILINE):
            compared += 1
            before = cells[number - 1]
            assert re.search(r"^prediction = \.\.\.  # \S+", before.source, re.MULTILINE), cell.source
            prose = " ".join(c.source for c in cells[max(0, number - 4) : number] if c.cell_type == "markdown")
            assert re.search(r"predict|before you run", prose, re.IGNORECASE), cell.source
    assert compared >= 3


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_prose_comes_first(course: dict[str, Any], name: str) -> None:
    """At most three code cells follow each other without prose, and no cell is only a heading."""
    kinds = "".join("c" if cell.cell_type == "code" else "m" for cell in _cells(course, name))
    assert "cccc" not in kinds
    for cell in _cells(course, name, "markdown"):
        assert not re.fullmatch(r"#+ [^\n]+", cell.source.strip()), cell.source


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_an_exercise_says_what_how_much_and_how_it_is_checked(course: dict[str, Any], exercise_id: str) -> None:
    """An exercise has a spec, a size hint, a skeleton, a visible check and, if speed is graded, a benchmark."""
    exercise = EXERCISES[exercise_id]
    cells = _cells(course, f"{exercise.chapter}/{exercise.notebook}.py")
    (at,) = (i for i, cell in enumerate(cells) if cell.id == exercise_id)
    spec = cells[at - 1].source
    assert spec.startswith("## Exercise: ")
    assert re.search(r"\*\((about )?\d+ lines?\)\*", spec)
    assert cells[at + 2].source == f"check({exercise.entry})"
    later = [cell.source for cell in cells[at + 3 :]]
    assert f"benchmark({exercise.entry})" in later or not exercise.plot_cases


def _source_prose(name: str) -> list[str]:
    """Return the markdown cells as written, with unfilled templates."""
    cells = re.split(r"^# %% ?", (ROOT / "source" / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [cell for cell in cells if cell.startswith("[markdown]")]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_measured_number_is_written_by_hand(name: str) -> None:
    """Speeds come from the recorded results; the only one written by hand is a specification."""
    by_hand = re.sub("⟦.*?⟧", "", "\n".join(_source_prose(name)), flags=re.DOTALL)
    assert by_hand.count("# ") > 10
    numbers = re.findall(r"[\d.,]*\d ?(?:GB/s|TB/s|TFLOPS|µs|ms)\b|[\d.,]*\d×", by_hand)
    assert [number for number in numbers if number != "4,800 GB/s"] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_recorded_number_stands_with_its_gpu(name: str) -> None:
    """The cell that has a recorded number also names the GPU it was measured on."""
    for cell in _source_prose(name):
        by_hand = re.sub("⟦.*?⟧", "", cell, flags=re.DOTALL)
        for arguments in re.findall(r"""recorded\(((?:[^()"']|"[^"]*"|'[^']*')*)\)""", cell):
            gpu = re.search(r'gpu="(.+?)"', arguments)
            assert gpu, arguments
            assert gpu[1] in by_hand


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_template_is_left(course: dict[str, Any], name: str) -> None:
    """All templates have been filled in."""
    assert not re.search("[⟦⟧]", _text(course, name))


def test_the_syllabus_leads_to_every_lesson(course: dict[str, Any]) -> None:
    """The syllabus has each lesson, its exercises, minutes and points: the ids are those of the table of progress."""
    text = _text(course, "README.py")
    for lesson in LESSONS:
        (minutes,) = re.findall(r"about (\d+) minutes", _cells(course, lesson)[0].source)
        own = [exercise for exercise in EXERCISES.values() if f"{exercise.chapter}/{exercise.notebook}.py" == lesson]
        ids, points = ", ".join(f"`{each.id}`" for each in own) or "–", sum(each.max_points for each in own)
        assert f"({lesson.replace('.py', '.ipynb')}) | {ids} | {minutes} | {points:g} |" in text


def test_the_syllabus_shows_chapters_and_subtotals(course: dict[str, Any]) -> None:
    """Each chapter has its title, its technologies and its points; the syllabus links to the glossary."""
    text = _text(course, "README.py")
    for number, (folder, title) in enumerate(CHAPTERS.items(), start=1):
        assert re.search(rf"^### {re.escape(title)}: \S", text, re.MULTILINE)
        total = sum(each.max_points for each in EXERCISES.values() if each.chapter == folder)
        assert re.search(rf"\| \*\*Chapter {number}\*\* \| \| \*\*\d+\*\* \| \*\*{total:g}\*\* \|", text)
    assert "](glossary.ipynb)" in text


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_ends_with_three_links_to_read_on(course: dict[str, Any], name: str) -> None:
    """The last cell has a section "Read on" with three links out of the course, and a word on each."""
    closing = _cells(course, name)[-1].source
    (section,) = re.findall(r"^## Read on\n\n(.+?)(?=\n\n\*\*Next:\*\*)", closing, re.MULTILINE | re.DOTALL)
    links = re.findall(r"^- \[.+?\]\(https://\S+\)\S*\s+\S", section, re.MULTILINE)
    assert len(links) == section.count("](") == 3, section


@pytest.mark.parametrize("name", LESSONS)
def test_extra_credit_has_answers_to_unfold(course: dict[str, Any], name: str) -> None:
    """Each numbered task of the extra credit is followed by a folded answer."""
    cells = _cells(course, name)
    (start,) = (at for at, cell in enumerate(cells) if cell.source.startswith("## Extra credit"))
    prose = "\n\n".join(cell.source for cell in cells[start:-1] if cell.cell_type == "markdown")
    tasks = re.split(r"^\d+\. ", prose, flags=re.MULTILINE)[1:]
    assert tasks
    for task in tasks:
        answers = re.findall(r"^<details><summary>.+?</summary>\n\n(.+?)\n\n</details>", task, re.MULTILINE | re.DOTALL)
        assert len(answers) == 1, task
        assert len(answers[0].split()) >= 8, task


def test_no_link_is_broken(checkout: Path) -> None:
    """The build reports no broken link and no picture without alt text."""
    from grader.authoring.build import build

    assert build(check=True, root=checkout).problems == ()


def test_the_sizes_of_the_softmax_mean_are_those_that_were_averaged(course: dict[str, Any]) -> None:
    """The prose below the recorded table lists the seven sizes of the benchmark."""
    from benchmarks.kernels import SOFTMAX_SIZES

    found = re.search(
        r"seven sizes of the\s+last\s+row are N = ([\d, and]+)\.", _text(course, "03_triton/03_fuse_a_softmax.py")
    )
    assert found
    assert tuple(int(number) for number in re.findall(r"\d+", found[1])) == SOFTMAX_SIZES
