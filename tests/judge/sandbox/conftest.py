"""Sandboxes of every form that this machine supports, and programs that report what they see inside."""

import functools
import json
import os
import shutil
import subprocess
import sys

import pytest

from grader.judge.sandbox import launch
from grader.judge.sandbox.launch import Form, forms

SYSTEM_PYTHON = "/usr/bin/python3"


@functools.cache
def form_of(kind):
    """The strongest form of this kind that works here, or None."""
    if kind == "none":
        return Form("none")
    return next((form for form in forms() if form.kind == kind and launch.works(form)), None)


@pytest.fixture
def cage():
    """Starts sandboxes: `caged = cage("bubblewrap", code)`. They end with the test."""
    started = []

    def start(form, code, fds=(), device="simulator"):
        if isinstance(form, str):
            found = form_of(form)
            if found is None:
                pytest.skip(f"this machine has no {form}")
            form = found
        started.append(launch.start_as(form, code, fds, device))
        return started[-1]

    yield start
    for caged in started:
        caged.kill()
        caged.process.stdout.close()


@pytest.fixture
def told(cage):
    """Runs a program in a sandbox and returns its last line, which is JSON."""

    def ask(form, code, device="simulator"):
        caged = cage(form, TRY + code, device=device)
        out = caged.process.stdout.read().decode()
        assert caged.process.wait() == 0, out
        return json.loads(out.splitlines()[-1])

    return ask


# `tell(name=function)` prints what each function returns, or the name of the error number of its OSError.
TRY = """
import errno, json, os, resource, sys
def tell(**functions):
    found = {}
    for name, function in functions.items():
        try:
            found[name] = function()
        except OSError as error:
            found[name] = errno.errorcode[error.errno]
    print(flush=True)
    print(json.dumps(found), flush=True)
"""


@pytest.fixture
def system_python(monkeypatch):
    """Makes the grader run from the system's Python, which every user can read."""
    if not os.path.exists(SYSTEM_PYTHON) or python_version() < (3, 11):
        pytest.skip("needs a system Python, 3.11 or newer")
    monkeypatch.setattr(sys, "executable", SYSTEM_PYTHON)
    for name in ("prefix", "base_prefix", "exec_prefix"):
        monkeypatch.setattr(sys, name, "/usr")


@functools.cache
def python_version():
    code = "import sys; print(*sys.version_info[:2])"
    answer = subprocess.run([SYSTEM_PYTHON, "-c", code], capture_output=True, text=True, check=True)
    return tuple(map(int, answer.stdout.split()))


@pytest.fixture
def ordinary_user(repository):
    """Runs a trusted program as an unprivileged user under the system's Python; returns its output."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become another user")
    if not os.path.exists(SYSTEM_PYTHON) or python_version() < (3, 11):
        pytest.skip("needs a system Python, 3.11 or newer")
    user = ["setpriv", "--reuid", "60999", "--regid", "60999", "--clear-groups"]
    if subprocess.run([*user, "test", "-r", str(repository / "grader/__init__.py")], check=False).returncode:
        pytest.skip("another user cannot read this checkout")

    def run(code, tmp_path):
        home = tmp_path / "home"
        home.mkdir()
        os.chown(home, 60999, 60999)
        for folder in home.parents:
            if folder.name.startswith(("pytest", "test_", "popen")):  # made by pytest for root only
                folder.chmod(folder.stat().st_mode | 0o011)
        variables = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        program = f"import sys; sys.path.insert(0, {str(repository)!r})\n{code}"
        command = [*user, "env", "-C", "/", SYSTEM_PYTHON, "-I", "-c", program]
        answer = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    return run
