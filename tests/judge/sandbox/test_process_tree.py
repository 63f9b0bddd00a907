"""Stopping and ending a process tree: everything stops, and nothing outlives its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from grader.judge.sandbox import import_folders, process_tree
from grader.protocol.flag import sealed_memory
from tests.pace import PACE

FORMS = ["bubblewrap", "none"]
SLOTS = 4
BUSY = """
import mmap, os, threading, time
words = memoryview(mmap.mmap({fd}, 4096)).cast("q")
def count(slot):
    while True:
        words[slot] += 1
        time.sleep(0.001)
def daemon(slot):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            count(slot)
        os._exit(0)
    os.wait()
daemon(1)
if os.fork() == 0:
    count(2)
threading.Thread(target=count, args=(3,), daemon=True).start()
print("busy", flush=True)
"""


class Counters:
    """Shared counters that the parts of a busy tree increment."""

    def __init__(self):
        import mmap

        self.fd = sealed_memory("counters", 4096)
        self.words = memoryview(mmap.mmap(self.fd, 4096)).cast("q")

    def moved(self, seconds=0.1):
        before = list(self.words[:SLOTS])
        time.sleep(seconds)
        return [now != then for now, then in zip(self.words[:SLOTS], before, strict=True)]

    def wait(self, seconds=10.0):
        """Wait until every part has counted."""
        deadline = time.monotonic() + seconds * PACE
        while not all(self.moved(0.02)):
            assert time.monotonic() < deadline, list(self.words[:SLOTS])


@pytest.fixture
def counters():
    made = Counters()
    yield made
    os.close(made.fd)


def busy(cage, form, counters, more="count(0)"):
    """Start a process with a thread, a child and a daemon, which all count."""
    caged = cage(form, BUSY.format(fd=counters.fd) + more, fds=(counters.fd,))
    assert caged.process.stdout.readline() == b"busy\n", caged.process.stdout.read()
    return caged


def gone(pids, seconds=10.0):
    """Whether all processes end in time; a zombie counts as ended."""
    deadline = time.monotonic() + seconds * PACE
    while any(_lives(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("form", FORMS)
def test_freezing_stops_all_and_thawing_continues_all(form, cage, counters):
    """This includes threads, children and daemons, also in a pid namespace."""
    caged = busy(cage, form, counters)
    counters.wait()
    for _ in range(3):
        caged.freeze()
        assert counters.moved() == [False] * SLOTS
        caged.thaw()
        counters.wait()
    assert caged.process.poll() is None


@pytest.mark.parametrize("form", ["bubblewrap", "none"])
def test_a_tree_that_keeps_forking_is_stopped(form, cage, counters):
    """No process is left that forks, however many there are."""
    caged = busy(
        cage,
        form,
        counters,
        """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    words[0] += 1
    if os.fork() == 0:
        if os.fork() == 0:
            words[0] += 1
        os._exit(0)
""",
    )
    counters.wait()
    caged.freeze()
    assert counters.moved(0.3) == [False] * SLOTS
    assert caged.process.poll() is None
    caged.thaw()
    counters.wait()


def test_a_process_created_while_its_parent_stops_is_stopped_too(monkeypatch):
    """All known processes have stopped, and then a new one appears."""
    born = iter([[10], [10, 11], [10, 11], [10, 11]])
    asked = []
    monkeypatch.setattr(process_tree, "descendants", lambda root: next(born))
    monkeypatch.setattr(process_tree, "_still", lambda pid: asked.append(pid) or {})
    assert process_tree.stop_all(1, 5)
    assert asked == [10, 10, 11, 10, 11]


def test_a_process_that_ran_between_two_checks_is_checked_again(monkeypatch):
    """It was stopped at both checks, but a context switch shows that it ran in between."""
    looks = [{"10": [b"1"]}, {"10": [b"2"]}, None, {"10": [b"3"]}, {"10": [b"3"]}]
    monkeypatch.setattr(process_tree, "descendants", lambda root: [10])
    monkeypatch.setattr(process_tree, "_still", lambda pid: looks.pop(0))
    monkeypatch.setattr(process_tree, "_signal", lambda pids, number: None)
    assert process_tree.stop_all(1, 5)
    assert not looks


CONTINUED = """
import ctypes, mmap, os, signal, threading, time
words = memoryview(mmap.mmap({fd}, 4096)).cast("q")
libc = ctypes.CDLL(None)
def counts(*_):
    if {waits}:
        libc.syscall(324 if os.uname().machine == "x86_64" else 283, 1, 0, 0)  # membarrier: milliseconds in the kernel
    ends = time.monotonic() + 0.4
    while time.monotonic() < ends:
        words[0] += 1
    os._exit(0)
