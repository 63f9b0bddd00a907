"""The sandbox around a worker. SECURITY.md lists what it guarantees.

`launch` starts the process in bubblewrap, or without a sandbox. `bubblewrap` sets up the namespaces, the files that
`sight` selects and the `seccomp` filter. Inside, `trampoline` sets limits and drops privileges before submissions run.
`process_tree` stops, measures and ends the processes, with the limits and the control group of `cgroup`.
"""

from grader.judge.sandbox.cgroup import FILES, MEMORY_BYTES, TASKS, available_share
from grader.judge.sandbox.launch import must_be_caged, start, strength
from grader.judge.sandbox.process_tree import Caged, TooManyFiles, remove
from grader.judge.sandbox.sight import import_folders

__all__ = [
    "FILES", "MEMORY_BYTES", "TASKS", "Caged", "TooManyFiles", "available_share", "import_folders", "must_be_caged",
    "remove", "start", "strength",
]  # fmt: skip
