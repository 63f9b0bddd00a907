"""JupyterLab servers and their pages, for the tests in a browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pace import PACE

PROJECT = Path(__file__).resolve().parents[2]
TOKEN = "for-this-test-only"
START_S = 90 * PACE

# Every cell is in the page, even those outside the visible part, so that a test can find it.
SETTINGS = {"@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings, workspaces, exchange and kernels are neither read nor written."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    monkeypatch.delenv("JUPYTER_CONFIG_PATH", raising=False)
    monkeypatch.setenv("JUPYTER_TOKEN", TOKEN)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    )
    for name, values in SETTINGS.items():
        file = folder / "lab" / "user-settings" / name
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    return folder


@pytest.fixture
def start_lab(tmp_path: Path, home: Path) -> Iterator[Callable[..., str]]:
    """`url = start_lab(port, "--classroom", folder)`: `make lab`; the server ends with the test, kernels included."""
    servers = []

    def start(port: int, *arguments: str | Path) -> str:
        log = tmp_path / f"lab-{port}.log"
        wanted = " ".join(["--no-browser", "--port", str(port), *map(str, arguments)])
        command = ["make", "--no-print-directory", "lab", f"ARGS={wanted}"]
        with log.open("wb") as file:
            server = subprocess.Popen(command, cwd=PROJECT, stdout=file, stderr=file, start_new_session=True)
        servers.append(server)
        url = f"http://127.0.0.1:{port}"
        limit = time.monotonic() + START_S
        while not _answers(f"{url}/api/status?token={TOKEN}"):
            assert server.poll() is None, f"make lab ended:\n{log.read_text(errors='replace')}"
            assert time.monotonic() < limit, f"make lab does not answer:\n{log.read_text(errors='replace')}"
            time.sleep(0.2)
        return url

    try:
        yield start
    finally:
        for server in servers:
            server.send_signal(signal.SIGTERM)
        for server in servers:
            try:
                server.wait(timeout=20 * PACE)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture
def shoot(tmp_path: Path) -> Callable[[Any, str], None]:
    """`shoot(page, "submitted")` saves a numbered picture."""
    folder = Path(os.environ.get("GRADER_SCREENSHOTS", tmp_path / "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    taken = iter(range(1, 100))

    def take(page: Any, name: str) -> None:
        page.wait_for_timeout(400)  # until the result of a click has been drawn
        page.screenshot(path=folder / f"{next(taken):02}_{name}.png")

    return take


@pytest.fixture
def open_page(browser_page: Callable[..., Any]) -> Callable[[str], Any]:
    """A page of JupyterLab at this address, loaded."""

    def go(url: str) -> Any:
        page = browser_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(START_S * 1000)
        page.goto(url)
        page.locator("#jp-MainLogo").wait_for(state="attached")
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        return page

    return go
