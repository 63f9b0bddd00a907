"""Tests of grader.submission: the text that is graded, and the one sentence that bad input gets."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from grader.errors import UnknownExercise, UnusableSubmission
from grader.exercise import MAX_SOURCE_BYTES
from grader.submission import Submission, file_reading, from_file, from_notebook, from_source, submissions_in

SOLVED = "import torch\n\ndef softmax(x, out):\n    torch.softmax(x, 1, out=out)\n"


def code(source: str | list[str], grade_id: str | None = None, **nbgrader: Any) -> dict[str, Any]:
    metadata = {"nbgrader": {"grade_id": grade_id, **nbgrader}} if grade_id else {}
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": [], "execution_count": None}


def notebook(*cells: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **keys}


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def refused(function: Any, *arguments: Any) -> str:
    with pytest.raises(UnusableSubmission) as caught:
        function(*arguments)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 400
    return sentence


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import x\nexcept ImportError:\n    def softmax(x, out): ...\n",
        "if True:\n    softmax = other\n",
        "from mine import fast as softmax\n",
        "softmax: object = 1\n",
        "with x:\n    (softmax, b) = 1, 2\n",
        "match x:\n    case 1:\n        def softmax(): ...\n",
        "def softmax(x, out:\n    pass\n",
    ],
)
def test_every_way_to_define_at_top_level_counts(source: str) -> None:
    """A function counts as defined wherever running the cell gives its name a value; a broken cell counts too."""
    assert from_notebook(notebook(code("x = 1"), code(source)), "softmax").source == source


@pytest.mark.parametrize(
    "source",
    ["softmax(x, out)", "# softmax", "def f():\n    softmax = 1", "softmax: object", "class A:\n    softmax = 1"],
)
def test_mention_is_no_definition(source: str) -> None:
    """A cell that only uses the name does not define the function."""
    assert "defines `softmax`" in refused(from_notebook, notebook(code(source)), "softmax")


def test_marked_cell_without_the_function_is_refused() -> None:
    """A solution cell that defines something else is named, with its number."""
    sentence = refused(from_notebook, notebook(code("x = 1"), code("y = 2", "softmax")), "softmax", "a.ipynb")
    assert sentence.startswith("Cell 2 of a.ipynb is the solution cell")


def test_syntax_error_is_left_to_the_judge() -> None:
    """A syntax error in the solution cell is a verdict with a line, not a refusal here."""
    assert from_notebook(notebook(code("def softmax(:", "softmax")), "softmax").source == "def softmax(:"


def test_source_may_be_a_list_of_lines_with_any_line_ends() -> None:
    """The text and its hash do not depend on how the notebook was saved."""
    joined = from_notebook(notebook(code(SOLVED, "softmax")), "softmax")
    lines = from_notebook(notebook(code(SOLVED.splitlines(keepends=True), "softmax")), "softmax")
    windows = from_notebook(notebook(code(SOLVED.replace("\n", "\r\n"), "softmax")), "softmax")
    assert joined.sha256 == lines.sha256 == windows.sha256
    assert len(joined.sha256) == 64


def test_the_note_says_which_cell_was_judged() -> None:
    """The note is empty if there was no choice; the origin always names the cell."""
    stub = 'def softmax(x, out):\n    raise NotImplementedError("not written yet")\n'
    found = from_notebook(notebook(code(stub, "softmax"), code(SOLVED)), "softmax", "a.ipynb")
    note = "Judged: cell 2, as the marked cell (cell 1) is still the stub."
    assert found == Submission(SOLVED, "softmax", "a.ipynb, cell 2", note)
    assert from_notebook(notebook(code(SOLVED, "softmax")), "softmax").note == ""


def test_a_markdown_cell_with_the_solution_is_named() -> None:
    """The exercise's own cell is judged; for any other, the report says how to turn it into code."""
    text = {**code(SOLVED), "cell_type": "markdown"}
    found = from_notebook(notebook({**code(SOLVED, "softmax"), "cell_type": "markdown"}), "softmax")
    assert (found.source, "press Esc and then Y" in found.note) == (SOLVED, True)
    sentence = refused(from_notebook, notebook(text), "softmax")
    assert "Cell 1 does, but it is not a code cell: select it, press Esc and then Y" in sentence


