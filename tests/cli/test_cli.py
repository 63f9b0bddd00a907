"""Tests of grader.cli: text and JSON output of every command, one sentence per error, and exit statuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from grader.bottleneck.evidence import Evidence
from grader.cli import app
from grader.cli.output import print_json
from grader.errors import ClassroomError
from grader.exercises import EXERCISES
from grader.verdict import Environment, Finding, Verdict
from grader.version import __version__
from tests.pace import PACE

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    ["lab"], ["doctor"], ["build"], ["exercises"], ["check"], ["grade"], ["explain"],
    ["classroom", "init"], ["classroom", "release"], ["classroom", "autograde"], ["classroom", "status"],
    ["classroom", "rescore"], ["classroom", "roster"], ["classroom", "due"], ["classroom", "extend"],
    ["classroom", "stats"], ["classroom", "copies"], ["classroom", "export"], ["classroom", "gradescope"],
    ["leaderboard", "run"], ["leaderboard", "publish"], ["leaderboard", "names"], ["leaderboard", "show"],
)  # fmt: skip
LAUNCH = {"kernel": "add", "line": 7, "grid": [4, 1, 1], "threads": 128, "count": 99}
CLAIMS = {"simulated": True, "runs": [{"case": "1,024 elements", "claim": {"launches": [LAUNCH]}}], "codes": []}
SOURCE = "def {entry}(*tensors):\n    pass\n"


@dataclass
class FakeJudge:
    """A fake judge: `statuses` by exercise, otherwise "passed"; it records its calls."""

    statuses: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, bool, str]] = field(default_factory=list)
    raising: BaseException | None = None
    device: str = ""
    sandbox: bool | None = None
    expected: list[str] = field(default_factory=list)
    asked_before: int = -1  # gradings before `expect` was called
    claims: dict[str, Any] = field(default_factory=lambda: CLAIMS)

    def __call__(self, device: str, sandbox: bool | None = None) -> FakeJudge:
        self.device, self.sandbox = device, sandbox
        return self

    def expect(self, submissions: list[tuple[str, str]]) -> None:
        self.expected, self.asked_before = [exercise_id for _, exercise_id in submissions], len(self.asked)

    def __enter__(self) -> FakeJudge:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def evidence(self, source: str, exercise_id: str, *, beside_gpu: bool, progress: Callable[..., None]) -> Evidence:
        progress("watching", 0, 2)
        return Evidence.of_claims(EXERCISES[exercise_id], self.claims)

    def with_why(self, verdict: Verdict, source: str, *, progress: Callable[..., None]) -> Verdict:
        return verdict

    def grade(
        self, source: str, exercise_id: str, *, timed: bool, kernels: bool, progress: Callable[..., None]
    ) -> Verdict:
        if self.raising is not None:
            raise self.raising
        self.asked.append((exercise_id, source, timed, self.device))
        progress("checking", 1, 2)
        exercise = EXERCISES[exercise_id]
        return Verdict(
            exercise=exercise_id, title=exercise.title, status=self.statuses.get(exercise_id, "passed"),  # type: ignore[arg-type]
            points=1.0, max_points=exercise.max_points, reachable_points=1.0, submission_sha256="0" * 64,
            environment=Environment("simulator", sandbox="none: --no-sandbox was given" * (self.sandbox is False)),
            findings=(Finding("rule", "Line 3 calls `torch.softmax`.", 3),),
        )  # fmt: skip


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    fake = FakeJudge()
    monkeypatch.setattr("grader.judge.service.Judge", fake)
    return fake


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def solution(folder: Path, exercise_id: str) -> Path:
    path = folder / f"{exercise_id}.py"
    path.write_text(SOURCE.format(entry=EXERCISES[exercise_id].entry))
    return path


def notebook(folder: Path, *exercise_ids: str) -> Path:
    cells = [
        {
            "cell_type": "code", "id": each, "metadata": {"nbgrader": {"grade_id": each, "solution": True}},
            "outputs": [], "execution_count": None, "source": SOURCE.format(entry=EXERCISES[each].entry),
        }
        for each in exercise_ids
    ]  # fmt: skip
    path = folder / "notebook.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_shows_an_example_and_the_json_option(command: list[str]) -> None:
    """Each command's help has an example that begins with the command, and --json, whose output a program can read."""
    shown = run(*command, "--help")
    assert shown.exit_code == 0
    assert f"Example: grader {' '.join(command)}" in shown.output
    assert "--json" in shown.output


