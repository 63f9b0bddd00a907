"""A process tree in a cage, and the three things that the judge does to it: hold it still, count it, end it."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

from grader.judge.sandbox import cgroup, tree
from grader.judge.sandbox.limits import FILES

__all__ = ["Caged", "remove"]

_FREEZE_LIMIT_S = 5.0
_END_LIMIT_S = 20.0  # a driver may take seconds to let go of a GPU


class Caged:
    """A process tree in a cage. `process` is our own part of it: bubblewrap, or a supervisor; all else lies below."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        init: int | None = None,
        home: Path | None = None,
        group: Path | None = None,
        folders: Iterable[str] = (),
    ) -> None:
        """Owns what it is given.

        Args:
            init: a pidfd of the first process of its pid namespace, with which the kernel ends all of it.
            home: a folder to remove at the end.
            group: its control group.
            folders: the tmpfs that it can write to, in its own namespace.
        """
        self.process = process
        self._init, self._home, self._group, self._folders = init, home, group, tuple(folders)
        self._lock = threading.Lock()
        self._ended = False

    def freeze(self) -> None:
        """Stops everything, until `thaw`. A tree that cannot be held still is ended."""
        if self.process.poll() is None and not tree.stop_all(self.process.pid, _FREEZE_LIMIT_S):
            self.kill()

    def thaw(self) -> None:
        """Lets everything go on."""
        if self.process.poll() is None:
            tree.continue_all(self.process.pid)

    def memory_bytes(self) -> int:
        """Memory and temporary files of the whole tree; takes a few milliseconds.

        Raises:
            TooManyFiles: it has more descriptors than `FILES`.
        """
        return tree.memory_bytes(self.process.pid, self._folders, FILES) if self.process.poll() is None else 0

    def processes(self) -> int:
        """Processes and threads of the whole tree, our own part not counted."""
        return tree.tasks(tree.descendants(self.process.pid)) if self.process.poll() is None else 0

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended it for that; known only where it has a control group, and until `kill`."""
        return cgroup.ran_out_of_memory(self._group)

    def kill(self) -> None:
        """Ends everything, waits for it, removes its home. A second call does nothing. `process.stdout` stays open."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            if self._init is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._init, signal.SIGKILL)
                ends = select.poll()
                ends.register(self._init, select.POLLIN)  # once it and all below it have ended
                ends.poll(_END_LIMIT_S * 1000)
                os.close(self._init)
            elif self.process.poll() is None:
                tree.stop_all(self.process.pid, _FREEZE_LIMIT_S)  # what is stopped has no more children
                tree.end_all(self.process.pid, _END_LIMIT_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)  # it tells how its child ended
            self.process.kill()
            self.process.wait()
            cgroup.remove(self._group)
            if self._home is not None:
                remove(self._home)


def remove(folder: Path) -> None:
    """Removes a folder, whatever a submission has made of it."""
    with contextlib.suppress(RecursionError):  # folders in folders, a thousand deep
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):  # or some that their owner may not enter
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], check=False, capture_output=True)