@pytest.mark.parametrize("name", ["unicode_escape", "utf-7", "rot13", "cp1252"])
def test_an_encoding_other_than_utf_8_is_refused(name: str) -> None:
    """Some encodings turn into code what a reader takes for a comment, in a cell or a file."""
    sentence = refused(from_source, f"# -*- coding: {name} -*-\n{SOLVED}", "softmax")
    assert sentence.startswith(f"Line 1 of the cell declares the encoding '{name}', but only UTF-8 is graded")


def test_a_latin_1_file_that_says_so_is_graded(tmp_path: Path) -> None:
    """The submission is the text that Python reads from the file."""
    text = "# -*- coding: latin-1 -*-\n# d\xe9j\xe0 vu\n" + SOLVED
    (tmp_path / "a.py").write_bytes(text.encode("latin-1"))
    assert from_file(tmp_path / "a.py") == Submission(text, "softmax", str(tmp_path / "a.py"))


@pytest.mark.parametrize("magic", ["%%time", "%matplotlib inline", "!nvidia-smi", "x = !ls", "x = %time f()", "print?"])
def test_magic_is_named_with_its_line(magic: str) -> None:
    """An IPython magic gets a sentence that names the line and says what to do."""
    sentence = refused(from_source, f"import torch\n{magic}\n{SOLVED}", "softmax", "a.ipynb, cell 3")
    assert sentence.startswith("Line 2 of a.ipynb, cell 3 is an IPython magic")
    assert "cell of its own" in sentence


def test_a_magic_is_quoted_without_what_steers_a_terminal() -> None:
    """The line is untrusted: escapes and direction marks are replaced."""
    sentence = refused(from_source, "!\x1b[2J\x9b31m\u202eDESSAP\n" + SOLVED, "softmax")
    assert "`!?[2J?31m?DESSAP`" in sentence


def test_percent_inside_a_string_is_no_magic() -> None:
    """Lines of CUDA C++ in a string may begin with % or !."""
    source = 'cpp = """\n% 32\n!flag\n"""\n' + SOLVED
    assert from_source(source, "softmax").source == source


def test_long_magic_is_shortened() -> None:
    """A long line does not make the sentence long."""
    assert "…" in refused(from_source, "%" + "a" * 10_000, "softmax")


@pytest.mark.parametrize(
    ("source", "words"),
    [("", "is empty"), (" \n\t\n", "is empty"), ("a\0b", "NUL"), ("x = '\ud800'", "valid Unicode")],
)
def test_text_that_is_no_source_is_refused(source: str, words: str) -> None:
    """Empty text, NUL characters and lone surrogates are refused in a sentence that begins with a capital."""
    sentence = refused(from_source, source, "softmax")
    assert words in sentence
    assert sentence.startswith("The cell")


def test_too_much_code_is_refused() -> None:
    """A cell of several hundred kilobytes is not parsed."""
    assert "kB of code" in refused(from_source, SOLVED + "#" * MAX_SOURCE_BYTES, "softmax")


def test_too_many_large_cells_are_refused() -> None:
    """All cells together are too much to parse, though each alone is not."""
    large = SOLVED + "\n" + "x = 1\n" * 35_000
    assert "MB of code" in refused(from_notebook, notebook(*[code(large)] * 12), "softmax")


@pytest.mark.parametrize("source", ["x" * 250_000, ["x" * 125_000, "y" * 125_000]])
def test_more_than_a_person_writes_is_refused(tmp_path: Path, source: str | list[str]) -> None:
    """Text counts like code, and the number of cells counts too: each is checked and shown."""
    text = {"cell_type": "markdown", "metadata": {}, "source": source}
    assert file_reading.read_notebook(write(tmp_path / "a.ipynb", notebook(*[text] * 8)))
    assert "2 MB of code and text" in refused(
        file_reading.read_notebook, write(tmp_path / "a.ipynb", notebook(*[text] * 9))
    )
    assert file_reading.read_notebook(write(tmp_path / "a.ipynb", notebook(*[code("x")] * 1000)))
    sentence = refused(file_reading.read_notebook, write(tmp_path / "a.ipynb", notebook(*[code("x")] * 1001)))
    assert "holds 1001 cells" in sentence