def test_exercises_are_listed() -> None:
    """They are listed by id, with title, notebook, points, gates and language; the JSON has the exercises' points."""
    listed = json.loads(run("exercises", "--json").stdout)
    assert {row["id"]: row["points"] for row in listed} == {each.id: each.max_points for each in EXERCISES.values()}
    assert set(listed[0]) >= {"id", "title", "notebook", "points", "gates", "language"}
    text = run("exercises").stdout
    for each in EXERCISES.values():
        assert each.id in text
        assert each.title in text


@pytest.mark.parametrize(("status", "code"), [("passed", 0), ("failed", 1), ("unusable", 2), ("not_judged", 3)])
def test_the_exit_status_is_the_verdict(tmp_path: Path, judge: FakeJudge, status: str, code: int) -> None:
    """The exit status is 0, 1, 2 or 3 for passed, failed, unusable or not judged."""
    judge.statuses["softmax"] = status
    answer = run("grade", solution(tmp_path, "softmax"), "--json")
    assert answer.exit_code == code
    assert Verdict.from_dict(json.loads(answer.stdout)).status == status


def test_check_times_nothing_and_grade_does(tmp_path: Path, judge: FakeJudge) -> None:
    """`check` does not time; both use the given device."""
    path = solution(tmp_path, "softmax")
    run("check", path)
    run("grade", path, "--device", "simulator")
    assert [(timed, device) for _, _, timed, device in judge.asked] == [(False, "auto"), (True, "simulator")]


def test_an_explanation_names_the_cause(tmp_path: Path, judge: FakeJudge) -> None:
    """It asks the judge for evidence, and prints the cause as text or JSON; without a right run the status is 1."""
    path = solution(tmp_path, "vector_add")
    shown = run("explain", path, "--device", "simulator")
    assert (shown.exit_code, judge.device) == (0, "simulator")
    assert "Line 7: one call launches a kernel 99 times" in " ".join(shown.output.split())
    assert json.loads(run("explain", path, "--json").output)["causes"][0]["kind"] == "many launches"
    counters = json.loads(run("explain", path, "--counters", "--json").output)["counters"]
    assert "need an NVIDIA GPU" in counters["sentences"][0]
    judge.claims = {"simulated": True, "runs": [], "codes": []}
    assert run("explain", path).exit_code == 1


def test_a_notebooks_exercises_are_all_graded(tmp_path: Path, judge: FakeJudge) -> None:
    """All are graded unless one is named; the exit status is the worst, and the JSON is a list."""
    judge.statuses["vector_add"] = "failed"
    path = notebook(tmp_path, "vector_add", "softmax")
    answer = run("grade", path, "--json")
    assert answer.exit_code == 1
    graded = [each["exercise"] for each in json.loads(answer.stdout)]
    assert sorted(graded) == ["softmax", "vector_add"]
    assert (judge.expected, judge.asked_before) == (graded, 0), "the judge was not told what comes"
    judge.statuses["softmax"] = "not_judged"
    assert run("grade", path, "--json").exit_code == 1
    del judge.statuses["softmax"]
    one = run("grade", path, "--exercise", "softmax", "--json")
    assert one.exit_code == 0
    assert json.loads(one.stdout)["exercise"] == "softmax"


def test_no_sandbox_is_passed_on_and_shown(tmp_path: Path, judge: FakeJudge) -> None:
    """`grade --no-sandbox` says so in the report and in the JSON; `check` always has a sandbox."""
    path = solution(tmp_path, "softmax")
    assert "sandbox: none: --no-sandbox was given" in " ".join(run("grade", path, "--no-sandbox").stdout.split())
    assert judge.sandbox is False
    data = json.loads(run("grade", path, "--no-sandbox", "--json").stdout)
    assert data["environment"]["sandbox"] == "none: --no-sandbox was given"
    for command in ("grade", "check"):
        run(command, path)
        assert judge.sandbox is None
    assert run("check", path, "--no-sandbox").exit_code == 2


def test_findings_are_shown_and_cost_nothing(tmp_path: Path, judge: FakeJudge) -> None:
    """A finding is in the text and in the JSON, and the exit status is that of the verdict."""
    path = solution(tmp_path, "softmax")
    answer = run("grade", path)
    assert answer.exit_code == 0
    assert "Rules: Line 3 calls `torch.softmax`." in answer.stdout
    assert json.loads(run("grade", path, "--json").stdout)["findings"] == [
        {"kind": "rule", "sentence": "Line 3 calls `torch.softmax`.", "line": 3}
    ]


