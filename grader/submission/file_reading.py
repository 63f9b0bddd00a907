"""Reads untrusted files: the size is checked first, and each kind of bad file gets its own sentence."""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.errors import UnusableSubmission
from grader.submission.solution_cell import Cell
from grader.words import plural

# The encoding that a Python source declares in its first two lines (PEP 263), and how it is decoded.

_DECLARED = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*(?P<name>[-\w.]+)", re.ASCII)
_NO_CODE = re.compile(r"[ \t\f]*(?:#|\Z)")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_EMACS = re.compile(r"-(?:unix|dos|mac)\Z")
_PLAIN = ("utf-8", "utf-8-sig", "ascii")
_LATIN_1 = "iso8859-1"


def foreign_encoding(text: str) -> tuple[str, int] | None:
    """The name and line of a declared encoding other than UTF-8, ASCII or Latin-1; None if there is no such encoding.

    A name that Python does not know declares nothing: a comment may say "positional encoding: sine".
    """
    declared = _declared(text)
    if declared is None or _codec(declared[0]) in (None, *_PLAIN, _LATIN_1):
        return None
    return declared


def decoded(data: bytes) -> str:
    """The text of a Python file, without its byte order mark: Latin-1 if it declares that, otherwise UTF-8.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    declared = _declared(data[:4096].decode("latin-1"))
    if declared is not None and _codec(declared[0]) == _LATIN_1 and not data.startswith(codecs.BOM_UTF8):
        return data.decode("latin-1")
    return data.decode("utf-8-sig")


def _declared(text: str) -> tuple[str, int] | None:
    for number, line in enumerate(_LINE_ENDS.split(text, maxsplit=2)[:2], start=1):
        if found := _DECLARED.match(line):
            return found["name"], number
        if not _NO_CODE.match(line):
            return None
    return None


def _codec(name: str) -> str | None:
    name = _EMACS.sub("", name.lower().replace("_", "-")).replace("iso-latin-1", "latin-1")
    try:
        return "utf-8" if name.startswith("utf-8-") and name != "utf-8-sig" else codecs.lookup(name).name
    except (LookupError, ValueError):
        return None


# Files that are neither Python nor a notebook, known by their first bytes, and what to do about them.

MERGE_CONFLICT = (
    "holds an unresolved merge conflict: keep one of the two versions, and delete the lines that begin with "
    "`<<<<<<<`, `=======` and `>>>>>>>`"
)

_UNPACK = "unpack it and hand in the .ipynb or .py file that is in it"
_PASTE = "paste the code into the notebook and hand that in"
_UTF_8 = "save it again as UTF-8"
_BEGINNINGS = (
    (b"PK\x03\x04", "a zip archive, as .zip, .docx and .xlsx files are", _UNPACK),
    (b"PK\x05\x06", "an empty zip archive", _UNPACK),
    (b"\x1f\x8b", "compressed with gzip", _UNPACK),
    (b"BZh", "compressed with bzip2", _UNPACK),
    (b"\xfd7zXZ\x00", "compressed with xz", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"%PDF-", "a PDF", "hand in the notebook itself, not a printout"),
    (b"{\\rtf", "a rich-text document", _PASTE),
    (b"\xd0\xcf\x11\xe0", "an Office document", _PASTE),
    (b"\x89PNG", "an image", _PASTE),
    (b"\xff\xd8\xff", "an image", _PASTE),
    (b"GIF8", "an image", _PASTE),
    (b"\x7fELF", "a compiled program", "hand in its source"),
    (b"SQLite format 3\x00", "a database", "hand in the notebook itself"),
    (codecs.BOM_UTF16_LE, "UTF-16 text", _UTF_8),
    (codecs.BOM_UTF16_BE, "UTF-16 text", _UTF_8),
    (codecs.BOM_UTF32_BE, "UTF-32 text", _UTF_8),
    (
        b"version https://git-lfs.github.com/spec/",
        "a Git LFS pointer, which only names a file kept elsewhere",
        "run `git lfs pull` and hand in the file that it fetches",
    ),
    (
        b"/annex/objects/",
        "a git-annex pointer, which only names a file kept elsewhere",
        "run `git annex get` and hand in the file that it fetches",
    ),
)
_PYC = re.compile(rb"..\r\n", re.DOTALL)
_WEB_PAGE = re.compile(rb"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_TAR_AT, _TAR = 257, b"ustar"

_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
_MARK = re.compile(r"^(?:<{7}|>{7})(?: .*)?$|^={7}$", re.MULTILINE)


def foreign_kind(data: bytes) -> tuple[str, str] | None:
    """The kind of file and what to do, such as "a PDF" and "hand in …"; None if the bytes may be text."""
    start = data.removeprefix(codecs.BOM_UTF8)
    for beginning, kind, advice in _BEGINNINGS:
        if start.startswith(beginning):
            return kind, advice
    if start.lstrip()[:1] == b"<" and _WEB_PAGE.search(start[:4096]):
        return "a saved web page", "download the notebook itself (on GitHub: “Download raw file”)"
    if _PYC.match(start) and b"\x00" in start[:16]:
        return "compiled Python", "hand in its source"
    if data[_TAR_AT:].startswith(_TAR):
        return "a tar archive", _UNPACK
    if b"\x00" in data[:64] and not all(data[at:64:2].strip(b"\x00") for at in (0, 1)):
        return "UTF-16 text", _UTF_8
    return None


def has_merge_conflict(text: str, whole: bool) -> bool:
    """Whether lines of the text mark a merge conflict; with `whole`, all three marks must follow each other."""
    marks = [found[0][:7] for found in _MARK.finditer(text)]
    if not whole:
        return any(mark != _MARKS[1] for mark in marks)
    rest = iter(marks)
    return all(mark in rest for mark in _MARKS)


# Scripts that were exported from a notebook: their marked sections are cells.

# An exported notebook calls the course's functions, which do not exist in a submission's process.
_OF_A_NOTEBOOK = re.compile(
    r"^from grader import .*\b(?:benchmark|check|device|leaderboard|progress|standings)\b|^#\s+jupytext:"
    r"|^Automatically generated by Colab|^(?:\w+ = )?get_ipython\(\)",
    re.MULTILINE,
)
_SECTION = re.compile(r"^#[ \t]*(?:In\[(?P<number>\d*| )\]:|%%(?P<percent>[^\n]*))[ \t]*$", re.MULTILINE)
_TEXT_SECTION = re.compile(r"\[(markdown|md|raw)\]")
_GRADE_ID = re.compile(r'"grade_id":\s*"([^"]+)"')
_COMMENT = re.compile(r"^# ?", re.MULTILINE)


def cells_of_script(text: str, origin: str) -> list[Cell] | None:
    """The cells of a script that JupyterLab, VS Code or jupytext (py:percent) exported; None for other files.

    Raises:
        UnusableSubmission: it is a whole notebook without cell markers.
    """
    if _OF_A_NOTEBOOK.search(text) is None:
        return None
    marks = list(_SECTION.finditer(text))
    if not marks:
        raise UnusableSubmission(
            f"{origin} is a whole notebook as a script without cell markers: hand in the notebook "
            "(.ipynb), or a .py file that holds only the solution's cell."
        )
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    marked = enumerate(zip(marks, ends, strict=True), start=1)
    return [_cell(mark, text[mark.end() : end], number) for number, (mark, end) in marked]


def _cell(mark: re.Match[str], section: str, number: int) -> Cell:
    source, header = section.strip("\n") + "\n", mark["percent"] or ""
    name = f"In [{mark['number']}]" if mark["percent"] is None else f"cell {number}"
    kind = _TEXT_SECTION.search(header)
    grade_id = _GRADE_ID.search(header)
    if kind is None:
        return Cell(name, source, "code", grade_id and grade_id[1])
    return Cell(name, _COMMENT.sub("", source), "raw" if kind[1] == "raw" else "markdown", grade_id and grade_id[1])


MAX_BYTES = 20_000_000  # a notebook holds its plots
_MAX_CELLS = 1000  # each takes some milliseconds to check and to show
_MAX_SOURCES = 2_000_000  # characters of all cells: code is parsed to find the function, text is shown
_KEPT_BYTES = 100_000_000  # roughly, of cached cells, so that a run parses each file once: a thousand notebooks
_PYTHON = re.compile(r"^(?:def|class|import|from) \w|^@\w", re.MULTILINE)
_SAVE_AGAIN = "open the notebook in JupyterLab, save it, and hand in that file"


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a regular file of at most `MAX_BYTES`: UTF-8, or the encoding that a Python file declares.

    Raises:
        UnusableSubmission: the file is missing, a directory, too large, empty, unreadable, or not Python or JSON text.
    """
    path = Path(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UnusableSubmission(f"{path} is a directory: name the .py or .ipynb file in it.")
        if not stat.S_ISREG(status.st_mode):
            raise UnusableSubmission(f"{path} is not a regular file.")
        if status.st_size > MAX_BYTES:
            raise _too_large(path, status.st_size)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # it may have grown since
    except FileNotFoundError:
        raise UnusableSubmission(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnusableSubmission(f"{path} cannot be read: {reason}.") from None
    if len(data) > MAX_BYTES:
        raise _too_large(path, len(data))
    if not data.strip():
        raise UnusableSubmission(f"{path} is empty: save your work and hand it in again.")
    if kind := foreign_kind(data):
        raise UnusableSubmission(f"{path} is {kind[0]}: {kind[1]}.")
    try:
        return decoded(data) if path.suffix.lower() == ".py" else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnusableSubmission(
            f"{path} is not UTF-8 text (byte {error.start}, in line {line}, is not): save it as UTF-8 in your editor, "
            "and hand it in again."
        ) from None


def read_notebook(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A notebook file of at most `MAX_BYTES`, as `parse_notebook` returns it. An unchanged file is parsed once.

    Raises:
        UnusableSubmission: there is no such file, or it is not a notebook.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return parse_notebook(read_text(path), str(path))  # raises an error that says why it cannot be read
    key = str(path), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    if key not in _kept:
        try:
            notebook = parse_notebook(read_text(path), str(path))
            _kept[key] = sum(1000 + len(source_of(cell) or "") for cell in notebook["cells"]), notebook
        except UnusableSubmission as error:
            _kept[key] = 1000, str(error)
    found_in_it = _kept[key][1]
    while len(_kept) > 1 and sum(size for size, _ in _kept.values()) > _KEPT_BYTES:
        del _kept[next(iter(_kept))]  # the oldest
    if isinstance(found_in_it, str):
        raise UnusableSubmission(found_in_it)
    return found_in_it


_kept: dict[tuple[Any, ...], tuple[int, dict[str, Any] | str]] = {}  # bytes, and the cells or an error message


def parse_notebook(text: str, origin: str) -> dict[str, Any]:
    """A parsed notebook: its `nbformat` and its `cells`, each with type, text and grade_id.

    Outputs and everything else, which may be megabytes, are dropped.

    Raises:
        UnusableSubmission: it is not JSON, not a notebook, of a format before 4, or larger than a person writes.
    """
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnusableSubmission(f"{origin} {_no_json(text, error)}.") from None
    except (RecursionError, ValueError):
        raise UnusableSubmission(
            f"{origin} is not a notebook: its JSON is nested too deeply or out of range."
        ) from None
    cells = _cells(notebook, origin)
    if len(cells) > _MAX_CELLS:
        raise UnusableSubmission(
            f"{origin} holds {plural(len(cells), 'cell')}, and at most {_MAX_CELLS} are read: delete those that it "
            "does not need."
        )
    slim = [_slim(cell) for cell in cells]
    _refuse_long([cell["source"] for cell in slim if cell is not None], origin)
    return {"nbformat": notebook.get("nbformat"), "cells": slim}


def _slim(cell: Any) -> dict[str, Any] | None:
    """A parsed cell without its outputs; None if it is not a cell, so that later cells keep their positions."""
    source = source_of(cell)
    if source is None:
        return None
    grade_id = grade_id_of(cell)
    metadata = {} if grade_id is None else {"nbgrader": {"grade_id": grade_id}}
    return {"cell_type": str(cell.get("cell_type")), "source": source, "metadata": metadata}


def source_of(cell: Any) -> str | None:
    """The text of a parsed cell, which may be a list of lines; None if it has no text."""
    source = cell.get("source", "") if isinstance(cell, Mapping) else None
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else None


def grade_id_of(cell: Mapping[str, Any]) -> str | None:
    """The name of a parsed cell in nbgrader; None if it has no name."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, Mapping) else None
    return grade_id if isinstance(grade_id, str) else None


def cells_of(nb: Any, origin: str) -> list[Cell]:
    """The cells of a parsed notebook, named by their positions from 1; malformed cells are skipped.

    Raises:
        UnusableSubmission: it has no list of cells, or more code than can be parsed in a moment.
    """
    found = []
    for position, cell in enumerate(_cells(nb, origin), start=1):
        source = source_of(cell)
        if source is not None:
            found.append(Cell(f"cell {position}", source, str(cell.get("cell_type")), grade_id_of(cell)))
    _refuse_long([cell.source for cell in found if cell.cell_type == "code"], origin)
    return found


def _no_json(text: str, error: json.JSONDecodeError) -> str:
    """Describes a notebook's text that is not JSON, and says what to do."""
    if has_merge_conflict(text, whole=False):
        return MERGE_CONFLICT
    if not text.lstrip().startswith(("{", "[")) and _PYTHON.search(text):
        return "is Python source, not a notebook: rename it to .py"
    said = f"is not a notebook: it is not valid JSON (line {error.lineno}: {error.msg})"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"{said} and ends in the middle, as if it was cut off: {_SAVE_AGAIN}"
    return f"{said}: {_SAVE_AGAIN}"


def _refuse_long(sources: list[str], origin: str) -> None:
    if sum(map(len, sources)) > _MAX_SOURCES:
        raise UnusableSubmission(
            f"{origin} holds more than {_MAX_SOURCES // 1_000_000} MB of code and text in its cells, more than any "
            "notebook needs."
        )


def _cells(nb: Any, origin: str) -> list[Any]:
    if not isinstance(nb, Mapping):
        raise UnusableSubmission(f"{origin} is JSON but not a notebook, as it is not an object: {_SAVE_AGAIN}.")
    version = nb.get("nbformat")
    cells = nb.get("cells")
    if isinstance(version, int) and version < 4:
        raise UnusableSubmission(
            f"{origin} is in notebook format {version}, and format 4 is needed: open it in JupyterLab and save it."
        )
    if not isinstance(cells, list):
        raise UnusableSubmission(f"{origin} is JSON but not a notebook, as it has no list of cells: {_SAVE_AGAIN}.")
    return cells


def _too_large(path: Path, size: int) -> UnusableSubmission:
    advice = " Clear its outputs and save it again." if path.suffix.lower() == ".ipynb" else ""
    return UnusableSubmission(
        f"{path} is too large: {size / 1e6:,.1f} MB, and at most {MAX_BYTES // 1_000_000} MB are read.{advice}"
    )
