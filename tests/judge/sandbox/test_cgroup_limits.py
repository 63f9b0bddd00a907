"""The limits of a submission, and how the judge counts what it uses."""

import os
import resource
import subprocess
import time

import pytest

from grader.judge.sandbox import bubblewrap, cgroup
from grader.judge.sandbox.launch import Form
from grader.protocol.flag import sealed_memory
from tests.pace import PACE

FORMS = ["bubblewrap"]
MIB = 1 << 20
HOLD = """
import ctypes, os, threading, time
def hold(what):
    print("held", flush=True)
    time.sleep(60)
"""


def held(caged):
    """The memory that the judge counts once the program reports that it holds everything."""
    assert caged.process.stdout.readline() == b"held\n"
    return caged.memory_bytes()


@pytest.mark.parametrize("folder", bubblewrap.WRITABLE)
def test_each_writable_folder_has_a_limit(folder, told, monkeypatch):
    """A full folder affects only the submission."""
    monkeypatch.setattr(bubblewrap, "WRITABLE", dict.fromkeys(bubblewrap.WRITABLE, 4 * MIB))
    found = told(
        "bubblewrap",
        f"""
def fill():
    with open("{folder}/file", "wb", buffering=0) as file:
        for _ in range(64):
            file.write(bytes({MIB}))
tell(full=fill, size=lambda: os.statvfs("{folder}").f_blocks * os.statvfs("{folder}").f_frsize)
""",
    )
    assert found == {"full": "ENOSPC", "size": 4 * MIB}


def test_the_folders_are_no_larger_than_the_memory_limit():
    """The folders are in memory."""
    assert sum(bubblewrap.WRITABLE.values()) <= max(cgroup.MEMORY_BYTES, 2 << 30)
    assert set(bubblewrap.WRITABLE) == {"/home/worker", "/tmp", "/dev/shm"}


@pytest.mark.parametrize("form", FORMS)
def test_the_limits_of_a_process_hold_and_cannot_be_raised(form, told):
    """The limits cover file size, processor time, open files, data and core dumps."""
    names = ["FSIZE", "CPU", "NOFILE", "DATA", "CORE", "MEMLOCK", "NPROC", "STACK"]
    found = told(
        form,
        f"""
def too_large():
    with open("large", "wb") as file:
        file.truncate({cgroup.HOME_BYTES} + 1)
def raised():
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))
    except ValueError:  # Python reports EPERM like this
        return "EPERM"
tell(large=too_large, raised=raised,
     **{{name: lambda name=name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1] for name in {names}}})
""",
    )
    assert found.pop("large") == "EFBIG"
    assert found.pop("raised") == "EPERM"
    wanted = {name: hard for name, _, hard in cgroup.rlimits(cgroup.TASKS)}
    for name in names:
        ours = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
        most = wanted[name] if ours == resource.RLIM_INFINITY else min(ours, wanted[name])
        assert found[name] == most or (name == "NPROC" and found[name] >= most), name


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: otherwise the user's own processes count too")
@pytest.mark.parametrize("kind", FORMS)
def test_a_fork_bomb_ends_at_the_limit(kind, told, system_python):
    """After some thousand threads and processes the kernel refuses more."""
    found = told(
        Form(kind, own_user=True),
        """
import signal, time
def bomb():
    pids = []
    try:
        while len(pids) < 5000:
            pid = os.fork()
            if pid == 0:
                time.sleep(100)
                os._exit(0)
            pids.append(pid)
    except BlockingIOError:
        return len(pids)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
tell(made=bomb)
""",
    )
    assert cgroup.TASKS < found["made"] <= cgroup.TASKS + cgroup.MORE_TASKS


@pytest.mark.parametrize("form", [*FORMS, "none"])
@pytest.mark.parametrize(
    "hold",
    [
        "data = bytearray(64 << 20)",
        "fd = os.memfd_create('held'); os.write(fd, bytes(64 << 20))",
        "libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p; size = ctypes.c_size_t(64 << 20)\n"
        "fd = os.memfd_create('held'); os.truncate(fd, 64 << 20)\n"
        "at = libc.mmap(None, size, 3, 1, fd, ctypes.c_long(0)); os.close(fd); ctypes.memset(at, 1, 64 << 20)",
        "pid = os.fork(); data = bytearray(64 << 20) if pid == 0 else None; time.sleep(60 if pid else 0)",
    ],
    ids=["its own", "a file of memory", "mapped and closed", "a child's"],
)
def test_the_judge_counts_memory_however_it_is_held(form, hold, cage):
    """The count is 64 MiB above an empty process, and not much more, whatever other workers share with the judge."""
    fd = sealed_memory("another worker's arena", 64 * MIB)
    os.write(fd, bytes(64 * MIB))
    try:
        least = held(cage(form, HOLD + "hold(None)"))
        most = held(cage(form, HOLD + hold + "\nhold(None)"))
    finally:
        os.close(fd)
    assert 50 * MIB < most - least < 100 * MIB


