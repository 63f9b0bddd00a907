"""A verdict in words: headline, points, what is wrong first, and one next step. No layout."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from grader.bottleneck.cause import sentence
from grader.errors import UnknownExercise
from grader.exercise import Case, Exercise
from grader.exercises import find
from grader.feedback.facts import Clues, Facts, clues_in
from grader.feedback.places import locate
from grader.feedback.questions import names_a_cause
from grader.feedback.sentences import Explained, explained, sentences_from
from grader.verdict import CaseResult, GateResult, Verdict
from grader.words import clean, in_points, plural, points, ratio

NOTES = "These notes take no points. They are for your information and for the person who grades."
_LABELS = {"rule": "Rules", "access": "Memory", "clock": "Clock", "disturbed": "Timing"}
_SAID_ABOVE = re.compile(r" It takes no points; [^.]*\.$")  # the rules' sentences also appear without NOTES
_QUOTED = re.compile(r"`[^`]*`")


@dataclass(frozen=True)
class Note:
    """A sentence or a few, and the topic they are about."""

    label: str
    sentence: str


def notes(verdict: Verdict) -> tuple[Note, ...]:
    """The notes on a verdict: findings and disturbances of the timing, each sentence once."""
    found = [Note(_LABELS[each.kind], _SAID_ABOVE.sub("", clean(each.sentence))) for each in verdict.findings]
    found += [Note(_LABELS["disturbed"], clean(each)) for each in verdict.environment.notes]
    return tuple({note.sentence: note for note in reversed(found)}.values())[::-1]


def to_look_at(verdict: Verdict) -> list[str]:
    """The points that a person who grades should check: a result held for review or not judged, and the notes."""
    failure = verdict.failure
    held = [failure.message] if failure is not None and failure.kind in ("implausible", "not_simulated") else []
    return [*held, *(f"{note.label}: {note.sentence}" for note in notes(verdict))]


def without_quotes(note: Note) -> str:
    """The note as it may be published: text in `backticks` comes from others and may hold a name."""
    return f"{note.label}: {_QUOTED.sub('…', note.sentence)}"


State = Literal["unusable", "not_judged", "not_written", "broken", "held", "wrong", "slow", "untimed", "passed"]
Tone = Literal["good", "bad", "warn", "plain"]
_STATES: dict[State, tuple[Tone, str, str]] = {  # tone, sign and headline
    "unusable": ("warn", "!", "Nothing could be graded"),
    "not_judged": ("plain", "–", "Not judged here"),
    "not_written": ("plain", "…", "Not written yet"),
    "broken": ("bad", "✗", "It failed"),
    "held": ("warn", "!", "Held for review"),
    "wrong": ("bad", "✗", "Not right yet"),
    "slow": ("warn", "!", "Right, but not fast enough yet"),
    "untimed": ("good", "✓", "Right, but its speed was not measured"),
    "passed": ("good", "✓", "Passed"),
}
RIGHT_IN_THE_SIMULATOR = "Right in the simulator"
UNSEEN = "It cannot see speed, a GPU's own rounding, or errors that depend on how a GPU times its threads."
_SIMULATED = ("triton", "cuda", "numba", "cupy")  # other exercises need no simulator
_MOST_CAUSES = 2
NEEDS_GPU = "Simulated without a GPU: points for speed need a GPU."
_REPEATED = re.compile(", (?:while timed|called again)$")


@dataclass(frozen=True)
class Summary:
    """One verdict in words. `sign` carries the tone for readers who see no colour."""

    state: State
    tone: Tone
    sign: str
    headline: str
    points: str
    points_note: str
    unseen: str  # by the simulator
    cases: str
    failing: CaseResult | None
    sentences: tuple[str, ...]
    failure: Explained | None
    failure_name: str
    show_speed: bool
    show_times: bool
    notes: tuple[Note, ...]
    why: tuple[str, ...]  # it is slow
    next_step: str
    hints: tuple[str, ...]
    environment: str
    exercise: Exercise | None = None


def summarize(verdict: Verdict, source: str = "") -> Summary:
    """The words for a verdict, without hints if this version does not know the exercise.

    The `source` of the cell makes the sentences more specific. If they name a likely cause, hints are left out.
    """
    exercise: Exercise | None = None
    with suppress(UnknownExercise):
        exercise = find(verdict.exercise)
    cases = _cases(verdict)
    verdict = _values_first(verdict)
    state = state_of(verdict)
    failing = _most_telling(verdict, exercise)
    right = sum(case.passed for case in verdict.cases)
    failure = explained(verdict.failure, exercise, source, right) if verdict.failure else None
    facts = _facts(verdict, failing, exercise, source)
    found = sentences_from(facts) if facts is not None else ()
    diagnosed = names_a_cause(facts) if facts is not None else failure is not None and failure.diagnosed
    tone, sign, headline = _STATES[state]
    done = state in ("passed", "untimed")
    simulated = verdict.environment.device == "simulator" and exercise is not None and exercise.backend in _SIMULATED
    if done and simulated:
        headline = RIGHT_IN_THE_SIMULATOR
    return Summary(
        state=state,
        tone=tone,
        sign=sign,
        headline=failure.title if failure is not None else headline,
        points=f"{'–' if state == 'not_judged' else points(verdict.points)} of {in_points(verdict.max_points)}",
        points_note=_points_note(verdict),
        unseen=UNSEEN if done and simulated else "",
        cases=cases,
        failing=failing,
        sentences=found,
        failure=failure,
        failure_name=_failure_name(failing, failure),
        show_speed=bool(verdict.gates) and state in ("slow", "untimed", "passed"),
        show_times=bool(verdict.timings) and state in ("slow", "untimed", "passed", "held"),
        notes=notes(verdict),
        why=_why(verdict) if state == "slow" else (),
        next_step=_next_step(verdict, exercise, state, failing, failure),
        hints=exercise.hints if exercise and not done and state not in ("unusable", "held") and not diagnosed else (),
        environment=environment_line(verdict),
        exercise=exercise,
    )


def _values_first(verdict: Verdict) -> Verdict:
    """Without a failure that comes later, if other cases are wrong: loads too narrow, or a case that takes too long."""
    failure = verdict.failure
    if failure is None or not any(case.mismatch for case in verdict.cases):
        return verdict
    if failure.kind != "timeout" and not failure.message.startswith("NarrowLoads"):
        return verdict
    cases = tuple(replace(case, failure=None) if case.failure == failure else case for case in verdict.cases)
    return replace(verdict, failure=None, cases=cases)


def _facts(verdict: Verdict, failing: CaseResult | None, exercise: Exercise | None, source: str) -> Facts | None:
    if failing is None or failing.mismatch is None:
        return None
    clues = clues_in(source, exercise.entry) if exercise is not None else Clues()
    others = tuple(case.mismatch for case in verdict.cases if case.mismatch is not None and case is not failing)
    return Facts(failing.mismatch, case_of(failing.name, exercise), exercise, clues, others)


def state_of(verdict: Verdict) -> State:
    """The state of a verdict."""
    kind = verdict.failure.kind if verdict.failure is not None else ""
    if kind == "not_written":
        return "not_written"
    if kind == "not_simulated":
        return "not_judged"
    if "unusable" in (kind, verdict.status):
        return "unusable"
    if kind:
        return "held" if kind == "implausible" else "broken"
    if not all(case.passed for case in verdict.cases):
        return "wrong"
    if any(gate.outcome == "failed" for gate in verdict.gates):
        return "slow"
    if any(gate.outcome in ("needs_gpu", "not_reached") for gate in verdict.gates):
        return "untimed"
    return "passed"


def case_of(name: str, exercise: Exercise | None) -> Case | None:
    """The case of a result; the results of repeated calls have a suffix after the case's name."""
    if exercise is None:
        return None
    every = (*exercise.cases, *exercise.simulator_cases, *exercise.timed_cases, *exercise.plot_cases)
    return next((case for case in every if case.name == _REPEATED.sub("", name)), None)


