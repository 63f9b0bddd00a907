"""The seccomp filter, as a BPF program: it refuses system calls that no GPU kernel needs.

It refuses access to other processes, new namespaces and mounts, calls with a history of vulnerabilities, and memory
that the judge cannot count. It also refuses calls that could continue a process that the judge has stopped: only the
judge sends SIGCONT, and the kernel when a process ends (see `process_tree.stop_all`).
"""

from __future__ import annotations

import errno
import platform
import struct

# The number of each call on x86-64 and on aarch64 (-1: missing).
NUMBERS = {
    "_sysctl": (156, -1), "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112), "clone": (56, 220),
    "clone3": (435, 435), "delete_module": (176, 106), "fanotify_init": (300, 262), "fcntl": (72, 25),
    "finit_module": (313, 273), "fsconfig": (431, 431), "fsmount": (432, 432), "fsopen": (430, 430),
    "fspick": (433, 433), "init_module": (175, 105), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioperm": (173, -1), "iopl": (172, -1), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219), "kill": (62, 129),
    "lookup_dcookie": (212, 18), "memfd_secret": (447, 447), "migrate_pages": (256, 238), "modify_ldt": (154, -1),
    "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "mq_notify": (244, 184), "mq_open": (240, 180), "msgget": (68, 186), "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265), "open_tree": (428, 428), "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41), "prlimit64": (302, 261), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "reboot": (169, 142), "request_key": (249, 218), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "semget": (64, 190), "setdomainname": (171, 162), "sethostname": (170, 161),
    "setns": (308, 268), "settimeofday": (164, 170), "shmget": (29, 194), "socket": (41, 198), "socketpair": (53, 199),
    "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "sysfs": (139, -1), "tgkill": (234, 131),
    "timer_create": (222, 107), "tkill": (200, 130), "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, -1),
    "userfaultfd": (323, 282), "ustat": (136, -1), "vhangup": (153, 58),
}  # fmt: skip

_CLONE_NEW = 0x7E020000  # every namespace that `clone` can create
_SIGCONT, _F_SETSIG = 18, 10
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_STREAM, _SEQPACKET, _FLAGS_OF_TYPE = 1, 5, 0x80800  # socket types; the flags are SOCK_CLOEXEC, SOCK_NONBLOCK
_MINUS_1 = 0xFFFFFFFF

# A datagram socket of a pair could send to any other socket, even descriptors; a stream reaches only its peer.
_STREAMS = (1, "is not type", (_STREAM, _SEQPACKET))

# Calls refused for some arguments: (argument index, test, values). The low half of an argument is tested.
_CONDITIONS: dict[str, list[tuple[int, str, tuple[int, ...]]]] = {
    "clone": [(0, "bits", (_CLONE_NEW,))],
    "fcntl": [(1, "is", (_F_SETSIG,))],
    "kill": [(1, "is", (_SIGCONT,))],
    "personality": [(0, "is not", (0, _MINUS_1))],
    "pidfd_send_signal": [(1, "is", (_SIGCONT,))],
    "prlimit64": [(0, "is not", (0,))],
    "rt_sigqueueinfo": [(1, "is", (_SIGCONT,))],
    "rt_tgsigqueueinfo": [(2, "is", (_SIGCONT,))],
    "socket": [(0, "is not", (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK))],  # vsock has no namespace
    "socketpair": [(0, "is not", (_AF_UNIX,)), _STREAMS],
    "tgkill": [(2, "is", (_SIGCONT,))],
    "tkill": [(1, "is", (_SIGCONT,))],
}
DENIED = tuple(name for name in NUMBERS if name not in {*_CONDITIONS, "clone3"})

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of NUMBERS, linux/audit.h
_X32 = 0x40000000  # numbers from here on belong to the x32 table
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data

_Instruction = tuple[int, int, int, int]  # code, steps to skip if true, steps to skip if false, operand


def program() -> bytes:
    """The filter for this processor; empty on an unsupported one."""
    column, architecture = _ARCHITECTURES.get(platform.machine(), (-1, 0))
    if column < 0:
        return b""
    code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), _return(_KILL), (_LOAD, 0, 0, _NUMBER)]
    if platform.machine() == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), _return(_ERRNO | errno.ENOSYS)]
    code += [(_EQUAL, 0, 1, NUMBERS["clone3"][column]), _return(_ERRNO | errno.ENOSYS)]  # its flags are in memory
    for name in DENIED:
        if NUMBERS[name][column] >= 0:
            code += [(_EQUAL, 0, 1, NUMBERS[name][column]), _return(_ERRNO | errno.EPERM)]
    for name, tests in _CONDITIONS.items():
        body = [step for test in tests for step in _refuse(*test)] + [_return(_ALLOW)]
        code += [(_EQUAL, 0, len(body), NUMBERS[name][column]), *body]
    code.append(_return(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _refuse(argument: int, test: str, values: tuple[int, ...]) -> list[_Instruction]:
    """Steps that refuse the call with EPERM if the low half of the argument passes the test."""
    last = len(values) - 1
    if test in ("is not", "is not type"):
        compare = [(_EQUAL, last - at + 1, 0, value) for at, value in enumerate(values)]
        if test == "is not type":
            compare.insert(0, (_AND, 0, 0, ~_FLAGS_OF_TYPE & 0xFFFFFFFF))
    else:
        jump = _EQUAL if test == "is" else _ANY_BIT
        compare = [(jump, last - at, 1 if at == last else 0, value) for at, value in enumerate(values)]
    return [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument), *compare, _return(_ERRNO | errno.EPERM)]


def _return(value: int) -> _Instruction:
    return (_RETURN, 0, 0, value)
