"""A real IPython shell that poses as a notebook's kernel, and a judge that returns a given verdict."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import grader.judge.service
from grader.verdict import Verdict
from tests.feedback.verdicts import ALL


class Notebook:
    """Runs cells; `shown` is the output of the last one, in order. An update replaces the output that it updates."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.shown: list[dict[str, str]] = []

    def run(self, cell: str) -> Any:
        """The result of a cell, with `error_in_exec` if it raised an error."""
        publisher = self.shell.display_pub
        publisher.outputs.clear()
        result = self.shell.run_cell(cell, store_history=True)
        places: dict[str, dict[str, str]] = {}
        for number, output in enumerate(publisher.outputs):
            name = output.get("transient", {}).get("display_id", str(number))
            places[name] = output["data"]
        self.shown = list(places.values())
        return result

    @property
    def html(self) -> str:
        assert len(self.shown) == 1
        return self.shown[0]["text/html"]

    @property
    def text(self) -> str:
        assert len(self.shown) == 1
        return self.shown[0]["text/plain"]


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A kernel's shell, in a learner's chapter folder."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    chapter = tmp_path / "03_triton"
    chapter.mkdir()
    monkeypatch.chdir(chapter)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    shell.display_pub = CapturingDisplayPublisher()
    object.__setattr__(shell, "kernel", object())
    notebook = Notebook(shell)
    notebook.run("from grader import benchmark, check, explain, progress, standings")
    yield notebook
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    InteractiveShell.clear_instance()


class FakeJudge:
    """Returns `verdict`, after calling `act` if there is one; keeps the requests in `asked`."""

    def __init__(self) -> None:
        self.verdict: Verdict = ALL["simulated"]
        self.act: Callable[..., Any] | None = None
        self.asked: list[tuple[str, str]] = []
        self.grades_only = False  # `act` is for the other requests

    def grade(
        self, source: str, exercise_id: str, *, timed: bool = True, kernels: bool = False, progress: Any = None
    ) -> Verdict:
        self.asked.append((source, exercise_id))
        progress("checking 1 × 1", 0, 8)
        if self.act is not None and not self.grades_only:
            self.act()
        return self.verdict

    def evidence(self, source: str, exercise_id: str, *, beside_gpu: bool = False, progress: Any = None) -> Any:
        self.asked.append((source, exercise_id))
        if progress is not None:
            progress("watching 1 × 1", 0, 2)
        assert self.act is not None
        return self.act()

    def interrupt(self) -> None:
        """Nothing runs in another process."""

    def measure(self, source: str, exercise_id: str, *, progress: Any = None) -> Any:
        self.asked.append((source, exercise_id))
        progress("timing 4096 × 256", 0, 9)
        assert self.act is not None
        return self.act()


def raises(error: BaseException) -> Callable[[], None]:
    """A judge's `act` that fails."""

    def act() -> None:
        raise error

    return act


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    """A fake that replaces the shared judge of a notebook."""
    fake = FakeJudge()
    monkeypatch.setattr(grader.judge.service, "shared_judge", lambda device="auto": fake)
    return fake
