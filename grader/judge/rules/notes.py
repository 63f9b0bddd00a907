"""What was seen in a submission, and the sentence that says it: what, why it matters, and that it costs nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from grader.exercise import Exercise
from grader.verdict import Finding

_BACKENDS = {"triton": "Triton", "cuda": "CUDA", "numba": "Numba", "cupy": "CuPy", "torch": "GPU"}
_MOST = 12  # findings of one submission
_MOST_CHARACTERS = 80  # of a name or an expression that is quoted
_MOST_NODES = 60  # of an expression that is quoted

_NO_POINTS = "It takes no points; your instructor sees this note."
_SENTENCES = {  # the gravest first: of too many, these are kept
    "no kernel": "No kernel is written here: this exercise asks for a {backend} kernel.",
    "not launched": "Line {line} defines the kernel {subject}, and nothing in `{entry}` launches it: "
    "this exercise asks for a {backend} kernel that does the work.",
    "no kernel in C++": "Line {line} builds C++ without a kernel in it: this exercise asks for a {backend} kernel.",
    "library": "Line {line} calls {subject}: this exercise asks for a {backend} kernel that does this work.",
    "fallback": "Line {line} falls back on {subject} where the kernel fails: this exercise asks for the kernel, "
    "and one that fails should be seen to fail.",
    "writes": "Line {line} has the library compute what goes into the output, {subject}: this exercise asks for a "
    "{backend} kernel that does this work.",
    "compiler": "Line {line} uses {subject}, which writes kernels for you: this exercise asks for a {backend} kernel "
    "of your own.",
    "reach": "Line {line} uses {subject}: a solution of this exercise needs its arguments and no more.",
    "apart": "Line {line} takes apart what it is handed, or could, with {subject}: this exercise asks to call it, "
    "and no more.",
    "import": "Line {line} uses {subject}, a part of the grader: a solution of this exercise needs nothing of it.",
    "patch": "Line {line} replaces {subject}, which other code relies on: a solution of this exercise leaves modules "
    "as they are.",
    "dynamic": "Line {line} uses {subject}: code that is made while it runs cannot be read here, "
    "and this exercise does not need it.",
    "identity": "Line {line} tells tensors apart by their address or identity, {subject}: here new values come at old "
    "addresses, so what is remembered of them is out of date.",
    "answer": "Line {line} keeps a copy of an output, {subject}: here every call brings new inputs, so it must compute "
    "anew.",
    "graph": "Line {line} uses {subject}: a graph replays what was recorded at fixed addresses, and here every call "
    "brings others.",
    "stream": "Line {line} makes a CUDA stream, and nothing waits for it: work on it must be joined with the "
    "current stream.",
    "thread": "Line {line} starts a thread with {subject}, and nothing waits for it: work that goes on after the "
    "function has returned may come too late.",
    "size": "Line {line} treats one size in a way of its own, {subject}: a kernel should be right for every size, and "
    "the sizes that are checked differ.",
    "unread": "This source is too long or too deeply nested to be read for the rules of the exercise.",
    "ran no kernel": "On the GPU no kernel of the submission ran, just {subject}: this exercise asks for a {backend} "
    "kernel that does the work.",
    "ran library": "On the GPU, {share:.0%} of the time went to {subject}, a kernel of a library: this exercise asks "
    "for a {backend} kernel that does this work.",
    "simulated library": "When the submission ran, torch did its work with {subject}: this exercise asks for a "
    "{backend} kernel that does it.",
}


class Note(NamedTuple):
    """`rule` is a key of the sentences; `subject` is what the submission names, as it is shown."""

    rule: str
    line: int | None = None
    subject: str = ""
    share: float = 0.0


def findings(notes: Iterable[Note], exercise: Exercise) -> tuple[Finding, ...]:
    """The sentences, in the order of their lines; the same of the same thing is said once, for the first line."""
    kept: dict[tuple[str, str], Note] = {}
    for note in sorted(notes, key=lambda note: note.line or 0):
        kept.setdefault((note.rule, note.subject), note)
    rules = list(_SENTENCES)
    gravest = sorted(kept.values(), key=lambda note: rules.index(note.rule))[:_MOST]
    words = {"entry": exercise.entry, "backend": _BACKENDS[exercise.backend]}
    return tuple(
        Finding("rule", f"{_SENTENCES[note.rule].format(**words, **note._asdict())} {_NO_POINTS}", note.line)
        for note in kept.values()
        if note in gravest
    )


def says_no_kernel(finding: Finding) -> bool:
    """Whether it is the finding that a source has no kernel."""
    return finding.sentence.startswith(_SENTENCES["no kernel"].partition(":")[0])


def shown(name: str) -> str:
    """A stranger's text as it stands in a sentence: one line, no control characters, not long."""
    name = re.sub(r"\s+", " ", name)
    name = "".join(letter if letter.isprintable() else "?" for letter in name).replace("`", "'")
    return f"`{name if len(name) <= _MOST_CHARACTERS else name[: _MOST_CHARACTERS - 1] + '…'}`"


def written(node: ast.AST) -> str:
    """An expression or a statement of the source, as it stands in a sentence."""
    nodes = list(islice(ast.walk(node), _MOST_NODES + 1))
    texts = [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes)]
    if len(nodes) > _MOST_NODES or sum(map(len, texts)) > _MOST_CHARACTERS:
        return "in a long expression"
    return shown(ast.unparse(node))
