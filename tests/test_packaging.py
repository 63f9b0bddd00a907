"""The files that install and run the project agree with each other and with the imports of the code."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = {"gpu": "constraints.txt", "gpu-cu12": "constraints-cu12.txt"}

# The package that provides a module, if their names differ.
BRINGS = {
    "IPython": "ipython",
    "functorch": "torch",
    "cuda": "cuda-bindings",
    "dask_jobqueue": "dask-jobqueue",
    "bs4": "beautifulsoup4",
    "markdown_it": "markdown-it-py",
    "pynvml": "nvidia-ml-py",
    "yaml": "pyyaml",
    "cupy": "cupy-cuda13x",
    "cupyx": "cupy-cuda13x",
}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


def _pins(name: str) -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = {}
    for line in (ROOT / name).read_text().splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    return pins


def _requirements(project: dict[str, Any], *extras: str) -> list[Requirement]:
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("extra", CONSTRAINTS)
def test_pins_cover_and_satisfy_every_dependency(project: dict[str, Any], extra: str) -> None:
    """Each dependency has a pin, and every pin of it is a version that pyproject.toml allows."""
    pins = _pins(CONSTRAINTS[extra])
    for wanted in _requirements(project, extra, "cluster", "serve", "dev"):
        found = pins.get(canonicalize_name(wanted.name))
        assert found, f"{wanted.name} is not in {CONSTRAINTS[extra]}: make constraints"
        for pin in found:
            version = next(iter(pin.specifier)).version
            assert wanted.specifier.contains(version), f"{pin} is outside {wanted}"


@pytest.mark.parametrize("name", CONSTRAINTS.values())
def test_pins_are_exact_and_local_to_no_build(name: str) -> None:
    """A pin is `==` and names no local build, so that the CPU build of torch and the CUDA build both fit it."""
    for pin in (pin for pins in _pins(name).values() for pin in pins):
        assert [each.operator for each in pin.specifier] == ["=="], str(pin)
        assert "+" not in str(pin.specifier), str(pin)


def test_torch_and_triton_are_pinned_together() -> None:
    """The CPU build of torch does not require Triton; these are the versions that its CUDA build requires."""
    pairs = {"2.15.0": "3.9.0", "2.10.0": "3.6.0"}
    for name in CONSTRAINTS.values():
        pins = _pins(name)
        torch, triton = (next(iter(pins[each][0].specifier)).version for each in ("torch", "triton"))
        assert pairs[torch] == triton


def test_the_environment_for_conda_installs_the_same(project: dict[str, Any]) -> None:
    """environment.yml takes every Python package from pyproject.toml, with its pins, and adds none of its own."""
    yaml = pytest.importorskip("yaml")
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    plain = [each for each in environment["dependencies"] if isinstance(each, str)]
    (pip,) = [each["pip"] for each in environment["dependencies"] if isinstance(each, dict)]
    assert {re.split("[=<>]", each)[0] for each in plain} == {"python", "pip", "make", "cxx-compiler"}
    (python,) = [each.split("=")[1] for each in plain if each.startswith("python=")]
    assert Requirement(f"python{project['requires-python']}").specifier.contains(python)
    assert pip[0] == f"-c {CONSTRAINTS['gpu']}"
    match = re.fullmatch(r"-e \.\[(.+)\]", pip[1])
    assert match
    assert set(match.group(1).split(",")) == {"dev", "gpu"} <= set(project["optional-dependencies"])
    assert len(pip) == 2


def _imports(folder: str) -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0]: path for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module.split(".")[0]] = path
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names}


@pytest.mark.parametrize(("folder", "extras"), [("grader", ("gpu", "cluster", "serve")), ("source", ("gpu",))])
def test_every_import_is_a_declared_dependency(project: dict[str, Any], folder: str, extras: tuple[str, ...]) -> None:
    """No import relies on another package to install its module."""
    declared = {canonicalize_name(each.name) for each in _requirements(project, *extras)}
    for name, path in _imports(folder).items():
        if name != "grader":
            assert canonicalize_name(BRINGS.get(name, name)) in declared, f"{path} imports {name}"


def test_the_package_holds_all_that_it_reads(project: dict[str, Any]) -> None:
    """Headers, templates and styles under grader/ match a pattern of the package data."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["grader"]
    endings = {pattern.rsplit("*", 1)[1] for pattern in data}
    for path in (ROOT / "grader").rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            assert path.suffix in endings, f"{path} would be missing from an installed package"


