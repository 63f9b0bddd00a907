"""The rules of the project's language that a program can check, and the text of the files that they apply to.

`python tests/authoring/wording.py grader/judge README.md` lists the violations in files and folders, `--count` the most
frequent ones. Only the standard library is imported.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["RULES", "Text", "Violation", "files", "texts", "violations"]

MAX_WORDS = 30
_EXEMPT = ("wording", "test_wording", "odd_formatting")
_UNIT = (
    "answer|argument|baseline|block|byte|call|case|cell|check|column|core|element|error|event|exercise|figure|file|folder|"
    "frame|function|import|instruction|kernel|launch|learner|line|load|loop|machine|message|minute|name|notebook|number|"
    "operator|page|parameter|pixel|point|process|program|register|result|round|row|run|sample|second|sector|step|student|"
    "submission|tensor|test|thread|tile|trial|value|verdict|wait|warp|worker|write"
)
_UNITS = "|".join(unit + ("es" if unit.endswith(("s", "ch")) else "s") for unit in _UNIT.split("|"))
_VERBS = (
    "blocks|calls|checks|figures|imports|launches|loads|names|points|processes|results|rounds|runs|samples|steps|tests|"
    "waits|writes"
)
_SHORT = {
    "«unit»": _UNIT,
    "«units»": _UNITS,
    "«things»": "|".join(unit for unit in _UNITS.split("|") if unit not in _VERBS.split("|")),
    "«verbs»": _VERBS,
    "«say»": "(?:says?|said|tells?|told)",
}

# Each line: a pattern → what to write instead. `^` is the start of a sentence. Capitals count only after `^`.
_WORDS = r"""
mend(?:s|ed|ing)? → fix
lacking → missing
(?:hold|holds|held|holding)(?: \S+){0,4} against → compare with
anew → again
afresh → again
(?<!as it )(?<!as they )(?:stand|stands|stood|standing)(?! (?:for|up|out|alone|by|still|ready|in the way)\b) → is, or cut
of which → cut, or a second sentence
such as (?:it|they) (?:is|are|was|were) → cut
(?:is|are|was|were) such as → name what it is
so many(?: \w+){0,4} as → as many … as
as good as → almost, as accurate as
what for → why
nobody else's → its own, private
as ever → as usual
beside → next to, with, and
(?:is|are|was|were|be) told(?! (?:to|apart)\b) → gets the message, is given, the report says
(?:is|are|was|were) said(?! to\b) → the report says, … reports
(?:is|are|was|were) asked for → is required, is expected
(?:is|are|was|were) spoken of → is mentioned
(?:is|are|was|were) looked for → … searches for
(?:is|are) to be → must be, should be, will be
(?:is|are|was|were) (?:not|already) there → does not exist, is missing, exists
(?<!there )(?:is|are|was|were) no (?!longer|more|less|different|one\b|\w+er\b|\w+ \w+er than)\w+ → is not a …, there is no …
(?:is|are|was|were) none (?:of|that) → is not one of
comes? to (?:nothing|the same|be) → results in, amounts to
in hand → cut
of ours → our, the judge's
whoever → anyone who, a learner who
many an? → many
masked lanes?|lanes? (?:of|in) (?:a|the|its|each) (?:block|program|tile|row)|lanes? that counts? → element: a lane belongs to a warp
thereof → of it
therein → in it
whereof → of which: a second sentence
wherein → where
hitherto → until now
for ever → forever
(?:lie|lies|lay) (?:there|behind|beside|apart|together) → is, is adjacent
behind the (?:end|last) → past the end, after the last
(?:come|comes|came) behind → follows
something else than → something other than
another (?:\w+ )?than → a different … from
in the place of → instead of
lest → so that … not
upon → on
amongst → among
whilst → while
(?:or )?(?:none|nothing) where → None if
where there (?:is|are|was|were) (?:none|nothing|no|one|an?) → if there is
by itself alone → alone
as far as is known → cut
for a time(?! (?:that|which|limit|of)\b) → cut, or the time
takes? a time → takes … seconds
may be it → perhaps
it be → if it is
be it → whether it is
needs? must → must
ought(?: not)? to → should
shall → must, will
he → they: a submission, a learner
him → them
his → their, its
himself → themselves, itself
she → they
hers? → their
«say» (?:(?:nothing|anything|something|more|much|all|no more) )?of(?! course) → … about
(?:ms|µs|ns|kB|MB|GB|entry|«things») an? (?:«unit»)\b(?! (?:of|is|was|has|did|does|had|can|may|needs?|that)\b) → per: bytes per thread
(?:one|two|three|four|\d+) (?:«unit»|«verbs») an? (?:«unit»)(?! (?:of|is|was|has|did|does|had|can|may|needs?|that)\b) → per: one sample per thread
,? for (?:it|they|there|this|that|he|nothing|nobody) (?:is|are|was|were|has|have|had|does|do|did|can|could|would|will|may|must|might|needs?|knows?) → because
1 (?:«things»|blocks|points) → singular
\w+\(s\) → plural() of grader.words
"""  # noqa: E501
_SHAPES = r"""
^(?:Who|Whoever|What|Whatever|Whichever|Which|Whose)\b.*\.$ → a noun as the subject, not a clause ("A submission that …"); of a function: "Return …"
^That (?:a|an|the|it|they|no|nothing|this|there)\b.*\.$ → a noun as the subject, not a clause
^(?:One|Those|The one|Such|All) (?:that|which|who|as)\b → name the thing: "A kernel that …"
^Where\b[^,:]*,.*\.$ → If …, When …; of a function: "Return …"
^(?:Also|Not so|Even so|Nor) (?:where|when|if|in|on|with|for|a|the|that|what|is|does|can|of)\b → a whole sentence with its subject first
(?:^Else|(?<=; )else)\b → Otherwise
^Nor\b → a whole sentence with its subject first
^Of (?!course) → subject first
^(?:\w+ed|Known|Shown|Left|Written|Said|Kept|Taken|Drawn|Told|Meant|Built|Held|Done|Seen|Found|Given) (?:is|are|was|were)\b → subject first
^\(.*\)[.!?]?$ → no whole sentence in parentheses
(?<=[.!?:] )\([A-Z`].*[.!?]\) → no whole sentence in parentheses
"""  # noqa: E501


@dataclass(frozen=True)
class Rule:
    """A pattern and the better words."""

    kind: str
    pattern: re.Pattern[str]
    better: str


def _rules(kind: str, table: str) -> Iterator[Rule]:
    for line in table.strip().splitlines():
        if not line:
            continue
        pattern, better = line.split(" → ")
        for short, full in _SHORT.items():
            pattern = pattern.replace(short, full)
        if kind == "word":
            pattern = rf"(?<![\w`.-])(?:{pattern})(?![\w`-])"
        yield Rule(kind, re.compile(pattern, 0 if kind == "shape" else re.IGNORECASE), better)


RULES = (*_rules("word", _WORDS), *_rules("shape", _SHAPES))
_ANY_WORD = re.compile("|".join(f"(?:{rule.pattern.pattern})" for rule in RULES if rule.kind == "word"), re.IGNORECASE)


@dataclass(frozen=True)
class Text:
    """A paragraph of prose: the lines of the file that hold it, and whether it is made of sentences (else a label)."""

    first: int
    last: int
    words: str
    sentences: bool = True


@dataclass(frozen=True)
class Violation:
    """What is wrong in which line, and the better words."""

    path: Path
    line: int
    found: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found} → {self.better}"


def violations(path: Path, kinds: Iterable[str] = ("word", "shape", "length", "plural")) -> list[Violation]:
    """The violations of some kinds of rules in a Python or Markdown file, by line.

    Args:
        path: a `.py` or `.md` file; string literals are read in files under `grader/`.
        kinds: of "word", "shape", "length" and "plural".
    """
    source, found = path.read_text(encoding="utf-8"), []
    lines = source.splitlines()
    words, shapes = ([rule for rule in RULES if rule.kind == kind and kind in kinds] for kind in ("word", "shape"))
    for text in texts(path, source):
        for sentence in _sentences(text.words):
            hits = [
                (hit[0].strip(), rule.better)
                for rule in (words if _ANY_WORD.search(sentence) else []) + (shapes if text.sentences else [])
                for hit in rule.pattern.finditer(sentence)
            ]
            length = len(re.findall(r"[^\s—–-]*\w[^\s]*", sentence))
            if length > MAX_WORDS and text.sentences and "length" in kinds:
                hits.append((sentence, f"{length} words, at most {MAX_WORDS}: two sentences"))
            found += [Violation(path, _line(lines, text, said), _short(said), better) for said, better in hits]
    if path.suffix == ".py" and _speaks(path) and "plural" in kinds:
        found += [Violation(path, line, said, "plural() of grader.words") for line, said in _counts(source)]
    return sorted(dict.fromkeys(found), key=lambda violation: violation.line)


def texts(path: Path, source: str) -> Iterator[Text]:
    """The prose of a file: paragraphs of Markdown; docstrings, comments and, under `grader/`, sentences in strings."""
    if path.suffix == ".md":
        yield from _markdown(source)
        return
    docstrings = set()
    for node in _nodes(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings.add(id(value))
                yield from _paragraphs(value.value, value.lineno)
    yield from _comments(source)
    if _speaks(path):
        yield from _strings(source, docstrings)


def _paragraphs(text: str, first: int) -> Iterator[Text]:
    """Paragraphs, list items, entries of Args and table rows, each by itself; code and headings are left out."""
    part: list[str] = []
    began, code = first, False
    for number, line in enumerate([*text.splitlines(), ""], start=first):
        bare = line.strip()
        code = code != bare.startswith("```")
        starts = re.match(r"[-*] |\d+\. |\|", bare) or (
            re.match(r"\w+: ", bare) and part and part[-1].endswith((".", ";"))
        )
        ends = not bare or code or bare.startswith(("```", ">>>", "...", "#", "$ ", "<", "![")) or bare.endswith("::")
        if (starts or ends) and part:
            yield Text(began, number - 1, _plain(" ".join(part)))
            part = []
        if not ends and bare not in ("Args:", "Raises:", "Returns:", "Yields:", "Example:"):
            began = began if part else number
            part.append(re.sub(r"^(?:[-*]|\d+\.) |^\w+: (?=[a-z`])", "", bare))


def _markdown(source: str) -> Iterator[Text]:
    for text in _paragraphs(re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), source, flags=re.S), 1):
        if not text.words.startswith("|"):
            yield text
        else:
            yield from (Text(text.first, text.last, cell.strip()) for cell in text.words.split("|") if cell.strip())


