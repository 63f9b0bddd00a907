"""Privileges: a submission has no capability and few system calls."""

import os
import platform
import re
import socket
from pathlib import Path

import pytest

from grader.judge.sandbox import seccomp
from grader.judge.sandbox.launch import Form, forms

FORMS = ["bubblewrap"]
STATUS = """
status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
"""
CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    arguments = [ctypes.c_long(each) for each in (*arguments, *[0] * (6 - len(arguments)))]
    if libc.syscall(ctypes.c_long(number), *arguments) < 0:
        return errno.errorcode[ctypes.get_errno()]
    return "done"
"""
NAMED = [
    "add_key", "bpf", "chroot", "clock_settime", "finit_module", "fsopen", "init_module", "io_uring_enter",
    "io_uring_setup", "kcmp", "kexec_load", "keyctl", "memfd_secret", "mount", "mount_setattr", "move_mount",
    "msgget", "open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root",
    "process_vm_readv", "process_vm_writev", "ptrace", "request_key", "setns", "settimeofday", "shmget",
    "swapon", "syslog", "timer_create", "umount2", "unshare", "userfaultfd",
]  # fmt: skip
COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
HEADERS = (
    f"/usr/include/{platform.machine()}-linux-gnu/asm/unistd_64.h",
    "/usr/include/asm-generic/unistd.h",
)


def number(name):
    return seccomp.NUMBERS[name][COLUMN]


@pytest.mark.parametrize("form", FORMS)
def test_it_has_no_capability_and_can_get_none(form, told):
    """A program that it starts gets none either, even under root."""
    found = told(
        form,
        STATUS
        + """
import subprocess
child = subprocess.run(["grep", "CapEff", "/proc/self/status"], capture_output=True, text=True).stdout.split()[1]
names = ("CapInh", "CapPrm", "CapEff", "CapAmb")
tell(capabilities=lambda: {status[name] for name in names} | {child} == {"0" * 16},
     privileges=lambda: status["NoNewPrivs"], filter=lambda: status["Seccomp"],
     groups=lambda: status.get("Groups", "").split(), bounds=lambda: status["CapBnd"])
""",
    )
    groups = found.pop("groups")
    assert found == {"capabilities": True, "privileges": "1", "filter": "2", "bounds": found["bounds"]}
    assert int(found["bounds"], 16) == 0 or os.geteuid() != 0
    if form == "bubblewrap":
        assert groups == []


@pytest.fixture
def groups():
    """Puts the judge into one more group."""
    before = os.getgroups()
    os.setgroups([*before, 4])
    yield
    os.setgroups(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("kind", FORMS)
def test_a_judge_that_is_root_gives_it_another_user(kind, told, system_python, groups):
    """All its user ids are new, it is in none of the judge's groups, and it cannot switch back."""
    found = told(
        Form(kind, own_user=True),
        STATUS
        + """
tell(users=lambda: status["Uid"].split(), groups=lambda: status["Gid"].split(), back=lambda: os.setuid(0),
     more=lambda: status.get("Groups", "").split())
""",
    )
    assert len(set(found["users"] + found["groups"])) == 1
    assert 61184 <= int(found["users"][0]) < 61184 + 4096
    assert found["back"] == "EPERM"
    assert found["more"] == []