def _make(*arguments: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = {"MFLAGS", "ARGS", "PYTHON", "VENV", "EXTRA"}  # these tests may be run by make themselves
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key not in ours}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


TARGETS = "help", "lab", "test", "test-gpu", "bench", "course", "pages", "wheel", "constraints", "clean"


@pytest.mark.parametrize("target", TARGETS)
def test_make_knows_the_target(target: str) -> None:
    """Each target that the README and CONTRIBUTING mention can be made."""
    assert _make("-n", target).returncode == 0


def test_make_help_names_every_target() -> None:
    """`make` alone lists the targets."""
    shown = _make().stdout
    for target in ("lab", "test", "test-gpu", "bench", "course"):
        assert re.search(rf"make {target}\b", shown)


def test_make_passes_arguments_on() -> None:
    """`make lab ARGS=…` passes the arguments to `grader lab` unchanged."""
    assert "grader lab --no-browser --port 9000" in _make("-n", "lab", "ARGS=--no-browser --port 9000").stdout


@pytest.mark.parametrize(("target", "module"), [("test-gpu", "pytest -m gpu"), ("bench", "benchmarks")])
def test_a_gpu_machine_needs_no_virtual_environment(target: str, module: str) -> None:
    """If PYTHON is given, these targets run that interpreter and install nothing."""
    lines = _make("-n", target, "PYTHON=python3", "VENV=/nowhere").stdout.splitlines()
    assert [line.strip() for line in lines] == [f"PYTHONPATH=. python3 -m {module}"]


@pytest.mark.parametrize(("extra", "constraints"), [("", "{}/pins.txt"), *CONSTRAINTS.items()])
def test_make_installs_what_the_machine_can_use(tmp_path: Path, extra: str, constraints: str) -> None:
    """The extra decides which packages and which pins are installed."""
    shown = _make("-n", f"{tmp_path}/.lab", f"VENV={tmp_path}", f"EXTRA={extra}").stdout
    assert f"-c {constraints.format(tmp_path)} " in shown
    assert f"-e '.[{extra}]'" in shown if extra else "-e '.'" in shown


def test_make_says_which_python_it_needs(tmp_path: Path) -> None:
    """An interpreter that is too old gets one sentence, and no unfinished environment remains."""
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    answer = _make("lab", f"PYTHON={old}", f"VENV={tmp_path}/venv", "EXTRA=")
    assert answer.returncode != 0
    assert f"{old} is not Python 3.11 to 3.14." in answer.stderr
    assert not (tmp_path / "venv").exists()