@pytest.mark.parametrize(
    ("arguments", "function"),
    [
        ("classroom autograde c 03_triton", "classroom.class_actions.autograde"),
        ("leaderboard run softmax", "leaderboard.board_actions.run"),
    ],
)
def test_what_weakens_the_judge_reaches_the_commands(
    arguments: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One flag removes the sandbox, another accepts the practice clock."""
    seen = recorded(monkeypatch, function)
    for flags in ([], ["--no-sandbox"], ["--practice-clock"]):
        run(*arguments.split(), *flags)
    found = [(options["sandbox"], options["practice_clock"]) for _, options in seen]
    assert found == [(True, False), (False, False), (True, True)]


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        (b"", ["x.py", "-e", "softmax"], "empty"),
        (b"def softmax(x, out): pass\n", ["x.py", "-e", "nope"], "There is no exercise 'nope'"),
        (b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', ["x.ipynb"], "solves no exercise"),
        (None, ["x.py"], "There is no file"),
    ],
)
@pytest.mark.parametrize("command", ["check", "grade"])
def test_what_cannot_be_graded_gets_one_sentence(
    command: str, content: bytes | None, arguments: list[str], says: str, tmp_path: Path, judge: FakeJudge
) -> None:
    """The message is on stderr, with exit status 2 and nothing on stdout."""
    path = tmp_path / arguments[0]
    if content is not None:
        path.write_bytes(content)
    answer = run(command, path, *arguments[1:])
    assert answer.exit_code == 2
    assert says in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stdout == ""
    assert judge.asked == []


def test_a_strangers_text_does_not_steer_the_terminal(tmp_path: Path, judge: FakeJudge) -> None:
    """The name of a file or a student, or a line of a cell, is shown without escapes; JSON escapes them."""
    name = "\x1b[2J\x1b]0;5 of 5\x07\x9b\u202eclean.txt"
    (tmp_path / name).write_text("x")
    answer = run("grade", tmp_path / name, "-e", "softmax")
    assert "?[2J?]0;5 of 5???clean.txt is neither" in answer.stderr
    assert not set("\x1b\x07\x9b\u202e") & set(answer.stderr)


def test_json_holds_no_controls(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads back unchanged."""
    print_json({"name": "\x9b\u202eü𝄞\U000e0001\x7f"})
    said = capsys.readouterr().out
    assert json.loads(said) == {"name": "\x9b\u202eü𝄞\U000e0001\x7f"}
    assert all(letter.isprintable() or letter == "\n" for letter in said)
    assert "ü𝄞" in said


def test_a_failing_judge_is_one_sentence(tmp_path: Path, judge: FakeJudge) -> None:
    """Every error of the grader's gives one sentence."""
    judge.raising = ClassroomError("The course is closed.")
    answer = run("grade", solution(tmp_path, "softmax"))
    assert (answer.exit_code, answer.stderr) == (2, "The course is closed.\n")


def test_a_bug_of_ours_is_one_sentence_too(tmp_path: Path, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says that it is a bug, and where the traceback is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    judge.raising = RuntimeError("surprise")
    answer = run("grade", solution(tmp_path, "softmax"))
    assert answer.exit_code == 2
    assert answer.stderr.startswith("This is a bug in the grader, please report it: RuntimeError: surprise")
    assert "Traceback" not in answer.stderr
    assert "surprise" in (tmp_path / "cache" / "grader" / "bug.txt").read_text()


def test_an_interrupt_is_a_word_and_status_130(tmp_path: Path, judge: FakeJudge) -> None:
    """The exit status is what a shell expects of an interrupted program."""
    judge.raising = KeyboardInterrupt()
    answer = run("grade", solution(tmp_path, "softmax"))
    assert (answer.exit_code, answer.stderr) == (130, "Stopped.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["grade"],
        ["lab", "--port", "x"],
        ["grade", "x.py", "--device", "tpu"],
        ["lab", "--prot", "1"],
        ["lab", "my-folder"],
    ],
)
def test_wrong_arguments_are_explained(arguments: list[str]) -> None:
    """The message says what is wrong with them, with exit status 2."""
    answer = run(*arguments)
    assert answer.exit_code == 2
    assert "Error: " in answer.stderr


@dataclass(frozen=True)
class Answer:
    """A fake result of a command."""

    ok: bool = True

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok}

    def to_text(self) -> str:
        return "as text"

    as_text = to_text
    __str__ = to_text


