"""The census finds everything that a submission leaves behind, even if hidden."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.census import Census, grown

BEFORE = Census(processes=4, descriptors=10, judge_host_mib=250, folders=2, disk_kib=0, shm=0, gpu_mib=3000)

DAEMON = """
import json, os, sys, time
from benchmarks.census import census, descendants, own_temp

def daemon():
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    time.sleep(60)
    os._exit(0)

with own_temp() as temp:
    before = census(temp).processes
    daemon()
    (temp / "left").mkdir()
    found = census(temp)
    (pid,) = descendants()
    os.kill(pid, 9)
    while descendants():
        time.sleep(0.01)
print(json.dumps([before, found.processes, found.folders, census(temp).processes]))
"""


def run(script, repository, **environment):
    """Run a script in a process that has no other descendants."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(repository), **environment},
        cwd=environment.get("HOME", "/"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_daemon_and_a_folder_are_found(repository):
    """A process in another session without its parent counts until it ends."""
    assert json.loads(run(DAEMON, repository)) == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"processes": 5}, "processes: 4 before, 5 after"),
        ({"processes": 3}, "processes: 4 before, 3 after"),
        ({"descriptors": 15}, "the judge's descriptors: 10 before, 15 after"),
        ({"gpu_mib": 3065}, "GPU memory: 3000 MiB before, 3065 MiB after"),
        ({"folders": 3}, "temp folders: 2 before, 3 after"),
    ],
)
def test_growth_is_reported(changed, said):
    """Each kind of leak has its message."""
    assert grown(BEFORE, replace(BEFORE, **changed)) == [said]


def test_small_changes_are_not_leaks():
    """A few descriptors, some MiB, and missing NVML are not reported."""
    assert grown(BEFORE, replace(BEFORE, descriptors=14, gpu_mib=3064, judge_host_mib=300)) == []
    assert grown(replace(BEFORE, gpu_mib=None), replace(BEFORE, gpu_mib=None)) == []
