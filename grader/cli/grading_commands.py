"""`grader check`, `grade`, `explain`, `submit` and `exercises`."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.cli.output import AsJson, Device, NoSandbox, OnDevice, Progress, answer, print_json
from grader.words import harmless, in_points

if TYPE_CHECKING:
    from grader.submission import Submission
    from grader.verdict import Verdict

_STATUS = {"passed": 0, "not_judged": 3, "failed": 1, "unusable": 2}  # the exit status of each, the best first

SolutionFile = Annotated[Path, typer.Argument(metavar="FILE", help="A .py file or a notebook.")]
OfExercise = Annotated[
    str | None, typer.Option("--exercise", "-e", metavar="ID", help="The exercise; `grader exercises` lists them.")
]


def exercises(as_json: AsJson = False) -> None:
    """List the exercises.

    \b
    Example: grader exercises --json
    """
    from grader.exercises import EXERCISES

    rows = [
        {
            "id": each.id, "title": each.title, "notebook": f"{each.chapter}/{each.notebook}", "language": each.backend,
            "points": each.max_points, "correctness_points": each.correctness_points,
            "gates": [
                {"baseline": gate.baseline, "at_least": gate.at_least, "or_share": gate.or_share, "points": gate.points}
                for gate in each.gates
            ],
        }
        for each in EXERCISES.values()
    ]  # fmt: skip
    lines = []
    for row, each in zip(rows, EXERCISES.values(), strict=True):
        gates = ", ".join(
            f"{gate.at_least:g}× {each.baseline(gate.baseline).label}"
            + (f" or {gate.or_share:.0%} of the roofline" if gate.or_share else "")
            for gate in each.gates
        )
        lines.append(f"{each.id:<16} {in_points(each.max_points):>10}  {row['notebook']:<36} {each.title}")
        lines += [f"{'':<16} {'':>10}  at least {gates}"] if gates else []
    answer(as_json, rows, "\n".join(lines))


def check(
    file: SolutionFile, exercise: OfExercise = None, device: OnDevice = Device.auto, as_json: AsJson = False
) -> None:
    """Check whether a solution is right, without timing it.

    \b
    Example: grader check softmax.py
    """
    _judge(file, exercise, device, as_json, timed=False)


def grade(
    file: SolutionFile,
    exercise: OfExercise = None,
    device: OnDevice = Device.auto,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Also inspect the kernels that run, for the notes with the score.")
    ] = False,
    no_sandbox: NoSandbox = False,
    as_json: AsJson = False,
) -> None:
    """Grade a solution: whether it is right, its speed and its points. Without --exercise, grade a whole notebook.

    \b
    Example: grader grade softmax.py --exercise softmax --device auto
    """
    _judge(file, exercise, device, as_json, timed=True, kernels=kernels, sandbox=False if no_sandbox else None)


def explain(
    file: SolutionFile,
    exercise: OfExercise = None,
    device: OnDevice = Device.auto,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters", help="Also read hardware counters with Nsight Compute, outside the sandbox: own code only."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain what limits the speed of a correct solution: the causes, their lines and the evidence.

    \b
    Example: grader explain softmax.py
    """
    from grader.bottleneck.explanation import explain as explained
    from grader.bottleneck.explanation import with_counters
    from grader.exercises import find
    from grader.feedback.report import explanation_as_text
    from grader.judge.service import Judge, devices_of, evidence_of

    submission = _submissions(file, exercise)[1][0]
    with Progress() as progress, contextlib.ExitStack() as ends:
        judges = [ends.enter_context(Judge(each)) for each in devices_of(device.value)]
        gathered = evidence_of(judges, submission.source, submission.exercise_id, progress=progress)
        explanation = explained(find(submission.exercise_id), submission.source, *gathered)
        if counters:
            from grader.explore.profiling.counted_call import count

            progress("reading hardware counters", 0, 0)
            counted = count(explanation.exercise, submission.source, gathered)
            explanation = with_counters(explanation, gathered, counted)
        progress.clear()
    answer(as_json, explanation.to_dict(), explanation_as_text(explanation))
    raise typer.Exit(0 if explanation.ran else 1)


def submit(
    file: SolutionFile,
    to: Annotated[str, typer.Option("--to", metavar="URL", help="The server of your class.")],
    exercise: OfExercise = None,
    token: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your token; by default the variable GRADER_TOKEN.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Whether to wait for the verdict.")] = True,
    as_json: AsJson = False,
) -> None:
    """Send a solution to the server of your class, which judges it on its GPU, and print the verdict.

    \b
    Example: grader submit softmax.py --to https://gpu.example.org:8443
    """
    from grader.server.submitting import ClassServer, token_of

    server = ClassServer(to, token_of(token))
    several, submissions = _submissions(file, exercise)
    outcomes = [server.submit(each) for each in submissions]
    with Progress(lines=True) as progress:
        for number, outcome in enumerate(outcomes):
            outcome = outcomes[number] = server.wait(outcome, progress) if wait else outcome
            progress.clear()
            if not as_json:
                typer.echo(harmless(outcome.to_text()))
    if as_json:
        answers = [outcome.to_dict() for outcome in outcomes]
        print_json(answers if several else answers[0])
    if wait:
        statuses = [outcome.status if outcome.status in _STATUS else "unusable" for outcome in outcomes]
        raise typer.Exit(_STATUS[max(statuses, key=list(_STATUS).index)])


def _judge(
    file: Path,
    exercise: str | None,
    device: Device,
    as_json: bool,
    *,
    timed: bool,
    kernels: bool = False,
    sandbox: bool | None = None,
) -> None:
    """Grade and print the submissions in a file, and exit with the worst status."""
    from grader.feedback.report import as_text
    from grader.judge.service import Judge

    several, submissions = _submissions(file, exercise)
    verdicts: list[Verdict] = []
    with Judge(device.value, sandbox=sandbox) as judge, Progress() as progress:
        judge.expect([(each.source, each.exercise_id) for each in submissions])
        for each in submissions:
            verdict = judge.grade(each.source, each.exercise_id, timed=timed, kernels=kernels, progress=progress)
            verdict = judge.with_why(verdict, each.source, progress=progress)
            progress.clear()
            verdict = replace(verdict, judged=each.note)
            verdicts.append(verdict)
            if not as_json:
                typer.echo(harmless(as_text(verdict, each.source)))
    if as_json:
        answers = [verdict.to_dict() for verdict in verdicts]
        print_json(answers if several else answers[0])
    worst = max((verdict.status for verdict in verdicts), key=list(_STATUS).index)
    raise typer.Exit(_STATUS[worst])


def _submissions(file: Path, exercise: str | None) -> tuple[bool, list[Submission]]:
    """The submissions to grade, and whether to print a list, as for a notebook without --exercise."""
    from grader.submission import from_file, submissions_in

    if exercise is None and file.suffix.lower() == ".ipynb":
        return True, submissions_in(file)
    return False, [from_file(file, exercise)]
