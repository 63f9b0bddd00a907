"""Every `grader` command of docs/teaching.md runs as it is printed there, in its order, and succeeds."""

from __future__ import annotations

import contextlib
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grader.classroom.grading import workers
from grader.cli import app
from grader.server import serving
from grader.server.job_queue import JobQueue
from grader.server.judge_loop import JudgeLoop, LiveBoard, Settings
from tests.classroom.conftest import Classroom, ObedientJudge, solve
from tests.server.conftest import in_background

PAGE = Path(__file__).resolve().parents[2] / "docs/teaching.md"


class BoardJudge(ObedientJudge):
    """An obedient judge that can be opened and closed, for boards and for judges side by side."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def __enter__(self) -> BoardJudge:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def interrupt(self) -> None: ...


def commands() -> list[str]:
    """The commands in code spans and blocks, in the order of the page."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    return [found for found in re.findall(r"`(grader [^`]+)`", text) if "…" not in found and "<" not in found]


@pytest.mark.filterwarnings("ignore")  # nbgrader 0.9.6 misspells an argument, and leaves a file open
def test_the_page_runs_as_printed(
    new_course: Callable[..., Classroom], judge: ObedientJudge, home: Path, tmp_path: Path,
    server: _Server, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A fake judge and fake GPUs take the place of the machine's, and no JupyterLab is started."""
    new_course()  # from now on a course has two notebooks
    exchange = tmp_path / "exchange"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grader.classroom.grading.verdict_store.gpus", tuple)
    monkeypatch.setattr("grader.judge.service.Judge", BoardJudge)
    monkeypatch.setattr(workers, "_visible", lambda indices: [str(index) for index in indices])
    monkeypatch.setattr("grader.classroom.grading.dask_cluster.DaskCluster", lambda *_: _Cluster(), raising=True)
    (tmp_path / "students.csv").write_text("id,first_name\nbob,Bob\n", encoding="utf-8")
    (tmp_path / "softmax.py").write_text("def softmax(x, out):\n    pass  # points: 10\n", encoding="utf-8")
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    (tmp_path / "names.csv").write_text("id,name\nbob,Warp 9\n", encoding="utf-8")
    (tmp_path / "gpu_course.whl").write_bytes(b"a wheel")
    course, ran = Classroom(home / "gpu-course"), []
    for command in commands():
        here = command.replace("/srv/nbgrader/exchange", str(exchange))
        arguments = shlex.split(here.replace("https://gpu.example.org:8443", server.url))[1:]
        arguments = [each.replace("~", str(home), 1) if each.startswith("~") else each for each in arguments]
        if arguments[0] == "lab":
            arguments.append("--prepare-only")
        if arguments[:2] == ["classroom", "autograde"] and not (course.folder / "submitted").is_dir():
            course.hand_in("bob", solve(4))

        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, f"{command}\n{done.output}"
        ran.append(" ".join(arguments[:2]))
        if command == "grader classroom token ~/gpu-course bob":
            monkeypatch.setenv("GRADER_TOKEN", done.output.split()[1])
    names = {command.name for command in _registered()}
    assert {f"classroom {name}" for name in names} <= set(ran), "the page leaves a command out"
    assert (tmp_path / "stats.html").is_file()
    assert "bob,Bob" in (tmp_path / "grades.csv").read_text(encoding="utf-8")


class _Server:
    """Takes the place of `serve`: the first call serves and judges in the background, on a free port without TLS."""

    def __init__(self) -> None:
        self.url, self._running = "", contextlib.ExitStack()

    def __call__(self, settings: Settings, address: serving.Address, limits: Any, ready: Any) -> None:
        address.check()
        if not self.url:
            opened = serving.opened(settings, serving.Address(port=0), limits)
            port = self._running.enter_context(in_background(self._running.enter_context(opened)))
            self._running.enter_context(_judging(settings))
            self.url = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        self._running.close()


@contextlib.contextmanager
def _judging(settings: Settings) -> Iterator[None]:
    place, ending = settings.course / serving.FOLDER, threading.Event()

    def judge() -> None:
        queue = JobQueue(place / "queue.sqlite")
        loop = JudgeLoop(settings, queue, LiveBoard(settings.course, place / "site"), print)
        while not ending.wait(0.05):
            loop.judge_next()
        queue.close()

    thread = threading.Thread(target=judge)
    thread.start()
    yield
    ending.set()
    thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    made = _Server()
    monkeypatch.setattr(serving, "serve", made)
    with contextlib.closing(made):
        yield made


class _Cluster(workers.ThisProcess):
    """A cluster that is this process."""

    device_class = "simulator"

    def __init__(self) -> None:
        super().__init__("simulator", False)


def _registered() -> list[Any]:
    from grader.cli.instructor_commands import class_app

    return list(class_app.registered_commands)
