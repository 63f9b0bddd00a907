"""The cage around a worker, built by the trusted side; what it promises stands in SECURITY.md.

```text
launch         starts a process in a cage, or without one where there is none; on the way to the submission:
  bubblewrap   namespaces, a file system of what sight shows, and seccomp
  trampoline   our first code inside: limits, user, capabilities
caged, tree    the judge's hold on everything that lives in it; cgroup, where the system has one for us
```
"""

from grader.judge.sandbox.caged import Caged, remove
from grader.judge.sandbox.launch import must_be_caged, start, strength
from grader.judge.sandbox.limits import FILES, MEMORY_BYTES, TASKS
from grader.judge.sandbox.room import available_share
from grader.judge.sandbox.sight import import_folders
from grader.judge.sandbox.tree import TooManyFiles

__all__ = [
    "FILES", "MEMORY_BYTES", "TASKS", "Caged", "TooManyFiles", "available_share", "import_folders", "must_be_caged",
    "remove", "start", "strength",
]  # fmt: skip
