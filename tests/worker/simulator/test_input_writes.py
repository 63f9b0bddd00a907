"""A write to an input is reported with the input and the line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes, json, mmap, sys
from grader.worker.simulator.input_writes import report_writes

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
first = libc.mmap(None, ctypes.c_size_t(4096), 1, 0x22, -1, ctypes.c_long(0))
report_writes(lambda: [("x", first, first + 1024)], lambda failure: print(json.dumps(failure), flush=True))
exec(compile("\\n\\n" + sys.argv[1], "submission.py", "exec"))
"""


@pytest.mark.parametrize(("offset", "told"), [(1020, True), (2048, False), (None, False)])
def test_a_fault_in_an_input_is_told_apart_from_others(offset: int | None, told: bool) -> None:
    """A write to an input names it, with the line; any other fault ends the process with its signal, as before."""
    line = "ctypes.memset(8, 1, 1)" if offset is None else f"ctypes.memset(first + {offset}, 1, 1)"
    done = subprocess.run([sys.executable, "-c", _PROGRAM, line], capture_output=True, text=True, check=False)
    if not told:
        assert (done.returncode, done.stdout) == (-11, "")
        return
    failure = json.loads(done.stdout)
    assert failure["message"] == "The kernel wrote to `x`, which is an input."
    assert (failure["kind"], failure["line"]) == ("illegal_access", 3)
