"""The report on a verdict: HTML for notebooks and nbgrader's feedback, text for terminals."""

from __future__ import annotations

import functools
import html
import re
import textwrap
from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.bottleneck.breakdown import timed
from grader.bottleneck.cause import sentence
from grader.bottleneck.explanation import Explanation
from grader.bottleneck.time_model import Roofline, roofline_of
from grader.feedback.facts import outside_of
from grader.feedback.pictures import gate_bar, map_of, roofline, share_bar
from grader.feedback.summary import NOTES, Summary, case_of, gate_words, summarize, was_run
from grader.verdict import Breakdown, CaseResult, Verdict
from grader.words import LINE_CHARACTERS, clean, time

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

    from grader.exercise import Exercise

# Classes whose text MathJax 2 and 3 leave alone. A learner's line may hold `$` and `\href`, which makes links.
NO_TEX = "tex2jax_ignore mathjax_ignore"


@functools.cache
def css() -> Markup:
    """The style sheet for `.gr-report`: JupyterLab's colours, light or dark, with fallbacks."""
    text = (resources.files("grader.feedback") / "templates" / "report.css").read_text(encoding="utf-8")
    return markup(re.sub(r"\s*\n\s*", " ", text))


def note(title: str, sentence: str) -> Markup:
    """A title and a sentence, which may hold untrusted text."""
    return markup(f'<section class="{NO_TEX}"><p><strong>{code(title)}</strong></p><p>{code(sentence)}</p></section>')


def code(text: str) -> Markup:
    """Escaped text in which `this` is set as code."""
    return markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(clean(text))))


def markup(text: str) -> Markup:
    """Text that already is HTML."""
    from markupsafe import Markup

    return Markup(text)


_WIDTH = 100
_GATE_SIGNS = {"passed": "✓", "failed": "✗", "doubt": "≈", "needs_gpu": "–", "not_reached": "–"}
_INTERPRETER_WARNING = re.compile(r"^\S*/triton/runtime/interpreter\.py:\d+: \w*Warning: .*\n(?: .*\n?)?", re.MULTILINE)
_CONTEXT = 2  # lines shown before and after the one that failed


def as_text(verdict: Verdict, source: str = "") -> str:
    """The report as plain text of at most 100 columns. With the `source` of the cell, it shows the line that failed."""
    s = summarize(verdict, source)
    blocks = [[f"{s.sign} {s.headline}: {verdict.title}. {s.points}{s.points_note and f'; {s.points_note}'}."]]
    if s.unseen:
        blocks[0].append(s.unseen)
    if verdict.judged:
        blocks[0].append(clean(verdict.judged))
    if s.cases:
        blocks.append([s.cases, *(f"  {sign} {case.name}" for case in verdict.cases for _, sign, _ in [_mark(case)])])
    if s.failure is not None and s.state != "not_written":
        blocks.append(_failure_text(s, source))
    if s.sentences and s.failing is not None:
        blocks.append([f"What is wrong in “{s.failing.name}”", *(f"  {sentence}" for sentence in s.sentences)])
    if s.show_speed or s.show_times:
        lines = [f"  {_GATE_SIGNS[gate.outcome]} {gate_words(gate)}" for gate in verdict.gates if s.show_speed]
        blocks.append(["Speed", *lines, *(f"    {line}" for line in _times_text(verdict, s.exercise))])
    if s.why:
        blocks.append(["Why it is slow", *(f"  {sentence}" for sentence in s.why)])
        blocks += _breakdown_text(verdict.breakdown) if verdict.breakdown else []
        point = _on_roofline(verdict, s.exercise)
        blocks += [[_ROOFLINE, f"  {point.in_words}"]] if point else []
    if s.notes:
        blocks.append(["Notes", *(f"  {each.label}: {each.sentence}" for each in s.notes), f"  {NOTES}"])
    blocks.append([f"Next: {s.next_step}"])
    if s.hints:
        blocks[-1].append(f"  Hint 1 of {len(s.hints)}: {s.hints[0]}")
    printed = _printed(verdict).splitlines()
    if printed:
        blocks.append(["Printed output", *(f"  | {line}" for line in printed[-20:])])
    blocks.append([s.environment])
    return "\n\n".join("\n".join(_wrapped(line) for line in block) for block in blocks) + "\n"