@pytest.mark.parametrize(
    "source",
    [
        "-" * 60_000 + "1",
        "if x:\n    pass\n" + "elif x:\n    pass\n" * 800 + "softmax = 1\n",
        "1+" * 30_000 + "1",
        "f" + "(" * 50_000,
    ],
    ids=["minuses", "elifs", "sum", "parentheses"],
)
def test_source_made_to_break_a_parser_does_no_harm(source: str) -> None:
    """Deeply nested code reaches the judge; it neither crashes nor raises here."""
    nb = notebook(code(source + "\nsoftmax = 1\n"), code(source, "softmax"))
    assert from_notebook(nb, "softmax").exercise_id == "softmax"


@pytest.mark.parametrize(
    "cells",
    [
        [None, 3, [], {}],
        [{"cell_type": "code"}],
        [{"cell_type": "code", "source": 3, "metadata": "x"}],
        [{"cell_type": "code", "source": ["softmax(", 3, None], "metadata": {"nbgrader": []}}],
        [{"cell_type": "code", "source": "x", "metadata": {"nbgrader": {"grade_id": ["softmax"]}}}],
    ],
)
def test_malformed_cells_are_passed_over(cells: list[Any]) -> None:
    """The reader skips cells of any shape."""
    assert "No code cell" in refused(from_notebook, notebook(*cells), "softmax")
    nb = notebook(*cells, code(SOLVED, "softmax"))
    assert from_notebook(nb, "softmax").source == SOLVED


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    """A missing file, a directory, a named pipe, which would never end, and paths that the system cannot look up."""
    os.mkfifo(tmp_path / "pipe.py")
    assert refused(from_file, tmp_path / "a.py").startswith("There is no file")
    assert "is a directory" in refused(from_file, tmp_path)
    assert "not a regular file" in refused(from_file, tmp_path / "pipe.py")
    for path in ("a\0b.py", "x" * 300 + ".py"):
        assert "cannot be read" in refused(from_file, path)


@pytest.mark.parametrize("suffix", ["py", "ipynb"])
def test_hundred_megabytes_are_refused_before_they_are_read(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is checked first; the file is not opened."""
    path = tmp_path / f"big.{suffix}"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("the file was opened"))
    sentence = refused(from_file, path, "softmax")
    assert "100.0 MB" in sentence
    assert ("Clear its outputs" in sentence) == (suffix == "ipynb")


def test_a_file_that_grows_is_still_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit applies to the bytes that are read, not only to the reported size."""
    monkeypatch.setattr(file_reading, "MAX_BYTES", 10)
    path = write(tmp_path / "a.py", "x" * 11)
    *mode, _, accessed, modified, changed = os.stat(path)
    status = os.stat_result([*mode, 0, accessed, modified, changed])
    real = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **options: status if self == path else real(self, **options))
    assert "too large" in refused(from_file, path, "softmax")


def test_byte_order_mark_is_not_code(tmp_path: Path) -> None:
    """A file saved with a byte order mark is the same submission."""
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbf" + SOLVED.encode())
    assert from_file(tmp_path / "a.py", "softmax").source == SOLVED


def test_other_kinds_of_files_are_refused(tmp_path: Path) -> None:
    """A file that is neither Python nor a notebook is refused."""
    assert "neither a Python file" in refused(from_file, write(tmp_path / "a.txt", SOLVED), "softmax")


def test_exercise_is_guessed_from_what_is_defined(tmp_path: Path) -> None:
    """The one known function in a file decides which exercise it solves; the file's name does not."""
    assert from_file(write(tmp_path / "vector_add.py", SOLVED)).exercise_id == "softmax"


def test_exercise_is_guessed_from_the_file_name(tmp_path: Path) -> None:
    """The name decides if the text does not."""
    both = SOLVED + "\ndef vector_add(x, y, out): ...\n"
    assert from_file(write(tmp_path / "vector_add.py", both)).exercise_id == "vector_add"
    assert from_file(write(tmp_path / "softmax.py", "x = 1\n")).exercise_id == "softmax"


