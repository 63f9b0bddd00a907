"""`make bench`: a bench is imported when it is run, so that one that cannot run here keeps no other from running."""

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
def test_every_bench_is_there(name):
    """A name that leads to no function would be found out on the GPU machine only."""
    if name.split(":")[0] in ("throughput", "flips"):
        pytest.importorskip("nbgrader")
    assert callable(benches.bench(name))


def test_the_command_imports_no_bench():
    """Packages that only benches need are not imported either, because a GPU machine may not have them."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({LACKING!r}))  # to import one is an ImportError
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
    """A machine with a GPU, whose rows go nowhere."""
    written = []
    recorder = SimpleNamespace(machine=None, add=None, write=lambda: written.append(1) or tmp_path / "rows.json")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("grader.judge.gpu.ceilings.Machine.measure", lambda device: None)
    monkeypatch.setattr(benches, "Recorder", lambda machine, date: recorder)
    return written


@pytest.mark.parametrize("how", [ModuleNotFoundError("No module named 'nbgrader'"), Fault("off by 2 %"), SystemExit(3)])
def test_a_bench_that_fails_keeps_no_other_from_running(recorded, monkeypatch, capsys, how):
    """The message at the end and the exit status say what was wrong."""
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


def test_a_row_that_the_readme_needs_is_missed(recorded, monkeypatch, capsys, tmp_path):
    """The old figures stay, and the exit status says so."""
    (tmp_path / "README.md").write_text("the old figures", encoding="utf-8")
    (tmp_path / "rows.json").write_text("[]", encoding="utf-8")
    monkeypatch.setattr("benchmarks.readme.README", tmp_path / "README.md")
    monkeypatch.setitem(TABLES, "rows", TABLES["nvidia-h200"])
    monkeypatch.setattr(benches, "bench", lambda name: lambda recorder: None)
    assert benches.main(["soak"]) == 1
    assert "no row is recorded for ('copy', 'bandwidth_gbps')" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "the old figures"