def was_run(case: CaseResult) -> bool:
    """Whether a case was run; one that reached the stub was not."""
    if case.failure is not None:
        return case.failure.kind != "not_written"
    return case.passed or case.mismatch is not None


def gate_words(gate: GateResult) -> str:
    """The result of a speed gate in one line, with the ratio and its interval."""
    wants = f"{points(gate.at_least)}×"
    or_share = "" if gate.or_share is None else f", or {gate.or_share:.0%} of what the hardware allows,"
    if gate.outcome in ("needs_gpu", "not_reached") or gate.ratio is None:
        why = "needs a GPU" if gate.outcome == "needs_gpu" else "not measured"
        return f"{wants} as fast as {gate.label}{or_share} earns {in_points(gate.max_points)}: {why}."
    interval = "" if gate.low is None or gate.high is None else f" (95 %: {ratio(gate.low)} to {ratio(gate.high)})"
    share = "" if gate.share is None else f" and {gate.share:.0%} of what the hardware allows"
    wants += "" if gate.or_share is None else f" or {gate.or_share:.0%}"
    said = f"{ratio(gate.ratio)}× as fast as {gate.label}{interval}{share}, {wants} needed:"
    said += f" {points(gate.points)} of {in_points(gate.max_points)}."
    if gate.outcome == "doubt":
        said += " It is too close to tell, so you get the benefit of the doubt."
    return said


