"""Submissions that attack the judge: each gains nothing, and the next is graded as usual."""

import contextlib
import re
import socket
import threading

import pytest
import torch

from grader.errors import MachineLacks
from grader.exercises import find
from grader.judge.checking.buffers import Buffers
from grader.judge.service import Judge
from grader.judge.timing.output_probe import OutputProbe
from tests.judge.submissions import VECTOR_ADD, changed

pytestmark = pytest.mark.timeout(240)

FIND_FLAG = """
import gc
def flag():
    return next(thing for thing in gc.get_objects() if type(thing).__name__ == "Flag")
"""
EARLY = (
    FIND_FLAG
    + """
import time, torch
def vector_add(x, y, out):
    words = flag().words
    words[1] = words[0]
    time.sleep(1.5)
    torch.add(x, y, out=out)
"""
)
NEVER_COMPUTES = (
    FIND_FLAG
    + """
def vector_add(x, y, out):
    words = flag().words
    words[1] = words[0] + 1000
"""
)
LATE_THREAD = """
import threading, time, torch
def vector_add(x, y, out):
    def later():
        time.sleep(1.5)
        torch.add(x, y, out=out)
    threading.Thread(target=later).start()
"""
EACH_DESCRIPTOR = """
import os, fcntl, torch
def vector_add(x, y, out):
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "memfd" in os.readlink("/proc/self/fd/" + fd):
                {attack}
        except OSError:
            pass
    torch.add(x, y, out=out)
"""
ATTACKS = {
    "answers before it computes": EARLY,
    "answers and never computes": NEVER_COMPUTES,
    "computes in a thread that is not joined": LATE_THREAD,
    "shortens the flag": EACH_DESCRIPTOR.format(attack="os.ftruncate(int(fd), 0)"),
    "seals shared memory for the next": EACH_DESCRIPTOR.format(attack="fcntl.fcntl(int(fd), 1033, 0x10)"),
    "a signature too deep to print": f"def vector_add(x, y, out, z, w={'+'.join(['1'] * 3000)}): pass",
    "a signature with a number that Python does not print": f"def vector_add(x, y=0x{'f' * 5000}): pass",
    "a name like a size in /proc": """
import ctypes, time, torch
ctypes.CDLL(None).prctl(15, b"a kB", 0, 0, 0)  # PR_SET_NAME
def vector_add(x, y, out):
    time.sleep(0.6)  # until the judge looks at its memory
    torch.add(x, y, out=out)
""",
    "an error that cannot be shown": """
class Bomb(Exception):
    def __str__(self): raise RuntimeError
def vector_add(x, y, out): raise Bomb
""",
    "text that is no Unicode": "def vector_add(x, y, out): raise ValueError('\\ud800')",
    "closed streams": changed(VECTOR_ADD, "    n = out", "    import sys; sys.stdout = sys.stderr = None\n    n = out"),
    "folders in folders": """
import os, torch
home = os.getcwd()
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
os.chdir(home)
def vector_add(x, y, out): torch.add(x, y, out=out)
""",
    "descriptors without a message": """
import gc, os, socket, struct
def vector_add(x, y, out):
    channel = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Channel")
    for _ in range(50):
        socket.send_fds(channel._socket, [b"\\0"], [0] * 8)
""",
}
HARMLESS = {
    "seals shared memory for the next", "shortens the flag", "closed streams", "folders in folders",
    "a name like a size in /proc",
}  # fmt: skip


@pytest.fixture
def judge(simulator_judge):
    return simulator_judge


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_gains_nothing_and_harms_nobody(judge, name):
    """No points but those that honest work in it earns; the judge lives, and an honest submission gets its own."""
    process = judge._process
    verdict = judge.grade(ATTACKS[name], "vector_add")
    assert verdict.points == (3 if name in HARMLESS else 0), verdict.failure
    assert judge.grade(VECTOR_ADD, "vector_add").points == 3
    assert process is None or judge._process is process  # the same judge: it did not have to be started again


