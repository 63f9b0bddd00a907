"""The rows of a run are on the disk as soon as they are measured."""

import json
import multiprocessing

from benchmarks import rows
from benchmarks.rows import Recorder
from grader.judge.gpu.ceilings import Machine

MACHINE = Machine("cuda", "Some GPU", "580", "2.11", "3.6", "3.12", 1 << 20, 4000.0)


def adds(folder, bench):
    """Add 100 rows, in a separate process."""
    rows.RESULTS = folder
    recorder = Recorder(MACHINE, "2026-01-01")
    for number in range(100):
        recorder.add(bench, str(number), "median_us", "µs", 1.0)


def test_two_runs_at_once_lose_no_row(tmp_path):
    """On a machine with several GPUs, each runs a bench."""
    processes = [multiprocessing.get_context("fork").Process(target=adds, args=(tmp_path, name)) for name in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = json.loads((tmp_path / "some-gpu.json").read_text(encoding="utf-8"))
    assert sorted((row["bench"], int(row["case"])) for row in found) == [(name, n) for name in "ab" for n in range(100)]


def test_a_row_is_on_the_disk_as_soon_as_it_is_added(monkeypatch, tmp_path):
    """The bench may be killed next. Rows of other benches stay; an earlier run's rows of this bench go."""
    monkeypatch.setattr(rows, "RESULTS", tmp_path / "results")
    Recorder(MACHINE, "2026-01-01").add("means", "old", "median_us", "µs", 1.0)
    Recorder(MACHINE, "2026-01-01").add("widths", "kept", "median_us", "µs", 2.0)
    recorder = Recorder(MACHINE, "2026-01-02")
    recorder.add("means", "new", "median_us", "µs", 3.0, 2.5, 3.5)
    found = json.loads((tmp_path / "results" / "some-gpu.json").read_text(encoding="utf-8"))
    assert [(row["bench"], row["case"], row["value"]) for row in found] == [("widths", "kept", 2), ("means", "new", 3)]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["some-gpu.json"]
