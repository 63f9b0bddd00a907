"""Notes on a submission, and the sentence for each: what is wrong, where, what to do, and that it takes no points."""

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
_MOST_CHARACTERS = 80  # of a quoted name or expression
_MOST_NODES = 60  # of a quoted expression

_NO_POINTS = "It takes no points; your instructor sees this note."
_SENTENCES = {  # the most serious first: if there are too many notes, these are kept
    "no kernel": "No kernel is written here: this exercise asks for a {backend} kernel that `{entry}` launches.",
    "not launched": "Line {line} defines the kernel {subject}, and nothing in `{entry}` launches it: launch it, so "
    "that it does the work.",
    "no kernel in C++": "Line {line} builds C++ without a kernel in it: this exercise asks for a {backend} kernel that "
    "`{entry}` launches.",
    "library": "Line {line} calls {subject}: this exercise asks for a {backend} kernel that does this work.",
    "fallback": "Line {line} falls back on {subject} when the kernel fails: remove the fallback, so that the failure "
    "becomes visible.",
    "writes": "Line {line} lets the library compute what goes into the output, {subject}: this exercise asks for a "
    "{backend} kernel that does this work.",
    "compiler": "Line {line} uses {subject}, which writes kernels for you: this exercise asks for a {backend} kernel "
    "of your own.",
    "reach": "Line {line} uses {subject}: remove it, because a solution needs nothing but its arguments.",
    "apart": "Line {line} inspects, or can inspect, what the exercise passes to it, with {subject}: only call what "
    "you are given.",
    "import": "Line {line} uses {subject}, a part of the grader: remove it, because a solution does not need it.",
    "patch": "Line {line} replaces {subject}, which other code relies on: leave modules and libraries unchanged.",
    "dynamic": "Line {line} uses {subject}: code that is created at run time cannot be checked here, so write it out "
    "in the cell.",
    "identity": "Line {line} tells tensors apart by their address or identity, {subject}: new values arrive at old "
    "addresses, so remembered results are stale; compute the output in every call.",
    "answer": "Line {line} keeps a copy of an output, {subject}: every call brings new inputs, so compute the output "
    "in every call.",
    "graph": "Line {line} uses {subject}: a graph replays work that was recorded at fixed addresses, and every call "
    "brings new ones; launch the kernel directly.",
    "stream": "Line {line} makes a CUDA stream, and nothing waits for it: make the current stream wait for its work "
    "before the function returns.",
    "thread": "Line {line} starts a thread with {subject}, and nothing waits for it: join it before the function "
    "returns, or its work may finish too late.",
    "size": "Line {line} treats one size specially, {subject}: write a kernel that is right for every size, because "
    "the checks use other sizes too.",
    "unread": "This source is too long or too deeply nested to be checked against the rules of the exercise: shorten "
    "or simplify it.",
    "ran no kernel": "On the GPU no kernel of the submission ran, only {subject}: this exercise asks for a {backend} "
    "kernel that does the work.",
    "ran library": "On the GPU, {share:.0%} of the time went to {subject}, a library kernel: this exercise asks for a "
    "{backend} kernel that does this work.",
    "simulated library": "When the submission ran, torch computed the result with {subject}: this exercise asks for a "
    "{backend} kernel that does this work.",
}


class Note(NamedTuple):
    """`rule` is a key of the sentences; `subject` is a quote from the submission, ready to show."""

    rule: str
    line: int | None = None
    subject: str = ""
    share: float = 0.0


def findings(notes: Iterable[Note], exercise: Exercise) -> tuple[Finding, ...]:
    """The sentences in line order. Notes with the same rule and subject are reported once, for the first line."""
    kept: dict[tuple[str, str], Note] = {}
    for note in sorted(notes, key=lambda note: note.line or 0):
        kept.setdefault((note.rule, note.subject), note)
    rules = list(_SENTENCES)
    most_serious = sorted(kept.values(), key=lambda note: rules.index(note.rule))[:_MOST]
    words = {"entry": exercise.entry, "backend": _BACKENDS[exercise.backend]}
    return tuple(
        Finding("rule", f"{_SENTENCES[note.rule].format(**words, **note._asdict())} {_NO_POINTS}", note.line)
        for note in kept.values()
        if note in most_serious
    )


def says_no_kernel(finding: Finding) -> bool:
    """Whether this is the finding "no kernel"."""
    return finding.sentence.startswith(_SENTENCES["no kernel"].partition(":")[0])


def shown(name: str) -> str:
    """Untrusted text in a form that fits into a sentence: short, on one line, without control characters."""
    name = re.sub(r"\s+", " ", name)
    name = "".join(letter if letter.isprintable() else "?" for letter in name).replace("`", "'")
    return f"`{name if len(name) <= _MOST_CHARACTERS else name[: _MOST_CHARACTERS - 1] + '…'}`"


def written(node: ast.AST) -> str:
    """An expression or statement of the source, in a form that fits into a sentence."""
    nodes = list(islice(ast.walk(node), _MOST_NODES + 1))
    texts = [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes)]
    if len(nodes) > _MOST_NODES or sum(map(len, texts)) > _MOST_CHARACTERS:
        return "in a long expression"
    return shown(ast.unparse(node))