def _comments(source: str) -> Iterator[Text]:
    lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(?:fmt:|noqa|type:|pragma|ruff:|%%|!)", token.string):
            continue
        words = re.sub(r"\s*# (?:fmt|noqa|type):.*", "", token.string.lstrip("#").strip())
        follows = lines and lines[-1][0] == token.start[0] - 1 and token.line.strip().startswith("#")
        if follows and not re.match(r"[a-z][a-z ]*: |[-*] |\d+\. ", words):
            lines.append((token.start[0], words))
            continue
        if lines:
            yield Text(lines[0][0], lines[-1][0], _plain(" ".join(line for _, line in lines)))
        lines = [(token.start[0], words)]
    if lines:
        yield Text(lines[0][0], lines[-1][0], _plain(" ".join(line for _, line in lines)))


@lru_cache(maxsize=1)
def _nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def _strings(source: str, docstrings: set[int]) -> Iterator[Text]:
    """Strings of several words. One with an ending of a sentence is sentences, another a part of one or a label."""
    inside, lines = set(docstrings), source.splitlines()
    for node in _nodes(source):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(child) for child in node.values)
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else "{…}" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        tokens = text.split()
        prose = [token for token in tokens if re.fullmatch(r"[\"'(`]*[A-Za-z{…}’'-]+[\"')`.,:;!?]*", token)]
        is_code = len(prose) < 0.7 * len(tokens) or re.search(r";\n|\bdef ", text)
        is_pattern = lines[node.lineno - 1].encode()[node.col_offset : node.col_offset + 1] in b"rR"
        if len(tokens) < 4 or is_code or is_pattern:
            continue
        ends = text.rstrip().rstrip(")\"'").endswith((".", "!", "?", ":"))
        for part in re.split(r"\n\s*\n|\n\s*[-*] ", text):
            yield Text(node.lineno, node.end_lineno or node.lineno, _plain(" ".join(part.split())), ends)