def as_html(verdict: Verdict, source: str = "") -> str:
    """The report as an HTML fragment that fetches nothing, has no scripts, and escapes all text from the submission.

    With the `source` of the cell, it shows the line that failed.
    """
    s = summarize(verdict, source)
    return _template("report").render(
        v=verdict,
        s=s,
        css=css(),
        marks=_mark,
        gate_signs=_GATE_SIGNS,
        gate_words=gate_words,
        gate_bar=lambda gate: markup(gate_bar(gate)),
        times=_times(verdict, s.exercise),
        about_notes=NOTES,
        excerpt=_excerpt(source, s.failure.line if s.failure else None),
        log=_printed(verdict),
        breakdown=markup(_where_html(verdict, s.exercise)) if s.why else "",
        **_picture(s),
    )


def page_without_grades(notebook: str, sentence: str, chapter: str = "") -> str:
    """The feedback page for a notebook that could not be graded: a whole HTML page that fetches nothing.

    `chapter` is HTML, the summary of the chapter.
    """
    return _template("without_grades").render(notebook=notebook, sentence=sentence, chapter=markup(chapter))


def _printed(verdict: Verdict) -> str:
    """The submission's output, without the warnings of Triton's interpreter."""
    return re.sub(_INTERPRETER_WARNING, "", clean(verdict.log)).strip()


def _mark(case: CaseResult) -> tuple[str, str, str]:
    ran = ("pass", "✓", "passed") if case.passed else ("failed", "✗", "failed")
    return ran if was_run(case) else ("skipped", "–", "not run")


def _picture(s: Summary) -> dict[str, Any]:
    mismatch = s.failing.mismatch if s.failing else None
    if s.failing is None or mismatch is None or (s.exercise is not None and s.exercise.answers):
        return {"picture": "", "caption": ""}
    side = outside_of(mismatch, case_of(s.failing.name, s.exercise)) if mismatch.outside else ""
    said = ["All wrong elements are in the hatched part."] if mismatch.wrong else []
    said += [f"The dashed part is outside `{mismatch.output}` and must not be written."] if side else []
    caption = f"A map of `{mismatch.output}`. {' '.join(said)}"
    return {"picture": markup(map_of(mismatch, side)), "caption": caption}


class _Row(NamedTuple):
    case: str
    times: tuple[str, ...]
    rate: str
    share: str
    bar: Markup


class _Times(NamedTuple):
    heads: tuple[str, ...]
    rows: tuple[_Row, ...]
    unit: str
    ceiling: str


def _times(verdict: Verdict, exercise: Exercise | None) -> _Times:
    """One row per case and one column per peer, the submission's first. The unit is GB/s if the exercise is unknown."""
    cases = {case.name: case for case in (*exercise.timed_cases, *exercise.plot_cases)} if exercise is not None else {}
    names = list(dict.fromkeys(timing.case for timing in verdict.timings))
    peers = sorted(dict.fromkeys(timing.peer for timing in verdict.timings), key=lambda peer: peer != "submission")
    labels = {"submission": "yours"} | {gate.baseline: gate.label for gate in verdict.gates}
    by_key = {(timing.case, timing.peer): timing for timing in verdict.timings}
    rows = []
    for name in names:
        own = by_key.get((name, "submission"))
        share = own.share_of_roofline if own else None
        rate, title = own.bandwidth_gbps if own else None, name
        if own and exercise is not None and name in cases:
            rate = exercise.rate(cases[name].times(own.scale), own.bandwidth_gbps)
            title = cases[name].title(own.scale)
        times = tuple(time(by_key[name, peer].median_us) if (name, peer) in by_key else "–" for peer in peers)
        percent, bar = (f"{share:.0%}", share_bar(share)) if share is not None else ("–", "")
        rows.append(_Row(title, times, f"{rate:,.0f}" if rate is not None else "–", percent, markup(bar)))
    unit, ceiling = (exercise.rate_unit, exercise.ceiling) if exercise else ("GB/s", "a copy's bandwidth")
    return _Times(tuple(labels.get(peer, peer) for peer in peers), tuple(rows), unit, ceiling)


def _times_text(verdict: Verdict, exercise: Exercise | None) -> Iterable[str]:
    times = _times(verdict, exercise)
    for row in times.rows:
        said = ", ".join(f"{head} {value}" for head, value in zip(times.heads, row.times, strict=True))
        share = f", {row.share} of {times.ceiling}" if times.ceiling else ""
        yield f"{row.case}: {said}; {row.rate} {times.unit}{share}"


def _failure_text(s: Summary, source: str) -> list[str]:
    failure = s.failure
    assert failure is not None
    lines = [s.failure_name, f"  {failure.message}"]
    lines += [f"  {number:4d} {'▸' if here else ' '} {text}" for number, text, here in _excerpt(source, failure.line)]
    return lines + ([f"  {failure.meaning}"] if failure.meaning else [])


