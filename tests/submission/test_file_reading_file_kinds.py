"""Tests of grader.submission.file_reading: files handed in by mistake are named, with what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import marshal
import py_compile
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.errors import UnusableSubmission
from grader.submission import from_file
from grader.submission.file_reading import foreign_kind, has_merge_conflict

NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
PYTHON = "def softmax(x, out):\n    out.copy_(x)\n"
CONFLICT = "<<<<<<< HEAD\n{}=======\n{}>>>>>>> theirs\n"


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.ipynb", NOTEBOOK)
    return file.getvalue()


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.ipynb"))
    return file.getvalue()


FILES: dict[str, tuple[bytes, str, str]] = {
    "zip": (_zip(), "a zip archive", "unpack it"),
    "tar": (_tar(), "a tar archive", "unpack it"),
    "gzip": (gzip.compress(NOTEBOOK.encode()), "gzip", "unpack it"),
    "bzip2": (bz2.compress(NOTEBOOK.encode()), "bzip2", "unpack it"),
    "xz": (lzma.compress(NOTEBOOK.encode()), "xz", "unpack it"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3", "a PDF", "hand in the notebook itself"),
    "rtf": (b"{\\rtf1\\ansi def}", "rich-text", "paste the code"),
    "old Word": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document", "paste the code"),
    "screenshot": (b"\x89PNG\r\n\x1a\n", "an image", "paste the code"),
    "utf-16": (NOTEBOOK.encode("utf-16"), "UTF-16 text", "as UTF-8"),
    "utf-16 without a mark": (NOTEBOOK.encode("utf-16-be"), "UTF-16 text", "as UTF-8"),
    "utf-32": (NOTEBOOK.encode("utf-32"), "UTF-16 text", "as UTF-8"),
    "web page": (b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html><body>{}</body></html>", "a saved web page", "download"),
    "web page with a comment": (b"<!-- saved from url -->\n<HTML lang='en'>", "web page", "download"),
    "XHTML": (b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml">', "a saved web page", "download"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "Git LFS", "git lfs pull"),
    "git-annex": (b"/annex/objects/SHA256E-s12--4d7a.ipynb\n", "git-annex", "git annex get"),
    "empty": (b" \n", "is empty", "hand it in again"),
    "program": (b"\x7fELF\x02\x01\x01", "a compiled program", "its source"),
}  # fmt: skip


def refused(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UnusableSubmission) as caught:
        from_file(path, "softmax")
    sentence = str(caught.value)
    assert str(path) in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("suffix", ["py", "ipynb"])
@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_file_is_named_with_what_to_do(tmp_path: Path, name: str, suffix: str) -> None:
    """The sentence does not depend on the file's name."""
    content, kind, advice = FILES[name]
    sentence = refused(tmp_path / f"mine.{suffix}", content)
    assert kind in sentence
    assert advice in sentence


def test_compiled_python_is_named(tmp_path: Path) -> None:
    """The file is one of `__pycache__`."""
    (tmp_path / "a.py").write_text(PYTHON)
    compiled = py_compile.compile(str(tmp_path / "a.py"), cfile=str(tmp_path / "a.pyc"))
    assert marshal.loads(Path(str(compiled)).read_bytes()[16:])
    assert "is compiled Python" in refused(tmp_path / "mine.py", Path(str(compiled)).read_bytes())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PYTHON, "is Python source, not a notebook: rename it to .py"),
        (CONFLICT.format(NOTEBOOK, NOTEBOOK), "an unresolved merge conflict"),
        (NOTEBOOK.replace(' "cells": [],\n', CONFLICT.format(' "cells": [],\n', ' "cells": [1],\n')), "merge conflict"),
        (NOTEBOOK[:-20], "ends in the middle"),
        ('{"cells": [{"source": "def', "ends in the middle"),
        ('{"cells": [], "metadata": }', "not valid JSON (line 1: Expecting value): open the notebook in JupyterLab"),
        ('{"paragraphs": [], "name": "Zeppelin"}', "no list of cells: open the notebook in JupyterLab"),
        ("[]", "not a notebook, as it is not an object"),
        ("softmax", "not valid JSON"),
        ('{"cells": 3, "nbformat": 4}', "no list of cells"),
        ('{"nbformat": 3, "worksheets": [{"cells": []}]}', "notebook format 3"),
        ("[" * 100_000, "nested too deeply"),
        ('{"cells": [], "n": ' + "9" * 5000 + "}", "out of range"),
    ],
)
def test_each_damaged_notebook_is_described(tmp_path: Path, content: str, words: str) -> None:
    """A wrong file name, a merge, an interrupted transfer, another program's JSON."""
    assert words in refused(tmp_path / "a.ipynb", content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (NOTEBOOK, "is a notebook with the name of a Python file: rename it to .ipynb"),
        (CONFLICT.format(PYTHON, PYTHON), "merge conflict"),
        (f'cuda = """\n{CONFLICT}"""\n{PYTHON}'.format("a;\n", "b;\n"), "merge conflict"),
        (PYTHON.encode("cp1252") + b"# d\xe9j\xe0 vu", "is not UTF-8 text (byte 41, in line 3, is not)"),
        ("# coding: unicode_escape\n" + PYTHON, "declares the encoding 'unicode_escape', but only UTF-8 is graded"),
    ],
)  # fmt: skip
def test_each_damaged_python_file_is_described(tmp_path: Path, content: str | bytes, words: str) -> None:
    """A conflict in the source of a kernel counts too, although Python does not see it."""
    assert words in refused(tmp_path / "a.py", content)


def test_text_that_only_looks_like_a_conflict_is_graded(tmp_path: Path) -> None:
    """Underlined headings, kernel launches and shifts are not conflicts."""
    text = f'"""Title\n=======\n\n>>>>>>> x\n"""\ncode = "k<<<1, 2>>>();"\n{PYTHON}'
    (tmp_path / "a.py").write_text(text)
    assert from_file(tmp_path / "a.py", "softmax").source == text
    assert not has_merge_conflict(text, whole=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"<!--" * n,
        lambda n: b"<?xml " * n,
        lambda n: b" " * n,
        lambda n: b"<!---->" * n,
        lambda n: b"<!-- -->\n " * n,
        lambda n: b"<" * n,
    ],
)
def test_no_file_takes_long_to_recognise(make: Callable[[int], bytes]) -> None:
    """The time does not depend on the bytes."""
    begun = time.process_time()
    assert foreign_kind(make(100_000)) is None
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("content", [PYTHON, NOTEBOOK, "x", "# é", "\ufeffx = 1", "<", "\u0100" * 40])
def test_text_is_no_foreign_kind(content: str) -> None:
    """A short or strange text is not guessed to be something else."""
    assert foreign_kind(content.encode()) is None
