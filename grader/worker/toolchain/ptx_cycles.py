"""Estimate from PTX how long a kernel's instructions keep an SM busy, and how much of it double precision adds.

A number is the cycles of one warp on a quarter of an H100's SM. Instructions in a loop weigh more, by its depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["cycles", "functions"]

_FUNCTION = re.compile(r"\.(?:entry|func)\s+(?:\([^()]*\)\s*)?([\w$]+)\s*(?:\([^()]*\)\s*)?(?:\.[^{};]*)?\{")
_BRACE = re.compile(r"[{}]")
_LABEL = re.compile(r"^\s*([\w$]+):")
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+([\w$]+)")
_CALL = re.compile(r"\bcall(?:\.uni)?\s*(?:\([^()]*\)\s*,)?\s*([\w$]+)")
_NAME = re.compile(r"\s*(?:@!?\S+\s+)?([a-z][\w.:]*)")
_MOVES = ("ld", "st", "mov", "neg", "abs", "selp", "copysign")  # take no float64 arithmetic
_OF_CHIP = re.compile(r"\.(?:param|shared|local|const)\b")
_ACCESS = re.compile(r"(?:ld|st)(?:[.:]+\w+)*?(?:\.v(\d))?\.[busf](\d+)")
_REDUCTION = "0d3BF921FB54442D19"  # in the slow path of an accurate float32 sine, which is seldom taken
_OF_REDUCTION = 15  # more cycles than in float32: two conversions and a product
_LOOP, _DEEPEST = 8, 3  # turns, and nested loops
_ARITHMETIC, _CONVERSION, _DIVISION = 2, 8, 24  # in float64
_APPROXIMATION = 8  # by the special function unit, in float32
_PER_BYTE = 9  # of memory, per thread


def cycles(ptx: str) -> dict[str, dict[str, int]]:
    """Return for each function "cycles" if all were float32, what "double_cycles" add, and "access_cycles" of memory.

    A function that is called counts wherever it is called.
    """
    bodies = functions(ptx)
    known: dict[str, tuple[int, int, int]] = {}
    for name in bodies:
        _count(name, bodies, known)
    return {
        name: {"cycles": own, "double_cycles": double, "access_cycles": access}
        for name, (own, double, access) in known.items()
    }


def functions(ptx: str) -> dict[str, str]:
    """Return the body of each kernel and function, by name. Inline assembly in it has braces of its own."""
    found = {}
    for function in _FUNCTION.finditer(ptx):
        depth = 1
        for brace in _BRACE.finditer(ptx, function.end()):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                found[function[1]] = ptx[function.end() : brace.start()]
                break
    return found


def _count(name: str, bodies: dict[str, str], known: dict[str, tuple[int, int, int]]) -> tuple[int, int, int]:
    if name in known or name not in bodies:
        return known.get(name, (0, 0, 0))
    known[name] = (0, 0, 0)  # if it calls itself
    own = double = access = 0
    for statement, weight in _weighted(bodies[name]):
        if call := _CALL.search(statement):
            called = _count(call[1], bodies, known)
            own, double, access = own + weight * called[0], double + weight * called[1], access + weight * called[2]
        takes, adds, moves = _of(statement)
        own, double, access = own + weight * takes, double + weight * adds, access + weight * moves
    known[name] = (own, max(0, double), access)
    return known[name]


def _weighted(body: str) -> Iterator[tuple[str, int]]:
    """Yield each statement with its weight."""
    statements: list[str] = []
    labels: dict[str, int] = {}
    depth: dict[int, int] = {}
    for part in body.split(";"):
        text = part.strip()
        for line in text.splitlines():
            if label := _LABEL.match(line):
                labels[label[1]] = len(statements)
        text = text.splitlines()[-1] if text and "call" not in text else text
        if (branch := _BRANCH.search(text)) and branch[1] in labels:
            for at in range(labels[branch[1]], len(statements) + 1):
                depth[at] = depth.get(at, 0) + 1
        statements.append(text)
    for at, text in enumerate(statements):
        yield text, _LOOP ** min(_DEEPEST, depth.get(at, 0))


def _of(statement: str) -> tuple[int, int, int]:
    """Return the cycles of a statement in float32, those that float64 adds, and those of memory."""
    found = _NAME.match(statement)
    if found is None:
        return 0, 0, 0
    name = found[1]
    kind = name.partition(".")[0]
    if (access := _ACCESS.fullmatch(name)) and not _OF_CHIP.search(name):
        return 1, 0, _PER_BYTE * int(access[1] or 1) * int(access[2]) // 8
    if ".f64" in name and kind not in _MOVES:
        takes = _CONVERSION if kind == "cvt" else _DIVISION if kind in ("div", "sqrt", "rcp") else _ARITHMETIC
        return 1, takes - 1 - (_OF_REDUCTION + 1 if _REDUCTION in statement else 0), 0
    return (_APPROXIMATION if ".approx" in name else 1), 0, 0
