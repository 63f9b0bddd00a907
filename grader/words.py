"""How numbers, counts and text that a stranger wrote are put into a sentence."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
_KEPT = "\n\t"
LINE_CHARACTERS = 500  # of a stranger's line: what is looked for in it takes a time that grows with their square


def clean(text: str, limit: int = 4000) -> str:
    """Text of a submission's, made harmless to a terminal and to a reader: no escapes, controls or direction marks."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    text = "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def harmless(text: str) -> str:
    """Of strangers' words among ours, as names of files: what steers a terminal, letter by letter, so that nothing else
    goes with it.
    """
    return "".join(c if c in _KEPT or unicodedata.category(c)[0] != "C" else "?" for c in text)


def on_one_line(name: str) -> str:
    """A stranger's name for something, made harmless; what it holds of line feeds forges no line."""
    return " ".join(harmless(name).split())


def count(n: int) -> str:
    """1000, 98,432: commas where they help to read."""
    return f"{n:,}" if n >= 10_000 else str(n)


def plural(n: int, noun: str) -> str:
    """ "1 element", "24 elements"."""
    return f"{count(n)} {noun}" + ("" if n == 1 else "s")


def index(position: tuple[int, ...]) -> str:
    """An index as one writes it: 129, or (0, 129)."""
    return str(position[0]) if len(position) == 1 else f"({', '.join(map(str, position))})"


def number(text: str) -> str:
    """A value as the judge wrote it, with the special ones in words that cannot be missed."""
    special = {"nan": "NaN", "inf": "infinity", "-inf": "-infinity"}
    return special.get(text, f"{text}.0" if re.fullmatch(r"-?\d+", text) else text)


def points(value: float) -> str:
    """4, 2.5."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def in_points(value: float) -> str:
    """ "1 point", "2.5 points"."""
    return f"{points(value)} point" + ("" if value == 1 else "s")


def ratio(value: float) -> str:
    """1.52, 12.3, 104: three figures."""
    return f"{value:.3g}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def time(microseconds: float) -> str:
    """A time with the unit that fits it: 36.1 µs, 1.20 ms."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"
