"""The kinds of cage there are, and what each lacks."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from grader.judge.sandbox import bubblewrap, seccomp

__all__ = ["Form", "forms", "without"]


@dataclass(frozen=True)
class Form:
    """A kind of cage. `own_user`: the submission is another user of the system, which only root can do."""

    kind: str  # bubblewrap or none
    own_user: bool = False
    lacking: tuple[str, ...] = ()  # clauses, for whoever reads the verdict

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(self.lacking)}" if self.lacking else self.kind


def forms() -> list[Form]:
    """Those to be tried on this system, the strongest first; none without bubblewrap."""
    program = bubblewrap.find()
    if program is None:
        return []
    lacking: tuple[str, ...] = () if seccomp.program() else (f"no filter of system calls for {platform.machine()}",)
    lacking += () if bubblewrap.caps_sizes(program) else ("temporary files have no limit",)
    if os.geteuid() != 0:
        return [Form("bubblewrap", lacking=lacking)]
    as_root = (*lacking, "it is root, without its capabilities")
    return [Form("bubblewrap", own_user=True, lacking=lacking), Form("bubblewrap", lacking=as_root)]


def without() -> Form:
    """A plain process, where none of `forms` works."""
    installed = bubblewrap.find() is not None
    reason = "this system allows bubblewrap no namespaces" if installed else "bubblewrap is not installed"
    return Form("none", lacking=(reason,))