def _excerpt(source: str, line: int | None) -> list[tuple[int, str, bool]]:
    """The line that failed and its neighbours: number, text, and whether it is the line that failed."""
    lines = clean(source, limit=1 << 20).split("\n")
    if line is None or not source or not 1 <= line <= len(lines):
        return []
    first, last = max(1, line - _CONTEXT), min(len(lines), line + _CONTEXT)
    shown = range(first, last + 1)
    return [(number, lines[number - 1][:LINE_CHARACTERS].rstrip(), number == line) for number in shown]


def _wrapped(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= _WIDTH or re.match(r" +(\||\d+ [▸ ] )", line):  # printed text, and lines of code
        return line
    return textwrap.fill(line, _WIDTH, subsequent_indent=indent + "  ", break_on_hyphens=False, break_long_words=False)


@functools.cache
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("grader.feedback")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_cleaned)
    environment.filters["code"] = code
    environment.globals["no_tex"] = NO_TEX
    return environment.get_template(f"{name}.html.j2")


def _cleaned(value: Any) -> Any:
    """A value for jinja to print, without control characters. Markup is our own and stays as it is."""
    return clean(value, limit=1 << 20) if type(value) is str else value


_BAR = 40
_CAUSES = 4  # that are shown
_SLOW = 1.3  # times a good solution's time
_EXTRA, _MOST = ("moved again", "fetched, not used", "torch", "extra bytes"), 0.5  # of the bytes, or of the time
_LINES = "Lines that move the most bytes"
_COUNTERS = "Measured by counters"
_ROOFLINE = "On the roofline"
_COLOURS = {
    "bytes that must move": "good", "must move": "good", "arithmetic": "good", "extra bytes": "warn",
    "moved again": "warn", "launches and the host": "bad", "fetched, not used": "bad", "torch": "calm",
}  # fmt: skip


def explanation_as_text(explanation: Explanation) -> str:
    """The explanation as plain text of at most 100 columns."""
    blocks = [[_title(explanation)], _verdict(explanation), *_breakdown_text(explanation.breakdown)]
    if explanation.roofline is not None:
        blocks.append([_ROOFLINE, f"  {explanation.roofline.in_words}"])
    if explanation.measured:
        blocks.append([_COUNTERS, *(f"  {clean(said)}" for said in explanation.measured)])
    if explanation.seen:
        blocks.append(["Evidence", *(f"  {said}" for said in explanation.seen)])
    return "\n\n".join("\n".join(_indented(line) for line in block) for block in blocks) + "\n"


def explanation_as_html(explanation: Explanation) -> str:
    """The explanation as an HTML fragment without scripts, with all text from the submission escaped."""
    parts = [f'<div class="gr-head"><span class="gr-headline">{_title(explanation)}</span></div>']
    parts.append(_part("", "".join(f"<p>{code(said)}</p>" for said in _verdict(explanation))))
    parts.append(_breakdown_html(explanation.breakdown))
    if explanation.roofline is not None:
        parts.append(_roofline_html(explanation.roofline))
    if explanation.measured:
        parts.append(_part(_COUNTERS, "".join(f"<p>{code(each)}</p>" for each in explanation.measured)))
    if explanation.seen:
        said = "".join(f"<p>{code(each)}</p>" for each in explanation.seen)
        parts.append(_part("", f"<details><summary>Evidence</summary>{said}</details>"))
    label = f'aria-label="Explanation of the speed of {explanation.exercise.id}"'
    return f'<style>{css()}</style><section class="gr-report {NO_TEX}" {label}>{"".join(parts)}</section>'


def _on_roofline(verdict: Verdict, exercise: Exercise | None) -> Roofline | None:
    """Return where the largest timed case of a submission lies, None if it was not timed or has no ceiling."""
    return roofline_of(exercise, timed(exercise, verdict.timings, verdict.environment)) if exercise else None


def _roofline_html(point: Roofline) -> str:
    return _part(_ROOFLINE, roofline(point) + f"<p>{code(point.in_words)}</p>")


def _where_html(verdict: Verdict, exercise: Exercise | None) -> str:
    """Return where the time of a slow submission goes, and its place on the roofline."""
    point = _on_roofline(verdict, exercise)
    where = _breakdown_html(verdict.breakdown) if verdict.breakdown else ""
    return where + (_roofline_html(point) if point else "")


