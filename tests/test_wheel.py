"""The wheel holds what a learner needs, without the solutions, and works without a checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "grader", "course", "benchmarks/results", "source")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built from a copy: setuptools builds in the tree that it is given."""
    tree = tmp_path_factory.mktemp("tree")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, tree / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(tree / "dist"), str(tree)], check=True)
    [found] = (tree / "dist").glob("gpu_course-*.whl")
    return found


def test_the_wheel_holds_the_notebooks_and_no_solutions(wheel: Path) -> None:
    """Each notebook as it is in course/; nothing of source/, where the solutions are."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        notebooks = {name.removeprefix("grader/installed/"): name for name in names if name.endswith(".ipynb")}
        assert notebooks.keys() == {
            path.relative_to(ROOT).as_posix() for path in (ROOT / "course").rglob("*.ipynb")
        }  # built without solutions, see tests/authoring
        for path, name in notebooks.items():
            assert opened.read(name) == (ROOT / path).read_bytes()
        tops = {name.split("/")[0] for name in names}
        assert {top for top in tops if not top.startswith("gpu_course-")} == {"grader"}
    assert wheel.stat().st_size < 3 << 20


def test_the_installed_wheel_works_without_a_checkout(wheel: Path, tmp_path: Path) -> None:
    """It fills a learner's folder, finds the recorded figures and lists the exercises."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "site")
    script = (
        "import sys, json; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from grader.installation import CHECKOUT, COURSE, RESULTS, WORK\n"
        "from grader.lab import fill; from grader.exercises import EXERCISES; from grader.results import files\n"
        "report = fill(Path(sys.argv[2]), COURSE)\n"
        "print(json.dumps([str(CHECKOUT), WORK.name, sum(map(len, files(RESULTS))), len(EXERCISES), report.added]))\n"
    )
    command = [sys.executable, "-I", "-c", script, str(tmp_path / "site"), str(tmp_path / "work")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    checkout, work, figures, exercises, added = json.loads(done.stdout)
    assert (checkout, work) == ("None", "gpu-course-work")
    assert figures > 100
    assert exercises > 30
    assert "README.ipynb" in added
    assert (tmp_path / "work" / "03_triton" / "03_fuse_a_softmax.ipynb").is_file()
