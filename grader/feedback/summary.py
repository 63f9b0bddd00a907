"""What a verdict amounts to for its reader: headline, points, what is wrong first, and one next step. No layout."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from grader.errors import UnknownExercise
from grader.exercise import Case, Exercise
from grader.exercises import find
from grader.feedback.facts import Clues, Facts, clues_in
from grader.feedback.places import locate
from grader.feedback.questions import names_a_cause
from grader.feedback.sentences import Explained, explained, told
from grader.verdict import CaseResult, GateResult, Verdict
from grader.words import clean, in_points, points, ratio

# What stands beside the score: findings, and what disturbed the timing. It takes no points and accuses nobody.

BESIDE = "These notes take no points. They are here for you to know, and for a person to look at."
_LABELS = {"rule": "Rules", "clock": "Clock", "disturbed": "Timing"}
_SAID_ABOVE = re.compile(r" It takes no points; [^.]*\.$")  # each rule's sentence stands alone elsewhere
_QUOTED = re.compile(r"`[^`]*`")


@dataclass(frozen=True)
class Remark:
    """One sentence (or a few), and the word that says what it is about."""

    label: str
    sentence: str


def beside(verdict: Verdict) -> tuple[Remark, ...]:
    """What is to be shown beside a verdict's score, each sentence once."""
    found = [Remark(_LABELS[each.kind], _SAID_ABOVE.sub("", clean(each.sentence))) for each in verdict.findings]
    found += [Remark(_LABELS["disturbed"], clean(note)) for note in verdict.environment.notes]
    return tuple({remark.sentence: remark for remark in reversed(found)}.values())[::-1]


def to_look_at(verdict: Verdict) -> list[str]:
    """What a person who grades should look at: a time that is held for review, and what stands beside the score."""
    failure = verdict.failure
    held = [failure.message] if failure is not None and failure.kind == "implausible" else []
    return [*held, *(f"{remark.label}: {remark.sentence}" for remark in beside(verdict))]


def without_quotes(remark: Remark) -> str:
    """The remark as it may be published: what stands in `backticks` is another's text, and may hold a name."""
    return f"{remark.label}: {_QUOTED.sub('…', remark.sentence)}"


# What a verdict amounts to for its reader: headline, points, what is wrong first, and one next step. No layout.

State = Literal["unusable", "not_written", "broken", "held", "wrong", "slow", "untimed", "passed"]
_SIMULATED = "Simulated: no GPU."
NEEDS_GPU = "Simulated: no GPU; speed needs a GPU and gives no points here."
_TIMED = ", while timed"


@dataclass(frozen=True)
class Summary:
    """One verdict, in words. `sign` carries the tone for those who see no colour."""

    state: State
    tone: Literal["good", "bad", "warn", "plain"]
    sign: str
    headline: str
    points: str
    points_note: str
    cases: str
    failing: CaseResult | None
    sentences: tuple[str, ...]
    failure: Explained | None
    failure_name: str
    show_speed: bool
    show_times: bool
    beside: tuple[Remark, ...]
    next_step: str
    hints: tuple[str, ...]
    environment: str
    exercise: Exercise | None = None


def summarize(verdict: Verdict, source: str = "") -> Summary:
    """The words for a verdict; of an exercise that this version does not know, without its hints.

    The `source` of the cell sharpens what is said. Hints are left out where a likely cause is named.
    """
    exercise: Exercise | None = None
    with suppress(UnknownExercise):
        exercise = find(verdict.exercise)
    state = state_of(verdict)
    failing = _most_telling(verdict, exercise)
    failure = explained(verdict.failure, exercise, source) if verdict.failure else None
    facts = _facts(verdict, failing, exercise, source)
    found = told(facts) if facts is not None else ()
    diagnosed = names_a_cause(facts) if facts is not None else failure is not None and failure.diagnosed
    tone, sign = _TONES[state]
    done = state in ("passed", "untimed")
    return Summary(
        state=state,
        tone=tone,
        sign=sign,
        headline=_headline(verdict, state, failure),
        points=f"{points(verdict.points)} of {points(verdict.max_points)} points",
        points_note=_points_note(verdict),
        cases=_cases(verdict),
        failing=failing,
        sentences=found,
        failure=failure,
        failure_name=_failure_name(failing, failure),
        show_speed=bool(verdict.gates) and state in ("slow", "untimed", "passed"),
        show_times=bool(verdict.timings) and state in ("slow", "untimed", "passed", "held"),
        beside=beside(verdict),
        next_step=_next_step(verdict, exercise, state, failing, failure),
        hints=exercise.hints if exercise and not done and state not in ("unusable", "held") and not diagnosed else (),
        environment=environment_line(verdict),
        exercise=exercise,
    )