def environment_line(verdict: Verdict) -> str:
    """The environment of the verdict: GPU or simulator, versions, sandbox, clock, and the GPU's state at the end."""
    environment = verdict.environment
    parts = []
    if environment.device == "cuda":
        parts += [environment.gpu, environment.driver and f"driver {environment.driver}"]
    for name in ("torch", "triton", "python"):
        version = getattr(environment, name)
        parts.append(version and f"{name if name != 'python' else 'Python'} {version}")
    parts.append(environment.sandbox and f"sandbox: {environment.sandbox}")
    if environment.device == "cuda":
        parts.append(verdict.clock and f"clock: {verdict.clock}")
        if environment.copy_gbps:
            parts.append(f"measured copy bandwidth {environment.copy_gbps:,.0f} GB/s")
        figures = [environment.sm_clock_mhz and f"{environment.sm_clock_mhz} MHz"]
        figures += [environment.memory_clock_mhz and f"memory {environment.memory_clock_mhz} MHz"]
        figures += [environment.temperature_c and f"{environment.temperature_c} °C"]
        known = ", ".join(figure for figure in figures if figure)
        parts.append(known and f"at the end {known}")
    parts.append(environment.changed_by and f"points, gates and limits: the class's {environment.changed_by}")
    parts.append(environment.cell and f"checked: cell {environment.cell}")
    parts.append(environment.uncompiled and f"not compiled for a GPU: {clean(environment.uncompiled)}")
    if environment.device == "simulator":
        parts.insert(0, NEEDS_GPU if verdict.gates else "Simulated without a GPU.")
    return " · ".join(part for part in parts if part)


# The report describes the wrong case with the clearest pattern, in this order; a single element is unclear.
_TELLING = (
    ("after_first_block", "all_but_first", "all_but_first_row", "mid_row"),
    ("last_block",),
    ("last_columns", "last_rows", "tail", "first_row", "first_columns", "head", "run", "rows", "columns", "corner"),
    ("one", "first_element"),
    ("everything",),
    ("scattered",),
)


def _most_telling(verdict: Verdict, exercise: Exercise | None) -> CaseResult | None:
    """The case that failed to run, or the wrong one with the clearest pattern, the smallest first."""
    bad = [case for case in verdict.cases if case.failure or case.mismatch]
    broken = next((case for case in bad if case.failure), None)
    return broken or min(bad, key=lambda case: _rank(case, exercise), default=None)