def recorded(monkeypatch: pytest.MonkeyPatch, function: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls of a function of the package from now on, which does nothing."""
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def fake(*args: Any, **kwargs: Any) -> Answer:
        seen.append((args, kwargs))
        return Answer()

    monkeypatch.setattr(f"grader.{function}", fake)
    return seen


def test_a_site_that_lacks_an_exercise_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """The existing pages were published nevertheless."""
    monkeypatch.setattr("grader.leaderboard.board_actions.publish", lambda *_, **__: Answer(ok=False))
    answer = run("leaderboard", "publish", "site")
    assert (answer.exit_code, answer.stdout) == (1, "as text\n")


@pytest.mark.parametrize(
    ("arguments", "function", "called"),
    [
        (
            "classroom init c --course-id x --exchange e",
            "init",
            ((Path("c"),), {"course_id": "x", "exchange": Path("e"), "upgrade": False}),
        ),
        ("classroom release c 03_triton --force", "release", ((Path("c"), "03_triton"), {"force": True})),
        ("classroom status c", "status", ((Path("c"),), {})),
        ("leaderboard publish site --store s", "publish", ((Path("site"),), {"store": Path("s"), "notes": False})),
        (
            "leaderboard publish site --course c",
            "publish",
            ((Path("site"),), {"store": Path("c/leaderboard.sqlite"), "notes": False}),
        ),
        (
            "leaderboard show softmax --names",
            "show",
            (("softmax",), {"store": Path("leaderboard.sqlite"), "names": True}),
        ),
    ],
)
def test_commands_are_calls_into_the_package(
    arguments: str, function: str, called: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arguments are passed on unchanged."""
    module = {"classroom": "class_actions", "leaderboard": "board_actions"}[folder := arguments.split()[0]]
    seen = recorded(monkeypatch, f"{folder}.{module}.{function}")
    text = run(*arguments.split())
    assert (text.exit_code, text.stdout) == (0, "as text\n")
    assert json.loads(run(*arguments.split(), "--json").stdout) == {"ok": True}
    assert seen == [called, called]


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("", "accept", ()), ("--accept ann --accept bob", "accept", ["ann", "bob"]), ("--jobs 3", "jobs", 3),
        ("--gpus 0,1", "gpus", (0, 1)), ("--cluster tcp://a:1", "cluster", "tcp://a:1"),
    ],
)  # fmt: skip
def test_options_reach_autograde(options: str, name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """All given names are passed on, and GPUs are numbers."""
    seen = recorded(monkeypatch, "classroom.class_actions.autograde")
    assert run("classroom", "autograde", "c", "03_triton", *options.split()).exit_code == 0
    ((_, given),) = seen
    assert given[name] == value


@pytest.mark.parametrize(
    ("arguments", "function", "answer", "code"),
    [
        (
            "classroom autograde c 03_triton --student ada --no-feedback",
            "classroom.class_actions.autograde",
            Answer(ok=False),
            1,
        ),
        ("classroom status c", "classroom.class_actions.status", Answer(ok=False), 1),
        ("leaderboard run softmax --course c", "leaderboard.board_actions.run", Answer(), 0),
    ],
)
def test_the_exit_status_is_the_results(
    arguments: str, function: str, answer: Answer, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one part failed, the command failed."""
    monkeypatch.setattr(f"grader.{function}", lambda *args, **kwargs: answer)
    assert run(*arguments.split()).exit_code == code


@pytest.mark.parametrize(
    ("waiting", "said"), [(0, ""), (2, "2 newer in the exchange; collect with `grader classroom autograde c")]
)
def test_what_is_not_collected_is_said_beside_a_board(waiting: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board ranks collected work, and learners may have submitted since."""
    monkeypatch.setattr("grader.leaderboard.board_actions.run", lambda *args, **kwargs: Answer())
    monkeypatch.setattr("grader.classroom.class_actions.uncollected", lambda course, assignment: waiting)
    ran = run("leaderboard", "run", "softmax", "--course", "c")
    assert (ran.exit_code, ran.stdout) == (0, "as text\n")
    assert ran.stderr.startswith(said)
    assert bool(ran.stderr) == bool(said)


def test_several_boards_are_run_in_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each exercise is measured in a session of its own; --all takes those with submissions."""
    seen = recorded(monkeypatch, "leaderboard.board_actions.run")
    monkeypatch.setattr("grader.leaderboard.board_actions.with_submissions", lambda course: ["softmax"])
    monkeypatch.setattr("grader.classroom.class_actions.uncollected", lambda course, assignment: 0)
    assert run("leaderboard", "run", "softmax", "matmul").stdout == "as text\nas text\n"
    assert len(json.loads(run("leaderboard", "run", "--all", "--json").stdout)) == 1
    assert isinstance(json.loads(run("leaderboard", "run", "softmax", "--json").stdout), dict)
    assert [exercise for (exercise,), _ in seen] == ["softmax", "matmul", "softmax", "softmax"]
    assert run("leaderboard", "run", "softmax", "matmull").exit_code == 2
    assert len(seen) == 4, "a misspelt name ends it before anything is measured"
    assert run("leaderboard", "run", "softmax", "--all").exit_code == 2
    assert run("leaderboard", "run").exit_code == 2


@pytest.mark.parametrize("wrong", [["--gpus", "one"], ["--gpus", "0", "--jobs", "2"], ["--jobs", "0"]])
def test_workers_that_make_no_sense(wrong: list[str]) -> None:
    """They are refused before anything is collected."""
    assert run("classroom", "autograde", "c", "03_triton", *wrong).exit_code == 2


def test_lab_can_only_prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--prepare-only creates the folder, prints JupyterLab's command, and starts nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "README.ipynb").write_text("{}")
    shown = run(
        "lab", "--prepare-only", "--json", "--folder", tmp_path / "work", "--course", tmp_path / "course", "--",
        "--ip=0.0.0.0",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    plan = json.loads(shown.stdout)
    assert plan["folder"]["added"] == ["README.ipynb"]
    assert plan["command"][-1] == "--ip=0.0.0.0"


def _process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, **options
    )


def test_the_command_starts_fast_and_light() -> None:
    """Listing exercises imports neither torch nor Jupyter nor a database."""
    code = (
        "import sys, grader.cli\n"
        "heavy = {'torch', 'nbgrader', 'jupyterlab', 'sqlalchemy', 'numpy', 'jinja2', 'triton'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    answer = _process("-c", code)
    assert answer.returncode == 0, answer.stderr


def test_python_m_grader_is_the_command() -> None:
    """It works without an installed script."""
    assert json.loads(_process("-m", "grader", "exercises", "--json").stdout)


def test_the_version_is_printed() -> None:
    """`grader --version` needs no command."""
    answer = _process("-m", "grader", "--version")
    assert (answer.returncode, answer.stdout.strip()) == (0, __version__)


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`grader exercises | head -1` ends without a traceback."""
    read, write = os.pipe()
    os.close(read)
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "grader", "exercises"], cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert answer.stderr == ""


def test_a_real_solution_is_graded(tmp_path: Path) -> None:
    """The unsolved cell gets no points and exit status 1, in processes of its own."""
    from grader.authoring.stubs import unsolved

    path = tmp_path / "vector_add.py"
    path.write_text(unsolved("vector_add"))
    answer = _process("-m", "grader", "check", str(path), "--json", "--device", "simulator")
    assert answer.returncode == 1, answer.stderr
    verdict = Verdict.from_dict(json.loads(answer.stdout))
    assert verdict.points == 0
    assert verdict.failure is not None or any(case.failure for case in verdict.cases)


def _descendants(pid: int) -> set[int]:
    """The processes below this one, from /proc."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found, waiting = set(), [pid]
    while waiting:
        above = waiting.pop()
        below = {child for child, parent in parents.items() if parent == above} - found
        found |= below
        waiting += below
    return found


def _alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}/exe").is_symlink()}


def _wait_until(condition: Callable[[], object], seconds: float) -> None:
    limit = time.monotonic() + seconds * PACE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_an_interrupt_ends_a_running_check(tmp_path: Path) -> None:
    """Ctrl-C while a submission runs prints one word, exits with status 130, and leaves no process."""
    path = tmp_path / "vector_add.py"
    path.write_text("import time\n\n\ndef vector_add(x, y, out):\n    time.sleep(600)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "check", str(path), "--device", "simulator"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    _wait_until(lambda: len(_descendants(process.pid)) >= 2, 60)  # the judge, and a worker
    time.sleep(2)
    below = _descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60 * PACE)
    assert process.returncode == 130, errors
    assert errors.endswith("Stopped.\n")
    assert "Traceback" not in errors
    _wait_until(lambda: not _alive(below), 20)