def test_a_process_does_not_hide_behind_its_first_thread(cage):
    """A process whose first thread has ended looks like a zombie, but it is counted and stopped."""
    caged = cage(
        "bubblewrap",
        HOLD
        + """
def work():
    data = bytearray(64 << 20)
    time.sleep(0.3)  # the first thread has ended by then
    hold(data)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit, only for this thread
""",
    )
    assert held(caged) > 64 * MIB
    caged.freeze()
    assert caged.process.poll() is None


def test_files_in_its_folders_count_even_empty_ones(cage, monkeypatch):
    """The folders are in memory, including the names in them."""
    monkeypatch.setattr(bubblewrap, "WRITABLE", bubblewrap.WRITABLE | {"/tmp": 64 * MIB})
    least = held(cage("bubblewrap", HOLD + "hold(None)"))
    full = held(cage("bubblewrap", HOLD + "open('/tmp/file', 'wb').write(bytes(32 << 20)); hold(None)"))
    names = "for at in range(16384): os.close(os.open(f'/tmp/{at}', os.O_CREAT))\n"
    many = held(cage("bubblewrap", HOLD + names + "hold(None)"))
    assert 30 * MIB < full - least < 50 * MIB
    assert 14 * MIB < many - least < 50 * MIB


def test_memory_shared_with_the_judge_is_not_counted(cage):
    """The arenas are passed by descriptor and mapped by both."""
    fd = sealed_memory("arena", 64 * MIB)
    os.write(fd, bytes(64 * MIB))
    try:
        mapped = f"import mmap; data = mmap.mmap({fd}, 64 << 20); bytes(data)\n"
        assert held(cage("bubblewrap", HOLD + mapped + "hold(None)", fds=(fd,))) < 50 * MIB
    finally:
        os.close(fd)


def test_counting_is_fast_enough_for_ten_times_a_second(cage):
    """The judge counts while it waits, here with torch loaded."""
    caged = cage("bubblewrap", "import torch\n" + HOLD + "hold(None)")
    assert held(caged) > 50 * MIB
    started = time.perf_counter()
    for _ in range(10):
        caged.memory_bytes()
    assert (time.perf_counter() - started) / 10 < 0.05 * PACE


def test_threads_count_as_processes_do(cage):
    """The kernel's limit counts in the same way."""
    threads = "for _ in range(5): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    caged = cage("bubblewrap", HOLD + threads + "hold(None)")
    assert held(caged) > 0
    assert caged.processes() == 1 + 1 + 5  # the first is bubblewrap's own


def test_a_control_group_is_created_where_possible(tmp_path, monkeypatch):
    """It is in the nearest parent that delegates memory and pids; the limits are set before a process enters."""
    near, far = tmp_path / "far/near", tmp_path / "far"
    near.mkdir(parents=True)
    (near / "cgroup.subtree_control").write_text("cpu\n")
    (far / "cgroup.subtree_control").write_text("cpu memory pids\n")
    removed = []
    monkeypatch.setattr(cgroup, "_above", lambda: [near, far])
    monkeypatch.setattr(cgroup, "remove", removed.append)
    cgroup._parent.cache_clear()
    try:
        group = cgroup.make()
        assert group is not None
        assert group.parent == far
        assert (group / "memory.max").read_text() == str(cgroup.MEMORY_BYTES)
        assert (group / "pids.max").read_text() == str(cgroup.TASKS + cgroup.MORE_TASKS)
        assert (group / "memory.oom.group").read_text() == "1"
        assert len(removed) == 1  # the one of the trial
        command = cgroup.entering(group, ["sh", "-c", f"cat {group}/cgroup.procs; echo $$"])
        entered, pid = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert entered == pid
        assert not cgroup.ran_out_of_memory(group)
        (group / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
        assert cgroup.ran_out_of_memory(group)
    finally:
        cgroup._parent.cache_clear()


def test_without_control_groups_nothing_is_created(monkeypatch):
    """There is neither a folder nor an error."""
    monkeypatch.setattr(cgroup, "_above", list)
    cgroup._parent.cache_clear()
    try:
        assert cgroup.make() is None
        assert cgroup.entering(None, ["true"]) == ["true"]
        assert not cgroup.ran_out_of_memory(None)
    finally:
        cgroup._parent.cache_clear()


def test_too_many_open_files_are_not_inspected(cage, monkeypatch):
    """Each one takes time, and some hundred processes may have a thousand each."""
    from grader.judge.sandbox import TooManyFiles
    from grader.judge.sandbox import process_tree as cages

    monkeypatch.setattr(cages, "FILES", 2000)
    many = """
os.set_inheritable(0, True)
for number in range(20, 520): os.dup2(0, number)
for _ in range(4): os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
time.sleep(0.5)
"""
    caged = cage("bubblewrap", HOLD + many + "hold(None)")
    with pytest.raises(TooManyFiles):
        held(caged)
