"""A head start for the host: the GPU waits for the flag, and what is called meanwhile is queued behind it.

What Python takes to come to its first launch is no part of a kernel's time, and on a busy host it varies by a tenth of
a millisecond. A submission that queued its work behind a wait of its own would be spared it; so all are.
"""

from __future__ import annotations

from typing import Any

from grader.protocol.flag import Flag

__all__ = ["HeadStart"]

_MAPPED = 2  # CU_MEMHOSTREGISTER_DEVICEMAP
_NO_LESS = 0  # CU_STREAM_WAIT_VALUE_GEQ


class HeadStart:
    """The flag as the GPU sees it; on a GPU or a driver that cannot wait for memory nothing is ever queued."""

    def __init__(self, flag: Flag) -> None:
        from cuda.bindings import driver

        self._driver: Any = driver
        (error,) = driver.cuMemHostRegister(flag.address, Flag.BYTES, _MAPPED)
        if not int(error):
            error, self._address = driver.cuMemHostGetDevicePointer(flag.address, 0)
        self._possible = not int(error)

    def begin(self, number: int) -> bool:
        """Has torch's current stream wait until the flag is raised for this round; False where that cannot be."""
        import torch

        if self._possible:
            stream = torch.cuda.current_stream().cuda_stream
            (error,) = self._driver.cuStreamWaitValue64(stream, self._address, number, _NO_LESS)
            self._possible = not int(error)
        return self._possible
