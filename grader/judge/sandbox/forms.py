"""The kinds of cage there are, and what each lacks."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from grader.judge.sandbox import bubblewrap, landlock, seccomp

__all__ = ["Form", "forms"]


@dataclass(frozen=True)
class Form:
    """A kind of cage. `own_user`: the submission is another user of the system, which only root can do."""

    kind: str  # bubblewrap, landlock, limits or none
    own_user: bool = False
    lacking: tuple[str, ...] = ()  # clauses, for whoever reads the verdict

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(self.lacking)}" if self.lacking else self.kind


def forms() -> list[Form]:
    """Those to be tried on this system, the strongest first; the last needs nothing."""
    users = (True, False) if os.geteuid() == 0 else (False,)
    program, version = bubblewrap.find(), landlock.abi()
    unfiltered = () if seccomp.program(True) else (f"no filter of system calls for {platform.machine()}",)
    unlimited = ("temporary files have no limit",)
    found = []
    if program is not None:
        lacking = unfiltered + (() if bubblewrap.caps_sizes(program) else unlimited)
        found += [("bubblewrap", lacking)]
    reason = "bubblewrap is not installed" if program is None else "this system allows bubblewrap no namespaces"
    if version:
        found += [("landlock", (reason, "other processes are seen", *unlimited, *unfiltered))]
    open_ = ("there is no Landlock", "files are protected by their permissions alone")
    found += [("limits", (reason, *open_, "other processes are seen", *unlimited, *unfiltered))]
    return [
        Form(kind, own_user, lacking + _as_same_user(kind, version, own_user))
        for kind, lacking in found
        for own_user in users
    ]


def _as_same_user(kind: str, landlock_version: int, own_user: bool) -> tuple[str, ...]:
    """What it means that the submission is the grading user."""
    if own_user:
        return ()
    user = ("it is root, without its capabilities",) if os.geteuid() == 0 else ()
    namespaced = kind == "bubblewrap" or (kind == "landlock" and landlock_version >= 6)
    return user if namespaced else (*user, "other processes of the same user can be signalled")
