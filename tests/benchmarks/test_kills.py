"""A leaderboard run that is killed and run again has the same result as an undisturbed one."""

import copy
import json
import random

import pytest

from benchmarks.kills import differences, moments
from tests.benchmarks.test_census import run

KILLS = """
import json
from pathlib import Path
from benchmarks import kills

texts = dict(list(kills.submissions().items())[:3])
work, course = Path.cwd(), Path.cwd() / "course"
kills.write_course(course, texts)
standing, seconds = kills.undisturbed(course, work, "simulator", 200)
found = kills.trial(course, work, "simulator", standing, [0.4 * seconds, 0.3 * seconds], 200)
once = kills.trial(course, work, "simulator", standing, [5 * seconds + 60], 200)
print(json.dumps([standing, len(found.killed_after_s), found.left, found.differs, vars(once)]))
"""
LINGERS = """
import sys, time
from grader.leaderboard.store import Store
with Store(sys.argv[1]) as store:
    store.close_run(store.start_run("vector_add", "any").id, "finished")
print("finished", flush=True)
time.sleep(60)
"""
FINISHED = f"""
import json, subprocess, sys
from pathlib import Path
from benchmarks import kills

started = []

def start(course, store, device):
    command = [sys.executable, "-c", {LINGERS!r}, str(store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    started.append(process.pid)
    return process

kills._start = start
found = kills.trial(Path.cwd(), Path.cwd(), "simulator", {{"facts": {{}}, "ranks": {{}}}}, [0.1, 0.1], 5)
print(json.dumps([len(started), vars(found)]))
"""
STANDING = {
    "facts": {"ann": {"points": 3}, "ben": {"points": 3}, "cid": {"points": 5}, "dot": None},
    "ranks": {"cid": 1, "ann": 2, "ben": 2},
}


@pytest.mark.timeout(300)
def test_a_run_that_is_killed_twice_ends_as_an_undisturbed_one(tmp_path, repository):
    """The verdicts are the same, and no process or temp folder is left.

    A run that ended before its kill is not started again.
    """
    standing, killed, left, differs, once = json.loads(run(KILLS, repository, HOME=str(tmp_path)).splitlines()[-1])
    assert [facts["points"] for facts in standing["facts"].values()] == [3, 0, 0]
    assert differs == []
    assert left == []
    assert killed >= 1
    assert once == {"killed_after_s": [], "orphans_s": 0.0, "left": [], "differs": []}


def test_a_run_that_is_killed_after_it_finished_is_not_run_again(tmp_path, repository):
    """A kill may come after the last line in the store and before the end of the process. Then the run counts."""
    started, found = json.loads(run(FINISHED, repository, HOME=str(tmp_path)).splitlines()[-1])
    assert started == 1
    assert found == {"killed_after_s": [0.1], "orphans_s": found["orphans_s"], "left": [], "differs": []}


@pytest.mark.parametrize("count", [1, 3])
def test_the_moments_are_anywhere_within_the_run(count):
    """The next kill falls into the remaining work, so that the run has not ended before it."""
    chance = random.Random(1)
    drawn = [moments(100.0, count, chance) for _ in range(1000)]
    for each in drawn:
        assert len(each) == count
        assert min(each) > 0
        assert sum(each) < 100
    for at in (20, 50, 80):
        assert any(each[0] < at - 10 for each in drawn)
        assert any(each[0] > at + 10 for each in drawn)


def test_the_same_standing_does_not_differ():
    """The order of tied students does not matter."""
    assert differences(STANDING, copy.deepcopy(STANDING)) == []
    assert differences(STANDING, {**STANDING, "ranks": {"cid": 1, "ann": 3, "ben": 2}}) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"facts": {**STANDING["facts"], "ben": {"points": 0}}}, "ben"),
        ({"facts": {name: facts for name, facts in STANDING["facts"].items() if name != "dot"}}, "dot"),
        ({"ranks": {"cid": 2, "ann": 1, "ben": 2}}, "cid ranked before ann"),
        ({"ranks": {"cid": 1, "ann": 2}}, "ranked undisturbed"),
    ],
)
def test_every_difference_is_reported(changed, said):
    """These are other points, a missing student, two swapped students, and a lost rank."""
    assert any(sentence.startswith(said) for sentence in differences(STANDING, {**STANDING, **changed}))