def ends_when_told(mib):
    block = mmap.mmap(-1, mib << 20)
    for at in range(0, len(block), 4096):
        block[at] = 1  # ending it takes a while
    words[1] += 1
    os.read({told}, 1)
    os._exit(0)
"""
ORPHANED = (  # a process group that loses the last process tying it to its session
    CONTINUED
    + """
def member(tell):
    os.setpgid(0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCONT, counts)
    os.write(tell, str(os.getpid()).encode())
    time.sleep(300)
def in_between():
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
    time.sleep(300)
os.setsid()
for _ in range(40):
    if os.fork() == 0:
        in_between()
print("busy", flush=True)
while True:
    read, write = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            member(write)
        os._exit(0)
    group = int(os.read(read, 20))
    os.wait()
    if (tie := os.fork()) == 0:
        os.setpgid(0, group)
        ends_when_told(500)
    os.waitpid(tie, 0)
"""
)
BEREAVED = (  # a child that asked for SIGCONT at its parent's end
    CONTINUED
    + """
print("busy", flush=True)
while True:
    if (parent := os.fork()) == 0:
        if os.fork() == 0:
            signal.signal(signal.SIGCONT, counts)
            libc.prctl(1, signal.SIGCONT, 0, 0, 0)  # PR_SET_PDEATHSIG
            time.sleep(300)
        ends_when_told(250)
    os.waitpid(parent, 0)
"""
)


@pytest.mark.parametrize(("left", "waits"), [(ORPHANED, False), (BEREAVED, True)], ids=["orphaned", "bereaved"])
def test_a_process_continued_by_the_kernel_is_stopped_again(left, waits, cage, counters):
    """The end of another process continues it after a check, or cancels a SIGSTOP that is still pending."""
    told, tell = os.pipe()
    caged = cage("bubblewrap", left.format(fd=counters.fd, told=told, waits=waits), fds=(counters.fd, told))
    assert caged.process.stdout.readline() == b"busy\n", caged.process.stdout.read()
    for number in range(1, 7):
        deadline = time.monotonic() + 20 * PACE
        while counters.words[1] < number:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.write(tell, b"x")
        time.sleep(0.002 * (number % 6))
        caged.freeze()
        assert not counters.moved(0.2)[0], number
        assert caged.process.poll() is None
        caged.thaw()
    os.close(told)
    os.close(tell)


def test_a_process_that_waits_for_a_stopped_child_counts_as_stopped(cage):
    """A parent between vfork and exec cannot be woken."""
    caged = cage(
        "none",
        """
