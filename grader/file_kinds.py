"""What a file is that is neither Python nor a notebook, told by how its bytes begin, and what to do about it."""

from __future__ import annotations

import codecs
import re

__all__ = ["MERGE_CONFLICT", "foreign_kind", "has_merge_conflict"]

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
    (b"%PDF-", "a PDF", "hand in the notebook itself, not a print of it"),
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
        "run `git lfs pull` and hand in the file that then takes its place",
    ),
    (
        b"/annex/objects/",
        "a git-annex pointer, which only names a file kept elsewhere",
        "run `git annex get` and hand in the file that then takes its place",
    ),
)
_PYC = re.compile(rb"..\r\n", re.DOTALL)
_WEB_PAGE = re.compile(rb"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_TAR_AT, _TAR = 257, b"ustar"

_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
_MARK = re.compile(r"^(?:<{7}|>{7})(?: .*)?$|^={7}$", re.MULTILINE)


def foreign_kind(data: bytes) -> tuple[str, str] | None:
    """What the bytes are and what to do, as in "a PDF" and "hand in …"; None where they may be text."""
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
    """Whether lines of the text are marks of a merge conflict; `whole`: all three of them, one after the other."""
    marks = [found[0][:7] for found in _MARK.finditer(text)]
    if not whole:
        return any(mark != _MARKS[1] for mark in marks)
    rest = iter(marks)
    return all(mark in rest for mark in _MARKS)