def test_a_second_run_installs_nothing(tmp_path: Path) -> None:
    """Packages are installed again only after the pins change."""
    copy = tmp_path / "checkout"
    (copy / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", *CONSTRAINTS.values()):
        shutil.copy(ROOT / name, copy)
    (copy / ".venv" / "bin" / "pip").touch()
    (copy / ".venv" / ".lab").touch()
    assert "pip install" not in _make("-n", "lab", "EXTRA=", folder=copy).stdout
    later = (copy / ".venv" / ".lab").stat().st_mtime + 10
    os.utime(copy / "constraints.txt", (later, later))
    assert "pip install" in _make("-n", "lab", "EXTRA=", folder=copy).stdout


@pytest.mark.parametrize("script", ["run", "system-packages"])
def test_scripts_are_strict_and_can_be_run(script: str) -> None:
    """A failing command ends the script."""
    path = ROOT / ".ci" / script
    assert os.access(path, os.X_OK)
    assert "\nset -euo pipefail\n" in path.read_text()


def test_what_cannot_be_installed_is_named_in_one_line(tmp_path: Path) -> None:
    """Without apt, the missing system packages are named and the tests go on."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "id", "cat"):
        (programs / name).symlink_to(str(shutil.which(name)))
    answer = subprocess.run(
        [str(ROOT / ".ci" / "system-packages"), "bubblewrap", "chromium"],
        env={"PATH": str(programs), "PYTHON": "/bin/false"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0
    assert answer.stderr.splitlines() == [
        "To install by hand: bubblewrap chromium (on Debian and Ubuntu: sudo apt-get install bubblewrap chromium)."
    ]


def test_the_package_says_its_licence(project: dict[str, Any]) -> None:
    """pyproject.toml, LICENSE and README name the same licence."""
    assert project["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert "[MIT](LICENSE)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("torch", "environment", "goes_on", "said"),
    [
        ("2.13.0+cpu", {}, True, ""),
        ("2.13.0", {}, False, "Nobody can be asked here"),
        ("2.13.0", {"YES": "1"}, True, "several gigabytes"),
        ("2.13.0", {"CI": "true"}, True, "several gigabytes"),
    ],
)
def test_no_gigabytes_are_fetched_unasked(tmp_path, torch, environment, goes_on, said):
    """`make lab` without a GPU stops before the CUDA build of torch, unless it is told to go on."""
    done = _choose_torch(tmp_path, torch, "", **environment)
    assert done.returncode == (0 if goes_on else 1)
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)
    assert (tmp_path / "pins.txt").read_text() == (ROOT / "constraints.txt").read_text()


@pytest.mark.parametrize("pinned", ["2.13.0", ""], ids=["pip finds the CUDA build", "pip finds no build"])
def test_a_wheel_of_the_cpu_build_is_taken_although_it_is_older(tmp_path, pinned):
    """Its version is pinned instead, with the Triton that fits it; all other pins stay."""
    done = _choose_torch(tmp_path, pinned, "2.11.0+cpu")
    assert (done.returncode, done.stderr) == (0, "")
    before, after = (path.read_text().splitlines() for path in (ROOT / "constraints.txt", tmp_path / "pins.txt"))
    assert sorted(set(after) - set(before)) == ["torch==2.11.0", "triton==3.6.0"]
    assert len(after) == len(before)


def _choose_torch(folder: Path, pinned: str, in_a_folder: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a pip that finds these versions: from an index, and in a folder of wheels."""
    (folder / "pip.py").write_text(
        f"import sys\nfound = {in_a_folder!r} if '--no-index' in sys.argv else {pinned!r}\n"
        "assert '--no-index' not in sys.argv or sys.argv[-1].startswith('torch>=')\n"
        "import json\nprint(json.dumps({'install': [{'metadata': {'version': found}}] if found else []}))\n"
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "YES")}
    return subprocess.run(
        [sys.executable, ROOT / ".ci/choose-torch", "constraints.txt", folder / "pins.txt"], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, cwd=ROOT, env={**kept, **environment, "PYTHONPATH": str(folder)},
    )  # fmt: skip


def test_what_moved_between_two_sets_of_pins_is_said(tmp_path: Path) -> None:
    """`make constraints` ends with it: a version that changed, a new package, and one that is gone."""
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("# pins\nnumpy==2.4.5\nray==1.0\nsame==1.0\na==1.0 ; python_full_version < '3.12'\n")
    new.write_text("# pins\nnumpy==2.4.6\nsame==1.0\na==1.0 ; python_full_version < '3.12'\na==2.0\nrich==15.0\n")
    said = subprocess.run([ROOT / ".ci/moved", old, new], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[1:] == [
        "  a: 1.0 → 1.0 or 2.0", "  numpy: 2.4.5 → 2.4.6", "  rich: new, 15.0", "  ray: gone, was 1.0",
    ]  # fmt: skip
    same = subprocess.run([ROOT / ".ci/moved", new, new], capture_output=True, text=True, check=True).stdout
    assert same == f"{new}: nothing moved\n"


def test_packages_that_pyproject_does_not_allow_yet_are_listed(tmp_path: Path) -> None:
    """`.ci/newest --list` asks pip for the newest of each dependency, without bounds, and compares."""
    found = {"numpy": "99.0", "typer": "99.0", "jupyterlab": "4.6.1", "cuda-toolkit": "13.3.0"}
    report = {"install": [{"metadata": {"name": name, "version": version}} for name, version in found.items()]}
    (tmp_path / "pip.py").write_text(
        f"import sys\nopen({str(tmp_path / 'asked')!r}, 'w').write(' '.join(sys.argv))\nprint({json.dumps(report)!r})"
    )
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/newest", "--list", "--extra", "gpu"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    listed = [line.split(":")[0].strip() for line in done.stdout.splitlines()[1:]]
    assert listed == ["cuda-toolkit", "numpy"]
    asked = (tmp_path / "asked").read_text()
    assert " numpy " in asked
    assert "<" not in asked
    assert "==" not in asked
