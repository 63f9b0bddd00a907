"""The encoding that a Python source declares in its first two lines (PEP 263), and what is made of it."""

from __future__ import annotations

import codecs
import re

__all__ = ["decoded", "foreign_encoding"]

_DECLARED = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*(?P<name>[-\w.]+)", re.ASCII)
_NO_CODE = re.compile(r"[ \t\f]*(?:#|\Z)")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_EMACS = re.compile(r"-(?:unix|dos|mac)\Z")
_PLAIN = ("utf-8", "utf-8-sig", "ascii")
_LATIN_1 = "iso8859-1"


def foreign_encoding(text: str) -> tuple[str, int] | None:
    """The name of a declared encoding that is none of UTF-8, ASCII and Latin-1, and its line; None where there is none.

    A name that Python does not know declares nothing: "positional encoding: sine" may be what a comment says.
    """
    declared = _declared(text)
    if declared is None or _codec(declared[0]) in (None, *_PLAIN, _LATIN_1):
        return None
    return declared


def decoded(data: bytes) -> str:
    """The text of a Python file, without its byte order mark: Latin-1 where it says so, else UTF-8.

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