def test_unclear_exercise_is_asked_for(tmp_path: Path) -> None:
    """If neither decides, the sentence names the option to give and lists the candidates."""
    both = SOLVED + "\ndef vector_add(x, y, out): ...\n"
    sentence = refused(from_file, write(tmp_path / "mine.py", both))
    assert "`vector_add`, `softmax`" in sentence
    assert "--exercise" in sentence
    none = refused(from_file, write(tmp_path / "mine.py", "x = 1"))
    assert "--exercise" in none
    assert "`grader exercises`" in none


def test_exercise_of_a_notebook_is_guessed_from_its_cells(tmp_path: Path) -> None:
    """A notebook with one solution cell needs no option."""
    path = write(tmp_path / "01_x.ipynb", notebook(code(SOLVED, "softmax")))
    assert from_file(path) == Submission(SOLVED, "softmax", f"{path}, cell 1")


def test_unknown_exercise_comes_before_the_file(tmp_path: Path) -> None:
    """A wrong exercise id is reported first, even if the file does not exist."""
    with pytest.raises(UnknownExercise, match="softmax"):
        from_file(tmp_path / "none.py", "sofmax")


def test_all_submissions_of_a_notebook(tmp_path: Path) -> None:
    """A notebook with several solution cells gives them all, in the order of the exercises."""
    add = "def vector_add(x, y, out): ...\n"
    path = write(tmp_path / "a.ipynb", notebook(code(SOLVED, "softmax"), code(add, "vector_add")))
    assert [(s.exercise_id, s.source) for s in submissions_in(path)] == [("vector_add", add), ("softmax", SOLVED)]
    assert "solves no exercise" in refused(submissions_in, write(tmp_path / "b.ipynb", notebook(code("x"))))
    assert [s.exercise_id for s in submissions_in(write(tmp_path / "a.py", SOLVED))] == ["softmax"]


def test_a_notebook_is_parsed_once_however_often_it_is_read(tmp_path, monkeypatch):
    """Parsing 20 MB of brackets takes a second and half a gigabyte. A file that changed is parsed again."""
    parsed, loads = [], json.loads
    monkeypatch.setattr(file_reading.json, "loads", lambda text: parsed.append(len(text)) or loads(text))
    path = write(tmp_path / "a.ipynb", notebook(code(SOLVED, "softmax")))
    for _ in range(3):
        assert from_file(path).source == SOLVED
        assert submissions_in(path)[0].source == SOLVED
    assert len(parsed) == 1
    write(path, notebook(code(SOLVED + "\n# changed", "softmax")))
    assert from_file(path).source.endswith("# changed")
    path.write_text("{", encoding="utf-8")
    for _ in range(3):
        assert "not valid JSON" in refused(from_file, path)
    assert len(parsed) == 3


def test_the_notebooks_of_a_class_are_kept_up_to_a_size(tmp_path, monkeypatch):
    """A run reads hundreds of notebooks before it returns to the first; hostile ones of megabytes do not pile up."""
    monkeypatch.setattr(file_reading, "_kept", {})
    paths = [write(tmp_path / f"{number}.ipynb", notebook(code(SOLVED, "softmax"))) for number in range(200)]
    first = [file_reading.read_notebook(path) for path in paths]
    assert all(file_reading.read_notebook(path) is kept for path, kept in zip(paths, first, strict=True))
    monkeypatch.setattr(file_reading, "_KEPT_BYTES", 5000)
    file_reading.read_notebook(write(tmp_path / "large.ipynb", notebook(code("x" * 100_000))))
    assert len(file_reading._kept) == 1


def test_only_the_cells_of_a_notebook_are_kept(tmp_path):
    """Outputs and metadata may be megabytes; cells keep their positions in the file."""
    nb = {**notebook(code("x"), code("y", "softmax")), "metadata": {"x": [[]] * 9}}
    nb["cells"].insert(1, 7)
    nb["cells"][0]["outputs"] = [{"data": "z"}]
    assert file_reading.read_notebook(write(tmp_path / "a.ipynb", nb)) == {
        "nbformat": 4,
        "cells": [
            {"cell_type": "code", "source": "x", "metadata": {}},
            None,
            {"cell_type": "code", "source": "y", "metadata": {"nbgrader": {"grade_id": "softmax"}}},
        ],
    }
