"""The fixtures that the tests share. Tests that need a GPU are skipped, with a reason, on a machine without one."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from grader.hardware import gpus
from tests.pace import PACE

if TYPE_CHECKING:
    from grader.judge.service import Judge
    from tests.forked import ForkingJudge, ForkServer

REPOSITORY = Path(__file__).resolve().parents[1]

# A GPU machine may have no Jupyter and no web server; tests that need one need no GPU.
if importlib.util.find_spec("starlette") is None:
    collect_ignore = ["server", "classroom/test_teaching_page.py"]
if importlib.util.find_spec("nbgrader") is None:
    collect_ignore = ["authoring", "browser", "classroom", "server"]

# pytest-timeout reads this; a limit in pyproject.toml would be an unknown option without the plugin.
os.environ.setdefault("PYTEST_TIMEOUT", str(round(900 * PACE)))


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin("timeout"):
        config.addinivalue_line("markers", "timeout(seconds): of pytest-timeout, which is not installed here")


@functools.cache
def _why_no_gpu() -> str:
    return "" if gpus() else "needs an NVIDIA GPU, and this machine has none"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if limit := item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(limit.args[0] * PACE), append=False)
        if item.get_closest_marker("gpu") is None:
            continue
        if _why_no_gpu():
            item.add_marker(pytest.mark.skip(reason=_why_no_gpu()))
        if config.pluginmanager.hasplugin("xdist"):  # concurrent timings on one GPU would disturb each other
            item.add_marker(pytest.mark.xdist_group("gpu"))


@pytest.fixture(scope="module", autouse=True)
def no_course_folder_is_left() -> Iterator[None]:
    """A command in this process may name its course folder, which would hold for the tests of later modules."""
    yield
    if found := sys.modules.get("grader.exercises.found"):
        found.use(None)


@pytest.fixture
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture
def free_port() -> int:
    """A TCP port of the loopback interface that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def browser_page() -> Iterator[Callable[..., Any]]:
    """Opens pages in headless Chromium: `page = browser_page(viewport={"width": 1400, "height": 1000})`."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    from grader.doctor import find_chromium

    program = find_chromium()
    if program is None:
        pytest.skip("needs Chromium: `apt-get install chromium`, or `python -m playwright install chromium`")
    with sync_api.sync_playwright() as playwright:
        # Chromium's own sandbox refuses root, and containers have little /dev/shm.
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"], headless=True
        )
        try:
            yield browser.new_page
        finally:
            browser.close()


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`no_programs("bwrap", "nvcc")` hides programs, as if they were not installed."""

    def hide(*names: str) -> None:
        which = shutil.which

        def without(name: str, *args: Any, **kwargs: Any) -> str | None:
            return None if name in names else which(name, *args, **kwargs)

        monkeypatch.setattr(shutil, "which", without)

    return hide


@pytest.fixture(scope="session")
def simulator_judge() -> Iterator[Judge]:
    """A judge without a GPU whose workers have a sandbox, for all tests of one process."""
    from grader.judge.service import Judge

    with Judge("simulator") as judge:
        yield judge


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """A process that forks workers, with everything imported."""
    from tests.forked import ForkServer

    fork_server = ForkServer(tmp_path_factory.mktemp("fork_server"))
    yield fork_server
    fork_server.close()


@pytest.fixture(scope="session")
def quick_judge(fork_server: ForkServer) -> Iterator[ForkingJudge]:
    """A judge without a GPU whose workers are forked, without a sandbox: a fifth of the processor time."""
    from tests.forked import forking_judge

    with forking_judge(fork_server) as judge:
        yield judge


@pytest.fixture(scope="session")
def _trusted_fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    from tests.forked import ForkServer

    fork_server = ForkServer(tmp_path_factory.mktemp("trusted"), trusted=True)
    yield fork_server
    fork_server.close()


@pytest.fixture
def forked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, the kernels and judges that a test starts are forked, and so are their services and workers."""
    if not _why_no_gpu():
        return
    from tests.forked import use

    use(*(request.getfixturevalue(name).path for name in ("fork_server", "_trusted_fork_server")), monkeypatch)


@pytest.fixture
def judge(quick_judge: ForkingJudge) -> ForkingJudge:
    """The same judge; folders about the sandbox, and those with a fake, replace this fixture."""
    return quick_judge


@pytest.fixture(scope="session")
def gpu_judge() -> Iterator[Judge]:
    """A judge on the GPU."""
    from grader.judge.service import Judge

    with Judge("cuda") as judge:
        yield judge
