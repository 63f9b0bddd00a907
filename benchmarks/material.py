"""Submissions for the benches: right, wrong, crashing and cheating ones."""

from __future__ import annotations

import ast
import importlib.util
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from grader.authoring.stubs import solution, unsolved
from grader.exercises import EXERCISES, find

_TESTS = Path(__file__).parents[1] / "tests"
_MUTATIONS = {
    "vector_add": (
        ("x + y", "x - y"),
        ("x + y", "x + x"),
        (", x + y, mask=mask)", ", x + y)"),
        ("offsets < n", "offsets < n - 1"),
    ),
    "softmax": (
        ('other=-float("inf")', "other=0.0"),
        ("numerator / denominator", "numerator"),
        ("tl.exp(x - tl.max(x, axis=0))", "tl.exp(x)"),
    ),
    "square_matrix": (
        ("value * value", "value + value"),
        ("row < height)", "row < height - 1)"),
    ),
}
MIXED = tuple(_MUTATIONS)  # the exercises of the mixes
_LONG = ("endless-kernel", "held-pipe", "fork-bomb")  # ids in the header of an exploit
_BODIES = {
    "raises": "raise ValueError('no')",
    "exits": "import os\n    os._exit(0)",
    "segmentation fault": "import ctypes\n    ctypes.string_at(0)",
    "recursion": "return {entry}({parameters})",
    "prints": "print('forged ' * 1000000)",
    "nothing": "pass",
}


@dataclass(frozen=True)
class Text:
    """A submission's text; `kind` is what it is meant to be."""

    name: str
    exercise: str
    kind: Literal["honest", "wrong", "hostile"]
    source: str


def honest(exercise_id: str, device: str = "cuda") -> list[Text]:
    """Return the reference solution, and the solutions of `tests/honest` that this machine can run."""
    own = Text("reference", exercise_id, "honest", solution(exercise_id))
    return [own, *(text for text in _files("honest", device) if text.exercise == exercise_id)]


def wrong(exercise_id: str) -> list[Text]:
    """Return the reference solution with one bug each."""
    right, found = solution(exercise_id), []
    for old, new in _MUTATIONS[exercise_id]:
        if old not in right:
            raise SystemExit(f"The reference solution of {exercise_id} no longer contains {old!r}: fix {__file__}.")
        found.append(Text(f"{old} -> {new}", exercise_id, "wrong", right.replace(old, new)))
    return found


def wrong_while_timed(exercise_id: str) -> Text:
    """Return a reference solution that does nothing after the correctness cases."""
    exercise = find(exercise_id)
    calls = len(exercise.cases) + 4
    parameters = ", ".join(exercise.parameters)
    rest = f"""
right, calls = {exercise.entry}, 0
def {exercise.entry}({parameters}):
    global calls
    calls += 1
    if calls <= {calls}:
        right({parameters})
"""
    return Text("wrong while timed", exercise_id, "wrong", solution(exercise_id) + rest)


def crashing(exercise_id: str) -> list[Text]:
    """Return texts that fail at once: exceptions, an exit, a segmentation fault, a syntax error, the stub."""
    exercise = find(exercise_id)
    parameters = ", ".join(exercise.parameters)
    head = f"def {exercise.entry}({parameters}):\n    "
    texts = {
        name: head + body.format(entry=exercise.entry, parameters=parameters) + "\n" for name, body in _BODIES.items()
    }
    texts |= {"syntax": head + "return (", "stub": unsolved(exercise_id), "import": "import nowhere\n" + head + "pass"}
    return [Text(name, exercise_id, "hostile", source) for name, source in texts.items()]


def hostile(device: str = "cuda", long_ones: int = 3) -> list[Text]:
    """Return the files of `tests/exploits` that this machine can run, but only `long_ones` that run to a limit."""
    found = []
    for text in _files("exploits", device):
        if any(way in text.source.partition("\n\n")[0] for way in _LONG):
            long_ones -= 1
            if long_ones < 0:
                continue
        found.append(text)
    return found


def _files(folder: Literal["honest", "exploits"], device: str) -> Iterator[Text]:
    """Yield the submissions, which begin with a header of `# key: value` lines. The tests' modules have none."""
    for path in sorted((_TESTS / folder).rglob("*.py")):
        source = path.read_bytes().decode()
        header = dict(re.findall(r"^# (exercise|runs|needs): (.*?)\s*$", source, re.MULTILINE))
        needs = header.get("needs", "").replace(",", " ").split()
        if header.get("exercise") not in EXERCISES or (device == "simulator" and header.get("runs") == "gpu"):
            continue
        if all(importlib.util.find_spec(name.partition(".")[0]) for name in needs):
            kind: Literal["honest", "hostile"] = "honest" if folder == "honest" else "hostile"
            yield Text(path.relative_to(_TESTS).as_posix(), header["exercise"], kind, source)


def unique(text: Text, tag: str) -> Text:
    """Return the same program with a changed text, also in its kernels, so that no cache of compiled kernels has it."""
    if "__global__" in text.source:
        return replace(text, source=text.source.replace("__global__", f"/* {tag} */ __global__"))
    try:
        tree = ast.parse(text.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return replace(text, source=f"{text.source}\n# {tag}\n")
    lines = text.source.split("\n")
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno > node.lineno:
            lines.insert(node.body[0].lineno - 1, f"    # {tag}")
    changed = "\n".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:
        changed = text.source
    return replace(text, source=f"{changed}\n# {tag}\n")


def slower(times: float) -> Text:
    """Return a right `vector_add` that does `times` the work: it repeats its first blocks at the end.

    If the vectors are large, no cache still holds these blocks.
    """
    source = solution("vector_add")
    for old, new in (
        ("tl.program_id(0) *", "(tl.program_id(0) % tl.cdiv(n, BLOCK_SIZE)) *"),
        ("grid = (triton.cdiv(n, block_size),)", f"grid = (round({times!r} * triton.cdiv(n, block_size)),)"),
    ):
        if source.count(old) != 1:
            raise SystemExit(f"The reference solution of vector_add no longer contains {old!r} once: fix {__file__}.")
        source = source.replace(old, new)
    return Text(f"{times:g} times the work", "vector_add", "honest", source)


class Deck:
    """Deals unique texts: half of them honest, a quarter wrong, a quarter hostile. Within a kind, texts take turns."""

    def __init__(self, texts: Iterable[Text], chance: random.Random) -> None:
        self._texts, self._chance = list(texts), chance
        self._left: dict[str, list[Text]] = {}

    def deal(self, count: int) -> list[Text]:
        """Return `count` texts in random order."""
        kinds = ["honest", "wrong", "honest", "hostile"] * (count // 4 + 1)
        chosen = [self._next(kind) for kind in kinds[:count]]
        self._chance.shuffle(chosen)
        return [unique(text, f"{self._chance.getrandbits(64):x}") for text in chosen]

    def drop(self, name: str) -> None:
        """Do not deal this text again."""
        self._texts = [text for text in self._texts if text.name != name]

    def _next(self, kind: str) -> Text:
        left = self._left.setdefault(kind, [])
        if not left:
            left += [text for text in self._texts if text.kind == kind]
            self._chance.shuffle(left)
        return left.pop()
