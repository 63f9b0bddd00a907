"""A soak in the simulator leaks nothing, and it finds a judge that leaks."""

import json

from tests.benchmarks.test_census import run

SOAK = """
import json
from pathlib import Path
from benchmarks import soak
from benchmarks.limits import Limit
{before}
found = soak.Soak("simulator", {gradings}, {gradings}, 7, Limit(200), Path("lines.jsonl"), patience_s={patience})
found.run()
print(json.dumps([found.done, dict(found.kinds), found.faults, [each[1].to_dict() for each in found.samples]]))
"""
LEAKS = """
import subprocess, sys, tempfile
from grader.verdict import Environment, Verdict

class Leaking:
    def __init__(self, device): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def close(self): pass
    def expect(self, pairs): pass
    def grade(self, source, exercise_id, timed):
        self.graded = getattr(self, "graded", 0) + 1
        if self.graded == 10:
            silent = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], start_new_session=True, **silent)
            tempfile.mkdtemp()
        return Verdict(exercise_id, "", "failed", 3, 5, 5, "", Environment("simulator"))

soak.Judge = Leaking
"""


def _soak(tmp_path, repository, **parts):
    script = SOAK.format(**{"before": "", "patience": 20, **parts})
    return json.loads(run(script, repository, HOME=str(tmp_path)).splitlines()[-1])


def test_some_gradings_of_every_kind_leave_nothing_behind(tmp_path, repository):
    """Right, wrong and crashing submissions get the expected verdicts and leave no process or file."""
    done, kinds, faults, samples = _soak(tmp_path, repository, gradings=6)
    assert faults == []
    assert done == sum(kinds.values()) == 6
    assert samples[0]["processes"] == samples[1]["processes"] >= 2
    assert all(sample["descriptors"] > 0 and sample["judge_host_mib"] > 10 for sample in samples)
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert [line["gradings"] for line in lines if "gradings" in line] == [0, 6]


def test_a_judge_that_leaks_is_found(tmp_path, repository):
    """A remaining process or folder is a fault, and so are points for a wrong submission."""
    _, _, faults, _ = _soak(tmp_path, repository, gradings=8, before=LEAKS, patience=1)
    assert "after 8 gradings: processes: 0 before, 1 after" in faults
    assert "after 8 gradings: temp folders: 0 before, 1 after" in faults
    assert "processes left after the judge was closed: 1" in faults
    assert sum("is wrong, but got 3 points" in fault for fault in faults) == 5
