"""Steps on a GPU machine, where time is short: none prevents another from running, and none runs forever."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.evidence import main, run
from benchmarks.steps import ROOT, Step, known, step
from grader.results import RESULTS
from tests.exploits.corpus import exploits
from tests.mistakes.corpus import corpus
from tests.pace import PACE

HANGS = """
import signal, time
print("began", flush=True)
signal.signal(signal.SIGINT, lambda *_: print("asked to end", flush=True))
while True:
    time.sleep(1)
"""


def python(name, code, **options):
    return Step(name, ("-c", code), **options)


def lines(capsys):
    """Return the printed lines by step."""
    printed = capsys.readouterr().out.splitlines()
    return {line.split()[0]: line for line in printed}


def test_a_step_that_fails_does_not_keep_the_next_from_running(tmp_path, capsys):
    """Each has a log, and a line with its exit code and last words."""
    steps = [
        python("first", "print('some'); raise SystemExit(3)"),
        python("a/second:1", "print('=== 2 passed ===\\n')"),
    ]
    assert run(steps, tmp_path, 60, 1) == 1
    said = lines(capsys)
    assert re.fullmatch(r"first +\d+\.\d s  exit   3  some", said["first"])
    assert re.fullmatch(r"a/second:1 +\d+\.\d s  exit   0  2 passed", said["a/second:1"])
    assert (tmp_path / "a_second_1.log").read_text() == "=== 2 passed ===\n\n"


def test_a_step_that_hangs_is_asked_to_end_and_then_killed(tmp_path, capsys):
    """The next one runs, and nothing of the first is left."""
    begun = time.monotonic()
    steps = [python("hangs", HANGS, limit_s=5.0), python("next", "print('here')")]
    assert run(steps, tmp_path, 60, 1, grace_s=0.5) == 1
    assert time.monotonic() - begun < 60 * PACE
    assert (tmp_path / "hangs.log").read_text() == "began\nasked to end\n"
    said = lines(capsys)
    assert "exit  -9" in said["hangs"]
    assert "exit   0  here" in said["next"]


def test_a_step_that_ends_when_it_is_interrupted_may_still_write(tmp_path):
    """Python turns the signal into a KeyboardInterrupt, however the command was started."""
    code = "import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('written')"
    asks = (
        "import signal; from benchmarks import evidence; from benchmarks.steps import Step\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
        f"evidence.step = lambda name, out: Step(name, ('-c', {code!r}), limit_s=5.0)\n"
        f"raise SystemExit(evidence.main([{str(tmp_path)!r}, 'writes']))"
    )
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", asks]
    subprocess.run(shell, check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert (tmp_path / "writes.log").read_text() == "written\n"


def test_nothing_starts_past_the_limit(tmp_path, capsys):
    """A step that did not start is reported and makes the command fail. A running step ends at the limit, too."""
    steps = [python("long", "import time; time.sleep(60)"), python("late", "print('never')")]
    assert run(steps, tmp_path, 1.0, 1, grace_s=1.0) == 2
    said = lines(capsys)
    assert "late" in said
    assert "not started" in said["late"]
    assert not (tmp_path / "late.log").exists()
    assert float(said["long"].split()[1]) < 40


def test_only_steps_that_time_nothing_run_side_by_side(tmp_path):
    """Two steps wait for each other, so they must run in parallel. A step that times something runs alone."""
    meets = """
import sys, time
from pathlib import Path
mine, other = (Path({folder!r}, name) for name in {names!r})
mine.touch()
ends = time.monotonic() + 20
while not other.exists() and time.monotonic() < ends:
    time.sleep(0.01)
