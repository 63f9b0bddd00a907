"""Read from PTX how wide the loads from global memory are: a count for each width."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Suspect
from grader.exercises.ptx_texts import KINDS, ptx_text

__all__ = ["VECTOR_WIDTH", "WIDTHS"]

WIDTHS = (1, 2, 4, 8, 16, 32)  # bytes; the harness below states them again
_BYTES = 20_001
_COUNTS = tuple[int, ...]
_ACCESS = re.compile(r"(?P<name>ld|st)(?P<parts>(?:\.[\w:]+)+)")
_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global .*, (\d+);")


def _case(name: str) -> Case:
    return Case(name, (Array("ptx", (_BYTES,), "uint8"), Array("out", (len(WIDTHS),), "float64", role="out")))


def _draw(case: Case, source: Any, machine: Any = None) -> dict[str, Any]:
    from grader.protocol.text import to_bytes

    return {"ptx": to_bytes(ptx_text(case.name), _BYTES)}


def _six_counts(entry: Any, ptx: Any, out: Any) -> None:
    import torch

    from grader.protocol.text import from_bytes

    widths = (1, 2, 4, 8, 16, 32)
    found = entry(from_bytes(ptx))
    if not hasattr(found, "items"):
        raise TypeError(f"vector_width returns a dictionary, bytes: number of loads; this one returned {found!r:.80}")
    for width in found:
        if width not in widths:
            raise ValueError(f"vector_width counts loads of {width!r:.40} bytes: no load of a thread is that wide")
    out.copy_(torch.tensor([float(found.get(width, 0)) for width in widths], dtype=torch.float64))


def _counts(widths: Iterable[int]) -> _COUNTS:
    counted = Counter(widths)
    return tuple(counted[width] for width in WIDTHS)


@functools.lru_cache(maxsize=32)
def _found(text: str) -> dict[str, _COUNTS]:
    """Every answer, the right one (under "") and those of bugs, by name."""
    seen: list[tuple[set[str], int, int]] = []  # what is special about an access, its lanes, the bytes of one
    for line in text.splitlines():
        code = line.partition("//")[0]
        for place in (line, code):
            if found := _ACCESS.search(place):
                parts = found["parts"].split(".")[1:]
                notes = {"store"} if found["name"] == "st" else set()
                notes |= set() if "global" in parts else {"elsewhere"}
                notes |= {"guarded"} if place.lstrip().startswith("@") else set()
                plain = re.fullmatch(r"\.global(\.v\d)?\.[bufs]\d+", found["parts"])
                notes |= set() if plain else {"qualified"}
                notes |= {"comment"} if place is line and place != code and not _ACCESS.search(code) else set()
                lanes = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
                seen.append((notes, lanes, int(re.sub(r"\D", "", parts[-1])) // 8))
                break
    copies = [int(found[1]) for found in _COPY.finditer(text)]
    return _answers(text, seen, copies)


def _answers(text: str, seen: list[tuple[set[str], int, int]], copies: list[int]) -> dict[str, _COUNTS]:
    def of(*allowed: str, without: str = "") -> list[tuple[int, int]]:
        known = {"guarded", "qualified", *allowed} - {without}
        return [(lanes, size) for notes, lanes, size in seen if notes <= known]

    right = [lanes * size for lanes, size in of()]
    trailing = [
        int((found := _ACCESS.search(note)) is not None and _bytes(found["parts"]))
        for note in (line.partition("//")[2] for line in text.splitlines())
        if "ld.global" in note
    ]
    return {
        "": _counts(right),
        "lanes": _counts(size for _, size in of()),
        "types": _counts(4 * lanes for lanes, _ in of()),
        "registers": _counts(size for lanes, size in of() for _ in range(lanes)),
        "comments": _counts([*right, *trailing]),
        "comment lines": _counts(lanes * size for lanes, size in of("comment")),
        "eight as one": _counts(size * (1 if lanes == 8 else lanes) for lanes, size in of()),
        "no eight": _counts(lanes * size for lanes, size in of() if lanes != 8),
        "guarded": _counts(lanes * size for lanes, size in of(without="guarded")),
        "qualified": _counts(lanes * size for lanes, size in of(without="qualified")),
        "stores": _counts(lanes * size for lanes, size in of("store")),
        "elsewhere": _counts(lanes * size for lanes, size in of("elsewhere")),
        "copies": _counts([*right, *copies]),
        "distinct": _counts(set(right)),
    }


def _bytes(parts: str) -> int:
    lanes = re.search(r"\.v(\d)", parts)
    return int(lanes[1] if lanes else 1) * int(re.sub(r"\D", "", parts.split(".")[-1])) // 8


def _of(inputs: Any) -> dict[str, _COUNTS]:
    from grader.protocol.text import from_bytes

    return _found(from_bytes(inputs["ptx"]))


def _tensor(counts: _COUNTS, inputs: Any) -> Any:
    import torch

    return torch.tensor(counts, dtype=torch.float64, device=inputs["ptx"].device)


def _suspect(bug: str, sentence: str) -> Suspect:
    def output(inputs: Any) -> Any:
        found = _of(inputs)
        same = [name for name, counts in found.items() if counts == found[bug]]
        return _tensor(found[bug], inputs) if same == [bug] else None  # else another case tells

    return Suspect(sentence, output)


_nothing: Callable[[Case], int] = lambda case: case.arrays[0].shape[0]  # noqa: E731
_COMMENTS = "Loads in comments were counted: what stands after `//` is no code."
_CASES = tuple(_case(name) for name in KINDS)

VECTOR_WIDTH = Exercise(
    id="vector_width",
    title="Read the width of loads",
    chapter="03_triton",
    notebook="05_look_inside_the_compiler",
    entry="vector_width",
    parameters=("ptx",),
    backend="torch",
    cases=_CASES,
    simulator_cases=_CASES,
    timed_cases=(),
    plot_cases=(),
    harness=_six_counts,
    draw=_draw,
    oracle=lambda inputs: _tensor(_of(inputs)[""], inputs),
    budget=Budget(absolute=1e-6, relative=0.0),
    answers=("loads of 1 byte", *(f"loads of {width} bytes" for width in WIDTHS[1:])),
    bytes_moved=_nothing,
    operations=_nothing,
    correctness_points=4,
    suspects=(
        _suspect("lanes", "The type alone was counted: `v4` in front of it says that there are four of these."),
        _suspect("types", "Every element was taken for 4 bytes: `b64` has 8, `f16` has 2, `u8` has 1."),
        _suspect(
            "registers", "The registers were counted: a load into `{ %r1, %r2, %r3, %r4 }` is one load of 16 bytes."
        ),
        _suspect("comments", _COMMENTS),
        _suspect("comment lines", _COMMENTS),
        _suspect("eight as one", "`v8` was not read: there are eight of the type that stands behind it."),
        _suspect("no eight", "Loads with `v8` are missing: these, too, are loads from global memory."),
        _suspect(
            "guarded", "Loads under a predicate are missing: `@%p1 ld.global…` is how a mask is compiled, and it loads."
        ),
        _suspect(
            "qualified",
            "Loads with qualifiers are missing: `.nc`, `.L1::…` or `.volatile` may stand before or after `.global`, "
            "and the type comes last.",
        ),
        _suspect("stores", "Stores were counted, too: they begin with `st`."),
        _suspect(
            "elsewhere",
            "Loads from other memories were counted, too: shared memory, parameters, constants. `.global` says which "
            "are asked for.",
        ),
        _suspect("copies", "`cp.async` was counted: it copies to shared memory, and is no `ld`."),
        _suspect("distinct", "Each width was counted once: count the instructions."),
    ),
    hints=(
        "Cut each line at `//`. Then look for `ld.`: it may stand behind a predicate such as `@%p1`.",
        "Split the instruction's name at the dots. If `global` is among the parts, the last part is the type, and a "
        "part `v2`, `v4` or `v8` tells how many of them.",
        "The digits of the type are bits, and 8 bits are a byte.",
        "`collections.Counter` counts.",
    ),
)
