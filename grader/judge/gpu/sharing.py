"""Whether this machine lets two processes share a GPU's memory and wait for a word in the host's memory.

WSL 2, some virtual GPUs and old drivers do not. Then the judge stages all buffers through the host: the practice clock.
"""

from __future__ import annotations

import os
from typing import Literal

from grader.errors import MachineLacks
from grader.protocol.arena import CudaArena, checked
from grader.protocol.flag import Flag

Memory = Literal["shared", "host"]
_TRIAL_BYTES = 1 << 21
_REFUSALS, _FULL = ("NOT_SUPPORTED", "NOT_PERMITTED", "OPERATING_SYSTEM"), "OUT_OF_MEMORY"  # of the driver's errors
_MAPPED = 2  # CU_MEMHOSTREGISTER_DEVICEMAP


def memory(device: str) -> tuple[Memory, str]:
    """Return how judge and workers exchange data, and why it is not "shared" (else ""). `GRADER_MEMORY=host` forces it.

    Raises:
        MachineLacks: `GRADER_MEMORY` is neither "host" nor "auto".
    """
    asked = os.environ.get("GRADER_MEMORY", "auto") or "auto"
    if asked not in ("auto", "host"):
        raise MachineLacks(f"GRADER_MEMORY is {asked!r}; it can be `host` or `auto`.")
    if asked == "host":
        return "host", "GRADER_MEMORY=host asks for it"
    if device != "cuda":
        return "shared", ""
    reason = cannot_share() or cannot_wait()
    return ("host" if reason else "shared"), reason


def cannot_share() -> str:
    """Return why a GPU's memory cannot be handed over by a file descriptor, or "": it is tried within this process.

    Full memory does not count: the judge reports it. Only a refusal by the driver or the system counts against
    opening it, because another process may still succeed.
    """
    said = "the GPU's memory cannot be shared between processes"
    try:
        arena = CudaArena.create(_TRIAL_BYTES)
    except Exception as error:  # old bindings lack functions, old drivers refuse them
        return "" if _FULL in str(error) else f"{said}: {error}"
    try:
        CudaArena.open(arena.fd, arena.size, read_only=True)
    except Exception as error:
        return f"{said}: {error}" if any(name in str(error) for name in _REFUSALS) else ""
    finally:
        os.close(arena.fd)
    return ""


def cannot_wait() -> str:
    """Return why the GPU cannot wait for a word in the host's memory, or "": it is tried."""
    flag, fd = Flag.create()
    os.close(fd)
    try:
        from cuda.bindings import driver

        flag.raise_(1)
        checked(driver.cuMemHostRegister(flag.address, Flag.BYTES, _MAPPED))
        page = int(checked(driver.cuMemHostGetDevicePointer(flag.address, 0)))
        checked(driver.cuStreamWaitValue64(0, page, 1, 0))
        checked(driver.cuStreamWriteValue64(0, page + Flag.ANSWERED_AT, 1, 0))
        checked(driver.cuStreamSynchronize(0))
        checked(driver.cuMemHostUnregister(flag.address))
    except Exception as error:
        return f"the GPU cannot wait for a flag in the host's memory: {error}"
    return "" if flag.answered(1) else "the GPU cannot write to the host's memory"