time.sleep(0.2)
sys.exit(not other.exists())
"""
    alone = "import sys; from pathlib import Path; sys.exit(not all(Path(p).exists() for p in sys.argv[1:]))"
    one, two = (meets.format(folder=str(tmp_path), names=names) for names in (("a", "b"), ("b", "a")))
    quiet = Step("quiet", ("-c", alone, str(tmp_path / "one.ended"), str(tmp_path / "two.ended")))
    ends = f"\nfrom pathlib import Path; Path({str(tmp_path)!r}, NAME).touch()"
    sides = [
        python(name, code.replace("sys.exit(not other.exists())", "assert other.exists()")
               + ends.replace("NAME", repr(f"{name}.ended")), quiet=False)
        for name, code in (("one", one), ("two", two))
    ]  # fmt: skip
    assert run([*sides, quiet], tmp_path, 60, 2) == 0


def test_each_gpu_has_a_step_of_its_own(tmp_path):
    """Two timed steps run at once on two GPUs, each with half of the cores. A third waits."""
    code = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], sorted(os.sched_getaffinity(0))); time.sleep(1)"
    assert run([python(name, code) for name in ("one", "two", "three")], tmp_path, 60, 1, gpus=2) == 0
    cores = sorted(os.sched_getaffinity(0))
    halves = [f"{at} {cores[at * len(cores) // 2 : (at + 1) * len(cores) // 2] or cores}\n" for at in (0, 1)]
    said = {name: (tmp_path / f"{name}.log").read_text() for name in ("one", "two", "three")}
    assert [said["one"], said["two"]] == halves
    assert said["three"] in halves


def test_every_step_names_things_that_exist():
    """Otherwise a missing path, exercise or bench would be noticed only on the GPU machine."""
    steps = known(Path("out"))
    assert len({each.name for each in steps}) == len(steps)
    for each in steps:
        paths = [word.removeprefix("--ignore=").partition("::")[0] for word in each.command if "tests/" in word]
        assert paths or importlib.util.find_spec(each.command[1]), each
        assert all((ROOT / path).exists() for path in paths), each
    words = [word for each in steps for word in each.command]
    assert len({word for word in words if "test_mistakes.py::" in word}) == sum(
        each.runs != "simulator" for each in corpus()
    )  # none is left out
    assert len({word for word in words if "test_exploits.py::" in word}) == len(exploits())
    named = [ROOT / word for each in steps for word in each.command if word.startswith("tests/") and "::" not in word]
    marked = re.compile(r"pytest\.mark\.gpu")
    need_a_gpu = [path for path in (ROOT / "tests").rglob("test_*.py") if marked.search(path.read_text())]
    left_out = [path for path in need_a_gpu if not any(path.is_relative_to(each) for each in named)]
    assert sorted(path.name for path in left_out) == ["test_exploits.py", "test_mistakes.py"]  # chosen one by one


@pytest.mark.parametrize(
    "name",
    [
        "ladder",
        "clock:pairs",
        "flips/2-of-2",
        "exploits-rules/2-of-2",
        "exploits:nan,late_",
        "judge",
        "tests:tests/honest",
        "mistakes:fuse",
        "notebook:01_profiling/06_catch_a_lying_benchmark",
        "kernels:softmax",
    ],
)
def test_a_step_is_chosen_by_its_name(name, tmp_path):
    """A folder of tests, the mistakes of one exercise and any bench are steps, too."""
    assert step(name, tmp_path).name == name


@pytest.mark.parametrize("kind", ["timing", "host"])
def test_the_shares_of_a_kinds_exploits_are_all_of_them(kind, tmp_path):
    """Each exploit is in one share, in order."""
    whole, *shares = (step(f"exploits-{kind}{share}", tmp_path) for share in ("", "/1-of-3", "/2-of-3", "/3-of-3"))
    named = [[word for word in each.command if "::" in word] for each in (whole, *shares)]
    assert named[0] == [*named[1], *named[2], *named[3]]
    assert {each.environment["EXPLOITS_OUT"] for each in shares} == {str(RESULTS / "exploits")}
    with pytest.raises(LookupError):
        step(f"exploits-{kind}/4-of-3", tmp_path)


def test_an_unknown_step_is_reported(tmp_path, capsys):
    """Nothing runs."""
    assert main([str(tmp_path), "nothing"]) == 2
    assert "no step 'nothing'" in capsys.readouterr().err