def _rank(case: CaseResult, exercise: Exercise | None) -> int:
    mismatch = case.mismatch
    if mismatch is None or mismatch.suspect:
        return -2
    facts = Facts(mismatch, case_of(case.name, exercise), exercise)
    if facts.padded or facts.run_on or not mismatch.wrong:  # if rows overwrote others, the wrong rows are random
        return -1 if facts.padded else 3
    if mismatch.total == 1:
        return len(_TELLING)
    place = locate(mismatch)
    if place.in_block and place.kind != "one":
        return 1
    return next(rank for rank, kinds in enumerate(_TELLING) if place.kind in kinds)


def _points_note(verdict: Verdict) -> str:
    missing = verdict.max_points - verdict.reachable_points
    if missing <= 0:
        return ""
    for_speed = "" if verdict.status == "not_judged" else " for speed"
    return f"{in_points(missing)}{for_speed} need{'s' if missing == 1 else ''} a GPU"


def _cases(verdict: Verdict) -> str:
    if all(not case.passed and not case.mismatch and not case.failure for case in verdict.cases):
        return ""  # none was run
    right = sum(case.passed for case in verdict.cases)
    skipped = sum(not was_run(case) for case in verdict.cases)
    return f"{right} of {plural(len(verdict.cases), 'case')} passed" + (f", {skipped} not run" if skipped else "")


def _failure_name(failing: CaseResult | None, failure: Explained | None) -> str:
    where = [f"in “{failing.name}”"] if failing else []
    where += [f"in line {failure.line} of the cell"] if failure and failure.line else []
    if failure is not None and failure.title == _STATES["not_judged"][2]:
        return f"Why {', '.join(where)}".rstrip()
    return f"What happened {', '.join(where)}".rstrip()


def _next_step(
    verdict: Verdict, exercise: Exercise | None, state: State, failing: CaseResult | None, failure: Explained | None
) -> str:
    call = f"`check({verdict.exercise})`"
    if failure is not None:
        again = "" if "check again" in failure.advice else " Then run the cell, and check again."
        return (failure.advice or "Fix this first.") + again
    if state == "wrong":
        several = sum(case.mismatch is not None for case in verdict.cases) > 1
        if several and failing is not None:
            return f"Start with the case “{failing.name}”: it is the most telling. Then run the cell, and check again."
        return "Fix this, run the cell, and check again."
    if state == "slow":
        return _faster(verdict, exercise)
    noted = any(finding.kind == "rule" for finding in verdict.findings)
    done = "All cases are right. The person who grades will read the note about the rules." if noted else ""
    if state == "untimed" and verdict.environment.device == "simulator":
        return f"{done} On a machine with a GPU, {call} also measures the speed.".strip()
    if state == "untimed":
        return f"{done or 'Nothing is left to fix.'} Check it with the clock to earn the points for speed."
    done = done or "Done."
    if any(gate.outcome == "doubt" for gate in verdict.gates):
        return f"{done} One gate is close: when the GPU is idle, another {call} may settle it."
    if exercise is not None and not exercise.plot_cases:
        return done
    return f"{done} `benchmark({verdict.exercise})` plots its speed over the problem size."


def _why(verdict: Verdict) -> tuple[str, ...]:
    """Why a gate was missed: the causes with the largest gains, and where to read more."""
    more = f"`explain({verdict.exercise})` shows all of the evidence."
    if not verdict.causes:
        return (f"The evidence so far shows no cause. {more}",)
    return (*(sentence(cause) for cause in verdict.causes[:_MOST_CAUSES]), more)


def _faster(verdict: Verdict, exercise: Exercise | None) -> str:
    gate = next(gate for gate in verdict.gates if gate.outcome == "failed")
    missing = f"It is {ratio(gate.ratio or 0)}× as fast as {gate.label}, but must be {points(gate.at_least)}× as fast."
    if gate.or_share is not None:
        missing += f" Reaching {gate.or_share:.0%} of what the hardware allows is enough, too."
    shares = [t.share_of_roofline for t in verdict.timings if t.peer == "submission" and t.share_of_roofline]
    if not shares or (exercise is not None and exercise.limited_by != "memory"):
        return missing
    return (
        f"{missing} Its slowest case reaches {min(shares):.0%} of a plain copy's bandwidth: the rest is your headroom."
    )
