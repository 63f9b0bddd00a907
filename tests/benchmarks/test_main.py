"""`make bench`: a bench is imported when it runs, so one that cannot run here does not stop the others."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as benches
from benchmarks.limits import Fault
from benchmarks.readme import TABLES

ROOT = Path(__file__).resolve().parents[2]
LACKING = ("sqlalchemy", "nbgrader", "pandas", "matplotlib", "triton", "torch")


@pytest.mark.parametrize("name", [*benches.BENCHES, *benches.PARTS])
def test_every_bench_exists(name):
    """Otherwise a wrong name would be noticed only on the GPU machine."""
    if name.split(":")[0] in ("throughput", "flips", "serve"):
        pytest.importorskip("nbgrader")
    assert callable(benches.bench(name))


def test_the_command_imports_no_bench():
    """It also imports no package that only benches need, because a GPU machine may not have it."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({LACKING!r}))  # importing one raises ImportError
import benchmarks.__main__ as main
print(sorted(name for name in sys.modules if name.startswith("benchmarks.")))
assert main.main(["nothing"]) == 2
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = ["__main__", "limits", "readme", "rows"]
    assert done.stdout.split("\n")[0] == str([f"benchmarks.{name}" for name in loaded])
    assert "There is no bench nothing" in done.stderr


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """A machine with a GPU; its rows are not written."""
    written = []
    recorder = SimpleNamespace(machine=None, add=None, write=lambda: written.append(1) or tmp_path / "rows.json")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("grader.judge.gpu.ceilings.Machine.measure", lambda device: None)
    monkeypatch.setattr(benches, "Recorder", lambda machine, date: recorder)
    return written


@pytest.mark.parametrize("how", [ModuleNotFoundError("No module named 'nbgrader'"), Fault("off by 2 %"), SystemExit(3)])
def test_after_a_bench_fails_the_next_still_runs(recorded, monkeypatch, capsys, how):
    """The last message names the error, and the exit status is 1."""
    ran = []

    def bench(name):
        if name == "soak":
            raise how
        return lambda recorder: ran.append(name)

    monkeypatch.setattr(benches, "bench", bench)
    assert benches.main(["soak", "clock"]) == 1
    assert ran == ["clock"]
    assert recorded
    assert str(how) in capsys.readouterr().err


def test_a_missing_row_of_the_readme_is_reported(recorded, monkeypatch, capsys, tmp_path):
    """The old figures stay, and the exit status is 1."""
    (tmp_path / "README.md").write_text("the old figures", encoding="utf-8")
    (tmp_path / "rows.json").write_text("[]", encoding="utf-8")
    monkeypatch.setattr("benchmarks.readme.README", tmp_path / "README.md")
    monkeypatch.setitem(TABLES, "rows", TABLES["nvidia-h200"])
    monkeypatch.setattr(benches, "bench", lambda name: lambda recorder: None)
    assert benches.main(["soak"]) == 1
    assert "no row is recorded for ('copy', 'bandwidth_gbps')" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "the old figures"