def _facts(verdict: Verdict, failing: CaseResult | None, exercise: Exercise | None, source: str) -> Facts | None:
    if failing is None or failing.mismatch is None:
        return None
    clues = clues_in(source, exercise.entry) if exercise is not None else Clues()
    others = tuple(case.mismatch for case in verdict.cases if case.mismatch is not None and case is not failing)
    return Facts(failing.mismatch, case_of(failing.name, exercise), exercise, clues, others)


def state_of(verdict: Verdict) -> State:
    """Which of the eight things happened."""
    if verdict.failure is not None and verdict.failure.kind in ("unusable", "not_written"):
        return "unusable" if verdict.failure.kind == "unusable" else "not_written"
    if verdict.status == "unusable":
        return "unusable"
    if verdict.failure is not None:
        return "held" if verdict.failure.kind == "implausible" else "broken"
    if not all(case.passed for case in verdict.cases):
        return "wrong"
    if any(gate.outcome == "failed" for gate in verdict.gates):
        return "slow"
    if any(gate.outcome in ("needs_gpu", "not_reached") for gate in verdict.gates):
        return "untimed"
    return "passed"


def case_of(name: str, exercise: Exercise | None) -> Case | None:
    """The case that a result is of; results from the clock carry a note behind the name."""
    if exercise is None:
        return None
    every = (*exercise.cases, *exercise.simulator_cases, *exercise.timed_cases, *exercise.plot_cases)
    return next((case for case in every if case.name == name.removesuffix(_TIMED)), None)


def was_run(case: CaseResult) -> bool:
    """Whether a case has an answer; one in which the stub was met has none."""
    if case.failure is not None:
        return case.failure.kind != "not_written"
    return case.passed or case.mismatch is not None


def gate_words(gate: GateResult) -> str:
    """What became of a speed gate, in one line; the gate as it is written, the ratio with its interval."""
    wants = f"{points(gate.at_least)}×"
    if gate.outcome in ("needs_gpu", "not_reached") or gate.ratio is None:
        why = "needs a GPU" if gate.outcome == "needs_gpu" else "not measured"
        return f"{wants} as fast as {gate.label} earns {in_points(gate.max_points)}: {why}."
    interval = "" if gate.low is None or gate.high is None else f" (95 %: {ratio(gate.low)} to {ratio(gate.high)})"
    said = f"{ratio(gate.ratio)}× as fast as {gate.label}{interval}, {wants} needed:"
    said += f" {points(gate.points)} of {in_points(gate.max_points)}."
    if gate.outcome == "doubt":
        said += f" The interval holds {wants}, so you have the benefit of the doubt."
    return said


def environment_line(verdict: Verdict) -> str:
    """Where the verdict was reached: GPU or simulator, versions, sandbox, clock, and the GPU's state at the end."""
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
    parts.append(environment.cell and f"checked: cell {environment.cell}")
    line = " · ".join(part for part in parts if part)
    if environment.device != "simulator":
        return line
    return f"{NEEDS_GPU if verdict.gates else _SIMULATED} {line}".strip()


_TONES: dict[State, tuple[Literal["good", "bad", "warn", "plain"], str]] = {
    "unusable": ("warn", "!"),
    "not_written": ("plain", "…"),
    "broken": ("bad", "✗"),
    "held": ("warn", "!"),
    "wrong": ("bad", "✗"),
    "slow": ("warn", "!"),
    "untimed": ("good", "✓"),
    "passed": ("good", "✓"),
}


# Of several wrong cases the report describes the one whose pattern says most; a single element says least.
_TELLING = (
    ("after_first_block", "all_but_first", "all_but_first_row", "mid_row"),
    ("last_block",),
    ("last_columns", "last_rows", "tail", "first_row", "first_columns", "head", "run", "rows", "columns", "corner"),
    ("one", "first_element"),
    ("everything",),
    ("scattered",),
)


