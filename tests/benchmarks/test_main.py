"""`make bench`: a bench is imported when it is run, so that one that cannot run here keeps no other from running."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as benches
from benchmarks.limits import Fault

ROOT = Path(__file__).resolve().parents[2]
LACKING = ("sqlalchemy", "nbgrader", "pandas", "matplotlib", "triton", "torch")


@pytest.mark.parametrize("name", [*benches.BENCHES, *benches.PARTS])
def test_every_bench_is_there(name):
    """A name that leads to no function would be found out on the GPU machine only."""
    if name.split(":")[0] in ("throughput", "flips"):
        pytest.importorskip("nbgrader")
    assert callable(benches.bench(name))


def test_the_command_imports_no_bench():
    """Nor what only benches need, which a GPU machine may lack."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({LACKING!r}))  # to import one is an ImportError
import benchmarks.__main__ as main
print(sorted(name for name in sys.modules if name.startswith("benchmarks.")))
assert main.main(["nothing"]) == 2
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "['benchmarks.__main__', 'benchmarks.limits', 'benchmarks.rows']"
    assert "There is no bench nothing" in done.stderr


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """A machine with a GPU, whose rows go nowhere."""
    written = []
    recorder = SimpleNamespace(machine=None, add=None, write=lambda: written.append(1) or tmp_path / "rows.json")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(benches.Machine, "measure", lambda device: None)
    monkeypatch.setattr(benches, "Recorder", lambda machine, date: recorder)
    return written


@pytest.mark.parametrize("how", [ModuleNotFoundError("No module named 'nbgrader'"), Fault("off by 2 %"), SystemExit(3)])
def test_a_bench_that_fails_keeps_no_other_from_running(recorded, monkeypatch, capsys, how):
    """What was wrong is told at the end, and by the exit status."""
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


@pytest.mark.parametrize(("named", "status"), [("another.json", 0), ("rows.json", 1)])
def test_a_readme_that_lacks_rows_is_left_alone(recorded, monkeypatch, capsys, tmp_path, named, status):
    """On another GPU than the README's not all of them are there; of its own GPU none may be missing."""
    marks = "<!-- figures: written by `make bench` -->\n`{}`\n<!-- end of figures -->"
    (tmp_path / "README.md").write_text(marks.format(named), encoding="utf-8")
    monkeypatch.setattr("benchmarks.readme.README", tmp_path / "README.md")
    recorder = benches.Recorder(None, "")
    recorder.machine, recorder.add = SimpleNamespace(copy_gbps=1.0), lambda *row: None
    (tmp_path / "rows.json").write_text('[{"bench": "copy", "case": "", "metric": ""}]', encoding="utf-8")
    monkeypatch.setitem(sys.modules, "benchmarks.plots", SimpleNamespace(plots=lambda path: []))
    monkeypatch.setattr(benches, "bench", lambda name: lambda recorder: None)
    assert benches.main(["loop"]) == status
    assert "nothing is recorded yet for ('copy'" in capsys.readouterr().err