import ctypes, os, time
print("ready", flush=True)
number = 56 if os.uname().machine == "x86_64" else 220
ctypes.CDLL(None).syscall(number, 0x4000 | 17, 0, 0, 0, 0)  # clone with CLONE_VFORK
time.sleep(60)
""",
    )
    assert caged.process.stdout.readline() == b"ready\n"
    deadline = time.monotonic() + 10 * PACE
    while len(process_tree.descendants(caged.process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    started = time.perf_counter()
    caged.freeze()
    assert time.perf_counter() - started < 2 * PACE
    assert caged.process.poll() is None


@pytest.mark.parametrize("form", FORMS)
def test_the_end_takes_everything(form, cage, counters):
    """This includes daemons, stopped or not, and the home; a second end does nothing."""
    caged = busy(cage, form, counters)
    pids = process_tree.descendants(caged.process.pid)
    assert len(pids) >= 3
    home = caged._home
    assert home is None or home.is_dir()
    if form == "none":
        caged.freeze()
    caged.kill()
    assert gone(pids, 0)
    assert caged.process.poll() is not None
    assert home is None or not home.exists()
    caged.kill()
    assert counters.moved() == [False] * SLOTS
    assert caged.memory_bytes() == caged.processes() == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_daemon_ends_with_the_process_that_left_it(form, cage, counters):
    """A submission's daemons are gone when the judge notices its end."""
    caged = busy(cage, form, counters, "time.sleep(0.2); os._exit(7)")
    pids = process_tree.descendants(caged.process.pid)
    assert caged.process.wait(timeout=20 * PACE) == 7
    caged.kill()
    assert gone(pids, 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_fatal_signal_is_reported_like_in_a_shell(form, cage):
    """The verdict names the signal."""
    caged = cage(form, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert caged.process.wait(timeout=20 * PACE) == 128 + signal.SIGSEGV


@pytest.mark.parametrize("form", ["bubblewrap", "none"])
def test_all_of_it_ends_with_a_judge_that_is_killed(form, counters, tmp_path):
    """No other process is left to end it."""
    variables = os.environ | {"TMPDIR": str(tmp_path)}  # the home remains; a judge's home is in its own folder
    code = f"""
import json, sys, time
sys.path[:0] = {import_folders()!r}
from grader.judge.sandbox import launch, process_tree
from grader.judge.sandbox.launch import Form, forms
kind = {form!r}
form = Form(kind) if kind == "none" else next((f for f in forms() if f.kind == kind and launch.works(f)), None)
if form is None:
    print("null", flush=True)
    sys.exit()
caged = launch.start_as(form, {BUSY.format(fd=counters.fd) + "count(0)"!r}, ({counters.fd},), "simulator")
caged.process.stdout.readline()
print(json.dumps([caged.process.pid, *process_tree.descendants(caged.process.pid)]), flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-I", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(counters.fd,), env=variables) as judge:
        try:
            pids = json.loads(judge.stdout.readline())
        finally:
            judge.kill()
    if pids is None:
        pytest.skip(f"this machine has no {form}")
    assert len(pids) >= 4
    assert gone(pids)


@pytest.mark.parametrize("form", ["bubblewrap", "none"])
def test_it_outlives_the_thread_that_asked_for_it(form, cage):
    """The kernel ties a child to the thread that started it, and the judge's threads end."""
    started = []
    asking = threading.Thread(target=lambda: started.append(cage(form, "import time; time.sleep(60)")))
    asking.start()
    asking.join()
    time.sleep(0.3)
    assert started[0].process.poll() is None
    assert process_tree.descendants(started[0].process.pid)


@pytest.mark.parametrize("form", FORMS)
def test_only_the_given_descriptors_are_passed_on(form, cage):
    """They keep their numbers; the others are stdin, which is empty, and the output pipe."""
    fd, other = sealed_memory("given", 4096), sealed_memory("kept", 4096)
    os.set_inheritable(other, True)
    try:
        caged = cage(
            form,
            """
import os
def is_open(fd):
    try:
        return os.fstat(fd) is not None
    except OSError:
        return False
print([fd for fd in range(1024) if is_open(fd)], os.read(0, 1), flush=True)
os.write(2, b"end")
""",
            fds=(fd,),
        )
        assert caged.process.stdout.read().decode() == f"[0, 1, 2, {fd}] b''\nend"
    finally:
        os.close(fd)
        os.close(other)


@pytest.mark.parametrize("form", FORMS)
def test_a_socket_that_it_closes_is_closed(form, cage):
    """No trusted process holds it open, so the judge need not wait for a time limit."""
    own, theirs = socket.socketpair()
    caged = cage(form, f"import os, time; os.close({theirs.fileno()}); time.sleep(60)", fds=(theirs.fileno(),))
    theirs.close()
    with own:
        own.settimeout(20)
        assert own.recv(1) == b""
    assert caged.process.poll() is None


def test_a_home_is_removed_whatever_is_in_it(cage):
    """It may contain folders nested a thousand deep, and some that their owner may not enter."""
    caged = cage(
        "none",
        """
import os
os.makedirs("closed/folder")
os.chmod("closed", 0)
for _ in range(1500):
    os.mkdir("deeper")
    os.chdir("deeper")
""",
    )
    assert caged.process.wait(timeout=20 * PACE) == 0
    home = caged._home
    assert (home / "closed").exists()
    caged.kill()
    assert not home.exists()
