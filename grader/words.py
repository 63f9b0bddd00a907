"""Formatting of numbers, counts and untrusted text in sentences."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
_NAMESPACES = re.compile(r"\(anonymous namespace\)::|\b(?:at|native|c10|cuda|std|__4)::")
_CASTS = re.compile(r"\([a-z ]+\)(?=-?\d)")  # Nsight Compute writes `<(int)4>`
_KEPT = "\n\t"
LINE_CHARACTERS = 500  # of an untrusted line: searching it takes quadratic time


def clean(text: str, limit: int = 4000) -> str:
    """Text from a submission without escape sequences, control characters or direction marks."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    text = "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def harmless(text: str) -> str:
    """Untrusted text, such as a file name, with every control character replaced by `?`."""
    return "".join(c if c in _KEPT or unicodedata.category(c)[0] != "C" else "?" for c in text)


def on_one_line(name: str) -> str:
    """An untrusted name, made harmless and on one line."""
    return " ".join(harmless(name).split())


def kernel_name(signature: str, limit: int = 60) -> str:
    """The name in a kernel's C++ signature, without parameters and PyTorch's namespaces: `reduce_kernel<512, 1…`."""
    signature = _demangled(signature)
    name = _CASTS.sub("", _NAMESPACES.sub("", signature)).split("(")[0].removeprefix("void ").strip()
    return name if len(name) <= limit else name[: limit - 1] + "…"


def _demangled(name: str) -> str:
    """The last part of a mangled C++ name: of `_ZN10submission5powerE…`, or of `_Z5powerPKf`, whose types follow."""
    found, at = name, re.match(r"_ZN?(?=[0-9])", name)
    rest = name[at.end() :] if at else ""
    while (length := re.match(r"[0-9]{1,3}", rest)) is not None:
        found, rest = rest[length.end() :][: int(length[0])], rest[length.end() + int(length[0]) :]
        if not name.startswith("_ZN"):
            break
    return found or name


def count(n: int) -> str:
    """A count, with commas from 10,000 on: 1000, 98,432."""
    return f"{n:,}" if n >= 10_000 else str(n)


def plural(n: int, noun: str) -> str:
    """ "1 element", "24 elements"."""
    return f"{count(n)} {noun}" + ("" if n == 1 else "s")


def index(position: tuple[int, ...]) -> str:
    """An index: 129, or (0, 129)."""
    return str(position[0]) if len(position) == 1 else f"({', '.join(map(str, position))})"


def number(text: str) -> str:
    """A value from the judge, with NaN and infinity in words."""
    special = {"nan": "NaN", "inf": "infinity", "-inf": "-infinity"}
    return special.get(text, f"{text}.0" if re.fullmatch(r"-?\d+", text) else text)


def points(value: float) -> str:
    """A number of points: 4, 2.5."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def in_points(value: float) -> str:
    """ "1 point", "2.5 points"."""
    return f"{points(value)} point" + ("" if value == 1 else "s")


def ratio(value: float) -> str:
    """A ratio with three significant digits: 1.52, 12.3, 104."""
    return f"{value:.3g}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def time(microseconds: float) -> str:
    """A time in a suitable unit: 36.1 µs, 1.20 ms."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"