def test_an_ordinary_user_gets_a_cage(ordinary_user, tmp_path):
    """Without root it has a user namespace and no capabilities; freezing, counting and ending work."""
    out = ordinary_user(
        """
import time
from grader.judge.sandbox import launch, process_tree
from grader.judge.sandbox.launch import forms
code = '''
import os, sys, time, grader.worker
names = ("CapEff", "NoNewPrivs", "Seccomp:")
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith(names)), end=" ")
print(os.access("/etc/machine-id", os.R_OK), end=" ")
try:
    os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR))  # of the supervisor, which has the same user
    print("opened", flush=True)
except OSError as error:
    print("closed", flush=True)
data = bytearray(50 << 20)
print("held", flush=True)
time.sleep(60)
'''
for form in forms():
    caged = launch.start_as(form, code, (), "simulator")
    said = caged.process.stdout.readline().decode().split()
    caged.process.stdout.readline()
    caged.freeze()
    states = {open(f"/proc/{pid}/stat").read().split(") ")[1][0] for pid in process_tree.descendants(caged.process.pid)}
    held, tasks = caged.memory_bytes() >> 20, caged.processes()
    caged.thaw()
    pids = process_tree.descendants(caged.process.pid)
    caged.kill()
    print(form.kind, *said, states, held >= 50, tasks, [pid for pid in pids if process_tree.tasks([pid])])
""",
        tmp_path,
    )
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines()}
    assert lines
    for kind, line in lines.items():
        tasks = 2  # one is bubblewrap's
        assert line.startswith("0000000000000000 1 2 "), line
        assert "closed" in line or kind == "bubblewrap", line  # whose parent process is as restricted as the submission
        assert line.endswith(f"{{'T'}} True {tasks} []"), line
    if "bubblewrap" in lines:
        assert lines["bubblewrap"].split()[3] == "False"


@pytest.mark.skipif(COLUMN is None, reason="the filter is not written for this processor")
@pytest.mark.parametrize("form", FORMS)
def test_system_calls_that_no_kernel_needs_are_refused(form, told):
    """This covers every call of the list, and calls that are refused for their arguments."""
    assert set(NAMED) <= set(seccomp.DENIED)
    calls = {name: (number(name),) for name in seccomp.DENIED if number(name) >= 0}
    new = dict.fromkeys(("NEWNS", "NEWCGROUP", "NEWUTS", "NEWIPC", "NEWUSER", "NEWPID", "NEWNET"))
    flags = (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
    calls |= {f"clone {name}": (number("clone"), flag | 17) for name, flag in zip(new, flags, strict=True)}
    calls |= {
        "socket of packets": (number("socket"), int(socket.AF_PACKET), 2),
        "socket to the host": (number("socket"), 40, 1),  # AF_VSOCK
        "pair of datagrams": (number("socketpair"), 1, 2, 0, 0),
        "pair of raw datagrams": (number("socketpair"), 1, 3 | 0x80800, 0, 0),
        "a signal on input": (number("fcntl"), 0, 10, 18),  # F_SETSIG
        "personality": (number("personality"), 0x0040000),
        "limits of others": (number("prlimit64"), 1, 7),
    }
    found = told(
        form,
        CALL
        + f"""
import socket
calls = {calls}
tell(**{{name: lambda arguments=arguments: call(*arguments) for name, arguments in calls.items()}},
     **{{"continued " + str(at): lambda each=each: call(*each) for at, each in enumerate([
         ({number("kill")}, os.getpid(), 18), ({number("tkill")}, os.getpid(), 18),
         ({number("tgkill")}, os.getpid(), os.getpid(), 18), ({number("rt_sigqueueinfo")}, os.getpid(), 18)])}},
     clone3=lambda: call({number("clone3")}), fork=lambda: os.waitpid(os.fork() or os._exit(0), 0)[1],
     personality_now=lambda: call({number("personality")}, 0xFFFFFFFF), pair=lambda: bool(socket.socketpair()))
""",
    )
    assert found.pop("clone3") == "ENOSYS"  # the C library then uses clone
    assert found.pop("fork") == 0
    assert found.pop("personality_now") == "done"
    assert found.pop("pair") is True
    assert set(found.values()) == {"EPERM"}, {name: got for name, got in found.items() if got != "EPERM"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs a processor with other tables of system calls")
def test_other_tables_of_system_calls_are_closed(cage, told):
    """A 32-bit call by `int 0x80` ends the process; x32 calls do not exist."""
    assert told("bubblewrap", CALL + "tell(x32=lambda: call(0x40000000 + 39))") == {"x32": "ENOSYS"}
    caged = cage(
        "bubblewrap",
        """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000cd80c3"))  # getpid
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
print("REACHED")
""",
    )
    assert b"REACHED" not in caged.process.stdout.read()
    assert caged.process.wait() == 128 + 31  # SIGSYS


@pytest.mark.parametrize(("column", "header"), [(0, HEADERS[0]), (1, HEADERS[1])])
def test_the_numbers_are_the_kernels(column, header):
    """A wrong number would refuse the wrong call."""
    path = Path(header if column else header.replace("aarch64", "x86_64"))
    if not path.is_file():
        pytest.skip(f"needs {path}")
    pairs = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text())
    known = {name: int(number) for name, number in reversed(pairs)}
    known |= {"umount2": known.get("umount2", known.get("umount", -1))}
    listed = {name: numbers[column] for name, numbers in seccomp.NUMBERS.items()}
    common = known.keys() & listed.keys()
    assert {name: listed[name] for name in common} == {name: known[name] for name in common}
    assert len(common) > 65


@pytest.mark.parametrize("form", FORMS)
def test_it_reaches_no_network(form, told):
    """It reaches no server on this machine, by address or by an abstract socket name."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        name = f"grader-test-{os.getpid()}"
        local.bind("\0" + name)
        local.listen()
        found = told(
            form,
            f"""
import socket
def connect(family, address):
    with socket.socket(family) as tried:
        tried.connect(address)
tell(tcp=lambda: connect(socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]})),
     unix=lambda: connect(socket.AF_UNIX, "\\0{name}"), names=lambda: [name for _, name in socket.if_nameindex()])