def _breakdown_text(breakdown: Breakdown) -> list[list[str]]:
    """Return where the time or the bytes go, and the lines, in blocks of text lines."""
    blocks = []
    if breakdown.parts:
        blocks.append([_heading(breakdown)])
        for part in breakdown.parts:
            bar = "█" * max(1, round(_BAR * part.share))
            blocks[-1].append(f"  {part.label:<20} {part.share:>4.0%} {bar}")
    if breakdown.lines:
        blocks.append([_LINES, "  line share  code"])
        blocks[-1] += [f"  {each.line:>4} {each.share:>5.0%}  {clean(each.text)[:80]}" for each in breakdown.lines]
    return blocks


def _breakdown_html(breakdown: Breakdown) -> str:
    """The same as HTML: a bar, its parts in words, and a table of the lines."""
    parts = []
    if breakdown.parts:
        shares = [html.escape(f"{part.label} {part.share:.0%}") for part in breakdown.parts]
        colours = [f"var(--gr-{_COLOURS.get(part.label, 'calm')})" for part in breakdown.parts]
        blocks = "".join(
            f'<div style="width:{100 * part.share:.1f}%;background:{colour}" title="{said}"></div>'
            for part, colour, said in zip(breakdown.parts, colours, shares, strict=True)
        )
        bar = f'<div role="img" aria-label="{"; ".join(shares)}" style="display:flex;height:1.1em">{blocks}</div>'
        key = "; ".join(
            f'<b aria-hidden="true" style="color:{colour}">■</b> {said}'
            for colour, said in zip(colours, shares, strict=True)
        )
        parts.append(_part(_heading(breakdown), f"{bar}<p>{key}</p>"))
    if breakdown.lines:
        rows = "".join(
            f"<tr><td>{each.line}</td><td>{each.share:.0%}</td><td class='gr-code'>"
            f"<code>{code(each.text.replace('`', chr(39)))}</code></td></tr>"
            for each in breakdown.lines
        )
        head = "<th scope='col'>line</th><th scope='col'>share</th><th scope='col' class='gr-code'>code</th>"
        table = f"<table><thead><tr>{head}</tr></thead>{rows}</table>"
        parts.append(_part(_LINES, f"<div class='gr-scroll'>{table}</div>"))
    return "".join(parts)


def _title(explanation: Explanation) -> str:
    return f"What limits the speed of {explanation.exercise.id}"


def _verdict(explanation: Explanation) -> list[str]:
    """The causes in sentences, or why there are none."""
    if not explanation.ran:
        why = f"`check({explanation.exercise.id})` says why"
        return [f"It does not run, takes too long here, or gives wrong answers: {why}."]
    if not explanation.causes:
        found = "The evidence shows no cause of slowness."
        if explanation.headroom is None:
            found += " The speed was not compared with that of a good solution."
        elif explanation.headroom >= _SLOW:
            found += f" Yet a good solution is {explanation.headroom:.1f}× as fast: look at the kernels below."
        return [found, *_of_extra_bytes(explanation)]
    said = [sentence(cause) for cause in explanation.causes[:_CAUSES]]
    if len(explanation.causes) > 1:
        said.append("These causes were found together: fixing one may reveal the next.")
        if explanation.headroom is not None:
            said[-1] += f" Together they can gain at most {explanation.headroom:.1f}×; each one's share is a guess."
    return said


def _of_extra_bytes(explanation: Explanation) -> list[str]:
    """Why most bytes are moved again, although that is not named as a cause."""
    if sum(part.share for part in explanation.breakdown.parts if part.label in _EXTRA) < _MOST:
        return []
    if explanation.exercise.backend == "torch":
        why = "each operation of torch reads and writes whole tensors"
    elif explanation.exercise.limited_by == "arithmetic":
        why = "each tile is needed for several results; that costs nothing while arithmetic takes longer"
    else:
        return ["Yet most bytes are moved more than once, or are not used: see the lines below."]
    return [f"Most bytes are moved more than once, because {why}. The lines below tell where."]


def _heading(breakdown: Breakdown) -> str:
    return f"Where the {html.escape(breakdown.unit)} {'goes' if breakdown.unit == 'time' else 'go'}"


def _part(name: str, inside: str) -> str:
    named = f'<div class="gr-name">{name}</div>' if name else ""
    return f'<div class="gr-part">{named}{inside}</div>'


def _indented(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return "\n".join(textwrap.wrap(line, _WIDTH, subsequent_indent=indent, drop_whitespace=True)) if line else line
