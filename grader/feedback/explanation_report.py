"""An explanation of a submission's speed as HTML for notebooks and as text for terminals."""

from __future__ import annotations

import textwrap

from grader.bottleneck.cause import sentence
from grader.bottleneck.explanation import Explanation
from grader.feedback.pictures import roofline
from grader.feedback.report import NO_TEX, code, css
from grader.words import clean

__all__ = ["explanation_as_html", "explanation_as_text"]

_WIDTH, _BAR = 100, 40
_CAUSES = 4  # that are shown
_SLOW = 1.3  # times a good solution's time
_LINES = "Lines that move the most bytes"
_COLOURS = ("var(--gr-good)", "var(--gr-warn)", "var(--gr-bad)", "var(--gr-calm)", "var(--gr-soft)")


def explanation_as_text(explanation: Explanation) -> str:
    """The explanation as plain text of at most 100 columns."""
    blocks = [[_title(explanation)], _verdict(explanation)]
    if explanation.parts:
        blocks.append([_heading(explanation)])
        for part in explanation.parts:
            bar = "█" * max(1, round(_BAR * part.share))
            blocks[-1].append(f"  {part.label:<20} {part.share:>4.0%} {bar}")
    if explanation.roofline is not None:
        blocks.append(["On the roofline", f"  {explanation.roofline.in_words}"])
    if explanation.lines:
        blocks.append([_LINES, "  line share  code"])
        blocks[-1] += [f"  {each.line:>4} {each.share:>5.0%}  {clean(each.text)[:80]}" for each in explanation.lines]
    if explanation.seen:
        blocks.append(["Evidence", *(f"  {said}" for said in explanation.seen)])
    return "\n\n".join("\n".join(_wrapped(line) for line in block) for block in blocks) + "\n"


def explanation_as_html(explanation: Explanation) -> str:
    """The explanation as an HTML fragment without scripts, with all text from the submission escaped."""
    parts = [f'<div class="gr-head"><span class="gr-headline">{_title(explanation)}</span></div>']
    parts.append(_part("", "".join(f"<p>{code(said)}</p>" for said in _verdict(explanation))))
    if explanation.parts:
        shares = [f"{part.label} {part.share:.0%}" for part in explanation.parts]
        blocks = "".join(
            f'<div style="width:{100 * part.share:.1f}%;background:{colour}" title="{said}"></div>'
            for part, colour, said in zip(explanation.parts, _COLOURS, shares, strict=False)
        )
        bar = f'<div role="img" aria-label="{"; ".join(shares)}" style="display:flex;height:1.1em">{blocks}</div>'
        parts.append(_part(_heading(explanation), f"{bar}<p>{'; '.join(shares)}</p>"))
    if explanation.roofline is not None:
        said = f"<p>{code(explanation.roofline.in_words)}</p>"
        parts.append(_part("On the roofline", roofline(explanation.roofline) + said))
    if explanation.lines:
        rows = "".join(
            f"<tr><td>{each.line}</td><td>{each.share:.0%}</td><td style='text-align:left'>"
            f"<code>{code(each.text.replace('`', chr(39)))}</code></td></tr>"
            for each in explanation.lines
        )
        head = "<thead><tr><th scope='col'>line</th><th scope='col'>share</th><th scope='col'>code</th></tr></thead>"
        parts.append(_part(_LINES, f"<div class='gr-scroll'><table>{head}{rows}</table></div>"))
    if explanation.seen:
        said = "".join(f"<p>{code(each)}</p>" for each in explanation.seen)
        parts.append(_part("", f"<details><summary>Evidence</summary>{said}</details>"))
    label = f'aria-label="Explanation of the speed of {explanation.exercise.id}"'
    return f'<style>{css()}</style><section class="gr-report {NO_TEX}" {label}>{"".join(parts)}</section>'


def _title(explanation: Explanation) -> str:
    return f"What limits the speed of {explanation.exercise.id}"


def _verdict(explanation: Explanation) -> list[str]:
    """The causes in sentences, or why there are none."""
    if not explanation.ran:
        return [f"It does not run, or its answers are wrong: `check({explanation.exercise.id})` says why."]
    if not explanation.causes:
        found = "The evidence shows no cause of slowness."
        if explanation.headroom is not None and explanation.headroom >= _SLOW:
            found += f" Yet a good solution is {explanation.headroom:.1f}× as fast: look at the kernels below."
        return [found]
    said = [sentence(cause) for cause in explanation.causes[:_CAUSES]]
    if len(explanation.causes) > 1:
        said.append("These causes were found together: fixing one may reveal the next.")
        if explanation.headroom is not None:
            said[-1] += f" Together they can gain at most {explanation.headroom:.1f}×; each one's share is a guess."
    return said


def _heading(explanation: Explanation) -> str:
    return f"Where the {explanation.unit} {'goes' if explanation.unit == 'time' else 'go'}"


def _part(name: str, inside: str) -> str:
    named = f'<div class="gr-name">{name}</div>' if name else ""
    return f'<div class="gr-part">{named}{inside}</div>'


def _wrapped(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return "\n".join(textwrap.wrap(line, _WIDTH, subsequent_indent=indent, drop_whitespace=True)) if line else line