""",
        )
    assert found["tcp"] in ("ECONNREFUSED", "ENETUNREACH", "EPERM")
    assert found["unix"] in ("ECONNREFUSED", "EPERM")
    assert found["names"] in (["lo"], "EPERM")


SOCKETS = """
import socket
def made(family, kind):
    socket.socket(family, kind).close()
    return "made"
def refused(function, *arguments):
    try:
        function(*arguments)
    except PermissionError:
        return "EPERM"
unix, none = socket.AF_UNIX, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
"""


@pytest.mark.parametrize("form", FORMS)
def test_no_datagram_leaves_a_connected_pair(form, told):
    """A datagram could be sent to any receiver, with descriptors; pairs of streams are allowed."""
    found = told(
        form,
        SOCKETS
        + """
def pair(kind):
    for each in socket.socketpair(unix, kind | none):
        each.close()
    return "made"
tell(stream=lambda: pair(socket.SOCK_STREAM), packets=lambda: pair(socket.SOCK_SEQPACKET),
     datagram=lambda: pair(socket.SOCK_DGRAM), raw=lambda: pair(socket.SOCK_RAW))
""",
    )
    assert found == {"stream": "made", "packets": "made", "datagram": "EPERM", "raw": "EPERM"}


@pytest.mark.parametrize("own_user", [True, False])
def test_bubblewrap_gives_it_namespaces_of_its_own(own_user, told):
    """Every namespace differs from the judge's; there is a user namespace if it has no own user."""
    if own_user and os.geteuid() != 0:
        pytest.skip("needs root")
    kinds = ["pid", "ipc", "uts", "net", "mnt", "cgroup", *([] if own_user else ["user"])]
    found = told(
        Form("bubblewrap", own_user),
        f"tell(**{{kind: lambda kind=kind: os.readlink('/proc/self/ns/' + kind) for kind in {kinds}}})",
    )
    assert all(found[kind] != os.readlink(f"/proc/self/ns/{kind}") for kind in kinds), found


def test_in_bubblewrap_it_sees_no_other_process(told):
    """It is in a pid namespace and cannot signal the judge."""
    found = told(
        "bubblewrap",
        f"""
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
tell(pids=lambda: sorted(pids), judge=lambda: os.kill({os.getpid()}, 0))
""",
    )
    assert found["pids"] == [1, 2]
    assert found["judge"] == "ESRCH" or os.getpid() <= 2


def test_a_filter_is_small_enough_for_the_kernel_and_its_jumps_stay_inside():
    """It has at most 4096 instructions, and no jump exceeds 255."""
    assert 0 < len(seccomp.program()) // 8 < 4096 or COLUMN is None


def test_an_unknown_processor_has_no_filter_and_the_verdict_says_so(monkeypatch):
    """The sandbox works without the filter."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert seccomp.program() == b""
    assert all("no filter of system calls for riscv64" in str(form) for form in forms())
