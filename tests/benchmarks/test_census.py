"""What a submission leaves behind is found, whatever it did to hide."""

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
    """Runs it where nothing but its own processes are its descendants."""
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
    """A process that has left its session and whose parent is gone is still counted, and gone when it has ended."""
    assert json.loads(run(DAEMON, repository)) == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"processes": 5}, "5 processes where there were 4"),
        ({"processes": 3}, "3 processes where there were 4"),
        ({"descriptors": 15}, "15 descriptors of the judge where there were 10"),
        ({"gpu_mib": 3065}, "3065 MiB of GPU memory where there were 3000"),
        ({"folders": 3}, "3 temp folders where there were 2"),
    ],
)
def test_growth_is_said(changed, said):
    """Each kind of leak has its sentence."""
    assert grown(BEFORE, replace(BEFORE, **changed)) == [said]


def test_what_comes_and_goes_is_no_leak():
    """A few descriptors, some MiB, and a machine without NVML are nothing to say."""
    assert grown(BEFORE, replace(BEFORE, descriptors=14, gpu_mib=3064, judge_host_mib=300)) == []
    assert grown(replace(BEFORE, gpu_mib=None), replace(BEFORE, gpu_mib=None)) == []
