"""Landlock: what a process without namespaces of its own may do with files, TCP, and processes outside of it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["abi", "ruleset"]

_CREATE_RULESET, _ASK_VERSION = 444, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_BITS = {1: 13, 2: 14, 3: 15, 4: 15}  # rights that the first versions know, counted from the lowest bit
_ALL_BITS = 16
_OWN_FILES = "/proc/self"  # opened once the process is the one that will run: its own, and no child's
_TCP, _SCOPES = 0b11, 0b11  # bind, connect; abstract sockets, signals


def abi() -> int:
    """The version of Landlock that this kernel speaks; 0 for none."""
    answer = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, int(answer))


def ruleset(read: Iterable[Path], secret: list[Path], devices: Iterable[str], home: Path) -> dict[str, Any]:
    """What the trampoline hands to the kernel: read and execute `read` but not `secret`, use `devices`, own `home`.

    A process may write to its own files in /proc, too: CUDA truncates one of them as it starts, or does not start.
    """
    version = abi()
    handled = (1 << _BITS.get(version, _ALL_BITS)) - 1
    levels = [handled, *([_TCP] if version >= 4 else []), *([_SCOPES] if version >= 6 else [])]
    real = [path.resolve() for path in read]
    open_for = {str(path): _READ_FILE | _EXECUTE | _READ_DIR for path in real}
    for path in real:
        open_for |= _around(path, secret)
    open_for |= dict.fromkeys(devices, _READ_FILE | _WRITE_FILE | _IOCTL)
    open_for[_OWN_FILES] = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE
    open_for[str(home)] = handled
    rules = [(path, _fitting(path, access) & handled) for path, access in open_for.items()]
    return {"handled": levels, "rules": [(path, access) for path, access in rules if access]}


def _around(path: Path, secret: list[Path]) -> dict[str, int]:
    """For a folder that has something secret in it: its names, and in full whatever leads to no secret.

    Landlock only ever adds, down the whole folder; names in the secret ones can be listed, their files not opened.
    """
    within = [each for each in secret if each != path and each.is_relative_to(path)]
    if not within:
        return {}
    found = {str(path): _READ_DIR}
    for child in sorted(path.iterdir()):
        if child not in secret:
            found[str(child)] = _READ_FILE | _EXECUTE | _READ_DIR
            found |= _around(child, within)
    return found


def _fitting(path: str, access: int) -> int:
    return access if os.path.isdir(path) else access & _OF_FILES
