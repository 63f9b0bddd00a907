"""Settings of compilers on a machine without a GPU: the target, and the folder of built headers."""

from __future__ import annotations

import os
import re

VARIABLE = "GRADER_TARGET"
PREBUILT = "GRADER_PREBUILT"  # in a worker's environment: a folder of the judge's with built headers
PREBUILT_OBJECT = "cuda_on_cpu.o"  # in that folder, written last
_DEFAULT = "9.0"
_SHARED_KIB = ((75, 64), (80, 163), (86, 99), (87, 163), (89, 99), (110, 227))  # by the newest capability; then 99


def target() -> int:
    """The compute capability: 90, or 86 with `GRADER_TARGET=8.6`.

    Raises ValueError if the variable holds anything else.
    """
    text = os.environ.get(VARIABLE, "").strip() or _DEFAULT
    if not re.fullmatch(r"\d{1,2}\.\d", text):
        raise ValueError(f"{VARIABLE} is {text!r}: name a compute capability, such as {VARIABLE}={_DEFAULT}.")
    return int(text.replace(".", ""))


def shared_memory_bytes(capability: int) -> int:
    """The most shared memory that a block may have, by the tables of the CUDA programming guide."""
    return 1024 * next((kib for newest, kib in _SHARED_KIB if capability <= newest), 99)