def _most_telling(verdict: Verdict, exercise: Exercise | None) -> CaseResult | None:
    """The case that failed to run, else the wrong one that tells most; of equals the first, which is the smallest."""
    bad = [case for case in verdict.cases if case.failure or case.mismatch]
    broken = next((case for case in bad if case.failure), None)
    return broken or min(bad, key=lambda case: _rank(case, exercise), default=None)


def _rank(case: CaseResult, exercise: Exercise | None) -> int:
    mismatch = case.mismatch
    if mismatch is None or mismatch.suspect:
        return -2
    facts = Facts(mismatch, case_of(case.name, exercise), exercise)
    if facts.padded or facts.run_on or not mismatch.wrong:  # where rows ran on, which are wrong is chance
        return -1 if facts.padded else 3
    if mismatch.total == 1:
        return len(_TELLING)
    place = locate(mismatch)
    if place.in_block and place.kind != "one":
        return 1
    return next(rank for rank, kinds in enumerate(_TELLING) if place.kind in kinds)


def _headline(verdict: Verdict, state: State, failure: Explained | None) -> str:
    if failure is not None:
        return failure.title
    return {
        "unusable": "Nothing could be graded",
        "not_written": "Not written yet",
        "broken": "It failed",
        "held": "Held for review",
        "wrong": "Not right yet",
        "slow": "Right, and not fast enough yet",
        "untimed": "Right; its speed was not measured",
        "passed": "Passed",
    }[state]


def _points_note(verdict: Verdict) -> str:
    missing = verdict.max_points - verdict.reachable_points
    if missing <= 0:
        return ""
    return f"{points(missing)} of the {points(verdict.max_points)} are for speed and need a GPU"


def _cases(verdict: Verdict) -> str:
    if all(not case.passed and not case.mismatch and not case.failure for case in verdict.cases):
        return ""  # none was run
    right = sum(case.passed for case in verdict.cases)
    skipped = sum(not was_run(case) for case in verdict.cases)
    return f"{right} of {len(verdict.cases)} cases passed" + (f", {skipped} not run" if skipped else "")


def _failure_name(failing: CaseResult | None, failure: Explained | None) -> str:
    where = [f"in “{failing.name}”"] if failing else []
    where += [f"in line {failure.line} of the cell"] if failure and failure.line else []
    return "What happened " + ", ".join(where) if where else "What happened"


def _next_step(
    verdict: Verdict,
    exercise: Exercise | None,
    state: State,
    failing: CaseResult | None,
    failure: Explained | None,
) -> str:
    call = f"`check({verdict.exercise})`"
    if failure is not None:
        again = "" if "check again" in failure.advice else " Then run the cell, and check again."
        return (failure.advice or "Mend this first.") + again
    if state == "wrong":
        several = sum(case.mismatch is not None for case in verdict.cases) > 1
        if several and failing is not None:
            return f"Begin with “{failing.name}”, which tells most. Then run the cell, and check again."
        return "Mend that, run the cell, and check again."
    if state == "slow":
        return _faster(verdict, exercise)
    noted = any(finding.kind == "rule" for finding in verdict.findings)
    done = "All cases are right. A person who grades will read what is noted about the rules." if noted else ""
    if state == "untimed" and verdict.environment.device == "simulator":
        return f"{done or 'Nothing is left to do here.'} On a machine with a GPU {call} also measures the speed."
    if state == "untimed":
        return f"{done or 'Nothing is left to mend.'} Check it with the clock to earn the points for speed."
    done = done or "Done."
    if any(gate.outcome == "doubt" for gate in verdict.gates):
        return f"{done} One gate is close: when the GPU is idle, another {call} may settle it."
    if exercise is not None and not exercise.plot_cases:
        return done
    return f"{done} `benchmark({verdict.exercise})` draws its speed over the problem's size."


def _faster(verdict: Verdict, exercise: Exercise | None) -> str:
    gate = next(gate for gate in verdict.gates if gate.outcome == "failed")
    missing = f"It is {ratio(gate.ratio or 0)}× as fast as {gate.label}, and {points(gate.at_least)}× is needed."
    shares = [t.share_of_roofline for t in verdict.timings if t.peer == "submission" and t.share_of_roofline]
    if not shares or (exercise is not None and exercise.limited_by != "memory"):
        return missing
    room = f"At its slowest it reaches {min(shares):.0%} of what a plain copy reaches: that is the room that is left."
    return f"{missing} {room}"