def _counts(source: str) -> Iterator[tuple[int, str]]:
    """Counts that a plural follows in an f-string: one of anything would read "1 points"."""
    chosen: set[int] = set()
    for node in _nodes(source):
        if isinstance(node, ast.IfExp) and re.search(r"\b1\b", ast.unparse(node.test)):
            chosen.update(id(branch) for branch in ast.walk(node))
        if not isinstance(node, ast.JoinedStr) or id(node) in chosen:
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            name = ast.unparse(value.value)
            noun = re.match(rf" (?:[a-z]+ )?(?:{_UNITS})\b", str(text.value))
            if noun and not re.fullmatch(r"[\w.]*\b_?[A-Z][A-Z_\d]+( // \d+)?|.*\bplural\(.*", name):
                yield value.lineno, f"{{{name}}}{noun[0]}"


def _speaks(path: Path) -> bool:
    """Whether users read the strings of this file: the nearest of these folders is `grader`."""
    return next((part for part in reversed(path.parts) if part in ("grader", "tests", "benchmarks")), "") == "grader"


def _plain(text: str) -> str:
    """Without markup: code is one word, links are their text, emphasis is gone."""
    text = re.sub(r"``?[^`]+``?", "`x`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|(?<!\w)_(?=\w)|<[^>]+>", "", text)


