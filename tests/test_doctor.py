"""`grader doctor` finds what this machine has, names what is missing, and gives the command that fixes it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from grader import doctor
from grader.doctor import Finding, as_text, healthy
from grader.hardware import Gpu

HOPPER = (Gpu("NVIDIA H200", "580.95.05", 143771, "9.0"),)
OLD = (Gpu("NVIDIA A100", "535.183.01", 40960, "8.0"),)
CUDA_13 = {"version": "2.13.0", "cuda": "13.0", "works": True, "why": ""}
CPU_ONLY = {"version": "2.13.0+cpu", "cuda": None, "works": False, "why": "no CUDA"}


def test_this_machine_can_run_the_course() -> None:
    """Everything that a learner needs works on a machine that runs these tests; each finding has a name and a value."""
    findings = doctor.examine()
    assert healthy(findings), as_text(findings)
    assert all(finding.name and finding.value for finding in findings)
    assert len({finding.name for finding in findings}) == len(findings)
    assert json.loads(json.dumps(doctor.to_dicts(findings)))[0]["name"] == "Python"


def test_every_problem_has_a_command() -> None:
    """A report of a problem is of no use without a way to fix it."""
    problems = [
        doctor.torch_runs(HOPPER, CPU_ONLY),
        doctor.torch_runs((), {"error": "no module"}),
        doctor.torch_runs(OLD, {**CUDA_13, "works": False}),
        doctor.torch_runs(HOPPER, {**CUDA_13, "works": False, "why": "no kernel image"}),
        doctor.package("no-such-package"),
    ]
    for problem in problems:
        assert not problem.ok
        assert problem.fix


def test_a_needed_check_fails_and_a_weakness_does_not() -> None:
    """The exit status depends only on what a learner needs."""
    fine, weak, broken = (
        Finding("a", True, "x"),
        Finding("b", False, "y", "fix b", needed=False),
        Finding("c", False, "z", "fix c"),
    )
    assert healthy([fine, weak])
    assert not healthy([fine, broken])
    text = as_text([fine, weak, broken])
    assert "fix: fix b" in text
    assert text.endswith("Some of what a learner needs does not work here yet: c.")
    assert as_text([fine, weak]).endswith("Everything that a learner needs works here.")


def test_a_missing_gpu_is_reported_and_is_no_problem() -> None:
    """Without a GPU the course works in simulators, and the doctor says so."""
    found = doctor.gpu(())
    assert found.ok
    assert "simulators" in found.value
    assert "interpreter" in doctor.simulated((), CPU_ONLY).value
    assert doctor.simulated(HOPPER, CUDA_13).value == "nothing"


def test_a_gpu_is_described() -> None:
    """The name, memory, compute capability and driver are what a question about a GPU needs."""
    assert doctor.gpu(HOPPER).value == "NVIDIA H200, 140 GiB, compute capability 9.0, driver 580.95.05"
    assert doctor.gpu(HOPPER * 2).value.endswith("; the judge uses this one, the first of 2 that CUDA shows")


@pytest.mark.parametrize(
    ("answer", "ok", "said"),
    [
        ('["shared", ""]', True, "share the GPU's memory"),
        ('["host", "it refuses"]', False, "practice clock: good for learning, not for a board, because it refuses"),
        ("", False, "could not be found out"),
    ],
)
def test_the_clock_that_this_machine_allows_is_named(
    answer: str, ok: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that shares no memory of its GPU is good enough for learning."""
    completed = subprocess.CompletedProcess([], 0, answer, "")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: completed)
    found = doctor.judges_clock(HOPPER, CUDA_13)
    assert (found.ok, found.needed) == (ok, False)
    assert said in found.value
    assert doctor.judges_clock((), CPU_ONLY).ok


def test_an_old_driver_gets_the_packages_that_it_can_run() -> None:
    """CUDA 13 on driver 535: the fix is the extra for CUDA 12."""
    found = doctor.torch_runs(OLD, {**CUDA_13, "works": False, "why": "driver too old"})
    assert not found.ok
    assert found.fix.endswith("EXTRA=gpu-cu12")


def test_torch_that_cannot_be_imported_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of its traceback says why; the doctor itself goes on."""
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nImportError: libfoo.so: not found\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    found = doctor.torch_runs((), doctor.ask_torch(cuda=False))
    assert (found.ok, found.value) == (False, "ImportError: libfoo.so: not found")


def test_an_unsupported_version_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of an installed package must be one that pyproject.toml allows."""
    assert doctor.package("numpy").ok
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.9.0")
    found = doctor.package("numpy")
    assert not found.ok
    assert "<2.5" in found.value


@pytest.mark.parametrize(
    ("check", "programs", "package"),
    [
        (doctor.compiler, ("g++", "c++"), "g++"),
        (doctor.chromium, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"), "chromium"),
    ],
)
def test_a_missing_program_is_named(
    check: Callable[[], Finding], programs: tuple[str, ...], package: str, no_programs: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    """The fix installs the package that provides it."""
    no_programs(*programs)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    found = check()
    assert not found.ok
    assert found.fix == f"sudo apt-get install {package}"


def test_a_compiler_that_builds_nothing_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check builds a program; finding the compiler is not enough."""
    fake = tmp_path / "g++"
    fake.write_text('#!/bin/sh\ncase "$*" in *--version*) echo "g++ 8.0";; *) exit 1;; esac\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    found = doctor.compiler()
    assert (found.ok, found.value) == (False, "g++ 8.0 cannot build a C++20 program")


def test_a_missing_cuda_compiler_matters_on_a_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, CUDA C++ runs on the CPU and needs no nvcc."""
    monkeypatch.setattr(doctor, "cuda_home", lambda major: None)
    assert doctor.cuda_compiler((), CPU_ONLY).ok
    assert doctor.cuda_compiler(HOPPER, CUDA_13).fix.endswith("EXTRA=gpu")
    assert doctor.cuda_compiler(OLD, {**CUDA_13, "cuda": "12.8"}).fix == "sudo apt-get install nvidia-cuda-toolkit"


def test_a_cuda_compiler_of_another_version_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extensions that CUDA 12 builds for a torch for CUDA 13 break at link time or later."""
    monkeypatch.setattr(doctor, "cuda_home", lambda major: Path("/usr/local/cuda"))
    monkeypatch.setattr(doctor, "cuda_version", lambda home: "12.8")
    assert not doctor.cuda_compiler(HOPPER, CUDA_13).ok
    assert doctor.cuda_compiler(HOPPER, {**CUDA_13, "cuda": "12.6"}).ok


@pytest.mark.parametrize(
    "reason", ["none: bubblewrap is not installed", "bubblewrap: it is root, without its capabilities"]
)
def test_a_weaker_sandbox_is_reported(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner's own work is graded all the same, so a sandbox is not needed; the fix makes it strong."""
    monkeypatch.setattr("grader.judge.sandbox.strength", lambda: reason)
    found = doctor.sandbox()
    assert not found.ok
    assert not found.needed
    assert found.fix.startswith("sudo ")
    assert reason in found.value


def test_full_disks_and_closed_folders_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds are written to the cache and to the temporary folder."""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10**8))
    assert not doctor.disk().ok
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    found = doctor.folders()
    assert not found.ok
    assert str(blocked) in found.value


@pytest.mark.gpu
def test_a_gpu_machine_works() -> None:
    """torch uses the GPU, and there is a CUDA compiler of the version that torch is built for."""
    by_name = {finding.name: finding for finding in doctor.examine()}
    assert by_name["GPU"].value.startswith("NVIDIA")
    assert by_name["torch on the GPU"].ok
    assert by_name["CUDA compiler"].ok