def test_where_the_clock_looks_cannot_be_foretold():
    """A submission that knows torch's seed, the same in every process, does not know which elements must be there."""
    buffers = Buffers("simulator")
    layout = buffers.lay(find("vector_add").simulator_cases[-1])
    looks = []
    for _ in range(2):
        torch.manual_seed(0)
        looks.append(OutputProbe(buffers, layout)._columns)
    assert looks[0] != looks[1]


def test_a_source_that_cannot_be_encoded_is_unusable(judge):
    """Half a surrogate pair in the text is refused in a sentence."""
    verdict = judge.grade("def vector_add(x, y, out): '\ud800'", "vector_add")
    assert verdict.status == "unusable"


def test_an_unwritten_output_is_not_taken_for_another_bug(judge):
    """The commonest mistake, a result that is returned, is not told that its maximum was not subtracted."""
    verdict = judge.grade("import torch\ndef softmax(x, out): return torch.softmax(x, 1)", "softmax")
    mismatch = next(case.mismatch for case in verdict.cases if case.mismatch)
    assert mismatch.unwritten == mismatch.total
    assert mismatch.suspect == ""


def test_the_caged_worker_reaches_no_network_and_no_socket_of_the_system(judge, tmp_path):
    """Not the loopback of the machine, and no Unix socket under /run."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reached = threading.Event()
        server.settimeout(20)

        def listen():
            with contextlib.suppress(OSError):  # closed at the end of the test
                server.accept()
                reached.set()

        threading.Thread(target=listen, daemon=True).start()
        tries = f"""
import os, socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {port})),):
    try:
        socket.socket(family).connect(address)
    except OSError as error:
        print("refused", error)
run = os.path.exists("/run") and os.listdir("/run")
print("run:", run, "writable:", os.access("/proc/sys/kernel/core_pattern", os.W_OK))
"""
        verdict = judge.grade(tries + VECTOR_ADD, "vector_add")
        if verdict.environment.sandbox != "bubblewrap":
            pytest.skip(f"there is no sandbox here ({verdict.environment.sandbox})")
        assert "refused" in verdict.log
        assert re.search(r"run: (\[\]|False) writable: False", verdict.log), verdict.log
        assert not reached.is_set()


def test_secrets_in_the_callers_environment_stay_there(monkeypatch):
    """A password in the grader's environment is in no submission's, and no oracle is loaded there."""
    monkeypatch.setenv("GRADEBOOK_SECRET", "secret")
    source = """
import os, sys
assert "GRADEBOOK_SECRET" not in os.environ
assert not [name for name in sys.modules if name.startswith("grader.judge")]
"""
    with Judge("simulator") as judge:
        assert judge.grade(source + VECTOR_ADD, "vector_add").status == "passed"


def test_without_bubblewrap_grading_goes_on_and_the_verdict_says_so(monkeypatch, tmp_path):
    """A learner's own work is graded all the same, and nobody is left in doubt about it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with Judge("simulator") as judge:
        verdict = judge.grade(VECTOR_ADD, "vector_add")
    assert verdict.status == "passed"
    assert verdict.environment.sandbox == "none: bubblewrap is not installed"


def test_a_judge_of_other_peoples_code_that_has_no_sandbox_grades_nothing(monkeypatch, tmp_path):
    """Its own process decides: what a caller found before, a submission may have undone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with Judge("simulator", sandbox=True) as judge, pytest.raises(MachineLacks, match="bubblewrap is not installed"):
        judge.grade(VECTOR_ADD, "vector_add")


def test_without_a_sandbox_the_verdict_says_who_asked_for_that():
    """`--no-sandbox` is for a machine that is a sandbox itself, and no verdict hides it."""
    with Judge("simulator", sandbox=False) as judge:
        verdict = judge.grade(VECTOR_ADD, "vector_add")
    assert verdict.status == "passed"
    assert verdict.environment.sandbox == "none: --no-sandbox was given"
