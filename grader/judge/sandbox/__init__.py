"""The cage around a worker, built by the trusted side; what it promises stands in SECURITY.md.

```text
launch         starts a process in a cage, or without one where there is none; on the way to the submission:
  bubblewrap   namespaces, a file system of what sight shows, and seccomp
  trampoline   our first code inside: limits, user, capabilities
caged, tree    the judge's hold on everything that lives in it; cgroup, where the system has one for us
```
"""

from grader.judge.sandbox.cgroup import FILES, MEMORY_BYTES, TASKS, available_share
from grader.judge.sandbox.launch import must_be_caged, start, strength
from grader.judge.sandbox.process_tree import Caged, TooManyFiles, remove
from grader.judge.sandbox.sight import import_folders

__all__ = [
    "FILES", "MEMORY_BYTES", "TASKS", "Caged", "TooManyFiles", "available_share", "import_folders", "must_be_caged",
    "remove", "start", "strength",
]  # fmt: skip