def _sentences(text: str) -> list[str]:
    guarded = re.sub(r"\b(e\.g|i\.e|vs|cf|etc|no|Fig)\. ", lambda m: m[0][:-1] + "\0", text)
    parts = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"(\d{])|(?<=[.!?][)\"])\s+(?=[A-Z`\"(\d{])", guarded)
    return [part.replace("\0", " ").strip() for part in parts if part.strip()]


def _line(lines: list[str], text: Text, found: str) -> int:
    """The line of the text in which the found words begin."""
    for words in (found.split()[:3], found.split()[:2], found.split()[:1]):
        for number in range(text.first, text.last + 1):
            if " ".join(words) in lines[number - 1]:
                return number
    return text.first


def _short(text: str) -> str:
    return f'"{text}"' if len(text) < 70 else f'"{text[:60]} …"'


def files(paths: Iterable[Path]) -> list[Path]:
    """The Python and Markdown files among files and under folders, except for those that break the rules on purpose."""
    found = [each for path in paths for each in (path.rglob("*") if path.is_dir() else [path])]
    return sorted(each for each in found if each.suffix in (".py", ".md") and each.stem not in _EXEMPT)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--count"]
    listed = [violation for path in files(map(Path, arguments)) for violation in violations(path)]
    if "--count" in sys.argv:
        for better, number in Counter(re.sub(r"^\d+ ", "", v.better) for v in listed).most_common():
            print(f"{number:6} {better}")
    else:
        print(*listed, sep="\n")
    print(f"{len(listed)} violations")
